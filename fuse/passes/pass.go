// Package passes rewrites graphs. All has a row for each pass, in the order in which they run before regions
// are formed. Passes share nothing but the graph. What they ask about values is in package form, and what they
// assume about schedules in package forecast.
package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// A Pass changes a graph in place and leaves it valid.
type Pass struct {
	Name string
	Doc  string
	Run  func(*ir.Graph)
	On   func(ir.Device) bool // the devices it is for; nil for all
}

// All run in this order before regions are formed.
var All = []Pass{
	{Name: "extents", Doc: "simplify sizes by the graph's constraints", Run: simplifyExtents},
	{Name: "units", Doc: "replace indices of axes of extent 1 by 0", Run: DropUnits},
	{Name: "orders", Doc: "give every order that a value picks from an axis of its own", Run: rankAxes},
	{Name: "conditions", Doc: "take conditions that do not depend on what is summed out of sums of products", Run: leaveConditions, On: ir.Device.TensorCores},
	{Name: "simplify", Doc: "apply the index algebra and the rewrite table", Run: simplify},
	{Name: "reshapes", Doc: "compute values in the shape in which windows read them", Run: reshapeForWindows, On: ir.Device.TensorCores},
	{Name: "keys", Doc: "give scatters whose places several keys name together one axis and one key for them", Run: joinKeys},
	{Name: "views", Doc: "substitute values that only move elements into their readers", Run: InlineViews, On: withoutTensorCores},
	{Name: "views-but-windows", Doc: "substitute such values into their readers, but for inputs of convolutions that windows do not move along", Run: inlineViewsButWindows, On: ir.Device.TensorCores},
	{Name: "cse", Doc: "merge equal values", Run: mergeEqual}, // after views, so that equal values read equal values
	{Name: "inverses", Doc: "take the order of a whole order from the sort that made it", Run: invertOrders},
	{Name: "crop", Doc: "compute of a value what is read of it, where that is a point or a small part of an axis", Run: cropValues},
	{Name: "rejoin", Doc: "make one value of the parts of a product that are the same function of it", Run: rejoinParts},
	{Name: "ends", Doc: "take the one element that a concatenation adds to a row out of reductions over it", Run: takeEnds, On: ir.Device.TensorCores},
	{Name: "unroll", Doc: "write short reductions over the parts of a concatenation as expressions of the parts", Run: unrollParts},
	{Name: "nested", Doc: "make one reduction of a reduction of reductions", Run: joinNested},
	{Name: "separate", Doc: "reduce large windows that overlap along one axis after the other", Run: separateWindows},
	{Name: "scatter-sums", Doc: "add what goes to the same rows by the same key before it goes there", Run: addBeforeScatters},
	{Name: "factor", Doc: "move finite factors that do not depend on the reduced ranges out of sums", Run: factorSums},
	{Name: "scatter-ranges", Doc: "reduce over ranges that the key of a scatter does not depend on before what is left goes to its place", Run: reduceBeforeScatters},
	{Name: "factor-tiles", Doc: "move all such factors out of sums of products for tensor cores", Run: factorTiles, On: ir.Device.TensorCores},
	{Name: "scales", Doc: "multiply the sums of products, not an operand that is in memory without them, by constants", Run: scaleSums, On: ir.Device.TensorCores},
	{Name: "pairs", Doc: "sum products of three factors and more two at a time, and sums of products a side ahead, where that takes less work", Run: splitPairs, On: ir.Device.TensorCores},
	{Name: "source-order", Doc: "put the axes of operands of products of f32 in the order of what they are computed from", Run: orderAsRead, On: ir.Device.TensorCores},
	{Name: "digits", Doc: "give products of windows behind a reshape a range for each place of a window", Run: splitDigits, On: ir.Device.TensorCores},
	{Name: "groups", Doc: "give the groups of convolutions an axis of their own", Run: splitGroups, On: ir.Device.TensorCores},
	{Name: "axes", Doc: "give sums of products that know a place by its quotient and remainder an axis for each", Run: splitAxes},
	{Name: "phases", Doc: "sum over the points that a residue picks, and over no others", Run: splitPhases, On: withoutTensorCores},
	{Name: "phases-together", Doc: "sum over the points that a residue picks, short sums and products in one value", Run: splitPhasesForTiles, On: ir.Device.TensorCores},
	{Name: "directions", Doc: "turn axes along which windows go backwards", Run: ascendWindows, On: ir.Device.TensorCores},
	{Name: "window-views", Doc: "give views through which convolutions read their inputs values of their own", Run: layViews, On: ir.Device.TensorCores},
	{Name: "window-parts", Doc: "multiply f32 in convolutions as sums of parts of bf16", Run: multiplyWindowParts, On: ir.Device.Warpgroups},
	{Name: "window-sums", Doc: "cut long sums over windows with few results into partial ones", Run: splitWindowSums, On: ir.Device.TensorCores},
	{Name: "windows", Doc: "lay operands of convolutions out with their channels last", Run: layWindows, On: ir.Device.TensorCores},
	{Name: "elements", Doc: "make values of the elements of small matrices that others multiply or take elements of", Run: separateElements},
	{Name: "repeated", Doc: "compute costly expressions that depend on few axes once, not at each point", Run: separateRepeated, On: ir.Device.TensorCores},
	{Name: "inline", Doc: "substitute cheap producers into their readers", Run: inlineCheap},
	{Name: "idle-axes", Doc: "compute operands of products without axes that they do not depend on", Run: dropIdleOfOperands},
	{Name: "components", Doc: "compute short reductions, term by term, in the reductions that read them, where that takes less time than memory does", Run: spreadComponents},
	{Name: "scan-directions", Doc: "scan in the other direction where all readers go backwards", Run: turnScans},
	{Name: "guards", Doc: "make guards of factors of the conditions of large products that have rows of one factor", Run: guardFactors, On: ir.Device.TensorCores},
	{Name: "places", Doc: "compute what follows the sums of phases where these are", Run: placePhases},
	{Name: "ranges", Doc: "give reductions behind a reshape the ranges of what they read", Run: fitRanges},
	{Name: "chains", Doc: "compute products again in each sum that weighs by a function of them, where none is written then", Run: chainProducts, On: ir.Device.TensorCores},
	{Name: "stream", Doc: "divide by the sum of weights after the weighted sum", Run: streamWeights, On: ir.Device.TensorCores},
	{Name: "joined", Doc: "read the parts of a concatenation where they lie, in attention of few queries", Run: readJoined, On: ir.Device.TensorCores},
	{Name: "added-products", Doc: "make one product of two that are added, where the operands of both are smaller than the results", Run: addProducts, On: withoutWarpgroups},
	{Name: "added-in-place", Doc: "make one product of two that are added, where it may read the operands of both where they lie, or these are smaller than the results", Run: addProductsInPlace, On: ir.Device.Warpgroups},
	{Name: "beside", Doc: "repeat short reductions of partial results along the axes of one that goes with them", Run: repeatBeside, On: ir.Device.TensorCores},
	{Name: "whole-numbers", Doc: "multiply f32 in products of small whole numbers, such as masks, as the bf16 that hold them", Run: narrowWholeNumbers, On: ir.Device.TensorCores},
	{Name: "operands", Doc: "give operands of tensor core products that are computed values of their own", Run: separateOperands, On: ir.Device.TensorCores},
	{Name: "converted", Doc: "give operands of 16-bit products that are converted to these, from bytes or f32, values of their own", Run: convertOperands, On: ir.Device.Warpgroups},
	{Name: "strided", Doc: "copy operands of 16-bit products whose rows, or the terms of whose sum, do not lie beside each other in order", Run: copyStrided, On: ir.Device.TensorCores},
	{Name: "turn", Doc: "copy operands of 16-bit products that sum along short rows, which are no whole number of accesses", Run: turnOperands, On: ir.Device.TensorCores},
	{Name: "product-sums", Doc: "cut long sums of products with few tiles into partial ones, one for each point of a range", Run: splitProductSums, On: ir.Device.TensorCores},
	{Name: "gates", Doc: "make a product for each part of one, where a value reads two together or each has a reader of its own", Run: splitGates, On: ir.Device.TensorCores},
	{Name: "parts", Doc: "multiply f32 in matrix products as sums of parts of bf16", Run: multiplyParts, On: ir.Device.Warpgroups},
	{Name: "computed", Doc: "give operands of large products of f32 that are computed values of their own", Run: computeOperands, On: ir.Device.TensorCores},
	{Name: "align", Doc: "copy operands of 16-bit products whose rows are no whole number of accesses", Run: alignOperands, On: ir.Device.TensorCores},
	{Name: "layouts", Doc: "give operands of tf32 and 8-bit products that do not lie along the sum values of their own", Run: orderOperands, On: ir.Device.Warpgroups},
	{Name: "segments", Doc: "read the parts of operands that are concatenations along a sum where they lie", Run: readSegments, On: ir.Device.Warpgroups},
	{Name: "reduction-epilogues", Doc: "cut reductions of products into those of tiles, so that the products need not be written", Run: foldProducts, On: ir.Device.TensorCores},
	{Name: "commute", Doc: "multiply the sums of products, not the operands' rows, by what belongs to a row", Run: commuteRows, On: ir.Device.TensorCores},
	{Name: "arrange", Doc: "put axes beside each other that readers take as one", Run: arrangeAxes, On: ir.Device.TensorCores},
	{Name: "digit-copies", Doc: "copy operands of large products that are read at digits of the product's ranges, or under a guard", Run: copyDigits, On: ir.Device.Warpgroups},
	{Name: "terms", Doc: "give terms that are computed from results of reductions values of their own", Run: separateTerms},
	{Name: "narrow", Doc: "store values in the narrower type that they are converted from, or that all readers round them to", Run: narrowStored},
	{Name: "split", Doc: "cut long reductions with few results into partial ones", Run: splitReductions, On: isHost}, // after inline, so that what they read is final
	{Name: "split-blocks", Doc: "cut long reductions with few results, and histograms, into partial ones", Run: splitForBlocks, On: withoutClusters},
	{Name: "split-long", Doc: "cut long reductions with few results, and histograms, into partial ones, but not rows that clusters hold", Run: splitForClusters, On: ir.Device.Clusters},
	{Name: "cse-again", Doc: "merge the partial results that several reductions need", Run: mergeEqual},
	{Name: "simplify-again", Doc: "substitution made new constants and guards", Run: simplify},
	{Name: "dce", Doc: "drop values that reach no result", Run: DropDead},
}

