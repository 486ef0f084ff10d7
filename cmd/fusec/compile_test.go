package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/ir"
	fusecrt "github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/cache"
)

// Kernels that took long to compile are named, the slowest first; those from the cache are not.
func TestSlowKernelsAreNamed(t *testing.T) {
	var out, errs bytes.Buffer
	a := &app{ui: newUI(&out, &errs, "never", func(string) string { return "" })}
	program := ir.Program{}
	at := func(name string, took time.Duration, outcome cache.Outcome) *build {
		return &build{program: &program, kernel: fusecrt.Kernel{Entry: name, Took: took, Outcome: outcome}}
	}
	a.noteSlow([]*build{at("quick", time.Millisecond, cache.Created), at("stored", time.Minute, cache.Hit)})
	assert.Empty(t, errs.String())
	a.noteSlow([]*build{at("a", 2*time.Second, cache.Created), at("b", 9*time.Second, cache.Created), at("a", 3*time.Second, cache.Created)})
	assert.Contains(t, errs.String(), "more than 1s in NVRTC: b (9.0 s), a (3.0 s)\n", "all sizes are numbers: --size cannot help")
	program.Symbols = []string{"N"}
	a.noteSlow([]*build{at("c", 2*time.Second, cache.Created)})
	assert.Contains(t, errs.String(), "c (2.0 s); --size compiles only")
}
