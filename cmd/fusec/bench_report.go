package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/fusec/fusec/ir/diag"
)

// printHead says who takes part.
func (r *benchRun) printHead() {
	if r.JSON {
		return
	}
	r.app.ui.printf("fusec on %s", r.device.Name())
	if r.peer != nil {
		r.app.ui.printf(", %s on %s", r.peer.name, r.peer.device)
	}
	r.app.ui.printf("\n")
}

// print prints one row: its table, or its line of JSON.
func (r *benchRun) print(row *benchRow) {
	if r.JSON {
		line, err := json.Marshal(row)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		r.app.ui.printf("%s\n", line)
		return
	}
	r.app.ui.printf("\n%s", r.app.ui.style(bold, row.title))
	switch {
	case row.Skipped != "":
		r.app.ui.printf("  %s\n", r.app.ui.style(yellow, "not run: "+row.Skipped))
		return
	case row.err != nil:
		r.app.ui.printf("  %s\n", r.app.ui.style(red, "failed"))
		r.reportRow(row)
		return
	}
	r.app.ui.printf("  %s%s\n", byteText(row.Bytes), f32Text(row.PeerF32))
	columns := r.columns(row)
	r.app.ui.table(columns, r.tableRows(row, len(columns)))
	for _, x := range row.Results {
		r.printRemarks(x)
	}
}

// f32Text says how a peer multiplied f32.
func f32Text(f32 string) string {
	if f32 == "" {
		return ""
	}
	return map[string]string{f32Exact: ", the peer's f32 exact", f32InTF32: ", the peer's f32 in tf32", f32ByDefault: ", the peer's f32 by its defaults"}[f32]
}

// reportRow prints the error of a row, with carets where it has any.
func (r *benchRun) reportRow(row *benchRow) {
	if diag.All(row.err) != nil || errors.Is(row.err, errFailed) {
		r.app.report(row.err)
		return
	}
	r.app.ui.errorf("%s: %s", row.title, row.err)
}

// printRemarks prints what does not fit in the table.
func (r *benchRun) printRemarks(x benchResult) {
	if x.Error != "" {
		r.app.ui.printf("  %s: %s\n", x.Name, r.app.ui.style(yellow, x.Error))
	}
	if x.Differs != "" {
		r.app.ui.printf("  %s: %s\n", x.Name, r.app.ui.style(red, "disagrees: "+x.Differs))
	}
}

// benchColumns are those of a row's table; a row that no peer took part in has fewer.
func (r *benchRun) columns(row *benchRow) []column {
	all := []column{col(""), number("median ms"), number("mean"), number("sd"), number("min"), number("max")}
	if r.Wall {
		all = append(all, number("called ms"))
	}
	all = append(all, number("GB/s"), number("of floor"))
	if len(row.Results) > 1 {
		all = append(all, number("speed-up over it"), col("agrees"))
	}
	return all
}

func (r *benchRun) tableRows(row *benchRow, columns int) [][]string {
	var rows [][]string
	for _, x := range row.Results {
		if x.timing != nil {
			cells := append(r.timingCells(x.Name, *x.timing, x.Wall, row.Bytes), r.verdictCells(x)...)
			rows = append(rows, cells[:columns])
		}
	}
	name, floor := row.floor()
	return append(rows, r.timingCells(name, *floor, nil, row.Bytes))
}

func (r *benchRun) timingCells(name string, t timing, wall *timing, bytes int64) []string {
	cells := []string{"  " + name}
	for _, ms := range []float64{t.Median, t.Mean, t.SD, t.Min, t.Max} {
		cells = append(cells, fmt.Sprintf("%.4f", ms))
	}
	switch {
	case wall != nil:
		cells = append(cells, fmt.Sprintf("%.4f", wall.Median))
	case r.Wall:
		cells = append(cells, "")
	}
	return append(cells, fmt.Sprintf("%.1f", t.rate(bytes)))
}

func (r *benchRun) verdictCells(x benchResult) []string {
	faster, agrees := "", ""
	if x.Speedup > 0 {
		faster = r.band(x.Speedup)
		agrees = fmt.Sprintf("to %.1g", x.Apart)
	}
	switch {
	case x.Differs != "":
		agrees = r.app.ui.style(red, "no")
	case x.Note != "":
		agrees = "not compared: " + x.Note
	}
	return []string{fmt.Sprintf("%.0f%%", 100*x.OfFloor), faster, agrees}
}

// yellow warns.
const yellow = "33"

// The bands of speed-ups.
const (
	clearlyAhead = 1.2
	level        = 0.97 // a difference that the next run may turn round
	behind       = 0.8
)

// band spells a speed-up, coloured by how good it is.
func (r *benchRun) band(speedup float64) string {
	style := red
	switch {
	case speedup >= clearlyAhead:
		style = bold + ";" + green
	case speedup >= level:
		style = green
	case speedup >= behind:
		style = yellow
	}
	return r.app.ui.style(style, fmt.Sprintf("%.2fx", speedup))
}

// printSummary sums the rows up by whom they were compared with.
func (r *benchRun) printSummary() {
	if r.JSON || r.peer == nil {
		return
	}
	var rows [][]string
	for _, mode := range append(r.PeerModes, bestOfPeers) {
		if cells := r.summaryRow(mode); cells != nil {
			rows = append(rows, cells)
		}
	}
	if len(rows) == 0 {
		return
	}
	r.app.ui.printf("\n")
	r.app.ui.table([]column{col("against"), number("rows"), number("geometric mean"), number("level or ahead"),
		number("lowest"), col("of")}, rows)
}

// bestOfPeers is the name under which the fastest mode of each row is counted.
const bestOfPeers = "best of them"

func (r *benchRun) summaryRow(mode string) []string {
	var all []float64
	lowest, of, ahead := math.Inf(1), "", 0
	for _, row := range r.rows {
		s := row.speedup(mode)
		if s == 0 {
			continue
		}
		all = append(all, s)
		if s < lowest {
			lowest, of = s, row.title
		}
		if s >= level {
			ahead++
		}
	}
	if len(all) == 0 {
		return nil
	}
	mean := geometricMean(all)
	return []string{mode, fmt.Sprint(len(all)), r.band(mean), fmt.Sprint(ahead), r.band(lowest), of}
}

// speedup is that over a mode, or over the best of them; 0 where it is not known.
func (r *benchRow) speedup(mode string) float64 {
	best := 0.0
	for _, x := range r.Results {
		if x.Speedup > 0 && (x.Name == mode || mode == bestOfPeers && (best == 0 || x.Speedup < best)) {
			best = x.Speedup
		}
	}
	return best
}