func isHost(d ir.Device) bool { return d.Arch == "" }

func withoutTensorCores(d ir.Device) bool { return !d.TensorCores() }

func withoutWarpgroups(d ir.Device) bool { return d.TensorCores() && !d.Warpgroups() }

func withoutClusters(d ir.Device) bool { return !isHost(d) && !d.Clusters() }

// DropUnits replaces every range of extent 1 by 0, so that axes kept by a reduction, and broadcasts
// from size 1, disappear from indices.
func DropUnits(g *ir.Graph) {
	for _, v := range g.Values {
		dropEmpty(v)
		dropUnits(v)
	}
}

// dropUnits does the same in one value.
func dropUnits(v *ir.Value) {
	zero := map[*ir.Range]*ir.Expr{}
	for _, r := range v.Axes {
		if algebra.IsUnit(r) {
			zero[r] = ir.IntConst(0)
		}
	}
	if v.Reduce != nil {
		for _, r := range v.Reduce.Ranges {
			if algebra.IsUnit(r) {
				zero[r] = ir.IntConst(0)
			}
		}
	}
	v.MapExprs(func(e *ir.Expr) *ir.Expr { return ir.Substitute(e, zero) })
	dropUnitReduction(v)
}

// dropEmpty replaces a value without elements, and a reduction over no points, by a constant. So kernels
// need not handle empty tensors, from which a loop that prefetches must not read.
func dropEmpty(v *ir.Value) {
	isEmpty := func(r *ir.Range) bool { return r.Extent.Op == ir.OpConst && r.Extent.Int == 0 }
	switch {
	case v.IsInput():
	case slices.ContainsFunc(v.Axes, isEmpty):
		v.Reduce, v.Body = nil, zeroOf(v.Type)
	case v.Reduce != nil && slices.ContainsFunc(v.Reduce.Ranges, isEmpty):
		nothing := zeroOf(v.Type)
		if !v.Reduce.Op.IsArg() {
			nothing = ir.Cast(v.Reduce.Op.Identity(v.Body.Type), v.Type)
		}
		v.Reduce, v.Body = nil, nothing
	}
}

