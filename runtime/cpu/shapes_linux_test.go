package cpu

import (
	"context"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// processTime is the time that the process has had of the processors, in nanoseconds.
func processTime(b *testing.B) int64 {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return usage.Utime.Nano() + usage.Stime.Nano()
}

// BenchmarkShapes runs one graph on one row of 1 to so many elements, in turns and at
// random.
func BenchmarkShapes(b *testing.B) {
	for _, random := range []bool{false, true} {
		for _, shapes := range []int{1, 16, 17, 100, 1000, 4000} {
			b.Run(fmt.Sprintf("%d/random=%v", shapes, random), func(b *testing.B) {
				plan := softmaxPlan()
				run := New(plan, Options{})
				memory := [2][]byte{make([]byte, 6000*4), make([]byte, 6000*4)}
				call := func(n int) {
					bytes := (n%shapes + 1) * 4
					require.NoError(b, run.Run(context.Background(), map[string]int64{"N": 1, "M": int64(n%shapes + 1)},
						[][]byte{memory[0][:bytes], memory[1][:bytes]}))
				}
				for n := range shapes {
					call(n)
				}
				n, used := 0, processTime(b)
				for b.Loop() {
					n++
					if random {
						n = rand.IntN(shapes)
					}
					call(n)
				}
				b.StopTimer()
				b.ReportMetric(float64(processTime(b)-used)/float64(b.N), "cpu-ns/op") // others may use the machine
				memory = [2][]byte{}
				var before, after goruntime.MemStats
				goruntime.GC()
				goruntime.GC()
				goruntime.ReadMemStats(&before)
				kept := len(run.bounds.list)
				run.bounds.list, run.bounds.at = nil, nil
				goruntime.GC()
				goruntime.GC()
				goruntime.ReadMemStats(&after)
				b.ReportMetric(float64(kept), "kept")
				b.ReportMetric(float64(before.HeapAlloc-after.HeapAlloc)/float64(kept)/4, "B/kernel")
			})
		}
	}
}
