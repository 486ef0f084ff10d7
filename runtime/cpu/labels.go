package cpu

import (
	"context"
	"runtime/pprof"

	"github.com/fusec/fusec/ir"
)

// labels are what profiles of the processor (runtime/pprof) say of a goroutine while it runs a kernel: its graph and its name.
type labels []label // by kernel

// label is the labels of one kernel, and a context that has no others, so that most runs make none.
type label struct {
	set   pprof.LabelSet
	alone context.Context
}

func labelsOf(plan *ir.Plan) labels {
	out := make(labels, len(plan.Kernels))
	for i, k := range plan.Kernels {
		set := pprof.Labels("graph", plan.Graph.Name, "kernel", k.Name)
		out[i] = label{set, pprof.WithLabels(context.Background(), set)}
	}
	return out
}

// set labels the goroutine with a kernel, and returns a context that has the same labels. Labels of the caller's context stay.
func (l labels) set(ctx context.Context, kernel int) context.Context {
	to := l[kernel].alone
	pprof.ForLabels(ctx, func(string, string) bool {
		to = pprof.WithLabels(ctx, l[kernel].set)
		return false
	})
	pprof.SetGoroutineLabels(to)
	return to
}
