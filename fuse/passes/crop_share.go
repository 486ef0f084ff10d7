package passes

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// A kernel computes values together that read the same elements, and a sum of products together with the weights that it
// computes for it, as attention does. A value that is cropped leaves such a kernel if the rest of it stays whole, and then has to save more
// than its own kernel costs.

// keepShared finds values that are worth more beside others than cropped, and keeps them whole; false where there are none.
func (c *cropper) keepShared() (found bool) {
	for _, v := range c.g.Values {
		if c.at[v] == nil {
			continue
		}
		if shared := c.shared(v); len(shared) > 0 && !c.paysAlone(v, shared) {
			c.whole[v], found = true, true
		}
	}
	return found
}

// shared are the values of which a cropped value reads less than before, while more of them is computed, or read elsewhere.
func (c *cropper) shared(v *ir.Value) map[*ir.Value]bool {
	shared := map[*ir.Value]bool{}
	for _, l := range c.loads[v] {
		for d, index := range l.Args {
			if !c.narrowed(v, index) {
				continue
			}
			low, high := c.bounds(v, index)
			if low == nil || c.computedBeyond(l.From, d, low, high) || c.readBeyond(v, l.From, d, low, high) {
				shared[l.From] = true
			}
		}
	}
	return shared
}

// narrowed reports whether an index of a cropped value takes less values than before.
func (c *cropper) narrowed(v *ir.Value, index *ir.Expr) bool {
	for axis := range c.at[v] {
		if ir.DependsOn(index, axis) {
			return true
		}
	}
	return false
}

// computedBeyond reports whether a value is computed outside of bounds of an axis.
func (c *cropper) computedBeyond(v *ir.Value, d int, low, high *ir.Expr) bool {
	if v.IsInput() {
		return false
	}
	first, last := ir.IntConst(0), ir.Apply(ir.OpSub, v.Axes[d].Extent, ir.IntConst(1))
	if parts := c.parts[v]; parts != nil && parts[d] != nil {
		first, last = parts[d].low, parts[d].high
	}
	return !c.atMost(low, first) || !c.atMost(last, high)
}

// readBeyond reports whether a reader of a value other than one takes elements outside of bounds of an axis, and some within.
func (c *cropper) readBeyond(but, v *ir.Value, d int, low, high *ir.Expr) bool {
	for _, u := range c.readers[v] {
		for _, l := range c.loads[u] {
			if u == but || l.From != v {
				continue
			}
			first, last := c.bounds(u, l.Args[d])
			if first == nil {
				return true
			}
			within := c.atMost(low, first) && c.atMost(last, high)
			if outside := ir.ProveLess(last, low, c.facts) || ir.ProveLess(high, first, c.facts); !within && !outside {
				return true
			}
		}
	}
	return false
}

// atMost reports whether one size is at most another.
func (c *cropper) atMost(a, b *ir.Expr) bool {
	return ir.ProveLess(a, ir.Apply(ir.OpAdd, b, ir.IntConst(1)), c.facts)
}

// launchBytes is the bytes that are moved in the time that a kernel of its own costs a value: that of a launch or two.
const launchBytes = pairBytes

// paysAlone compares the least time that a value may take beside the values that it shares with others, where their elements are at hand and
// operations may hide behind accesses, with the most that its part may take in a kernel of its own, for which these are written.
func (c *cropper) paysAlone(v *ir.Value, shared map[*ir.Value]bool) bool {
	if c.g.OneKernel {
		return false
	}
	left := c.leftOf(v)
	beside, alone := algebra.BytesAt(v, c.sizes), left*algebra.BytesAt(v, c.sizes)
	seen := map[*ir.Value]bool{}
	for _, l := range c.loads[v] {
		bytes := algebra.BytesAt(l.From, c.sizes)
		alone += c.leftOfRead(v, l) * bytes
		if !seen[l.From] && !shared[l.From] {
			beside += bytes
		}
		seen[l.From] = true
	}
	for u := range writtenFor(v, shared, c.results) {
		alone += 2 * algebra.BytesAt(u, c.sizes)
	}
	if form.Crosses(v) {
		products := 2 * algebra.PointsAt(algebra.AllRanges(v), c.sizes) / loopOperations
		if form.IsTileProduct(v) {
			products *= loopOperations / float64(chainOperations)
		}
		beside, alone = max(beside, products), max(alone, left*products)
	}
	return beside > alone+launchBytes
}

// leftOf is how much of a value is left where it is cropped, from 0 to 1.
func (c *cropper) leftOf(v *ir.Value) float64 {
	left := 1.0
	for d, p := range c.parts[v] {
		if p != nil {
			left *= algebra.Estimate(p.width, c.sizes) / max(1, algebra.Estimate(v.Axes[d].Extent, c.sizes))
		}
	}
	return left
}

// leftOfRead is how much of a value a load of a cropped one reads, from 0 to 1.
func (c *cropper) leftOfRead(v *ir.Value, load *ir.Expr) float64 {
	left := 1.0
	for d, index := range load.Args {
		if low, high := c.bounds(v, index); low != nil && c.narrowed(v, index) {
			read := algebra.Estimate(high, c.sizes) - algebra.Estimate(low, c.sizes) + 1
			left *= min(1, read/max(1, algebra.Estimate(load.From.Axes[d].Extent, c.sizes)))
		}
	}
	return left
}

// writtenFor are the values that may have to be written where a reader leaves the kernel that computes them: these, and what they are computed
// from, up to products. Readers other than products compute again what is cheap. What is kept is written anyway.
func writtenFor(reader *ir.Value, of, kept map[*ir.Value]bool) map[*ir.Value]bool {
	written, seen, multiplied := map[*ir.Value]bool{}, map[*ir.Value]bool{}, form.Crosses(reader)
	var add func(*ir.Value)
	add = func(u *ir.Value) {
		if u.IsInput() || kept[u] || seen[u] {
			return
		}
		seen[u] = true
		if multiplied || u.Reduce != nil || form.CostOf(u.Body).Slots > cheapSlots {
			written[u] = true
		}
		if form.Crosses(u) {
			return
		}
		for _, l := range u.Loads() {
			add(l.From)
		}
	}
	for u := range of {
		add(u)
	}
	return written
}
