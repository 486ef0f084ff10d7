package cpu

import (
	"context"
	"runtime/pprof"

	"github.com/fusec/fusec/ir"
)

// labels are what profiles of the processor (runtime/pprof) say of a goroutine while it runs a kernel: its graph and its name.
type labels []context.Context // by kernel

func labelsOf(plan *ir.Plan) labels {
	out := make(labels, len(plan.Kernels))
	for i, k := range plan.Kernels {
		out[i] = pprof.WithLabels(context.Background(), pprof.Labels("graph", plan.Graph.Name, "kernel", k.Name))
	}
	return out
}

// set labels the goroutine, and those that it starts from now on, with a kernel. Labels of the caller's context stay.
func (l labels) set(ctx context.Context, kernel int) {
	own := false
	pprof.ForLabels(ctx, func(string, string) bool {
		own = true
		return false
	})
	to := l[kernel]
	if own {
		var set []string
		pprof.ForLabels(to, func(key, value string) bool {
			set = append(set, key, value)
			return true
		})
		to = pprof.WithLabels(ctx, pprof.Labels(set...))
	}
	pprof.SetGoroutineLabels(to)
}
