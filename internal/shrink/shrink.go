// Package shrink makes programs that fail shorter: Search takes steps as long as the failure
// stays, and a Program yields what is one step simpler than its text. Random programs, which
// know their lines, bring steps of their own (conformance/gen) and share the search and the
// steps within a line.
//
// The package must not run programs: whether one still fails is for the caller to say.
package shrink

import (
	"iter"
	"slices"
)

// Search goes from start to something simpler that still fails, step by step, with at most so
// many calls of fails. After each step that fails it begins anew, with the largest steps.
func Search[T any](start T, most int, simpler func(T) iter.Seq[T], fails func(T) bool) T {
	for progress := true; progress; {
		progress = false
		for c := range simpler(start) {
			if most--; most < 0 {
				return start
			}
			if fails(c) {
				start, progress = c, true
				break
			}
		}
	}
	return start
}

// Below are numbers to try in place of n: the smallest first, then parts of n, then those
// just below it, where an edge may be.
func Below(n int64) (out []int64) {
	for _, m := range []int64{1, 2, 3, n / 4, n / 2, n - n/4, n - 8, n - 1} {
		if m > 0 && m < n && !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}
