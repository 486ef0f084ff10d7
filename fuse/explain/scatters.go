package explain

import (
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// scatters are the seconds that a plan takes to find which columns go to which places, by the operations of the program that do so.
type scatters map[ir.Origin]float64

// add notes what the operations of a kernel take together, each the same part.
func (s scatters) add(k *ir.Kernel, seconds float64) {
	var own []ir.Origin
	for _, m := range k.Members {
		if form.ScatterIn(m) != nil {
			own = append(own, m.Origin)
		}
	}
	for _, o := range own {
		s[o] += seconds / float64(len(own))
	}
}

// unfused adds to a kernel of the unfused program what its operation takes in the plan, as a library finds places no faster. What
// several values have from one operation counts once.
func (s scatters) unfused(v *ir.Value, t *tally) {
	t.finding += s[v.Origin]
	delete(s, v.Origin)
}

// scatter is the seconds that a kernel takes beside reading columns and writing results.
func (x *explainer) scatter(v *ir.Variant, k *ir.Kernel) float64 {
	sizes := forecast.ScatterOf(v.Scatter, k.Rows, k.Cols)
	columns, known := x.eval(sizes.Columns)
	column, counted := x.eval(sizes.Mapped(v.Schedule.Mapping, v.Schedule.TileM))
	if !known || !counted {
		return 0
	}
	return forecast.Seconds(float64(columns), float64(column))
}
