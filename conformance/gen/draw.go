package gen

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/parser"
)

// mostPoints is how many elements a value may have: what the interpreter has time for.
const mostPoints = 20_000

// drawer draws one program.
type drawer struct {
	*rand.Rand
	program *Program
	pool    []Value
	dims    []string   // of which inputs are made: symbols and numbers
	floats  []ir.DType // that most inputs have
	most    int64      // points of a line, those of its reductions too
	names   int
}

// Draw makes the program of a seed.
func Draw(seed uint64) *Program {
	d := &drawer{Rand: rand.New(rand.NewPCG(seed, 0x6e65)), program: &Program{Seed: seed, Sizes: map[string]int64{}}, most: 20 * mostPoints}
	d.program.Annotations = one(d.Rand, []string{"", "", "", "", "@strict", "@strict", "@tf32", "@onekernel"}[:7])
	d.program.Hostile = d.IntN(3) == 0
	d.drawDims()
	d.drawInputs()
	for range 1 + d.IntN(8) {
		d.line()
	}
	d.outputs()
	d.program.prune()
	return d.program
}

// sizes are extents that are likely to be special to somebody: nothing, one, around vectors,
// warps, blocks, tiles and pieces of rows.
var sizes = []int64{0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 8, 9, 12, 13, 16, 17, 24, 31, 32, 33, 40, 63, 64, 65, 96, 100,
	127, 128, 129, 130, 200, 255, 256, 257, 384, 512, 513, 1000, 1023, 1024, 1025, 2048, 2049, 4096, 4099, 8192, 16384}

// drawDims chooses the extents that inputs have, so that most of their values fit together.
func (d *drawer) drawDims() {
	room := int64(mostPoints)
	if d.IntN(4) > 0 {
		room = 4096 // most programs are small
	}
	for i := range 2 + d.IntN(2) {
		n := one(d.Rand, sizes)
		for n > 1 && n*n > room && (n > room || i > 0 || d.IntN(4) > 0) {
			n = one(d.Rand, sizes)
		}
		room = max(room/max(n, 1), 3)
		if d.IntN(2) == 0 {
			d.dims = append(d.dims, fmt.Sprint(n))
			continue
		}
		name := string("NMKLHW"[i])
		d.dims = append(d.dims, name)
		d.program.Sizes[name] = n
	}
	d.Shuffle(len(d.dims), func(i, j int) { d.dims[i], d.dims[j] = d.dims[j], d.dims[i] })
}

// drawInputs gives the pool its first values. Every symbol is a dim of one.
func (d *drawer) drawInputs() {
	main := one(d.Rand, []ir.DType{ir.F32, ir.F32, ir.F32, ir.F16, ir.BF16, ir.F64, ir.F64, ir.I32, ir.I64})
	d.floats = []ir.DType{main, main, main, ir.F32}
	count := 1 + d.IntN(4)
	for i := range count {
		t := main
		if d.IntN(3) == 0 {
			t = one(d.Rand, ir.DTypes())
		}
		d.input(string("xwzrstuv"[i]), t, d.shape())
	}
	for _, dim := range d.dims {
		if _, symbol := d.program.Sizes[dim]; symbol && !d.hasDim(dim) {
			d.input(fmt.Sprintf("p%d", len(d.pool)), main, []string{dim})
		}
	}
	if d.IntN(3) == 0 { // indices
		d.input("at", one(d.Rand, []ir.DType{ir.I32, ir.I64, ir.I64, ir.U8, ir.I8, ir.I16, ir.U32}), []string{one(d.Rand, d.dims)})
	}
}

func (d *drawer) hasDim(dim string) bool {
	return slices.ContainsFunc(d.pool, func(v Value) bool { return slices.Contains(v.Dims, dim) })
}

func (d *drawer) input(name string, t ir.DType, dims []string) {
	v := Value{name, t, dims}
	d.program.Inputs = append(d.program.Inputs, v)
	d.pool = append(d.pool, v)
}

