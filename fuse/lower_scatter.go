package fuse

import "slices"

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
