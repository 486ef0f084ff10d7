package explain

import (
	"slices"
	"sort"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// tally sums what kernels move and compute.
type tally struct {
	kernels     int
	reads       *ir.Expr // bytes over symbols
	writes      *ir.Expr
	flops       float64
	special     float64
	products    float64 // operations of matrix products, two for each multiply-add
	rate        float64 // of product operations, a second
	seconds     float64 // of kernels that were added
	finding     float64 // seconds in which scatters find what goes where
	unknown     bool    // some amount depends on a symbol without a size
	accumulated bool    // seconds holds the time of every kernel already
	work        []Work  // the same flops, special functions and products, over symbols

	folded   map[uint64]bool // the operations of reductions that were counted
	standIns []*ir.Range     // for the ranges of reductions, in their order
}

// points is the number of points at which something is computed, as a number and as an
// expression over symbols.
type points struct {
	n    float64
	size *ir.Expr
}

// done adds work at a number of points.
func (t *tally) done(p points, w Work) {
	t.flops += (w.Flops + w.Copies) * p.n
	t.special += w.Special * p.n
	t.products += w.Products * p.n
	for i := range t.work {
		if o := &t.work[i]; ir.Equal(o.Points, p.size) {
			o.Flops, o.Copies = o.Flops+w.Flops, o.Copies+w.Copies
			o.Special, o.Products = o.Special+w.Special, o.Products+w.Products
			return
		}
	}
	w.Points = p.size
	t.work = append(t.work, w)
}

func newTally() *tally {
	return &tally{reads: ir.IntConst(0), writes: ir.IntConst(0), folded: map[uint64]bool{}}
}

func (t *tally) read(bytes *ir.Expr) { t.reads = ir.Apply(ir.OpAdd, t.reads, bytes) }

func (t *tally) write(bytes *ir.Expr) { t.writes = ir.Apply(ir.OpAdd, t.writes, bytes) }

// compute adds the work of one value. An operation is done once for each point of the
// ranges that it depends on, and once for all reductions side by side; the last multiplication of what is summed is done with the
// addition. Where each term of a fold goes to one of the rows to, none is computed for the others.
func (t *tally) compute(v *ir.Value, to *ir.Range, x *explainer) {
	if v.Reduce != nil && form.OnlyForNaN(v.Reduce.Where, v.Reduce.Ranges) {
		return // at no point, as a rule
	}
	at := func(ranges []*ir.Range) points {
		return x.points(slices.DeleteFunc(ranges, func(r *ir.Range) bool { return r == to }), t)
	}
	summed := v.Reduce != nil && v.Reduce.Op == ir.Sum
	body, seen := v.Body, map[uint64]bool{}
	if v.Reduce != nil && to == nil {
		body, seen = t.aligned(v), t.folded
	}
	for _, e := range computing(body, seen) {
		if !summed || e != form.WithoutCasts(body) || e.Op != ir.OpMul {
			t.operation(e.Op, at(algebra.RangesOf(ir.FreeRanges(e))))
		}
	}
	all := at(slices.Clone(form.LoopsOf(v)))
	switch {
	case v.Reduce == nil:
	case form.IsMatrixProduct(v) && to == nil:
		t.done(all, Work{Products: 2})
	default:
		t.operation(v.Reduce.Op.Info().Combine, all)
	}
}

// aligned is the body of a reduction over ranges that are the same for reductions over the same sizes.
func (t *tally) aligned(v *ir.Value) *ir.Expr {
	to := map[*ir.Range]*ir.Expr{}
	for i, r := range algebra.AllRanges(v) {
		at := slices.IndexFunc(t.standIns, func(s *ir.Range) bool { return s.ID == -1-i && ir.SameSize(s.Extent, r.Extent) })
		if at < 0 {
			at = len(t.standIns)
			t.standIns = append(t.standIns, &ir.Range{ID: -1 - i, Name: r.Name, Extent: r.Extent})
		}
		to[r] = t.standIns[at].At()
	}
	return ir.Substitute(v.Body, to)
}

// points is the number of points of ranges; t is unknown where that is.
func (x *explainer) points(ranges []*ir.Range, t *tally) points {
	size := algebra.Product(ranges)
	n, ok := x.eval(size)
	t.unknown = t.unknown || !ok
	return points{float64(n), size}
}

// productRate is the operations a second of matrix products on x's device, in the way a
// variant multiplies.
func (x *explainer) productRate(v *ir.Variant) float64 {
	const slower = 2 // mma.sync than wgmma
	t := ir.Invalid
	switch c := v.Contract; {
	case v.Attend != nil:
		if parts := v.Attend.Parts; parts > 0 {
			return x.device.TensorRate / float64(parts*(parts+1)/2) / slower
		}
		t = v.Attend.Type
	case c != nil && (form.IsHalf(c.Type) || c.Unit == ir.TF32Unit || onWarpgroups(v)):
		t = c.Type
	}
	rate := x.multiplies(t)
	if t != ir.Invalid && x.device.Warpgroups() && !onWarpgroups(v) {
		rate /= slower
	}
	return x.windowRate(v, x.multiplyAddRate(v, rate))
}

// windowRate is the operations a second of a window's places, of so many where all places of its tiles are inside and
// their operands are there in time.
func (x *explainer) windowRate(v *ir.Variant, rate float64) float64 {
	c, s := v.Contract, v.Schedule
	if c == nil || c.B[0].WindowTiles == nil {
		return rate
	}
	whole := rate
	lines := float64(c.A.StageLines(s.TileM) + c.B[0].StageLines(s.TileN)/max(1, s.Cluster))
	if cover, _ := c.Cover(); cover != nil {
		lines += float64(cover.Lines) / float64(cover.Taps)
	}
	operations := 2 * float64(s.TileM*s.TileN) / float64(c.Type.Size()) // for each byte of a line
	rate = min(rate, operations/lines*forecast.BytesTap*float64(x.device.SMs)*forecast.Clock)
	for i, n := range c.B[0].WindowTiles.Tile {
		if extent, ok := x.eval(c.N[i].Extent); ok && extent > 0 {
			rate *= float64(extent) / float64((extent+int64(n)-1)/int64(n)*int64(n))
		}
	}
	x.windowed = min(x.windowed, rate/whole)
	return rate
}

// multiplies is the operations a second of products of a type: on tensor cores, where tf32
// is half as fast as 16 bits, or else as f32.
func (x *explainer) multiplies(t ir.DType) float64 {
	switch {
	case form.IsHalf(t) && x.device.TensorCores():
		return x.device.TensorRate
	case t == ir.F32 && x.device.TensorCores():
		return x.device.TensorRate / 2
	}
	return x.device.F32Rate
}

// operation adds an operation at a number of points. A device's rate counts two
// for each issue slot, as for a fused multiply-add.
func (t *tally) operation(op ir.Op, at points) {
	const perSlot = 2
	t.done(at, Work{Flops: perSlot * float64(op.Info().Cost), Special: float64(op.Info().Special)})
}

// add joins the tally of one more kernel, timed on x's device by total.
func (t *tally) add(k *tally) {
	t.kernels += k.kernels
	t.reads, t.writes = ir.Apply(ir.OpAdd, t.reads, k.reads), ir.Apply(ir.OpAdd, t.writes, k.writes)
	t.seconds += k.seconds
	t.unknown = t.unknown || k.unknown
	t.accumulated = true
}

// total is the tally as data. It times a tally of one kernel.
func (x *explainer) total(t *tally) Total {
	out := Total{Kernels: t.kernels, Read: x.amount(t.reads), Written: x.amount(t.writes)}
	if t.unknown || out.Read.Bytes == nil || out.Written.Bytes == nil {
		t.unknown = true
		return out
	}
	if !t.accumulated && t.kernels > 0 {
		t.seconds = x.device.Time(float64(*out.Read.Bytes)+float64(*out.Written.Bytes), t.flops, t.special) + t.finding
		if t.products > 0 {
			t.seconds = max(t.seconds, x.device.Launch+t.products/t.rate)
		}
	}
	out.Seconds = &t.seconds
	return out
}

// Touched is the memory of v that the members of a kernel read, each element
// once: no more than v holds, no more than the distinct points of its loads.
func Touched(v *ir.Value, members []*ir.Value) *ir.Expr {
	var loads []*ir.Expr
	for _, u := range members {
		for _, l := range u.Loads() {
			if l.From == v {
				loads = append(loads, l)
			}
		}
	}
	if len(loads) == 0 { // a bound of a mask: no point loads it, but tiles read it
		return algebra.Bytes(v)
	}
	return bytesOf(v, loads)
}

// bytesOf is the memory of v that loads of it read. Equal loads read the same elements.
func bytesOf(v *ir.Value, loads []*ir.Expr) *ir.Expr {
	points := ir.IntConst(0)
	for i, l := range loads {
		if !slices.ContainsFunc(loads[:i], func(o *ir.Expr) bool { return ir.Equal(o, l) }) {
			points = ir.Apply(ir.OpAdd, points, pointsOf(l))
		}
	}
	return atMost(points, v)
}

// writtenBytes is the bytes that a kernel writes to a buffer: those of its parts, where that has some.
func writtenBytes(b *ir.Buffer, k *ir.Kernel) *ir.Expr {
	parts := b.PartsIn(k)
	if len(parts) == 0 {
		return algebra.Bytes(b.Value)
	}
	bytes := ir.IntConst(0)
	for _, p := range parts {
		bytes = ir.Apply(ir.OpAdd, bytes, algebra.Bytes(p))
	}
	return ir.Simplify(bytes, ir.Facts{})
}

// atMost is the bytes of the given number of v's elements, or of all of v.
func atMost(points *ir.Expr, v *ir.Value) *ir.Expr {
	size := ir.IntConst(int64(v.Type.Size()))
	some, all := ir.Simplify(ir.Apply(ir.OpMul, points, size), ir.Facts{}), algebra.Bytes(v)
	switch ir.Decide(ir.Apply(ir.OpGe, some, all), ir.Facts{Positive: true}) {
	case ir.True:
		return all
	case ir.False:
		return some
	}
	return ir.Apply(ir.OpMin, some, all)
}

// pointsOf is the number of distinct indices a load visits at most: the points of
// the ranges that its indices depend on.
func pointsOf(load *ir.Expr) *ir.Expr {
	free := map[*ir.Range]bool{}
	for _, a := range load.Args {
		for r := range ir.FreeRanges(a) {
			free[r] = true
		}
	}
	return algebra.Product(algebra.RangesOf(free))
}

// computing lists the operations of a body that were not seen. Equal operations are listed once, because a kernel
// computes them once. Operations on indices are left out, because they only move elements.
func computing(body *ir.Expr, seen map[uint64]bool) []*ir.Expr {
	var out []*ir.Expr
	ir.Walk(body, func(e *ir.Expr) bool {
		if e.Op >= ir.OpRandom && e.Args[0].Type != ir.Index && !seen[e.Hash()] {
			seen[e.Hash()] = true
			out = append(out, e)
		}
		return e.Op != ir.OpLoad
	})
	return out
}

// operations lists what values compute, by place in the program. What several
// members repeat, after substitution, counts as often as in one of them. Splitting a number into terms counts as one
// operation: the many that it takes are none of the program.
func operations(members []*ir.Value) []Operation {
	type key struct {
		name string
		span diag.Span
	}
	out, at := []Operation{}, map[key]int{}
	for _, v := range members {
		counts := map[key]int{}
		add := func(name string, span diag.Span) {
			if span.IsZero() {
				span = v.Origin.Span
			}
			k := key{name, span}
			i, known := at[k]
			if !known {
				i = len(out)
				at[k] = i
				out = append(out, Operation{Name: name, Value: v.Name, Call: v.Origin.Call, Span: Place{span}})
			}
			counts[k]++
			out[i].Count = max(out[i].Count, counts[k])
		}
		if v.Reduce != nil {
			add(v.Reduce.Op.String(), v.Origin.Span)
		}
		split := splitsIntoTerms(v)
		if split {
			add(TermsOperation, v.Origin.Span)
		}
		for _, e := range computing(v.Body, map[uint64]bool{}) {
			if !(split && e.Span.IsZero()) && !readsTerm(e) {
				add(e.Op.String(), e.Span)
			}
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return before(out[i].Span.Span, out[j].Span.Span) })
	return out
}

// before orders spans by their ends: what ends first is computed first.
func before(a, b diag.Span) bool {
	if a.Start.Filename != b.Start.Filename {
		return a.Start.Filename < b.Start.Filename
	}
	if a.End.Offset != b.End.Offset {
		return a.End.Offset < b.End.Offset
	}
	return a.Start.Offset > b.Start.Offset
}