// shape is a shape of few points.
func (d *drawer) shape() []string {
	for range 20 {
		rank := one(d.Rand, []int{0, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 4})
		shape, points := make([]string, rank), int64(1)
		for i := range shape {
			shape[i] = one(d.Rand, d.dims)
			if d.IntN(8) == 0 {
				shape[i] = one(d.Rand, []string{"1", "2", "3", "4", "5"})
			}
			points *= d.extent(shape[i])
		}
		if points <= mostPoints {
			return shape
		}
	}
	return d.dims[:1]
}

// extent is the number that a dim of an input stands for.
func (d *drawer) extent(dim string) int64 {
	if n, symbol := d.program.Sizes[dim]; symbol {
		return n
	}
	var n int64
	fmt.Sscan(dim, &n)
	return n
}

// line draws lines until the parser takes one.
func (d *drawer) line() {
	for range 40 {
		var l Line
		var inputs []Value
		switch n := d.IntN(20); {
		case n < 8:
			l = d.indexLine()
		case n < 11:
			l, inputs = d.formLine()
		default:
			l = d.tableLine()
		}
		if l.Text == "" || !d.accept(&l) {
			continue
		}
		d.pool = slices.Insert(d.pool, len(d.program.Inputs), inputs...)
		d.program.Inputs = append(d.program.Inputs, inputs...)
		d.program.Lines = append(d.program.Lines, l)
		d.pool = append(d.pool, l.Results...)
		return
	}
}

// declared is how the parser says what a result is.
var declared = regexp.MustCompile(`^(\w+) is declared .*, but its value is (\w+)\[(.*?)\](: write .*)?$`)

// accept asks the parser for the types of a line's results; false where it is wrong, or too
// large.
func (d *drawer) accept(l *Line) bool {
	p := &Program{Inputs: unique(l.Uses), Lines: []Line{*l}, Sizes: d.program.Sizes}
	for _, name := range slices.Sorted(maps.Keys(d.program.Sizes)) {
		p.Inputs = append(p.Inputs, Value{Name: "_" + name, Type: ir.Bool, Dims: []string{name}})
	}
	if !p.retype() {
		return false
	}
	l.Results = p.Lines[0].Results
	p.Outputs = l.Results
	g, err := graphOf(p.Source())
	return err == nil && d.affordable(g)
}

// axesTold is how the parser says how many axes the indices of a result give it, where another number was declared.
var axesTold = regexp.MustCompile(`^(\w+) is declared with \d+ (?:axis|axes), but is defined with (\d+)$`)

// retype asks the parser for the types of what lines bind, by declaring all of it as results of
// types that no value has; false where the program is wrong.
func (p *Program) retype() bool {
	ask := *p
	ask.Outputs = nil
	for _, l := range p.Lines {
		for _, v := range l.Results {
			ask.Outputs = append(ask.Outputs, unlikely(v.Name, 8))
		}
	}
	_, err := graphOf(ask.Source())
	indexed := false
	for _, e := range diag.All(err) {
		m := axesTold.FindStringSubmatch(e.Msg)
		for i, o := range ask.Outputs {
			if m == nil || o.Name != m[1] {
				continue
			}
			axes, _ := strconv.Atoi(m[2])
			ask.Outputs[i], indexed = unlikely(o.Name, axes), true
		}
	}
	if indexed {
		_, err = graphOf(ask.Source())
	}
	return p.told(err, len(ask.Outputs))
}

// unlikely is a result of a type that no value has.
func unlikely(name string, axes int) Value {
	return Value{name, ir.Bool, slices.Repeat([]string{"211"}, axes)}
}

