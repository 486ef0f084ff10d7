package fuse

import (
	"fmt"
	"maps"
	"slices"
	"sort"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// lowering turns one region into a kernel. Loads become reads at flat offsets, or references to what the
// kernel computes itself, and every expression gets the type in which it is computed.
type lowering struct {
	*kernel
}

// lowerings are the kernels that regions have become so far.
type lowerings struct {
	*program
	buffers map[*ir.Value]*ir.Buffer
	done    map[*region]*kernel
}

// lower makes a kernel of a region. If p is given, the region is one of two that may share a launch; the
// second is lowered after the first.
func (ls *lowerings) lower(r *region, p *lastBlockPair) *ir.Kernel {
	lo := &lowering{&kernel{paired: p != nil, joined: map[*ir.Range]*ir.Expr{},
		scope: &scope{program: ls.program, r: r, buffers: ls.buffers, args: map[*ir.Value]*ir.Arg{}, value: map[*ir.Value]*ir.Expr{}}}}
	ls.done[r] = lo.kernel
	lo.k = &ir.Kernel{Name: kernelName(ls.g, r), Template: templateOf(r), Members: r.members, Numerics: ls.g.Numerics}
	lo.orderSpace()
	switch {
	case p != nil && p.first == r:
		lo.rows, lo.parts = lo.k.Rows, maps.Clone(p.parts)
	case p != nil:
		lo.follow(ls.done[p.first], p)
	}
	for _, v := range r.members {
		lo.member(v)
	}
	if ls.g.HasState() {
		lo.orderStores()
	}
	lo.boundArgs()
	lo.k.Inside = r.inside
	mayScatter := p == nil && r.stream == nil && len(r.accumulated) == 0
	if mayScatter {
		lo.orderScatter()
	}
	for _, a := range lo.args {
		lo.k.Args = append(lo.k.Args, a)
	}
	sort.Slice(lo.k.Args, func(i, j int) bool { return lo.k.Args[i].Index < lo.k.Args[j].Index })
	if r.stream == nil && r.folded == nil && lo.order == nil {
		if mayScatter {
			lo.joinPlaces()
		}
		lo.joinRanges()
		lo.joinPlane()
		if mayScatter { // places may have been two ranges
			lo.orderScatter()
		}
	}
	lo.k.Mantissa = lo.mantissa()
	for _, s := range lo.stores {
		if lo.order != nil {
			lo.order.Stores = append(lo.order.Stores, s.Store)
		}
	}
	if r.stream != nil {
		lo.attend()
		lo.k.Mantissa = halfMantissa // the weights are rounded to 16 bits
	}
	template, variants, cached := lo.variants()
	lo.k.Template = template
	ls.cover(lo.k, variants)
	for _, v := range lo.k.Variants {
		lo.setCacheHints(v, cached)
	}
	return lo.k
}

// kernelName is the name of the last result that the region stores, or else of its last member.
func kernelName(g *ir.Graph, r *region) string {
	name := r.members[len(r.members)-1].Name
	for _, o := range g.Outputs {
		if r.has(o.Value) {
			name = o.Name
		}
	}
	return g.Name + "_" + name
}

// orderSpace sorts rows and columns in the order of memory: that of the largest tensor which the region
// accesses, outermost axis first.
func (lo *lowering) orderSpace() {
	rank := map[*ir.Range]int{}
	best := -1.0
	consider := func(u, v *ir.Value, at []*ir.Expr) {
		found, touched := map[*ir.Range]int{}, float64(v.Type.Size()) // a slice is as large as what is read of it
		for _, r := range lo.rangesIn(u, at) {
			if _, again := found[r]; !again {
				touched *= lo.estimate(r.Extent)
			}
			found[r] = len(found)
		}
		size := min(lo.bytes(v), touched)
		if len(found) > len(rank) || len(found) == len(rank) && size > best {
			best, rank = size, found
		}
	}
	for _, v := range lo.r.members {
		if v.Reduce == nil || form.ScanOf(v) != nil {
			consider(v, v, algebra.UnitIndices(v.Axes))
		}
		for _, l := range lo.loads[v] {
			consider(v, l.From, l.Args)
		}
	}
	for _, s := range lo.r.space {
		if lo.r.cols[s] {
			lo.k.Cols = append(lo.k.Cols, s)
		} else {
			lo.k.Rows = append(lo.k.Rows, s)
		}
	}
	if lo.r.stream == nil && slices.ContainsFunc(lo.r.members, form.Crosses) {
		rank = lo.resultOrder(rank)
	}
	for _, list := range [][]*ir.Range{lo.k.Rows, lo.k.Cols} {
		sort.SliceStable(list, func(i, j int) bool {
			if accumulated := lo.r.accumulated[list[j]]; accumulated != lo.r.accumulated[list[i]] {
				return accumulated
			}
			ri, iok := rank[list[i]]
			rj, jok := rank[list[j]]
			return iok && jok && ri < rj
		})
	}
}

// resultOrder ranks the rows of a product as they lie in its result, if rank lacks some of them: no tensor that is read
// has all of them. The columns keep their ranks, and so do all ranges where no result is stored.
func (lo *lowering) resultOrder(rank map[*ir.Range]int) map[*ir.Range]int {
	if !slices.ContainsFunc(lo.k.Rows, func(r *ir.Range) bool { _, ok := rank[r]; return !ok }) {
		return rank
	}
	for _, v := range lo.r.members {
		if lo.buffers[v] == nil {
			continue
		}
		own := maps.Clone(rank)
		for i, r := range lo.rangesIn(v, algebra.UnitIndices(v.Axes)) {
			own[r] = len(rank) + i
		}
		if !slices.ContainsFunc(lo.k.Rows, func(r *ir.Range) bool { return own[r] < len(rank) }) {
			return own
		}
	}
	return rank
}

// rangesIn are the ranges of the region that the indices of a value run over, outermost first.
func (lo *lowering) rangesIn(u *ir.Value, at []*ir.Expr) (out []*ir.Range) {
	m := &matcher{facts: lo.facts}
	for _, e := range at {
		out = append(out, m.digits(lo.r.index(u, e, m.facts))...)
	}
	return out
}

// isSplit reports whether a value is computed over digits of its axes.
func isSplit(at map[*ir.Range]*ir.Expr) bool {
	for _, e := range at {
		if e.Op != ir.OpRange {
			return true
		}
	}
	return false
}

// member lowers one value.
func (lo *lowering) member(v *ir.Value) {
	at := lo.r.at[v]
	lo.rounds = v.Parts
	if v.Reduce != nil && lo.r.accumulates(v) {
		lo.accumulate(v, lo.expr(ir.Substitute(v.Body, at)))
		return
	}
	switch s := form.SortOf(v); {
	case s != nil:
		lo.value[v] = lo.lowerSort(v, s)
	case v.Reduce == nil:
		body := ir.Substitute(v.Body, at)
		if isSplit(at) {
			body = ir.Simplify(body, lo.inside(ir.RowLevel))
		}
		lo.value[v] = lo.expr(body)
	case lo.r.stream != nil && lo.r.stream.isScore(v), lo.r.folded != nil && v == lo.r.folded.product:
		lo.value[v] = lo.scoresOnce(v)
	default:
		lo.value[v] = lo.fold(v, at, lo.expr(ir.Substitute(v.Body, at)))
	}
	if lo.buffers[v] != nil {
		lo.store(v)
		if lo.comparesStored(v) {
			lo.value[v] = ir.Cast(ir.Cast(lo.value[v], v.Type), v.Type.Info().Compute)
		}
	}
}

// comparesStored reports whether the kernel stores a value in a narrower type than it computes in, and looks for an extreme
// among the results. Other kernels may compare what they read with that extreme: exp(x - max(x)) is at most 1 for the x of
// which the maximum is taken, but may be infinite for an x that is rounded up. So this kernel too takes the value as stored.
func (lo *lowering) comparesStored(v *ir.Value) bool {
	if !v.Type.IsFloat() || v.Type.Info().Compute == v.Type {
		return false
	}
	follows := map[*ir.Value]bool{v: true}
	for _, u := range lo.r.members[slices.Index(lo.r.members, v)+1:] {
		if !slices.ContainsFunc(lo.loads[u], func(l *ir.Expr) bool { return follows[l.From] }) {
			continue
		}
		if u.Reduce != nil && u.Reduce.Op.Ordered() {
			return true
		}
		follows[u] = u.Reduce == nil // what follows from a sum is no element any more
	}
	return false
}

func (lo *lowering) fold(v *ir.Value, at map[*ir.Range]*ir.Expr, body *ir.Expr) *ir.Expr {
	lo.foldsColumns(v, at)
	op := v.Reduce.Op
	acc := op.Accumulator(v.Body.Type)
	resultType := acc
	if op.IsArg() {
		resultType = ir.I64
	}
	f := &ir.Fold{Op: op, Body: ir.Cast(body, acc)}
	where, level := v.Reduce.Where, ir.RowLevel
	if s := form.ScanOf(v); s != nil {
		f.Prefix, where, level = s.Prefix, s.Where, ir.FullLevel
		lo.reverse = s.Reverse
	}
	f.Result = lo.local(v.Name, resultType, level)
	f.Result.Value, f.Result.Span = v, v.Origin.Span
	if op.IsArg() {
		f.Index = lo.argIndex(v.Reduce.Ranges, at)
	}
	if where != nil {
		f.Where = lo.expr(ir.Substitute(where, at))
	}
	lo.folds = append(lo.folds, f)
	return lo.rounded(ir.LocalRef(f.Result), v.Type)
}

// foldsColumns panics where a reduction is not over all of the kernel's columns: a fold takes its body
// once for each column, even where the body does not depend on it.
func (lo *lowering) foldsColumns(v *ir.Value, at map[*ir.Range]*ir.Expr) {
	over := map[*ir.Range]bool{}
	for _, own := range algebra.Widened(v.Reduce.Ranges) {
		for r := range ir.FreeRanges(at[own]) {
			over[r] = true
		}
	}
	if !algebra.SameRanges(lo.k.Cols, over) {
		panic(fmt.Sprintf("BUG: %s reduces over %s in a kernel with the columns %s", v.Name, form.Shape(v.Reduce.Ranges), form.Shape(lo.k.Cols)))
	}
}

// accumulate folds a member over the rows that its region accumulates over. The bound of the last
// chunk is that of the rows.
func (lo *lowering) accumulate(v *ir.Value, body *ir.Expr) {
	at := make([]*ir.Expr, len(v.Axes))
	for d, r := range v.Axes {
		at[d] = ir.IntConst(0)
		if e := lo.r.at[v][r]; e != nil {
			at[d] = e
		}
	}
	arg := lo.arg(v)
	arg.Write = true
	lo.partial = append(lo.partial, &ir.Partial{Op: v.Reduce.Op, Body: ir.Cast(body, v.Type), Arg: arg,
		Offset: ir.Simplify(ir.FlatOffset(v.Shape(), at), lo.facts), Span: v.Origin.Span})
}

// argIndex is the position that argmax reports: row-major over the reduced ranges, in the program's order.
func (lo *lowering) argIndex(ranges []*ir.Range, at map[*ir.Range]*ir.Expr) *ir.Expr {
	var shape, index []*ir.Expr
	for _, r := range ranges {
		shape, index = append(shape, r.Extent), append(index, at[r])
	}
	return ir.Simplify(ir.FlatOffset(shape, index), lo.facts)
}

func (lo *lowering) store(v *ir.Value) {
	at := make([]*ir.Expr, len(v.Axes))
	level := ir.RowLevel
	for d, r := range v.Axes {
		at[d] = ir.IntConst(0)
		if e := lo.r.at[v][r]; e != nil {
			if at[d] = e; v.Reduce != nil && v.Reduce.Inverse && r == form.SortOf(v).Place {
				at[d] = ir.Cast(ir.LocalRef(lo.order.Index), ir.Index)
			}
			if algebra.DependsOnAny(e, lo.r.cols) {
				level = ir.FullLevel
			}
		}
	}
	whole, at := lo.partIndices(v, at)
	arg := lo.arg(whole)
	arg.Write = true
	offset := ir.Simplify(ir.FlatOffset(whole.Shape(), at), lo.facts)
	guard := lo.r.stored[v]
	for _, r := range lo.r.beyond(v) { // the value is computed again at each point of these ranges
		guard = algebra.And(guard, ir.Apply(ir.OpEq, r.At(), ir.IntConst(0)))
	}
	lo.stores = append(lo.stores, &storing{&ir.Store{Arg: arg, Offset: offset, Guard: guard, Value: lo.value[v], Span: v.Origin.Span}, level})
}

// orderStores moves the store of a state's next value after the stores that read its present
// value. If stores wait for each other in a cycle, they keep their order.
func (lo *lowering) orderStores() {
	reads := func(s *storing, b *ir.Buffer) bool {
		found := false
		eachRead(func(r *ir.Expr) { found = found || r.Arg.Buffer == b }, s.Value, s.Offset, s.Guard)
		return found
	}
	left, out := slices.Clone(lo.stores), lo.stores[:0]
	for len(left) > 0 {
		at := slices.IndexFunc(left, func(s *storing) bool {
			old := s.Arg.Buffer.Updates
			return old == nil || !slices.ContainsFunc(left, func(other *storing) bool { return other != s && reads(other, old) })
		})
		at = max(at, 0)
		out = append(out, left[at])
		left = slices.Delete(left, at, at+1)
	}
	lo.stores = out
}

// mantissa is the precision of the most precise float the kernel stores.
func (lo *lowering) mantissa() int {
	most := 0
	for _, s := range lo.stores {
		most = max(most, s.Arg.Type.Info().Mantissa)
	}
	return most
}

// follow puts the rows in the order of those of the first kernel, whose last blocks run this
// one.
func (lo *lowering) follow(first *kernel, p *lastBlockPair) {
	slices.SortFunc(lo.k.Rows, func(a, b *ir.Range) int {
		return slices.Index(first.rows, p.to[a]) - slices.Index(first.rows, p.to[b])
	})
}

// lastBlockPair is a region that the last blocks of another run.
type lastBlockPair struct {
	first, then *region
	parts       map[*ir.Range]bool      // rows of first that then folds
	to          map[*ir.Range]*ir.Range // the space of then to that of first
}
