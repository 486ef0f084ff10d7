package ir

import "slices"

// Variant is a kernel's body for one class of sizes.
type Variant struct {
	Strategy Strategy
	When     *Expr // bool over symbols; nil for the last, which takes everything
	Facts    Facts // what When promises about the symbols
	// Least, of RowMapping with Items, is the length that all rows exceed where When holds; 0 for
	// none.
	Least  int
	Locals []*Local // with a Def, in dependence order
	// Units are the rows of the kernel that have one element each wherever When holds, or of which
	// one has none, if Empty is set: the body then stores the results alone that do not lie along
	// them. Nothing in the body depends on them.
	Units    []*Range
	Empty    bool
	Sections []*Section
	// Keep holds full-level locals that stay on chip from the first section
	// that needs them; every other full-level local is computed again in each
	// section that reads it.
	Keep []*Local
	// Early are reads of RowMapping that the first pass issues and a later one needs.
	Early []*Local
	// Ahead are reads, of RowMapping, of single elements that later sections need, when these may have been stored to.
	Ahead      []Ahead
	Contract   *Contract  // of the mappings of products
	Sort       *Sort      // of the sort template, which has no sections
	Scatter    *Scatter   // of the mappings of scatters, HistogramMapping among them
	TensorMaps []*TMAView // of arguments, for the tensor copy engine; parameters behind the arguments
	Attend     *Attend    // of the mappings of attention and of chains
	Stencil    *Stencil   // of ColumnStencil
	Across     *Range     // of TileMapping, InterleavedMapping and InterleavingMapping: the row range along which Staged reads are contiguous
	// Staged reads pass through shared memory. Of the same mappings; Wide where vectors along
	// Across, or along a run of memory, are aligned. Of RowMapping with Stages: all of each row, aligned to vectors; where
	// rows share warps: rows next to each other, those of a block at once. Of FlatMapping with
	// Stages: what is read of each column, in vectors.
	Staged []*Local
	// Run, of RowMapping with Stages, is the number of Cols, counted from the last, along which
	// Staged reads are contiguous; a whole row need not be.
	Run      int
	Schedule Schedule
	// LastBlock is the body of Kernel.LastBlock in blocks of this variant: it has their
	// threads, and works on their rows. Nil where the kernel has no LastBlock.
	LastBlock *Variant
}

// Ahead is a read of one element of the row. It is complete before any thread of the row gets the results of a section's
// folds, so that the sections behind that one may store to the element.
type Ahead struct {
	Local   *Local // of RowLevel; a read, or a cast of one
	Section int    // a pass with folds of the whole row
}

// operands lists the sides of a body's products.
func (v *Variant) operands() (sides []*Operand) {
	if c := v.Contract; c != nil {
		sides = append(sides, &c.A)
		for i := range c.B {
			sides = append(sides, &c.B[i])
		}
	}
	if a := v.Attend; a != nil {
		sides = append(sides, &a.Q, &a.K, &a.V)
		for i := range a.Others {
			sides = append(sides, &a.Others[i].Q, &a.Others[i].K)
		}
	}
	return sides
}

// innerRanges lists the ranges that sums inside locals are over.
func (v *Variant) innerRanges() (out []*Range) {
	for _, l := range v.Locals {
		Walk(l.Def, func(e *Expr) bool {
			if e.Op == OpReduce {
				out = append(out, e.Reduce.Ranges...)
			}
			return true
		})
	}
	return out
}

// Rows are the rows of a kernel that a body of it depends on.
func (v *Variant) Rows(k *Kernel) []*Range {
	if len(v.Units) == 0 {
		return k.Rows
	}
	return slices.DeleteFunc(slices.Clone(k.Rows), func(r *Range) bool { return slices.Contains(v.Units, r) })
}

// Of is a kernel with the rows that a body of it depends on.
func (v *Variant) Of(k *Kernel) *Kernel {
	if len(v.Units) == 0 {
		return k
	}
	own := *k
	own.Rows = v.Rows(k)
	return &own
}

// Alone is the variant that stores all results at the given sizes, where no other one does: see Empty. It is nil for sizes at
// which all variants do that take them.
func (k *Kernel) Alone(sizes map[string]int64) *Variant {
	for _, v := range k.Variants {
		if !v.Empty {
			continue
		}
		if holds, ok := EvalSize(v.When, sizes); ok && holds != 0 {
			return v
		}
	}
	return nil
}
