package cpu

import "github.com/fusec/fusec/ir"

// WithProducts calls f while sums with at least so many multiplications are computed by panels; 0 for all that can be.
func WithProducts(fewest int64, f func()) {
	before := fewestProducts
	defer func() { fewestProducts = before }()
	fewestProducts = fewest
	f()
}

// CountProducts counts the kernels of a plan that are matrix products, and those of them whose sums take their terms in
// the same order without panels.
func CountProducts(p *ir.Plan, symbols map[string]int64) (products, same int) {
	for _, k := range p.Kernels {
		var s step
		var err error
		v, none := variant(k, symbols)
		if none == nil && !writesNothing(k, symbols) && v.Sort == nil && scattered(k, symbols) == nil {
			s, err = lowerProduct(k, v, symbols)
		}
		if s == nil || err != nil {
			continue
		}
		products++
		if c, err := lowerVariant(k, v, symbols, nil); err == nil && c.vecRow && c.chunk >= c.steps && s.(interface{ parts() int64 }).parts() == 1 {
			same++
		}
	}
	return products, same
}
