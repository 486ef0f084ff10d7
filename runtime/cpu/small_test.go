package cpu

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

// TestMain has launches of any size share their work among goroutines in short tests, which the race detector watches: it sees nothing
// where one goroutine does all, and programs of few elements take it little time. Garbage is collected less often: plans and
// the interpreter leave much of it and keep little.
func TestMain(m *testing.M) {
	flag.Parse()
	debug.SetGCPercent(400)
	if testing.Short() {
		smallLaunch = 0
	}
	os.Exit(m.Run())
}
