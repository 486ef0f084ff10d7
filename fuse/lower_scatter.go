package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// orderScatter puts the rows of a scatter in the order of its mapping.
func (lo *lowering) orderScatter() {
	own := scatterKernel{lo.kernel}
	s := own.scatter(own.scattered(lo.folds))
	if s == nil {
		return
	}
	rows := append(slices.Clone(s.Batch), s.To)
	for _, r := range lo.k.Rows {
		if !slices.Contains(rows, r) {
			rows = append(rows, r)
		}
	}
	lo.k.Rows = rows
}

// joinPlaces makes one range of the rows that are the digits of a scatter's place, as those of a result that is
// reshaped. It divides where other indices need the digits, which costs nothing beside looking at every column.
func (lo *lowering) joinPlaces() {
	always := func(*ir.Expr) bool { return true }
	for i := 0; i < len(lo.folds); i++ {
		digits := lo.digitsOfPlace(lo.folds[i])
		if len(digits) < 2 {
			continue
		}
		last := len(digits) - 1
		outer, inner := digits[last-1], digits[last]
		whole := lo.join(outer, inner, always)
		if whole == nil {
			continue
		}
		lo.k.Rows[slices.Index(lo.k.Rows, outer)] = whole
		lo.k.Rows = slices.DeleteFunc(lo.k.Rows, func(r *ir.Range) bool { return r == inner })
		i = -1 // there may be more
	}
}

// digitsOfPlace is the rows that are the digits of the index that a fold's condition compares with a key of its columns.
func (lo *lowering) digitsOfPlace(f *ir.Fold) []*ir.Range {
	if f.Where == nil || f.Prefix != ir.WholeRow {
		return nil
	}
	for _, c := range form.Conditions(f.Where) {
		if digits, key := lo.placeDigits(c, lo.k.Rows); len(digits) > 1 && form.IsKey(key, lo.k.Cols) {
			return digits
		}
	}
	return nil
}
