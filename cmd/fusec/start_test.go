package main

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Every third turn is slow, for the process and for its base: what the process takes more
// is the same all the same. Processes that failed have no figures.
func TestStartsAreComparedWithinATurn(t *testing.T) {
	bare := &kind{name: "bare"}
	warm := &kind{name: "warm", base: bare}
	failed := &kind{name: "cold", base: bare, repeat: 3}
	for turn := range 9 {
		slow := time.Duration(0)
		if turn%3 == 0 {
			slow = 40 * time.Millisecond
		}
		bare.add(100*time.Millisecond+slow, nil)
		warm.add(time.Duration(103+turn%2)*time.Millisecond+slow, nil)
	}
	failed.add(time.Second, nil)
	failed.add(0, errors.New("out of luck"))
	assert.Zero(t, failed.repeat, "no more of them are started")
	assert.ErrorContains(t, failed.err, "cold: out of luck")
	assert.Equal(t, [][]string{
		{"bare", "9", "100.000", "100.000", "140.000", ""},
		{"warm", "9", "104.000", "103.000", "144.000", "3.000"},
		{"cold", "failed", "", "", "", ""},
	}, rowsOf([]*kind{bare, warm, failed}))
}