func zeroOf(t ir.DType) *ir.Expr {
	if t.IsFloat() {
		return ir.Num(t, 0)
	}
	return ir.IntNum(t, 0)
}

// dropUnitReduction removes reduced ranges of extent 1. If no range is left, or if there was none, as in
// the sum of a scalar, it removes the reduction too: otherwise a kernel would fold over all of its
// columns, which belong to another value.
func dropUnitReduction(v *ir.Value) {
	if v.Reduce == nil || v.Reduce.Rank != nil {
		return
	}
	left := algebra.Widened(v.Reduce.Ranges)
	if len(left) > 0 && len(left) == len(v.Reduce.Ranges) {
		return
	}
	r := *v.Reduce
	r.Ranges = left
	v.Reduce = &r
	if len(left) > 0 {
		return
	}
	if r.Op.IsArg() {
		v.Body = ir.IntNum(v.Type, 0)
	} else if r.Where != nil {
		acc := r.Op.Accumulator(v.Body.Type)
		v.Body = ir.Cast(ir.Where(r.Where, ir.Cast(v.Body, acc), r.Op.Identity(v.Body.Type)), v.Type)
	} else {
		v.Body = ir.Cast(v.Body, v.Type)
	}
	v.Reduce = nil
}

// InlineViews substitutes values whose body is a single load, a constant or an
// index into their readers.
func InlineViews(g *ir.Graph) { inlineWhere(g, isView) }

