// Package fuzztest says how much memory a reader has allocated for an input: tests of
// readers bound it by the input's length.
package fuzztest

import "runtime/metrics"

// Allocated returns how many bytes were allocated while work ran, by it and by whatever
// ran beside it.
func Allocated(work func()) int64 {
	before := allocated()
	work()
	return int64(allocated() - before)
}

func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
