package interp

import (
	"math"
	"slices"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// frame is the state that compiled closures run on.
type frame struct {
	at   []int64 // the current index of each range, by slot
	now  uint64  // the current evaluation; shared results stamped otherwise are stale
	memo []cell
	run  uint64 // the current run of lanes
	err  error  // the first read outside that had no fill, or what stop says

	stop func() error // asked now and then; nil for never
}

// checkStop ends the loops of an evaluation that is to stop.
func (f *frame) checkStop() {
	if f.stop != nil && f.err == nil {
		f.err = f.stop()
	}
}

// cell is the result of a shared node.
type cell struct {
	stamp uint64
	Scalar
}

// code is a compiled expression: float for float types, int for all others.
type code struct {
	float func(*frame) float64
	int   func(*frame) int64
}

func (c code) eval(f *frame) Scalar {
	if c.float != nil {
		return Scalar{F: c.float(f)}
	}
	return Scalar{I: c.int(f)}
}

// compiler turns expressions into closures. Where a node is used more than
// once, its result is kept for the current evaluation.
type compiler struct {
	mode    Mode
	symbols map[string]int64
	leaf    func(*ir.Expr) code   // loads, reads and locals
	source  func(*ir.Expr) source // what a load of floats reads in runs; nil where nothing is computed in runs
	slots   map[*ir.Range]int
	uses    map[*ir.Expr]int
	counted map[*ir.Expr]bool // whole expressions whose nodes are in uses
	// exponents are the differences that exponentials are taken of, as scores of a softmax less the largest of them.
	exponents map[*ir.Expr]bool
	done      map[*ir.Expr]code
	cells     int
	chooser   *chooser // in Sampled mode, else nil
}

// newCompiler returns a compiler; the caller sets leaf, and source.
func newCompiler(mode Mode, symbols map[string]int64) *compiler {
	return &compiler{mode: mode, symbols: symbols,
		slots: map[*ir.Range]int{}, uses: map[*ir.Expr]int{}, counted: map[*ir.Expr]bool{}, exponents: map[*ir.Expr]bool{}, done: map[*ir.Expr]code{}}
}

// frame returns the state for what has been compiled so far.
func (c *compiler) frame() *frame {
	return &frame{at: make([]int64, len(c.slots)), now: 1, memo: make([]cell, c.cells)}
}

func (c *compiler) slot(r *ir.Range) int {
	if _, ok := c.slots[r]; !ok {
		c.slots[r] = len(c.slots)
	}
	return c.slots[r]
}

// root compiles a whole expression.
func (c *compiler) root(e *ir.Expr) code {
	c.count(e)
	out := c.compile(e)
	if c.chooser == nil || !e.Type.IsFloat() {
		return out
	}
	return code{float: func(f *frame) float64 { return c.chooser.ended(e.Type, out.float(f)) }}
}

// count finds the shared nodes of an expression, before it is compiled.
func (c *compiler) count(e *ir.Expr) {
	if c.counted[e] {
		return
	}
	c.counted[e] = true
	ir.Walk(e, func(e *ir.Expr) bool {
		for _, part := range append([]*ir.Expr{e.Fill, e.Guard}, e.Args...) {
			c.uses[part]++
		}
		if (e.Op == ir.OpExp || e.Op == ir.OpExp2) && e.Args[0].Op == ir.OpSub {
			c.exponents[e.Args[0]] = true
		}
		return true
	})
}

func (c *compiler) compile(e *ir.Expr) code {
	if out, ok := c.done[e]; ok {
		return out
	}
	out := c.build(e)
	if c.uses[e] > 1 && len(e.Args) > 0 {
		out = c.memoise(out)
	}
	c.done[e] = out
	return out
}

func (c *compiler) memoise(in code) code {
	at := c.cells
	c.cells++
	if in.float != nil {
		return code{float: func(f *frame) float64 {
			if f.memo[at].stamp == f.now {
				return f.memo[at].F
			}
			v := in.float(f)
			f.memo[at] = cell{f.now, Scalar{F: v}}
			return v
		}}
	}
	return code{int: func(f *frame) int64 {
		if f.memo[at].stamp == f.now {
			return f.memo[at].I
		}
		v := in.int(f)
		f.memo[at] = cell{f.now, Scalar{I: v}}
		return v
	}}
}

func (c *compiler) build(e *ir.Expr) code {
	switch e.Op {
	case ir.OpConst:
		return c.constant(e)
	case ir.OpSym:
		v := c.symbols[e.Name]
		return code{int: func(*frame) int64 { return v }}
	case ir.OpRange:
		slot := c.slot(e.Range)
		return code{int: func(f *frame) int64 { return f.at[slot] }}
	case ir.OpLoad, ir.OpRead, ir.OpLocal:
		return c.leaf(e)
	case ir.OpSelect:
		return c.choose(e)
	case ir.OpCast:
		return c.cast(e.Args[0].Type, e.Type, c.compile(e.Args[0]))
	case ir.OpReduce:
		return c.nested(e)
	}
	return c.round(e.Op, e.Type, c.apply(e))
}

// nested compiles a reduction inside an expression: a product's sum in a plan.
func (c *compiler) nested(e *ir.Expr) code {
	b, err := c.box(e.Reduce.Ranges)
	if err != nil {
		fail := func(f *frame) { f.err = err }
		if e.Type.IsFloat() {
			return code{float: func(f *frame) float64 { fail(f); return 0 }}
		}
		return code{int: func(f *frame) int64 { fail(f); return 0 }}
	}
	return c.reduction(e.Reduce, e.Args[0], b, e.Type)
}

func (c *compiler) constant(e *ir.Expr) code {
	if e.Type.IsFloat() {
		v := e.Val
		return c.round(e.Op, e.Type, code{float: func(*frame) float64 { return v }})
	}
	v := e.Int
	return code{int: func(*frame) int64 { return v }}
}

// apply compiles a row of the op table.
func (c *compiler) apply(e *ir.Expr) code {
	if ir.Needs128(e, ir.SizeBits) {
		exact := c.operation128(e)
		return code{int: func(f *frame) int64 { return exact(f).Clamped() }}
	}
	info := e.Op.Info()
	args := make([]code, len(e.Args))
	for i, a := range e.Args {
		args[i] = c.compile(a)
	}
	if f := ir.Saturating(e.Op); f != nil && e.Type == ir.Index {
		return code{int: applied(func(a, b, _ int64) int64 { return f(a, b) }, args, func(c code) func(*frame) int64 { return c.int })}
	}
	if !e.Args[0].Type.IsFloat() {
		return code{int: applied(info.Int, args, func(c code) func(*frame) int64 { return c.int })}
	}
	float := applied(c.floatOp(e), args, func(c code) func(*frame) float64 { return c.float })
	if c.chooser != nil && e.Op == ir.OpMul {
		float = c.reassociated(e, float)
	}
	if e.Type.IsFloat() {
		return code{float: float}
	}
	return code{int: func(f *frame) int64 { return int64(float(f)) }}
}

// floatOp is what an operation on floats computes, before it is rounded.
func (c *compiler) floatOp(e *ir.Expr) func(a, b, _ float64) float64 {
	compute := e.Op.Info().Float
	switch {
	case c.chooser != nil && e.Op == ir.OpMul && slices.ContainsFunc(e.Args, c.chooser.isWeight):
		return func(a, b, _ float64) float64 { return c.chooser.weighted(e.Type, a, b) }
	case c.chooser != nil && e.Op == ir.OpDiv && c.chooser.isWeight(e.Args[0]):
		return func(a, b, _ float64) float64 { return c.chooser.leftOut(a, b, 0, a/b) }
	case c.chooser != nil && c.exponents[e]:
		return func(a, b, _ float64) float64 { return c.chooser.leftOut(a, b, math.Inf(-1), a-b) }
	case c.chooser != nil && e.Op == ir.OpMul:
		return func(a, b, _ float64) float64 { return c.chooser.product(e.Type, a, b) }
	case c.chooser != nil && (e.Op == ir.OpMax || e.Op == ir.OpMin):
		return func(a, b, _ float64) float64 { return c.chooser.extremum(compute(a, b, 0), a, b) }
	}
	return compute
}

// reassociated computes a product of several factors, half of the time in another order that an engine may use. In
// another order, partial products may leave the range of their type.
func (c *compiler) reassociated(e *ir.Expr, written func(*frame) float64) func(*frame) float64 {
	list := factorsOf(e, e.Type)
	if len(list) < 3 || c.chooser.strict {
		return written
	}
	codes := make([]code, len(list))
	for i, f := range list {
		codes[i] = c.compile(f)
	}
	runs := e.Type.Info().Compute
	return func(f *frame) float64 {
		if c.chooser.coin() {
			return written(f)
		}
		product := 1.0
		for _, i := range c.chooser.rng.Perm(len(codes)) {
			product = num.Round(runs, c.chooser.product(e.Type, product, codes[i].float(f)))
		}
		return product
	}
}

// factorsOf lists the factors of a product of one type.
func factorsOf(e *ir.Expr, t ir.DType) []*ir.Expr {
	return ir.Flattened(e, func(e *ir.Expr) []*ir.Expr {
		if e.Op != ir.OpMul || e.Type != t {
			return nil
		}
		return e.Args
	})
}

// applied feeds one or two arguments to a function of the op table.
func applied[T int64 | float64](
	fn func(a, b, c T) T, args []code, pick func(code) func(*frame) T,
) func(*frame) T {
	a := pick(args[0])
	if len(args) == 1 {
		return func(f *frame) T { return fn(a(f), 0, 0) }
	}
	b := pick(args[1])
	return func(f *frame) T { return fn(a(f), b(f), 0) }
}

// choose compiles a select; only the branch taken is evaluated.
func (c *compiler) choose(e *ir.Expr) code {
	cond, a, b := c.compile(e.Args[0]).int, c.compile(e.Args[1]), c.compile(e.Args[2])
	if e.Type.IsFloat() {
		return code{float: func(f *frame) float64 {
			if cond(f) != 0 {
				return a.float(f)
			}
			return b.float(f)
		}}
	}
	return code{int: func(f *frame) int64 {
		if cond(f) != 0 {
			return a.int(f)
		}
		return b.int(f)
	}}
}

// cast converts between types. Between floats it rounds in Strict mode only.
func (c *compiler) cast(from, to ir.DType, in code) code {
	switch {
	case from.IsFloat() && to.IsFloat():
		return c.round(ir.OpCast, to, in)
	case from.IsFloat():
		return code{int: func(f *frame) int64 { return num.FloatToInt(to, in.float(f)) }}
	case !to.IsFloat():
		return code{int: func(f *frame) int64 { return num.RoundInt(to, in.int(f)) }}
	case c.mode == Strict || c.chooser != nil && c.chooser.strict:
		return code{float: func(f *frame) float64 { return num.FromInt(to, in.int(f)) }}
	case c.chooser != nil:
		return c.round(ir.OpCast, to, code{float: func(f *frame) float64 { return float64(in.int(f)) }})
	}
	return code{float: func(f *frame) float64 { return float64(in.int(f)) }}
}

// round brings a computed value to its type: integers always wrap; floats are rounded in Strict
// mode, first to the type in which an engine computes them. op is the operation that computed
// the value.
func (c *compiler) round(op ir.Op, t ir.DType, in code) code {
	switch {
	case t.IsFloat() && c.chooser != nil:
		return code{float: func(f *frame) float64 { return c.chooser.result(op, t, in.float(f)) }}
	case t.IsFloat() && c.mode == Strict && t != ir.F64:
		compute := t.Info().Compute
		return code{float: func(f *frame) float64 { return num.Round(t, num.Round(compute, in.float(f))) }}
	case t.IsInt() && t.Size() < 8:
		return code{int: func(f *frame) int64 { return num.RoundInt(t, in.int(f)) }}
	}
	return in
}

// position compiles indices into a flat row-major offset; -1 where one is
// outside the shape.
func position(at []func(*frame) int64, shape []int64) func(*frame) int64 {
	switch len(at) {
	case 0:
		return func(*frame) int64 { return 0 }
	case 1:
		return func(f *frame) int64 {
			if i := at[0](f); uint64(i) < uint64(shape[0]) {
				return i
			}
			return -1
		}
	}
	outer := position(at[:len(at)-1], shape)
	last, extent := at[len(at)-1], shape[len(at)-1]
	return func(f *frame) int64 {
		i, o := last(f), outer(f)
		if o < 0 || uint64(i) >= uint64(extent) {
			return -1
		}
		return o*extent + i
	}
}

// box is a rectangle of ranges to walk.
type box struct {
	slots   []int
	extents []int64
}

func (c *compiler) box(ranges []*ir.Range) (box, error) {
	b := box{make([]int, len(ranges)), make([]int64, len(ranges))}
	for i, r := range ranges {
		extent, err := evalSize(r.Extent, c.symbols)
		if err != nil {
			return box{}, err
		}
		b.slots[i], b.extents[i] = c.slot(r), extent
	}
	return b, nil
}

func (b box) len() int64 {
	n := int64(1)
	for _, e := range b.extents {
		n *= e
	}
	return n
}

// eachReverse is each from the last point to the first.
func (b box) eachReverse(f *frame, visit func(n int64)) {
	for n := b.len() - 1; n >= 0 && f.err == nil; n-- {
		f.now++
		rest := n
		for d := len(b.slots) - 1; d >= 0; d-- {
			f.at[b.slots[d]] = rest % b.extents[d]
			rest /= b.extents[d]
		}
		visit(n)
	}
}

// each calls visit with the linear position of every point, in row-major order,
// until f.err is set.
func (b box) each(f *frame, visit func(n int64)) {
	total := b.len()
	for _, slot := range b.slots {
		f.at[slot] = 0
	}
	for n := int64(0); n < total && f.err == nil; n++ {
		f.now++
		visit(n)
		for d := len(b.slots) - 1; d >= 0; d-- {
			s := b.slots[d]
			if f.at[s]++; f.at[s] < b.extents[d] {
				break
			}
			f.at[s] = 0
		}
	}
}
