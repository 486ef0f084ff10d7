package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

// oldRows are the rows of an earlier run: the median times of fusec, in milliseconds, by the row's key.
type oldRows map[string]float64

// rowKey tells rows apart.
func rowKey(op, dtype string, sizes map[string]int64) string {
	return fmt.Sprint(op, " ", dtype, " ", sizesText(sizes))
}

// readRows reads what --json printed.
func readRows(file string) (oldRows, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, plainPathError(err)
	}
	defer f.Close()
	out := oldRows{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var row struct {
			Op, DType string
			Sizes     map[string]int64
			Results   []struct {
				Median float64 `json:"median_ms"`
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil || row.Op == "" {
			return nil, usagef("%s:%d: expected a row that fusec bench --json printed, found %.40q", file, n, lines.Text())
		}
		if len(row.Results) > 0 { // fusec's is the first
			out[rowKey(row.Op, row.DType, row.Sizes)] = row.Results[0].Median
		}
	}
	return out, lines.Err()
}

// ours is the result of fusec in a row; nil where it has no times.
func (r *benchRow) ours() *benchResult {
	if len(r.Results) == 0 || r.Results[0].timing == nil {
		return nil
	}
	return &r.Results[0]
}

// printChanges says how the times differ from those of an earlier run: the worst row first.
func (r *benchRun) printChanges(old oldRows) {
	type change struct {
		ratio float64
		cells []string
	}
	var all []change
	var ratios []float64
	for _, row := range r.rows {
		was := old[rowKey(row.Op, row.DType, row.Sizes)]
		if was == 0 || row.ours() == nil {
			continue
		}
		is := row.ours().Median
		ratios = append(ratios, was/is)
		all = append(all, change{was / is, []string{row.title, fmt.Sprintf("%.4f", was), fmt.Sprintf("%.4f", is),
			r.band(was / is)}})
	}
	if len(all) == 0 {
		r.app.ui.notef("%s has none of these rows", r.Compare)
		return
	}
	slices.SortStableFunc(all, func(a, b change) int { return cmp.Compare(a.ratio, b.ratio) })
	var cells [][]string
	for _, c := range all {
		cells = append(cells, c.cells)
	}
	r.app.ui.printf("\n")
	r.app.ui.table([]column{col("against " + r.Compare), number("was ms"), number("is ms"), number("speed-up")}, cells)
	r.app.ui.printf("%s, geometric mean of their speed-ups %s\n", count(len(all), "row"), r.band(geometricMean(ratios)))
	if missing := len(r.rows) - len(all); missing > 0 {
		r.app.ui.notef("%s not compared: they are not in %s, or have no times", count(missing, "row"), r.Compare)
	}
}
