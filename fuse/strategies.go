package fuse

import "github.com/fusec/fusec/ir"

// variants makes the kernel's bodies, one for each class of sizes.
func (lo *kernel) variants() []*ir.Variant {
	var out []*ir.Variant
	switch {
	case lo.r.stream != nil:
		return classes(attendKernel{lo}.attendVariants(), lo.small())
	case lo.r.folded != nil:
		return classes(foldKernel{warpgroupKernel{productKernel{lo}}}.foldVariants(), lo.small())
	case lo.order != nil:
		return classes(sortKernel{lo}.sortVariants(), lo.small())
	case lo.r.product != nil:
		lo.k.Template = ir.ContractTemplate
		return classes(rowProductKernel{sliceKernel{productKernel{lo}}}.rowProductVariants(lo.r.product, nil), lo.small())
	case len(lo.k.Walk) > 0:
		out = rowKernel{lo}.walkVariants()
	default:
		out = lo.reductionVariants()
	}
	out = append(scatterKernel{lo}.scatterVariants(), out...)
	if tiles := (productKernel{lo}).productVariants(); len(tiles) > 0 {
		lo.k.Template = ir.ContractTemplate
		if len(lo.folds) > 1 { // each column has the operands of several products in registers
			for _, v := range out {
				if v.Schedule.Unroll > 1 {
					v.Schedule.Unroll /= 2
				}
			}
		}
		out = append(tiles, out...)
	}
	return classes(out, lo.small())
}
