package ir

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fusec/fusec/ir/diag"
)

// A Check is a read of a strict graph at an index that depends on data and may be outside its
// axis. It has two results of its own, i64 scalars, after those of the graph: the first place
// where the index is outside, or AllInside, and the index there. They are values like any
// other, so kernels need not know of them, and they are the same however the graph is fused.
type Check struct {
	Tensor string // that is read
	Axis   int
	Extent *Expr    // of the axis, over symbols
	Places []*Range // that the index depends on; the first place is their row-major position
	Span   diag.Span
}

// AllInside stands for the first place outside if there is none.
const AllInside = math.MaxInt64

// Results are the outputs that the caller asked for. After them, Outputs has two for each of
// Checks, in order.
func (g *Graph) Results() []Output { return g.Outputs[:len(g.Outputs)-2*len(g.Checks)] }

// Checked returns a strict graph with a Check for each read that needs one, and g itself if no
// index depends on data. A read needs a Check if its program does not say what is read outside
// (NoElse), and one of its indices depends on data and cannot be proved to be inside.
//
// Only elements that a result needs are checked (see demand): an index on the side of a where
// that is not taken is no mistake.
func Checked(g *Graph) *Graph {
	if g.Numerics != Strict || len(g.Checks) > 0 || !g.readsByData() {
		return g
	}
	c := g.Clone()
	d := newDemand(c)
	for _, v := range c.Values[:len(c.Values):len(c.Values)] {
		for _, s := range d.sites[v] {
			c.check(v, s, d.needs[v].uses(v))
		}
	}
	for _, v := range c.Values {
		v.MapExprs(withoutNoElse)
	}
	return c
}

// meansOutside reports whether a load that is 0 outside has to be printed with its fill,
// because without it the text would parse differently.
func (g *Graph) meansOutside(load *Expr) bool {
	return !g.groupsHold(load) || g.Numerics == Strict && !load.NoElse && slices.ContainsFunc(load.Args, dependsOnData)
}

// withoutNoElse removes NoElse from the loads of e, because reads outside are handled.
func withoutNoElse(e *Expr) *Expr {
	return Rewrite(e, func(e *Expr) *Expr {
		if e.NoElse {
			c := *e
			c.NoElse = false
			return &c
		}
		return e
	})
}

// readsByData reports whether a read may need a check.
func (g *Graph) readsByData() bool {
	for _, v := range g.Values {
		for _, l := range v.Loads() {
			for _, index := range l.Args {
				if l.NoElse && dependsOnData(index) {
					return true
				}
			}
		}
	}
	return false
}

// dependsOnData reports whether sizes and ranges do not determine e.
func dependsOnData(e *Expr) bool {
	return Contains(e, func(e *Expr) bool { return e.Op == OpLoad || e.Op.Random() })
}

// check adds the check of an index of v, which is needed as uses say.
func (g *Graph) check(v *Value, s site, uses []use) {
	load, index := s.load, widened(s.load.Args[s.axis])
	c := Check{Tensor: load.From.Name, Axis: s.axis, Extent: load.From.Axes[s.axis].Extent, Span: load.Span}
	free := FreeRanges(index)
	for _, r := range v.ranges() {
		if free[r] {
			c.Places = append(c.Places, r)
		}
	}
	var first *Expr
	for _, u := range uses {
		first = Join(OpMin, first, g.firstOutside(v, s, u, c.Places))
	}
	origin := Origin{Span: load.Span, Call: v.Origin.Call}
	place := g.checkOutput(c.Tensor+"_outside", first, origin)
	g.checkOutput(c.Tensor+"_index", safeAnywhere(Substitute(index, coordinates(c.Places, Load(place, nil, nil)))), origin)
	g.Checks = append(g.Checks, c)
}

// checkOutput adds an output that belongs to a check.
func (g *Graph) checkOutput(name string, body *Expr, origin Origin) *Value {
	taken := map[string]bool{}
	for _, o := range g.Outputs {
		taken[o.Name] = true
	}
	for _, v := range g.Values {
		taken[v.Name] = true
	}
	name = freshName(name, taken)
	v := g.Define(name, nil, body, origin)
	g.Output(name, v, origin.Span)
	return v
}

// firstOutside is the least position of places, of those that u needs, at which the
// index of s is outside.
func (g *Graph) firstOutside(v *Value, s site, u use, places []*Range) *Expr {
	index, extent := widened(s.load.Args[s.axis]), widened(s.load.From.Axes[s.axis].Extent)
	outside := Apply(OpOr, Apply(OpLt, index, IntNum(I64, 0)), Apply(OpGe, index, extent))
	where := Both(u.where, u.of(Both(s.where, outside)))
	position := u.of(flat(places))
	used := FreeRanges(Where(where, position, position))
	var over []*Range
	fresh := map[*Range]*Expr{}
	for _, r := range u.ranges {
		if used[r] {
			c := g.NewRange(r.Name, r.Extent)
			over, fresh[r] = append(over, c), c.At()
		}
	}
	if len(over) == 0 {
		return Where(where, position, IntNum(I64, AllInside))
	}
	return Reduce(&Reduction{Op: Min, Ranges: over, Where: Substitute(where, fresh)}, Substitute(position, fresh))
}

