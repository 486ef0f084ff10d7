package codegen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// mergeStates merges the partial results of the row's threads in one exchange. A sum that is rescaled by a running
// maximum is exchanged together with the maximum of its warp, from which it is rescaled to that of the row.
func (e *rowEmitter) mergeStates(sec *ir.Section, states map[*ir.Fold]string) {
	lead, follow := ordered(sec)
	folds := append(append([]*ir.Fold(nil), lead...), follow...)
	if len(folds) == 0 {
		return
	}
	e.call(e.before)
	slots, warps := map[*ir.Fold]string{}, map[*ir.Fold]string{}
	for _, f := range folds {
		slots[f] = e.slots(f)
	}
	e.awaitCluster()
	meetings := ""
	if e.stays {
		sizes := make([]string, len(folds))
		for i, f := range folds {
			sizes[i] = fmt.Sprintf("sizeof(%s)", foldType(f))
		}
		if e.schedules(sec) {
			sizes = append(sizes, "sizeof(unsigned)")
		}
		e.line("row_expect<ROW_THREADS, CLUSTER>(meetings, %s);", strings.Join(sizes, " + "))
		meetings = "meetings"
	}
	for _, f := range folds { // the thread keeps its own maximum, because its sums are rescaled from it
		if f.After != nil {
			from, to := states[f.After], warps[f.After]
			e.line("if (%s != %s) %s *= %s;", from, to, states[f], e.rescaled(f, from, to))
		}
		warps[f] = e.names.Fresh(f.Result.Name + "_warp")
		e.line("const %s %s = row_partial<%s, ROW_THREADS, CLUSTER>(%s);", foldType(f), warps[f], foldClass(f.Op),
			listed(states[f], slots[f], meetings))
	}
	if e.schedules(sec) {
		e.shareTile()
	}
	e.line("row_sync<ROW_THREADS, CLUSTER>(%s);", meetings)
	e.call(e.after)
	if e.schedules(sec) {
		e.takeRow()
	}
	for _, f := range folds {
		e.total(f, warps[f], slots)
	}
}

// listed joins arguments, without the empty ones.
func listed(args ...string) string {
	return strings.Join(slices.DeleteFunc(args, func(a string) bool { return a == "" }), ", ")
}

// slots declares the shared memory through which warps exchange partial results of a fold.
func (e *rowEmitter) slots(f *ir.Fold) string {
	name := e.names.Fresh(f.Result.Name + "_slots")
	if e.accumulates { // one thread may be a row ahead of another, which still reads its slots
		e.line("__shared__ %s %s[2][slots<ROW_THREADS, CLUSTER>];", foldType(f), name)
		return name + "[turn]"
	}
	if e.stays { // writes for the next row must not reach slots that others still read for this row
		e.line("__shared__ %s %s[2][slots<ROW_THREADS, CLUSTER>];", foldType(f), name)
		return name + "[turn & 1]"
	}
	e.line("__shared__ %s %s[slots<ROW_THREADS, CLUSTER>];", foldType(f), name)
	return name
}

// total names the result of a fold over the row.
func (e *rowEmitter) total(f *ir.Fold, warp string, slots map[*ir.Fold]string) {
	text := fmt.Sprintf("row_total<%s, ROW_THREADS, CLUSTER>(%s, %s)", foldClass(f.Op), warp, slots[f])
	if f.After != nil { // where all elements are -inf the sum is exp(-inf - -inf), which is NaN
		m := e.place[f.After.Result]
		rescale := e.names.Fresh(f.Result.Name + "_rescale")
		e.line("const auto %s = [&](%s from) { return from == %s ? 1 : %s; };", rescale, foldType(f.After), m, e.rescaled(f, "from", m))
		text = fmt.Sprintf("%s == -infinity() && cols > 0 ? nan32() : row_total<%s, ROW_THREADS, CLUSTER>(%s, %s, %s, %s)",
			m, foldClass(f.Op), warp, slots[f], slots[f.After], rescale)
	}
	name := e.names.Fresh(f.Result.Name)
	e.noted(f.Result.Span, "const %s %s = %s;", spell.ComputeType(f.Result.Type), name, foldResult(f, text))
	e.place[f.Result] = name
}

// awaitCluster waits, once, until every block of the cluster has started: the shared memory of a block must not be
// written before.
func (e *rowEmitter) awaitCluster() {
	if e.v.Schedule.Cluster > 1 && !e.awaited {
		e.line("cluster_wait();")
		e.awaited = true
	}
}
