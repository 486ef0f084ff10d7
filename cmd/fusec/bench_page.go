package main

import (
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"os"
)

//go:embed bench_page.html
var benchPageText string

var benchPage = template.Must(template.New("bench").Parse(benchPageText))

// pageData is what the page of a benchmark shows.
type pageData struct {
	Title, Device string
	Runs          int
	Wall          bool
	Modes         []string // of the peer
	Rows          []pageRow
	Plot          speedupPlot
}

type pageRow struct {
	Title, Error string
	Cells        []pageCells
}

// pageCells is one contestant of a row.
type pageCells struct {
	Name, Speedup, Class, First, Memory string
	Numbers                             []string
}

// writePage writes tables and a plot of all rows to a file that needs nothing else.
func (r *benchRun) writePage(file string) error {
	data := pageData{Title: "fusec bench", Device: r.device.Name(), Wall: r.Wall, Plot: r.plot()}
	if r.peer != nil {
		data.Modes = r.PeerModes
		data.Title += ", beside " + r.peer.name
	}
	for _, row := range r.rows {
		page := pageRow{Title: row.title, Error: row.Skipped}
		if row.err != nil {
			page.Error = row.err.Error()
		}
		for _, x := range row.Results {
			if x.timing != nil {
				page.Cells = append(page.Cells, r.pageCells(x))
				data.Runs = x.Runs
			}
		}
		data.Rows = append(data.Rows, page)
	}
	for _, row := range r.rows {
		if x := row.ours(); x != nil {
			data.Runs = min(data.Runs, x.Runs)
		}
	}
	out, err := os.Create(file)
	if err != nil {
		return plainPathError(err)
	}
	if err := benchPage.Execute(out, data); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

func (r *benchRun) pageCells(x benchResult) pageCells {
	cells := pageCells{Name: x.Name, First: fmt.Sprintf("%.2f", x.First/1e3)}
	for _, ms := range []float64{x.Median, x.Mean, x.SD} {
		cells.Numbers = append(cells.Numbers, fmt.Sprintf("%.4f", ms))
	}
	switch {
	case x.Wall != nil:
		cells.Numbers = append(cells.Numbers, fmt.Sprintf("%.4f", x.Wall.Median))
	case r.Wall:
		cells.Numbers = append(cells.Numbers, "")
	}
	cells.Numbers = append(cells.Numbers, fmt.Sprintf("%.1f", x.Rate), fmt.Sprintf("%.0f%%", 100*x.OfFloor))
	if x.Memory > 0 {
		cells.Memory = byteText(x.Memory)
	}
	if x.Speedup > 0 {
		cells.Speedup = fmt.Sprintf("%.2fx", x.Speedup)
		switch {
		case x.Speedup >= clearlyAhead:
			cells.Class = "good"
		case x.Speedup < level:
			cells.Class = "bad"
		}
	}
	return cells
}

// speedupPlot is a line of dots for each row, on a logarithmic axis. Lengths are in units of the picture.
type speedupPlot struct {
	Width, Height, Bottom, LabelY float64
	Ticks                         []plotTick
	Bars                          []plotBar
}

type plotTick struct {
	X     float64
	Label string
	One   bool // it stands for equal times
}

type plotBar struct {
	Label string
	TextY float64
	Dots  []plotDot
}

type plotDot struct {
	X, Y          float64
	Colour, Title string
}

// Lengths of the plot: its width, that of the labels at the left, and the height of a row.
const (
	plotWidth  = 1100.0
	plotLabels = 420.0
	plotRow    = 22.0
)

// plot places a dot for each mode of the peer. The axis goes from the lowest to the highest speed-up,
// 1 among them, in powers of two.
func (r *benchRun) plot() speedupPlot {
	low, high := 0, 1
	for _, row := range r.rows {
		for _, x := range row.Results {
			if x.Speedup > 0 {
				low = min(low, int(math.Floor(math.Log2(x.Speedup))))
				high = max(high, int(math.Ceil(math.Log2(x.Speedup))))
			}
		}
	}
	place := func(power float64) float64 {
		return plotLabels + (power-float64(low))/float64(high-low)*(plotWidth-plotLabels-20)
	}
	p := speedupPlot{Width: plotWidth}
	for _, row := range r.rows {
		y := plotRow * (float64(len(p.Bars)) + 0.5)
		bar := plotBar{Label: row.title, TextY: y + 4}
		for _, x := range row.Results {
			if x.Speedup > 0 {
				colour := "ours"
				if x.Speedup < level {
					colour = "bad"
				}
				bar.Dots = append(bar.Dots, plotDot{X: place(math.Log2(x.Speedup)), Y: y, Colour: colour,
					Title: fmt.Sprintf("%.2f times as fast as %s", x.Speedup, x.Name)})
			}
		}
		if bar.Dots != nil {
			p.Bars = append(p.Bars, bar)
		}
	}
	p.Bottom = plotRow * float64(len(p.Bars))
	p.LabelY, p.Height = p.Bottom+16, p.Bottom+24
	for power := low; power <= high; power++ {
		p.Ticks = append(p.Ticks, plotTick{place(float64(power)), fmt.Sprintf("%gx", math.Exp2(float64(power))), power == 0})
	}
	return p
}
