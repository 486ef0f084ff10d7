package cpu

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

// TestMain has launches of any size share their work among goroutines in short tests, which the race detector watches: it sees nothing
// where one goroutine does all, and programs of few elements take it little time. Garbage is collected less often: plans and
// the interpreter leave much of it and keep little. Properties are checked of three tenths of the drawn cases unless
// FUSEC_TEST_FULL or -rapid.checks is set, or tests are short, which draw fewer by themselves.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given && !testing.Short() && os.Getenv("FUSEC_TEST_FULL") == "" {
		if err := flag.Set("rapid.checks", "30"); err != nil {
			panic(err)
		}
	}
	debug.SetGCPercent(400)
	if testing.Short() {
		smallLaunch = 0
	}
	os.Exit(m.Run())
}
