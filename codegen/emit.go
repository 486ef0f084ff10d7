package codegen

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// traits are the properties of a strategy on which the common part of a kernel's text depends.
type traits struct {
	vectorsAlong    func(k *ir.Kernel, v *ir.Variant) *ir.Range // range along which vectors run; nil for the last range of rows
	hostDivides     bool                                        // threads compute few positions each, so the host turns their divisions into multiplications
	mayMove         bool                                        // a value that is only read and stored may keep its storage type
	choosesInWords  bool                                        // for reads of narrow elements that may be outside, the choice is made on whole words
	columnsInOrder  bool                                        // a thread goes through columns in their order
	acrossRows      bool                                        // vectors run across the ends of rows, and each lane has coordinates of its own
	byPosition      bool                                        // indices of several ranges of columns are written over one position
	lanesInVectors  bool                                        // the conversion of a bf16 element gets its vector and its lane
	branchlessHints bool                                        // cache hints are chosen without a branch
}

// workspace is memory for one launch: counters, which are 0 before and after it, and bytes with any
// contents.
type workspace struct{ counters, bytes *ir.Expr }

// emitter writes the function of one variant. It has what all strategies share: names, places of values,
// coordinates, accesses and folds. The emitter of each family, and of each strategy in it, embeds one.
type emitter struct {
	writer
	traits
	k        *ir.Kernel
	v        *ir.Variant
	names    spell.Namer
	args     map[*ir.Arg]string
	views    map[*ir.TMAView]string
	ranges   map[*ir.Range]string
	place    map[*ir.Local]string // text by which a local is read here
	rawName  map[*ir.Local]string // registers that hold what a local has read
	vectorIn map[*ir.Local]string // the current vector of these
	done     map[*ir.Local]bool   // row-level locals that are written already
	kept     map[*ir.Local]bool
	staged   map[*ir.Local]string // place in shared memory of a read of the next row
	outRows  map[*ir.Store]string // place in shared memory of the values that a row stores
	storeIf  string               // condition of all stores; "" for none
	stored   map[*ir.Local]string // elements of a row that were read and not converted yet
	divisor  map[*ir.Range]string // text of a size with the factor for dividing by it
	factors  []divisor            // sizes whose factors are arguments
	whole    bool                 // the current piece is inside the row
	assumed  []*ir.Expr           // conditions that hold for the current piece
	lane     *ir.Range            // the range vectors run along, or nil
	column   *ir.Range            // the linear position of a column, see emit_linear.go
	linear   map[*ir.Expr]*ir.Expr
	symbols  []string
	s        *spell.Speller

	block     string              // the block's number, or its group's
	fresh     map[*ir.Arg]bool    // buffers that other blocks of the launch have written
	replaced  map[*ir.Expr]string // cache hints of reads
	counters  string              // counters of this launch alone
	workspace string              // memory of this launch alone
}