// inlineViewsButWindows does so, but for views that products of windows read whose elements do not lie as windows move over them (movesAlong).
func inlineViewsButWindows(g *ir.Graph) {
	windows := readByWindows(g)
	inlineWhere(g, func(v *ir.Value) bool { return isView(v) && movesAlong(v, windows[v]) })
}

func isView(v *ir.Value) bool {
	switch v.Body.Op {
	case ir.OpLoad, ir.OpConst, ir.OpRange:
		return true
	case ir.OpCast:
		return v.Body.Args[0].Op == ir.OpRange
	}
	return false
}

// inlineWhere substitutes every pointwise value that want accepts into all of its readers. Values that
// are results are also kept.
func inlineWhere(g *ir.Graph, want func(*ir.Value) bool) {
	inlined := map[*ir.Value]bool{}
	for _, v := range g.Values {
		v.MapExprs(func(e *ir.Expr) *ir.Expr { return form.Expand(e, inlined) })
		if v.Body != nil && v.Reduce == nil && want(v) {
			inlined[v] = true
		}
	}
	DropDead(g)
}

// mergeEqual merges values with equal definitions. Every result has a tensor of its own, so a result that
// equals another becomes a copy of it.
func mergeEqual(g *ir.Graph) {
	seen := map[uint64][]*ir.Value{}
	to := map[*ir.Value]*ir.Value{}
	results := resultsOf(g)
	for _, v := range g.Values {
		v.MapExprs(func(e *ir.Expr) *ir.Expr { return ir.RetargetLoads(e, to) })
		if v.IsInput() || v.Again {
			continue
		}
		key := form.CanonicalHash(v)
		at := slices.IndexFunc(seen[key], func(u *ir.Value) bool { return form.SameDefinition(u, v) })
		if at < 0 {
			seen[key] = append(seen[key], v)
			continue
		}
		u := seen[key][at]
		if results[u] && results[v] {
			v.Body, v.Reduce = ir.Load(u, ir.Indices(v.Axes), nil).At(v.Origin.Span), nil
			continue
		}
		to[v], results[u] = u, results[u] || results[v]
	}
	for i, o := range g.Outputs {
		if u := to[o.Value]; u != nil {
			g.Outputs[i].Value = u
		}
	}
	DropDead(g)
}

// DropDead removes values that no output needs. Inputs stay, because they are the signature.
func DropDead(g *ir.Graph) {
	live := map[*ir.Value]bool{}
	for _, o := range g.Outputs {
		live[o.Value] = true
	}
	for i := len(g.Values) - 1; i >= 0; i-- {
		if v := g.Values[i]; live[v] {
			for _, l := range v.Loads() {
				live[l.From] = true
			}
		}
	}
	kept := g.Values[:0]
	for _, v := range g.Values {
		if live[v] || v.IsInput() {
			kept = append(kept, v)
		}
	}
	g.Values = kept
}

// resultsOf are the values that are results of a graph.
func resultsOf(g *ir.Graph) map[*ir.Value]bool {
	results := map[*ir.Value]bool{}
	for _, o := range g.Outputs {
		results[o.Value] = true
	}
	return results
}

// readersOf lists the values that read each value, each once.
func readersOf(g *ir.Graph) map[*ir.Value][]*ir.Value {
	readers := map[*ir.Value][]*ir.Value{}
	for _, v := range g.Values {
		for _, l := range v.Loads() {
			if of := readers[l.From]; len(of) == 0 || of[len(of)-1] != v {
				readers[l.From] = append(of, v)
			}
		}
	}
	return readers
}
