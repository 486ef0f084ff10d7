package codegen

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// A flattened kernel gives each thread VECTOR consecutive points of all rows together. Wide accesses are at the number
// of the first point. All else is read and computed at the coordinates of each point, which a thread finds by one
// division for each range, of its first point, and by counting for the points after it.

// flattened writes a kernel whose vectors run across the ends of rows.
func (e *pointEmitter) flattened() {
	e.line("const INDEX t = (INDEX)%s * THREADS + threadIdx.x;", e.block)
	e.line("if (t > (%s - 1) / VECTOR) return;", e.s.Expr(e.laneExtent())) // t * VECTOR might be too large a number
	e.line("[[maybe_unused]] const INDEX first = t * VECTOR;")
	e.coordinates()
	if e.wholeLanes() {
		e.line("[[maybe_unused]] constexpr int n = VECTOR;")
		e.sections()
		return
	}
	e.apart()
}

// coordinates writes the coordinates of each of the thread's points: of the ranges that something is computed or read
// at, and of those inside them, whose ends say when an outer one goes on.
func (e *pointEmitter) coordinates() {
	ranges := e.counted()
	if len(ranges) == 0 {
		return
	}
	e.laneAt = map[*ir.Range]string{}
	for _, r := range ranges {
		e.laneAt[r] = e.names.Fresh(r.Name + "_lanes")
	}
	rest := "first"
	for d := len(ranges) - 1; d >= 0; d-- {
		name := e.ranges[ranges[d]]
		if ranges[d] == e.k.Rows[0] {
			e.line("INDEX %s = %s, %s[VECTOR];", name, rest, e.laneAt[ranges[d]])
			break
		}
		extent := e.extentDivisor(ranges[d])
		e.line("INDEX %s = %s %% %s, %s[VECTOR];", name, rest, extent, e.laneAt[ranges[d]])
		if d > 0 {
			e.line("const INDEX %s_outer = %s / %s;", name, rest, extent)
			rest = name + "_outer"
		}
	}
	e.line("#pragma unroll")
	e.open("for (int v = 0; v < VECTOR; ++v)")
	for _, r := range ranges {
		e.line("%s[v] = %s;", e.laneAt[r], e.ranges[r])
	}
	e.nextPoint(ranges)
	e.close()
}

// nextPoint goes on by one point: the innermost coordinate counts, and where a row ends, the one around it.
func (e *pointEmitter) nextPoint(ranges []*ir.Range) {
	last := len(ranges) - 1
	name := e.ranges[ranges[last]]
	if last == 0 && ranges[0] == e.k.Rows[0] {
		e.line("++%s;", name)
		return
	}
	if last == 0 {
		e.line("if (++%s == %s) %s = 0;", name, e.s.Expr(ranges[last].Extent), name)
		return
	}
	e.open("if (++%s == %s)", name, e.s.Expr(ranges[last].Extent))
	e.line("%s = 0;", name)
	e.nextPoint(ranges[:last])
	e.close()
}

// counted lists the rows from the outermost one on that a coordinate of each point is needed of.
func (e *laneEmitter) counted() []*ir.Range {
	var uses []*ir.Expr
	for _, l := range e.v.Locals {
		if !l.Wide {
			uses = append(uses, l.Def)
		}
	}
	for _, s := range e.v.Sections {
		for _, st := range s.Stores {
			uses = append(uses, st.Value, st.Guard)
			if !st.Wide {
				uses = append(uses, st.Offset)
			}
		}
	}
	used := e.used(uses)
	return e.k.Rows[max(0, slices.IndexFunc(e.k.Rows, func(r *ir.Range) bool { return used[r] })):]
}

// laneCoordinates writes the coordinates of lane v, in the scope of which they hide those of the first point.
func (e *laneEmitter) laneCoordinates() {
	for _, r := range e.counted() {
		e.line("[[maybe_unused]] const INDEX %s = %s[v];", e.ranges[r], e.laneAt[r])
	}
}

// variesBetweenLanes reports whether a range has different values in the lanes of a thread.
func (e *laneEmitter) variesBetweenLanes(r *ir.Range) bool {
	return r == e.lane || e.acrossRows && slices.Contains(e.k.Rows, r)
}

// laneExtent is how many points vectors run along: those of the innermost range, or of all.
func (e *laneEmitter) laneExtent() *ir.Expr {
	if e.acrossRows {
		return product(extents(e.k.Rows))
	}
	return e.lane.Extent
}

// overPoints writes the offset of a wide access, which runs with all rows together, over the number of its first point.
func (e *emitter) overPoints(offset *ir.Expr) *ir.Expr {
	if e.column == nil {
		e.column = &ir.Range{ID: -1, Name: "first", Extent: product(extents(e.k.Rows))}
		e.ranges[e.column] = "first"
	}
	start := map[*ir.Range]*ir.Expr{}
	for _, r := range e.k.Rows {
		start[r] = ir.IntConst(0)
	}
	return ir.Simplify(ir.Apply(ir.OpAdd, e.column.At(), ir.Substitute(offset, start)), e.s.Facts)
}

// drawnAt is the place of a vector of random bits.
func (e *emitter) drawnAt(place *ir.Expr) *ir.Expr {
	if e.acrossRows {
		return e.overPoints(place)
	}
	return place
}

// flattenedBlocks is the number of blocks whose threads have a vector each.
func flattenedBlocks(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	return ceilDiv(product(extents(k.Rows)), int64(v.Schedule.Vector*v.Schedule.Threads))
}
