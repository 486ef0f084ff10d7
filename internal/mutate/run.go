package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
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
	most  time.Duration // that a test may take
	only  string
}

// A check is a test of a step: how long it takes without a mutant, and which mutants it reaches.
type check struct {
	step
	takes   time.Duration
	reaches map[int]bool
}

// run takes each mutant through the tests that reach it, the quick ones of a step first, until one fails, and writes the
// results into the folder.
func run(dir string, p plan) error {
	dir, all, err := openFolder(dir)
	if err != nil {
		return err
	}
	var checks []check
	for _, s := range p.steps {
		of, err := s.checks(dir, p.jobs)
		if err != nil {
			return err
		}
		checks = append(checks, slices.DeleteFunc(of, func(c check) bool { return c.takes > p.most })...)
	}
	return p.each(all, func(m Mutant) Mutant {
		m.Killed = killer(dir, m.ID, checks)
		m.Lived = m.Killed == ""
		fmt.Printf("%d %s %s `%s`: %s\n", m.ID, m.Where, m.Kind, m.Before, orLived(m.Killed))
		return m
	}, func() error { return writeMutants(dir, all) })
}

// tests are steps of one test each. A step that names a part of a test is left as it is.
func (s step) tests(dir string) ([]step, error) {
	args := strings.Fields(s.flags)
	at := slices.Index(args, "-test.run")
	which := "."
	if at >= 0 {
		which = args[at+1]
		args = slices.Delete(args, at, at+2)
	}
	if strings.Contains(which, "/") {
		return []step{s}, nil
	}
	c := exec.Command(filepath.Join(dir, binary(s.folder)), "-test.list", which)
	c.Dir = s.folder
	list, err := c.Output()
	if err != nil {
		return nil, err
	}
	var out []step
	for _, name := range strings.Fields(string(list)) {
		if strings.HasPrefix(name, "Test") {
			out = append(out, step{s.folder, strings.Join(append(slices.Clone(args), "-test.run", "^"+name+"$"), " ")})
		}
	}
	return out, nil
}

// checks runs the tests of a step without a mutant. Those that fail are left out.
func (s step) checks(dir string, jobs int) (out []check, err error) {
	tests, err := s.tests(dir)
	if err != nil {
		return nil, err
	}
	var group errgroup.Group
	var mutex sync.Mutex
	group.SetLimit(jobs)
	start, reached := time.Now(), map[int]bool{}
	for i, t := range tests {
		group.Go(func() error {
			list := filepath.Join(dir, fmt.Sprint("reached", i))
			defer os.Remove(list)
			began := time.Now()
			text, ok := t.passes(dir, 0, 10*time.Minute, "MUTANT_REACHED="+list)
			c := check{t, time.Since(began), nil}
			if c.reaches, err = readReached(list); err != nil {
				return err
			}
			mutex.Lock()
			defer mutex.Unlock()
			if !ok {
				fmt.Printf("%s is left out, as it fails without a mutant:\n%s\n", t, text)
				return nil
			}
			maps.Copy(reached, c.reaches)
			out = append(out, c)
			return nil
		})
	}
	err = group.Wait()
	slices.SortFunc(out, func(a, b check) int { return cmp.Compare(a.takes, b.takes) })
	fmt.Printf("%s: %d tests pass in %v, reach %d\n", s, len(out), time.Since(start).Round(time.Millisecond), len(reached))
	return out, err
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

// killer is the first check that notices the mutant; "" for none.
func killer(dir string, id int, checks []check) string {
	for _, c := range checks {
		if !c.reaches[id] {
			continue
		}
		if _, ok := c.passes(dir, id, time.Minute+10*c.takes); !ok {
			return c.String()
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
