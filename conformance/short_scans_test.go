package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fusec/fusec/ir"
)

// shortScans are scans of the elements of x, a type and a shape, in all directions, alone and with what may stand around them.
var shortScans = map[string]string{
	"sum":        `graph g(x: %s) -> (y: %[1]s) { y = cumsum(x) }`,
	"both ways":  `graph g(x: %s) -> (y: %[1]s, z: %[1]s) { y = cumsum(x, exclusive=true)  z = cumsum(x, reverse=true) }`,
	"maximum":    `graph g(x: %s) -> (y: %[1]s) { y = cummax(x, reverse=true) }`,
	"one behind": `graph g(x: %s) -> (y: %[1]s, z: %[1]s) { y = cumsum(relu(x))  z = cumsum(y * 0.25, reverse=true, exclusive=true) }`,
	"normalised": `graph g(x: %s) -> (y: %[1]s) { y = cumsum(softmax(x)) }`,
	"turned":     `graph g(x: %s) -> (y: %[1]s) { y = flip(cummax(cumsum(flip(relu(x), -1), exclusive=true) * 0.5), -1) }`,
	"with sums":  `graph g(x: %s) -> (y: %[1]s, s: f32[N]) { y = cumsum(x) * 0.5  s = sum(f32(x), axis=-1) }`,
}

// shortScanRows are rows in memory of a number of columns, or of any, and of several axes.
func shortScanRows() (out []row) {
	text := func(name, shape string) string {
		return "@bench(N=262144" + map[bool]string{true: ", M=24"}[strings.Contains(shape, "M")] + ") " + strings.ReplaceAll(fmt.Sprintf(shortScans[name], shape), "  ", "\n")
	}
	for name := range shortScans {
		out = append(out, row{name: name + ", symbols", src: text(name, "f32[N, M]"), sizes: [][]int64{{5, 1}, {70, 3}, {33, 8}, {129, 16}, {9, 15}, {40, 33}, {3, 64}, {17, 63}, {2, 100}, {0, 5}, {4, 0}}})
		for _, shape := range []string{"bf16[N, 7]", "f16[N, 24]", "bf16[N, 61]", "f32[N, 12]"} {
			out = append(out, row{name: name + " of " + shape, src: text(name, shape), sizes: [][]int64{{1}, {77}, {0}}})
		}
	}
	slices.SortFunc(out, func(a, b row) int { return strings.Compare(a.name, b.name) })
	return out
}

func shortScanFamilies() []family {
	return []family{{
		name: "short_scans", rows: shortScanRows(),
		plan: scansSharedWarps, planned: []string{"sm_90a", "sm_80"},
		on:      []pass{{engine: "cpu"}, {engine: "sm_80"}, {engine: "sm_90a"}, {engine: "gpu"}},
		compile: inTurn(false, "sm_90a", "sm_80"), variants: all,
	}}
}

// scansSharedWarps reports whether a kernel has a variant in which rows that are scanned share warps.
func scansSharedWarps(p *ir.Plan) bool {
	return slices.ContainsFunc(p.Kernels, func(k *ir.Kernel) bool {
		return slices.ContainsFunc(k.Variants, func(v *ir.Variant) bool {
			scans := slices.ContainsFunc(v.Sections, func(s *ir.Section) bool { return len(s.Scans()) > 0 })
			return scans && v.Strategy == ir.RowPersistent && v.Schedule.RowThreads < 32
		})
	})
}
