package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// matches lists the chains of a graph, and notes its softmaxes. What reads a softmax times values is no chain: a gradient does
// that which depends on which result is the largest. Neither is a sum of weights alone, unless another chain has its products.
func (c *chainRewrite) matches() (out []*form.Stream) {
	for _, v := range c.graph.Values {
		switch s := c.Match(v); {
		case s == nil || slices.ContainsFunc(c.softmaxes, func(sum *ir.Value) bool { return reads(s, sum) }):
		case c.softmax(v):
			c.softmaxes = append(c.softmaxes, v)
		default:
			out = append(out, s)
		}
	}
	return slices.DeleteFunc(slices.Clone(out), func(s *form.Stream) bool {
		return s.Value == nil && !slices.ContainsFunc(out, func(other *form.Stream) bool { return other.Value != nil && related(s, other) })
	})
}

// reads reports whether a value is one of the products that a chain computes again.
func reads(s *form.Stream, v *ir.Value) bool {
	return slices.ContainsFunc(s.Products(), func(l *ir.Expr) bool { return l.From == v })
}

// firstChains lists the chains of a group, or all without one, less those that read the sum of one before them, which is no
// product once it is a chain.
func firstChains(matches []*form.Stream, group map[int]bool) (out []*form.Stream) {
	for _, s := range matches {
		if (group == nil || group[s.Out.ID]) && !slices.ContainsFunc(out, func(other *form.Stream) bool { return reads(s, other.Out) }) {
			out = append(out, s)
		}
	}
	return out
}

// nextGroup is the IDs of the sums of a group of chains, of which none was tried before; nil where there is none. They count as
// tried then.
func nextGroup(g *ir.Graph, large, spread bool, tried map[int]bool) map[int]bool {
	var groups [][]*form.Stream
	for _, s := range newChainRewrite(g.Clone(), large, spread).matches() {
		groups = joined(groups, s)
	}
	for _, group := range groups {
		if slices.ContainsFunc(group, func(s *form.Stream) bool { return tried[s.Out.ID] }) {
			continue
		}
		ids := map[int]bool{}
		for _, s := range group {
			ids[s.Out.ID], tried[s.Out.ID] = true, true
		}
		return ids
	}
	return nil
}

// joined adds a chain to the groups that it belongs to, which become one.
func joined(groups [][]*form.Stream, s *form.Stream) (out [][]*form.Stream) {
	own := []*form.Stream{s}
	for _, group := range groups {
		if slices.ContainsFunc(group, func(other *form.Stream) bool { return related(s, other) }) {
			own = append(group, own...)
		} else {
			out = append(out, group)
		}
	}
	return append(out, own)
}

// related reports whether two chains share a product, or one reads the sum of the other.
func related(s, other *form.Stream) bool {
	return reads(s, other.Out) || reads(other, s.Out) ||
		slices.ContainsFunc(s.Products(), func(l *ir.Expr) bool { return reads(other, l.From) })
}
