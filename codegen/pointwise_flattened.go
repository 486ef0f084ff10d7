package codegen

import (
	"github.com/fusec/fusec/ir"
)

// A flattened kernel gives each thread VECTOR consecutive points of all rows together. Wide accesses are at the number
// of the first point. Everything else is read and computed at the coordinates of each point. A thread divides once for
// each range to find the coordinates of its first point, and counts on from there.

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

// coordinates writes the coordinates of each of the thread's points, for the ranges that are used and for all ranges
// inside these: the end of an inner range is where an outer one advances.
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

// nextPoint writes the step to the next point: the innermost coordinate advances, and at the end of its
// range the next outer one.
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

// flattenedBlocks is the number of blocks whose threads have a vector each.
func flattenedBlocks(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	return ceilDiv(product(extents(k.Rows)), int64(v.Schedule.Vector*v.Schedule.Threads))
}
