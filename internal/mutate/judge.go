package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
)

// judge has the test that the overlay adds to a package judge mutants, each process its share.
func judge(dir, pkg string, p plan) error {
	dir, all, err := openFolder(dir)
	if err != nil {
		return err
	}
	var only []string
	for _, m := range all {
		if wanted(m, p.only) {
			only = append(only, strconv.Itoa(m.ID))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.limit)
	defer cancel()
	var group errgroup.Group
	for part := range p.jobs {
		group.Go(func() error {
			return judgePart(ctx, dir, pkg, part, "MUTANT_ONLY="+strings.Join(only, ","), fmt.Sprintf("MUTANT_PART=%d/%d", part, p.jobs))
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for part := range p.jobs {
		text, err := os.ReadFile(journalOf(dir, pkg, part))
		if err != nil {
			return err
		}
		takeJournal(all, pkg, string(text))
	}
	for i := range all {
		all[i].Lived = all[i].Lived || all[i].Killed == "" && slices.Contains(only, strconv.Itoa(all[i].ID))
	}
	count(all)
	return writeMutants(dir, all)
}

func journalOf(dir, pkg string, part int) string {
	return filepath.Join(dir, fmt.Sprintf("journal-%s-%d", binary(pkg), part))
}

// judgePart begins a process again and again, as mutants end it, until its share is done or the time is over.
func judgePart(ctx context.Context, dir, pkg string, part int, env ...string) error {
	journal := journalOf(dir, pkg, part)
	for ctx.Err() == nil {
		c := exec.CommandContext(ctx, filepath.Join(dir, binary(pkg)), "-test.run", "^TestJudge$", "-test.timeout", "0")
		c.Dir, c.Env = pkg, append(append(os.Environ(), "MUTANT_JOURNAL="+journal), env...)
		out, err := c.CombinedOutput()
		if err == nil {
			return nil
		}
		if strings.Contains(string(out), "without a mutant") {
			return fmt.Errorf("%s: %s", pkg, out)
		}
		env = append(env, "MUTANT_CRASHED=1")
		if ctx.Err() != nil { // what was under way is not judged
			return appendTo(journal, "left\n")
		}
	}
	return nil
}

func appendTo(file, text string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(text); err != nil {
		return err
	}
	return f.Close()
}

// takeJournal marks the mutants that a journal says are killed.
func takeJournal(all []Mutant, pkg, journal string) {
	for line := range strings.Lines(journal) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if word != "killed" {
			continue
		}
		id, what, _ := strings.Cut(rest, " ")
		for i := range all {
			if strconv.Itoa(all[i].ID) == id {
				all[i].Killed = pkg + ": " + what
			}
		}
	}
}