// told takes the types of so many results from what the parser says of their declarations.
func (p *Program) told(err error, results int) bool {
	types := map[string]Value{}
	for _, e := range diag.All(err) {
		m := declared.FindStringSubmatch(e.Msg)
		if m == nil {
			return false
		}
		t, known := ir.DTypeNamed(m[2])
		if !known {
			return false
		}
		types[m[1]] = Value{m[1], t, dimsOf(m[3])}
	}
	if len(types) != results {
		return false
	}
	for i, l := range p.Lines {
		results := make([]Value, len(l.Results))
		for n, v := range l.Results {
			results[n] = types[v.Name]
		}
		p.Lines[i].Results = results
	}
	return true
}

// unique drops values that stand twice.
func unique(values []Value) (out []Value) {
	for _, v := range values {
		if !slices.ContainsFunc(out, func(w Value) bool { return w.Name == v.Name }) {
			out = append(out, v)
		}
	}
	return out
}

// dimsOf splits the text of a shape at its commas; those of expressions are in parentheses.
func dimsOf(text string) (out []string) {
	depth, from := 0, 0
	for i, c := range text {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			out = append(out, strings.TrimSpace(text[from:i]))
			from = i + 1
		}
	}
	if last := strings.TrimSpace(text[from:]); last != "" {
		out = append(out, last)
	}
	return out
}

// graphOf reads a program of one graph.
func graphOf(source string) (*ir.Graph, error) {
	file, err := parser.Parse("g.fuse", []byte(source), parser.Options{})
	if err != nil {
		return nil, err
	}
	return file.Graph("")
}

// affordable reports whether every value of a line has few points, and the sizes meet its
// conditions.
func (d *drawer) affordable(g *ir.Graph) bool {
	for _, c := range g.Constraints {
		if v, ok := ir.EvalSize(c.Cond, d.program.Sizes); !ok || v == 0 {
			return false
		}
	}
	for _, v := range g.Values {
		points, ranges := int64(1), slices.Clone(v.Axes)
		if v.Reduce != nil {
			ranges = append(ranges, v.Reduce.Ranges...)
		}
		for i, r := range ranges {
			n, ok := ir.EvalSize(r.Extent, d.program.Sizes)
			if !ok || n < 0 || n > 1<<20 {
				return false
			}
			if i >= len(v.Axes) { // a reduction of nothing has results all the same
				n = max(n, 1)
			}
			points *= n
		}
		if points > d.most {
			return false
		}
	}
	return true
}

// outputs are one to three values: the last one, and others.
func (d *drawer) outputs() {
	made := d.pool[len(d.program.Inputs):]
	if len(made) == 0 {
		made = d.pool
	}
	chosen := []Value{made[len(made)-1]}
	for range d.IntN(3) {
		if v := one(d.Rand, made); !slices.ContainsFunc(chosen, func(c Value) bool { return c.Name == v.Name }) {
			chosen = append(chosen, v)
		}
	}
	for i, v := range chosen { // a result has a name of its own where it is an input
		if slices.ContainsFunc(d.program.Inputs, func(in Value) bool { return in.Name == v.Name }) {
			out := Value{fmt.Sprintf("out%d", i), v.Type, v.Dims}
			d.program.Lines = append(d.program.Lines, Line{Text: out.Name + " = " + v.Name, Python: out.Name + " = " + v.Name,
				Results: []Value{out}, Uses: []Value{v}, Feature: "copy"})
			v = out
		}
		d.program.Outputs = append(d.program.Outputs, v)
	}
}

func (d *drawer) name() string {
	d.names++
	return fmt.Sprintf("v%d", d.names)
}

// Add adds a line that a caller has drawn, which reads inputs alone, and makes outputs of what it binds: Results say the names.
// It returns false, and adds nothing, where the parser refuses the line or its values have many points.
func (p *Program) Add(l Line) bool {
	d := &drawer{program: p, most: 20 * mostPoints}
	l.Uses = p.Inputs
	if !d.accept(&l) {
		return false
	}
	p.Lines, p.Outputs = append(p.Lines, l), append(p.Outputs, l.Results...)
	return true
}
