package codegen

import (
	"fmt"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// columnEmitter writes kernels whose threads have VECTOR neighbouring rows each, and fold or scan their
// columns. The rows, not the columns, are contiguous in memory.
type columnEmitter struct {
	laneEmitter
	pipelined bool // columns are prefetched to shared memory
	awaited   bool // the blocks of the cluster have begun
	single    bool // of the reads that fetch several columns together, one column is worked on at a time
}

func newColumn(e *emitter, pipelined bool) *columnEmitter {
	return &columnEmitter{laneEmitter: laneEmitter{emitter: e}, pipelined: pipelined}
}

// kernel writes a kernel whose threads have their columns to themselves.
func (e *columnEmitter) kernel() {
	e.line("const INDEX t = (INDEX)%s * THREADS + threadIdx.x;", e.block)
	e.flatPoint("return", true)
	e.sections(e.flatPass)
}

// sections writes the sections of the thread's rows, those over columns by pass.
func (e *columnEmitter) sections(pass func(int, *ir.Section)) {
	for i, sec := range e.v.Sections {
		if sec.Level == ir.FullLevel {
			pass(i, sec)
			continue
		}
		if e.stays {
			e.open("if (%sgroup == 0 && n > 0)", e.firstBlock())
		}
		e.rowValues(sectionRoots(sec))
		e.flatStores(sec, nil, nil)
		if e.stays {
			e.close()
		}
	}
}

// flatPass writes loops over the columns around one section.
func (e *columnEmitter) flatPass(number int, sec *ir.Section) {
	e.rowValues(sectionRoots(sec))
	e.line("")
	e.line("// pass %d%s", number+1, foldNames(sec))
	states := e.laneStates(sec, "")
	full := e.ofColumns(sec)
	some := e.whereSomeLane(sec)
	switch {
	case len(sec.Scans()) > 0 && e.v.Schedule.Unroll > 0:
		e.flatScan(sec, full, states)
	case some != "":
		e.open("if (%s)", some)
		e.flatLoops(sec, full, states)
		e.close()
	default:
		e.flatLoops(sec, full, states)
	}
	for _, f := range sec.Whole().Folds {
		e.place[f.Result] = foldResult(f, states[f])
		if f.After != nil {
			m := e.place[f.After.Result]
			e.line("#pragma unroll")
			e.line("for (int v = 0; v < %s; ++v) if (%s == -infinity() && %s > 0) %s = nan32();",
				e.width(), m, e.s.Expr(product(extents(e.k.Cols))), states[f])
		}
	}
}

// whereSomeLane writes whether a lane takes part in a section's folds, where each of these has a condition on the row, and returns the name
// of that; "" where a lane always does. The columns need not be read then for the other rows.
func (e *columnEmitter) whereSomeLane(sec *ir.Section) string {
	if len(sec.Stores) > 0 || len(sec.Scans()) > 0 {
		return ""
	}
	var any *ir.Expr
	for _, f := range sec.Folds {
		own := e.onRows(f.Where)
		if own == nil {
			return ""
		}
		any = ir.Join(ir.OpOr, any, own)
	}
	if any == nil {
		return ""
	}
	name := e.names.Fresh("some")
	e.line("bool %s = false;", name)
	e.flatLanes(readsMemory(any), func() { e.line("%s = %s || %s;", name, name, e.s.Expr(any)) })
	return name
}

// onRows is the part of a condition that is the same for all columns of a row, and is asked of data; nil for none.
func (e *columnEmitter) onRows(where *ir.Expr) (own *ir.Expr) {
	if where == nil {
		return nil
	}
	for _, c := range ir.Conjuncts(where) {
		if !usesFull(c) && !e.dependsOn(e.k.Cols, []*ir.Expr{c}) && asksData(c) {
			own = ir.Join(ir.OpAnd, own, c)
		}
	}
	return own
}

// asksData reports whether an expression is computed from elements of tensors.
func asksData(x *ir.Expr) bool {
	return ir.Contains(x, func(x *ir.Expr) bool {
		return x.Op == ir.OpRead || x.Op == ir.OpLocal && (x.Local.Def == nil || asksData(x.Local.Def))
	})
}

// flatLoops writes a loop for each column range.
func (e *columnEmitter) flatLoops(sec *ir.Section, full []*ir.Local, states map[*ir.Fold]string) {
	for _, r := range e.k.Cols {
		switch {
		case e.v.Schedule.Unroll > 0 && r.Extent.Op == ir.OpConst:
			e.line("#pragma unroll")
		case e.v.Schedule.Unroll > 0:
			e.line("#pragma unroll ITEMS")
		}
		name := e.ranges[r]
		if sec.Reverse {
			e.open("for (INDEX %s = %s - 1; %s >= 0; --%s)", name, e.s.Expr(r.Extent), name, name)
			continue
		}
		e.open("for (INDEX %s = 0; %s < %s; ++%s)", name, name, e.s.Expr(r.Extent), name)
	}
	e.flatColumn(sec, full, states)
	for range e.k.Cols {
		e.close()
	}
}

// columnBlocks is the number of blocks whose threads have a vector each.
func columnBlocks(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	return ceilDiv(laneVectors(k, v), int64(v.Schedule.Threads))
}

func columnDefines(v *ir.Variant) string {
	if v.Schedule.Unroll > 1 {
		return fmt.Sprintf("#define ITEMS %d\n", v.Schedule.Unroll)
	}
	return ""
}

// columns writes a loop over the columns in hand with their coordinates.
func (e *columnEmitter) columns(uses []*ir.Expr, body func()) {
	e.line("#pragma unroll")
	e.open("for (int u = 0; u < %s; ++u)", e.items())
	e.line("[[maybe_unused]] const INDEX c = base + (INDEX)u * %s;", e.groupStep())
	if !e.whole {
		e.line("if (c >= %s) continue;", e.s.Expr(product(extents(e.k.Cols))))
	}
	e.take(e.k.Cols, "c", uses...)
	body()
	e.close()
}

// items is the number of columns in hand, as text.
func (e *columnEmitter) items() string {
	if e.single {
		return "1"
	}
	return "ITEMS"
}

// columnVector is the type of a read at one column (a vector, or one element if all lanes share
// it), and the name of the array over the columns in hand.
func (e *columnEmitter) columnVector(l *ir.Local) (vec, name string) {
	lanes, element := "VECTOR", "[u].v[v]"
	if !e.perLane(l) {
		lanes, element = "1", "[u].v[0]"
	}
	return fmt.Sprintf("Vec<%s, %s>", spell.StorageType(readOf(l.Def).Type), lanes), e.raw(l, element)
}

// columnLoads reads what one column needs, into the arrays of the given names.
func (e *columnEmitter) columnLoads(reads []*ir.Local, names map[*ir.Local]string) {
	var narrow []*ir.Local
	for _, l := range reads {
		switch to := names[l]; {
		case l.Wide && e.perLane(l):
			e.atFirst(func() { e.noted(l.Span, "%s[u] = %s;", to, e.wide(readOf(l.Def))) })
		case !e.perLane(l):
			e.noted(l.Span, "%s[u].v[0] = %s;", to, e.read(readOf(l.Def)))
		default:
			narrow = append(narrow, l)
		}
	}
	if len(narrow) > 0 {
		e.flatLanes(true, func() {
			for _, l := range narrow {
				e.noted(l.Span, "%s[u].v[v] = %s;", names[l], e.read(readOf(l.Def)))
			}
		})
	}
}
