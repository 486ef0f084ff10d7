package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
	"github.com/fusec/fusec/runtime/tensor"
)

// printCount is --print: how many rows and columns of each output are shown.
type printCount struct {
	given bool
	most  int
}

const (
	defaultPrint = 8
	smallOutput  = 64 // elements up to which an output is printed without being asked for
)

// IsBool lets --print stand without a number.
func (*printCount) IsBool() bool { return true }

// Decode reads --print, --print=5 and --print 5.
func (c *printCount) Decode(ctx *kong.DecodeContext) error {
	c.given, c.most = true, defaultPrint
	next := ctx.Scan.Peek()
	text, ok := next.Value.(string)
	n, err := strconv.Atoi(text)
	switch {
	case ok && next.Type == kong.FlagValueToken && (err != nil || n < 0):
		return fmt.Errorf("expected a number of rows, found %q", text)
	case !ok || err != nil || n < 0:
		return nil // what follows is not the flag's
	}
	ctx.Scan.Pop()
	c.most = n
	return nil
}

// printOutputs prints the outputs: those that --print asks for, else small ones.
func (a *app) printOutputs(c printCount, names []string, outputs []*tensor.Tensor) {
	for i, x := range outputs {
		most := c.most
		if !c.given {
			if x.Len() > smallOutput {
				continue
			}
			most = smallOutput
		}
		if most == 0 {
			continue
		}
		a.ui.printf("\n%s: %s  %s\n", a.ui.style(bold, names[i]), x, a.ui.style(faint, statisticsText(x)))
		a.printGrid(x, most)
	}
}

// statistics sums up the elements of a tensor.
type statistics struct {
	finite        int // elements that are neither NaN nor infinite
	least, most   float64
	mean, squares float64 // squares: of the distances from the mean, summed
	nan, infinite int
}

// add counts an element, by Welford's way, which does not lose small variances.
func (s *statistics) add(v float64) {
	switch {
	case v != v:
		s.nan++
		return
	case math.IsInf(v, 0):
		s.infinite++
		return
	}
	if s.finite++; s.finite == 1 {
		s.least, s.most = v, v
	}
	s.least, s.most = min(s.least, v), max(s.most, v)
	off := v - s.mean
	s.mean += off / float64(s.finite)
	s.squares += off * (v - s.mean)
}

func statisticsText(x *tensor.Tensor) string {
	var s statistics
	var block [1024]float64 // not all at once: outputs may fill half of the memory
	size := x.DType.Size()
	for at := 0; at < x.Len(); at += len(block) {
		n := min(len(block), x.Len()-at)
		num.ToFloat64s(block[:n], x.DType, x.Data[at*size:(at+n)*size])
		for _, v := range block[:n] {
			s.add(v)
		}
	}
	var parts []string
	switch {
	case x.Len() == 0:
		return "no elements"
	case x.DType == ir.Bool:
		return fmt.Sprintf("%.0f of %d true", s.mean*float64(x.Len()), x.Len())
	case s.finite > 0:
		parts = append(parts, fmt.Sprintf("min %.4g, max %.4g, mean %.4g, deviation %.4g", s.least, s.most, s.mean,
			math.Sqrt(s.squares/float64(s.finite))))
	}
	if s.nan > 0 {
		parts = append(parts, fmt.Sprintf("%d NaN", s.nan))
	}
	if s.infinite > 0 {
		parts = append(parts, fmt.Sprintf("%d infinite", s.infinite))
	}
	return strings.Join(parts, ", ")
}

// printGrid prints the first rows of the last axis, as many and as long as most and the
// width allow. Each slice over the last two axes stands below its index.
func (a *app) printGrid(x *tensor.Tensor, most int) {
	if x.Len() == 0 {
		return
	}
	rank := len(x.Shape)
	cols, rows := 1, 1
	if rank > 0 {
		cols = x.Shape[rank-1]
	}
	if rank > 1 {
		rows = x.Shape[rank-2]
	}
	total := x.Len() / cols
	cells := make([][]string, min(total, most))
	width := 0
	for r := range cells {
		for c := range min(cols, most) {
			cell := elementText(x, r*cols+c)
			cells[r] = append(cells[r], cell)
			width = max(width, len(cell))
		}
	}
	shown := min(len(cells[0]), max(1, (a.ui.width()-4)/(width+2)))
	for r, line := range cells {
		if rank > 2 && r%rows == 0 {
			a.ui.printf("  %s\n", a.ui.style(faint, sliceText(x.Index(r * cols)[:rank-2])))
		}
		var b strings.Builder
		for _, cell := range line[:shown] {
			fmt.Fprintf(&b, "  %*s", width, cell)
		}
		if shown < cols {
			b.WriteString("  …")
		}
		a.ui.printf("%s\n", b.String())
	}
	if rest := total - len(cells); rest > 0 {
		a.ui.printf("  %s\n", a.ui.style(faint, fmt.Sprintf("… %s more", count(rest, "row"))))
	}
}

// sliceText is the index of a slice over the last two axes.
func sliceText(index []int) string {
	var parts []string
	for _, i := range index {
		parts = append(parts, strconv.Itoa(i))
	}
	return "[" + strings.Join(append(parts, ":", ":"), ", ") + "]"
}

// elementText writes an element with as many digits as its type holds.
func elementText(x *tensor.Tensor, at int) string {
	index := x.Index(at)
	switch {
	case x.DType == ir.Bool:
		return strconv.FormatBool(x.IntAt(index...) != 0)
	case x.DType.IsInt():
		return strconv.FormatInt(x.IntAt(index...), 10)
	}
	digits := min(6, 2+int(float64(x.DType.Info().Mantissa)*math.Log10(2)))
	return strconv.FormatFloat(x.At(index...), 'g', digits, 64)
}
