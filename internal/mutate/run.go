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
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// A step runs a package's tests, with the flags of its test binary.
type step struct{ folder, flags string }

func (s step) String() string { return strings.TrimSpace(s.folder + " " + s.flags) }

func parseSteps(text string) (out []step) {
	for s := range strings.SplitSeq(text, ";") {
		folder, flags, _ := strings.Cut(strings.TrimSpace(s), " ")
		out = append(out, step{folder, flags})
	}
	return out
}

// A plan says how mutants run.
type plan struct {
	steps []step
	jobs  int
	limit time.Duration
	only  string
}

// run takes each mutant through the steps until one fails, and writes the results into the folder.
func run(dir string, p plan) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	all, err := readMutants(dir)
	if err != nil {
		return err
	}
	limits := map[step]time.Duration{}
	reached := map[step]map[int]bool{}
	for _, s := range p.steps {
		start := time.Now()
		list := filepath.Join(dir, "reached")
		_ = os.Remove(list) // of another step
		out, ok := s.passes(dir, 0, 10*time.Minute, "MUTANT_REACHED="+list)
		if reached[s], err = readReached(list); err != nil {
			return err
		}
		if !ok {
			fmt.Printf("%s is left out, as it fails without a mutant:\n%s\n", s, out)
			continue
		}
		limits[s] = 20*time.Second + 6*time.Since(start)
		fmt.Printf("%s passes in %v, reaches %d\n", s, time.Since(start).Round(time.Millisecond), len(reached[s]))
	}
	p.steps = slices.DeleteFunc(p.steps, func(s step) bool { return limits[s] == 0 })
	return p.each(all, func(m Mutant) Mutant {
		reaches := func(s step) bool { return reached[s][m.ID] } // of others the tests cannot notice it
		m.Killed = killer(dir, m.ID, slices.DeleteFunc(slices.Clone(p.steps), func(s step) bool { return !reaches(s) }), limits)
		m.Lived = m.Killed == ""
		fmt.Printf("%d %s %s `%s`: %s\n", m.ID, m.Where, m.Kind, m.Before, orLived(m.Killed))
		return m
	}, func() error { return writeMutants(dir, all) })
}

// each judges the mutants that are wanted, several at a time, and saves after each of them.
func (p plan) each(all []Mutant, judge func(Mutant) Mutant, save func() error) error {
	end := time.Now().Add(p.limit)
	var group errgroup.Group
	var saving sync.Mutex
	group.SetLimit(p.jobs)
	for i, m := range all {
		if !wanted(m, p.only) {
			continue
		}
		group.Go(func() error {
			if time.Now().After(end) {
				return nil
			}
			judged := judge(m)
			saving.Lock()
			defer saving.Unlock()
			all[i] = judged
			return save()
		})
	}
	err := group.Wait()
	count(all)
	return err
}

func orLived(killed string) string {
	if killed == "" {
		return "LIVED"
	}
	return "killed by " + killed
}

// wanted are the mutants that no step has killed yet, of those that are listed by number or by the start
// of their path.
func wanted(m Mutant, only string) bool {
	listed := func(o string) bool { return o == strconv.Itoa(m.ID) || strings.HasPrefix(m.Where, o) }
	return m.Killed == "" && slices.ContainsFunc(strings.Split(only, ","), listed)
}

func count(all []Mutant) {
	killed, lived := 0, 0
	for _, m := range all {
		if m.Killed != "" {
			killed++
		} else if m.Lived {
			lived++
		}
	}
	fmt.Printf("%d killed, %d lived, %d did not run\n", killed, lived, len(all)-killed-lived)
}

// killer is the first step that notices the mutant; "" for none.
func killer(dir string, id int, steps []step, limits map[step]time.Duration) string {
	for _, s := range steps {
		if _, ok := s.passes(dir, id, limits[s]); !ok {
			return s.String()
		}
	}
	return ""
}

// passes says whether the step's tests pass within a time, where go test would run them.
func (s step) passes(dir string, id int, limit time.Duration, env ...string) (string, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	kernels, err := os.MkdirTemp("", "mutant") // a mutant's kernels are nobody else's
	if err != nil {
		return err.Error(), false
	}
	defer os.RemoveAll(kernels)
	c := exec.CommandContext(ctx, filepath.Join(dir, binary(s.folder)), append(strings.Fields(s.flags), "-test.failfast")...)
	c.Dir, c.Env = s.folder, append(append(os.Environ(), "MUTANT="+strconv.Itoa(id), "FUSEC_CACHE="+kernels), env...)
	c.WaitDelay = time.Second
	out, err := c.CombinedOutput()
	return string(out), err == nil && ctx.Err() == nil
}

// readReached reads the numbers of mutants whose places a step has reached; there is no list where it
// reached none.
func readReached(list string) (map[int]bool, error) {
	text, err := os.ReadFile(list)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	out := map[int]bool{}
	for _, field := range strings.Fields(string(text)) {
		id, err := strconv.Atoi(field)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", list, err)
		}
		out[id] = true
	}
	return out, nil
}