// flat is the row-major position of a point, an i64.
func flat(places []*Range) *Expr {
	if len(places) == 0 {
		return IntNum(I64, 0)
	}
	at := widened(places[0].At())
	for _, r := range places[1:] {
		at = Apply(OpAdd, Apply(OpMul, at, widened(r.Extent)), widened(r.At()))
	}
	return at
}

// coordinates splits a position into coordinates; AllInside counts as the first position.
func coordinates(places []*Range, position *Expr) map[*Range]*Expr {
	rest := Where(Apply(OpEq, position, IntNum(I64, AllInside)), IntNum(I64, 0), position)
	out := map[*Range]*Expr{}
	for i := len(places) - 1; i > 0; i-- {
		extent := widened(places[i].Extent)
		out[places[i]] = Cast(Apply(OpMod, rest, extent), Index)
		rest = Apply(OpFloorDiv, rest, extent)
	}
	if len(places) > 0 {
		out[places[0]] = Cast(rest, Index)
	}
	return out
}

// widened is an Index expression computed in i64, so that kernels with 32-bit indices do not
// truncate it.
func widened(e *Expr) *Expr {
	switch e.Op {
	case OpConst:
		return IntNum(I64, e.Int)
	case OpCast:
		return Cast(e.Args[0], I64)
	case OpRange, OpSym:
		return Cast(e, I64)
	case OpSelect:
		return Where(e.Args[0], widened(e.Args[1]), widened(e.Args[2]))
	}
	args := make([]*Expr, len(e.Args))
	for i, a := range e.Args {
		args[i] = widened(a)
	}
	return Apply(e.Op, args...)
}

// safeAnywhere makes every load fit to be evaluated anywhere.
func safeAnywhere(e *Expr) *Expr {
	return Rewrite(e, func(e *Expr) *Expr {
		if e.Op == OpLoad && e.Fill == nil && len(e.Args) > 0 {
			return Load(e.From, e.Args, Num(e.Type, 0)).At(e.Span)
		}
		return e
	})
}

// An IndexCheck is a Check as engines keep it: over the symbols of a Program.
type IndexCheck struct {
	Tensor string
	Axis   int
	Extent Size
	Names  []string // of the ranges that the index depends on
	Shape  []Size   // their extents
	Where  string   // file:line:col of the read
}

// IndexChecks are a graph's checks; position gives each symbol's place.
func IndexChecks(g *Graph, position map[string]int) []IndexCheck {
	var out []IndexCheck
	for _, c := range g.Checks {
		check := IndexCheck{Tensor: c.Tensor, Axis: c.Axis, Extent: SizeOf(c.Extent, position)}
		if !c.Span.IsZero() {
			check.Where = c.Span.String()
		}
		for _, r := range c.Places {
			check.Names = append(check.Names, r.Name)
			check.Shape = append(check.Shape, SizeOf(r.Extent, position))
		}
		out = append(out, check)
	}
	return out
}

// FirstOutside is the error of the first check that found an index outside; nil if none did.
// results are the results of all checks as memory holds them, in order.
func FirstOutside(graph string, checks []IndexCheck, symbols []int64, results []byte) error {
	for i := range checks {
		pair := results[i*CheckBytes:]
		if place := int64(binary.LittleEndian.Uint64(pair)); place != AllInside {
			return checks[i].fault(graph, symbols, place, int64(binary.LittleEndian.Uint64(pair[CheckBytes/2:])))
		}
	}
	return nil
}

// CheckBytes is the size of a check's two results.
const CheckBytes = 16

func (c *IndexCheck) fault(graph string, symbols []int64, place, index int64) *IndexError {
	e := &IndexError{Graph: graph, Tensor: c.Tensor, Axis: c.Axis, Index: index, Names: c.Names, Where: c.Where,
		At: make([]int64, len(c.Shape))}
	e.Extent, _ = c.Extent.Eval(symbols)
	for d := len(c.Shape) - 1; d >= 0; d-- {
		extent, _ := c.Shape[d].Eval(symbols)
		e.At[d] = FloorMod(place, extent)
		place = FloorDiv(place, extent)
	}
	return e
}

// An IndexError is what a run of a strict graph returns if an element was read at an index
// outside its axis. The outputs of that run are not valid.
type IndexError struct {
	Graph  string
	Tensor string   // that is read
	Axis   int      // of it
	Extent int64    // of the axis
	Index  int64    // the index outside, at the first place where there is one
	Names  []string // of the ranges that the index depends on
	At     []int64  // the place: a value for each of Names
	Where  string   // file:line:col of the read
}

func (e *IndexError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "graph %s: ", e.Graph)
	if e.Where != "" {
		b.WriteString(e.Where + ": ")
	}
	fmt.Fprintf(&b, "index %d", e.Index)
	for d, name := range e.Names {
		b.WriteString([]string{" at ", ", "}[min(d, 1)] + fmt.Sprintf("%s = %d", name, e.At[d]))
	}
	fmt.Fprintf(&b, " is outside axis %d of %s, which has %d elements: "+
		"guard it by where, or say by else what is read outside", e.Axis, e.Tensor, e.Extent)
	return b.String()
}
