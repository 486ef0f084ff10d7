package fakecuda

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// deferEnv says that drivers defer, for a process that Main starts.
const deferEnv = "FUSEC_TEST_DEFER"

// atOnce is set by Main for tests on drivers that run work as soon as it is queued.
var atOnce bool

// defers is whether new drivers defer their work. A GPU does, so that is the mode for packages
// whose tests do not run in both.
func defers() bool { return os.Getenv(deferEnv) != "" || !atOnce }

// opened are the tests that opened a driver, by the names of their functions.
var opened struct {
	mu    sync.Mutex
	tests []string
}

func note(t testing.TB) {
	name, _, _ := strings.Cut(t.Name(), "/")
	opened.mu.Lock()
	defer opened.mu.Unlock()
	if !slices.Contains(opened.tests, name) {
		opened.tests = append(opened.tests, name)
	}
}

// Main runs the tests of a package in both modes. First it runs all tests on drivers that run
// work as soon as it is queued. Then, in another process, it runs those that opened a driver
// again, on drivers that defer work. It removes the libraries that were built.
func Main(m *testing.M) {
	atOnce = os.Getenv(deferEnv) == ""
	code := m.Run()
	if folder != "" {
		os.RemoveAll(folder)
	}
	if atOnce && code == 0 && len(opened.tests) > 0 {
		code = again(opened.tests)
	}
	os.Exit(code)
}

// again runs tests in a process whose drivers defer, and returns its exit code. Subtests that
// -run chose stay chosen.
func again(tests []string) int {
	slices.Sort(tests)
	pattern := "^(" + regexp.QuoteMeta(strings.Join(tests, "\n")) + ")$"
	pattern = strings.ReplaceAll(pattern, "\n", "|")
	if _, parts, ok := strings.Cut(flag.Lookup("test.run").Value.String(), "/"); ok {
		pattern += "/" + parts
	}
	if testing.Verbose() {
		fmt.Printf("--- %d tests again, with drivers that defer their work (%s=1)\n", len(tests), deferEnv)
	}
	cmd := exec.Command(os.Args[0], append(slices.Clone(os.Args[1:]), "-test.run="+pattern, "-test.bench=",
		"-test.testlogfile=", "-test.coverprofile=", "-test.cpuprofile=", "-test.memprofile=")...)
	cmd.Env = append(os.Environ(), deferEnv+"=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err := cmd.Run()
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed):
		fmt.Printf("the tests failed on drivers that defer their work: %s=1 runs them alone\n", deferEnv)
		return max(failed.ExitCode(), 1)
	case err != nil:
		fmt.Println("starting the tests again:", err)
		return 1
	}
	return 0
}
