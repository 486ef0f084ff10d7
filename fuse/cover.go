package fuse

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// Every kernel has a variant for every size that its graph admits. Lists of variants are made long, and
// then lose members: those that literal sizes rule out, those behind one that takes all their sizes,
// those that cannot do what a later step asks of them. What such a step leaves may be too little, so it
// prunes by without, and a kernel gets its variants from cover alone; both ask ir.Covers.

// cover gives a kernel its variants.
func (f *fuser) cover(k *ir.Kernel, variants []*ir.Variant) {
	if !ir.Covers(variants, f.facts) {
		panic("BUG: kernel " + k.Name + " has no variant for some sizes")
	}
	for _, v := range variants {
		v.Strategy = ir.StrategyOf(k, v.Schedule)
	}
	k.Variants = variants
}

// without returns the variants that drop does not want; nil where these leave sizes without any.
func (f *fuser) without(variants []*ir.Variant, drop func(*ir.Variant) bool) []*ir.Variant {
	left := slices.DeleteFunc(slices.Clone(variants), drop)
	if !ir.Covers(left, f.facts) {
		return nil
	}
	return left
}
