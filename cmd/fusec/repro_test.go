package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Internal errors and wrong results offer the command that makes a folder of them.
func TestReproCommand(t *testing.T) {
	for args, want := range map[string]string{
		"run a.fuse --check --size N=3 --device=cpu --repeat 2": "fusec repro a.fuse --size N=3 --device=cpu",
		"run --in x=x.npy b/c.fuse --no-scale --out y=y.npy":    "fusec repro --in x=x.npy b/c.fuse --no-scale",
		"explain a.fuse -v --device-figures A100":               "fusec repro a.fuse",
		"bench --op softmax":                                    "",
		"ops":                                                   "",
	} {
		assert.Equal(t, want, reproCommand(strings.Fields(args)), args)
	}
}

func TestFailuresThatAreTheSame(t *testing.T) {
	at := func(kind, text string) outcome { return outcome{Kind: kind, Text: text} }
	a := at("check", "output y[3 4]: expected 2.5 (by the interpreter), found 7")
	assert.True(t, a.same(at("check", "output y[0 1]: expected -1 (by the interpreter), found 8")))
	assert.False(t, a.same(at("check", "output z[3 4]: expected 2.5 (by the interpreter), found 7")))
	assert.False(t, a.same(at("error", a.Text)))
	assert.False(t, at("right", "").failed())
}
