package fuse

import (
	"flag"
	"hash/crc32"
	"os"
	"runtime/debug"
	"testing"
)

// TestMain collects garbage less often: plans leave much of it and keep little. Properties are checked of a quarter of the
// drawn cases unless FUSEC_TEST_FULL or -rapid.checks is set.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	if !inFull() {
		if err := flag.Set("rapid.checks", "25"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// inFull is whether tests take every program, as in .ci/run, and not what is enough while one works.
func inFull() bool { return os.Getenv("FUSEC_TEST_FULL") != "" }

// draws is whether a text is one of those in so many that its hash draws, or FUSEC_TEST_FULL is set.
func draws(text string, oneIn uint32) bool {
	return inFull() || crc32.ChecksumIEEE([]byte(text))%oneIn == 0
}
