package cpu

import (
	"flag"
	"os"
	"testing"
)

// TestMain has launches of any size share their work among goroutines in short tests, which the race detector watches: it sees nothing
// where one goroutine does all, and programs of few elements take it little time.
func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		smallLaunch = 0
	}
	os.Exit(m.Run())
}
