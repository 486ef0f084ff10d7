package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/fuse/explain"
)

// TestLosingPlansAreNamed: below a plan that is slower than its operations one by one stand the kernel that takes the most
// and the command that makes a report; below other plans nothing.
func TestLosingPlansAreNamed(t *testing.T) {
	var out bytes.Buffer
	a := &app{ui: newUI(&out, &out, "never", func(string) string { return "" })}
	short, long, unfused := 1e-4, 1e-2, 1e-3
	x := explain.Explanation{Graph: "g", Kernels: []explain.KernelNote{{Name: "g_a", Seconds: &short}, {Name: "g_b", Seconds: &long}}}
	x.Fused, x.Unfused = explain.Total{Kernels: 2, Seconds: &long}, explain.Total{Kernels: 3, Seconds: &unfused}
	said := func(draw func([]explain.Explanation)) string {
		out.Reset()
		draw([]explain.Explanation{x})
		return strings.Join(strings.Fields(out.String()), " ")
	}
	verbose := func(x []explain.Explanation) { a.explainText(x, false) }
	assert.Contains(t, said(a.explainPages), "g is estimated to take longer as planned than unfused, most of it in kernel 2.")
	assert.Contains(t, said(verbose), "most of it in g_b. The planner is at fault, not the program: please report it with the folder that `fusec repro` makes")
	x.Fused.Seconds = &short
	assert.NotContains(t, said(a.explainPages)+said(verbose), "repro")
}

// TestRowsAreNumberedByLaunch: the last number of the rows is the kernels that the headline counts; what runs in the last blocks of a launch has the
// number of that, and what does not run has none. Bytes name kernels by the same numbers.
func TestRowsAreNumberedByLaunch(t *testing.T) {
	writes := func(name string) []explain.Transfer { return []explain.Transfer{{Name: name, Kind: "temporary"}} }
	p := page{x: explain.Explanation{Kernels: []explain.KernelNote{{Name: "a", Writes: writes("s")}, {Name: "idle", Idle: true}, {Name: "b"},
		{Name: "b_rest", LastBlockOf: "b", Reads: writes("s")}, {Name: "c", Reads: writes("s")}}}}
	var labels []string
	for i := range p.x.Kernels {
		labels = append(labels, p.label(i))
	}
	assert.Equal(t, []string{"1", "-", "2", "2+", "3"}, labels)
	assert.Contains(t, strings.Join(p.details(p.x.Kernels[0]), " "), "for kernel 2+, 3")
}