func newEmitter(k *ir.Kernel, v *ir.Variant, t traits) *emitter {
	e := &emitter{
		k: k, v: v, traits: t, block: "blockIdx.x", names: spell.Namer{},
		args: map[*ir.Arg]string{}, views: map[*ir.TMAView]string{}, ranges: map[*ir.Range]string{}, divisor: map[*ir.Range]string{},
		place: map[*ir.Local]string{}, rawName: map[*ir.Local]string{}, vectorIn: map[*ir.Local]string{}, staged: map[*ir.Local]string{}, stored: map[*ir.Local]string{},
		outRows: map[*ir.Store]string{},
		done:    map[*ir.Local]bool{}, kept: map[*ir.Local]bool{},
		fresh: map[*ir.Arg]bool{}, replaced: map[*ir.Expr]string{}, linear: map[*ir.Expr]*ir.Expr{},
	}
	e.s = &spell.Speller{Numerics: k.Numerics, Mantissa: k.Mantissa, Facts: inside(k, v), Local: e.localName, Range: e.rangeName, Read: e.read}
	for _, l := range v.Keep {
		e.kept[l] = true
	}
	e.symbols = symbolsOf(k, v)
	for _, name := range e.symbols { // before all others, so that they keep their names
		e.names.Fresh(name)
	}
	for _, a := range k.Args {
		e.args[a] = e.names.Fresh(a.Name)
	}
	for _, w := range v.TensorMaps {
		e.views[w] = e.names.Fresh(w.Name)
	}
	for _, r := range append(append([]*ir.Range(nil), k.Rows...), k.Cols...) {
		e.ranges[r] = e.names.Fresh(r.Name)
	}
	if c := v.Contract; c != nil && c.Lane != nil {
		e.ranges[c.Lane] = e.names.Fresh(c.Lane.Name)
	}
	for _, l := range v.Locals {
		for _, r := range innerRanges(l) {
			e.ranges[r] = e.names.Fresh(r.Name)
		}
	}
	if v.Sort != nil {
		e.ranges[v.Sort.Places] = e.names.Fresh(v.Sort.Places.Name)
	}
	switch {
	case t.vectorsAlong != nil:
		e.lane = t.vectorsAlong(k, v)
	case len(k.Rows) > 0:
		e.lane = k.Rows[len(k.Rows)-1]
	}
	return e
}

// noRange is for strategies whose threads have no vectors.
func noRange(*ir.Kernel, *ir.Variant) *ir.Range { return nil }

// innerRanges are the ranges that a local sums over in place.
func innerRanges(l *ir.Local) []*ir.Range {
	if l.Def == nil || l.Def.Op != ir.OpReduce {
		return nil
	}
	return l.Def.Reduce.Ranges
}

// inside is the facts that hold wherever the kernel computes: its rows are not empty. Its columns may be;
// an expression over them contains their ranges itself.
func inside(k *ir.Kernel, v *ir.Variant) ir.Facts {
	f := v.Facts
	f.Within = k.Rows
	return f
}

// symbolsOf lists the symbols the kernel's text mentions, sorted.
func symbolsOf(k *ir.Kernel, v *ir.Variant) []string {
	roots := append(rootsOf(v), k.Inside)
	for _, r := range slices.Concat(k.Rows, k.Cols) {
		roots = append(roots, r.Extent)
	}
	for _, l := range v.Locals {
		roots = append(roots, l.EvictFirst, l.EvictLast)
		for _, r := range innerRanges(l) {
			roots = append(roots, r.Extent)
		}
	}
	for _, s := range v.Sections {
		for _, f := range s.Folds {
			roots = append(roots, f.Rescale)
		}
	}
	if v.Sort != nil {
		roots = append(roots, v.Sort.Places.Extent)
	}
	found := map[string]bool{}
	for _, e := range roots {
		ir.Walk(e, func(e *ir.Expr) bool {
			if e.Op == ir.OpSym {
				found[e.Name] = true
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(found))
}

func (e *emitter) localName(l *ir.Local) string {
	text, ok := e.place[l]
	if !ok {
		panic(fmt.Sprintf("BUG: %s is used before it is computed", l.Name))
	}
	return text
}

func (e *emitter) rangeName(r *ir.Range) string { return e.ranges[r] }

// name gives a local its C name, the first time it is met.
func (e *emitter) name(l *ir.Local) string {
	if text, ok := e.place[l]; ok {
		// In another section the local may have been an element of a vector, whose text cannot be
		// declared.
		if name, _, _ := strings.Cut(text, "["); !strings.ContainsAny(name, ".(") {
			return name
		}
	}
	return e.names.Fresh(l.Name)
}

// sizes writes symbols in the type of indices.
func (e *emitter) sizes(symbols []string) {
	for _, name := range symbols {
		e.line("[[maybe_unused]] const INDEX %s = (INDEX)%s_size;", spell.Identifier(name), spell.Identifier(name))
	}
}
