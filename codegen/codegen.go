// Package codegen turns a Plan into a Program: CUDA C text and launches. It decides nothing:
// the plan says what is computed where, in which widths and with how many threads, and codegen
// spells it. It knows no device and no files; the same plan gives the same bytes.
//
// A kernel's text is the prelude (prelude.cuh) and one __global__ function.
// Numbers that distinguish size classes (threads, vector width, items) are macros,
// so that classes which differ in nothing else share their text.
package codegen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// Generate spells a plan.
func Generate(p *ir.Plan) *ir.Program {
	g := &generator{plan: p, position: map[string]int{}, sources: map[string]int{}, units: map[string]int{}, maps: map[string]int{}, places: map[*ir.Buffer]ir.LaunchArg{},
		counters: map[string]int{}, divisors: map[string]int{}, bodies: map[*ir.Variant]body{}}
	g.program = &ir.Program{Name: p.Graph.Name}
	g.symbols()
	g.params()
	for _, k := range p.Launched() {
		g.kernel(k)
	}
	return g.program
}

type generator struct {
	plan     *ir.Plan
	program  *ir.Program
	position map[string]int
	sources  map[string]int // index in Program.Sources of each text
	units    map[string]int // index in Program.Units of each unit
	maps     map[string]int // index in Program.TensorMaps of each tensor map
	places   map[*ir.Buffer]ir.LaunchArg
	counters map[string]int // index in Program.Counters of each kernel's counters
	divisors map[string]int // index in Program.Divisors of each size
	bodies   map[*ir.Variant]body
}

func (g *generator) symbols() {
	for _, s := range g.plan.Graph.Symbols {
		g.position[s.Name] = len(g.program.Symbols)
		g.program.Symbols = append(g.program.Symbols, s.Name)
		g.program.Defaults = append(g.program.Defaults, s.Default)
	}
	for _, c := range g.plan.Graph.Constraints {
		g.program.Constraints = append(g.program.Constraints, ir.SizeCheckOf(c, g.position))
	}
	g.program.Checks = ir.IndexChecks(g.plan.Graph, g.position)
}

func (g *generator) params() {
	p, checks := g.program, 0
	for _, b := range g.plan.Buffers {
		if b.Kind == ir.CheckBuffer {
			g.places[b] = ir.LaunchArg{Kind: ir.ArgCheck, Index: checks}
			checks++
			continue
		}
		if b.Kind != ir.TempBuffer {
			g.places[b] = ir.LaunchArg{Kind: ir.ArgParam, Index: len(p.Params)}
			param := b.Param()
			param.Shape = g.shape(b.Shape)
			p.Params = append(p.Params, param)
			continue
		}
		if b.Over != nil {
			continue
		}
		g.places[b] = ir.LaunchArg{Kind: ir.ArgTemp, Index: len(p.Temps)}
		p.Temps = append(p.Temps, ir.Temp{Bytes: g.size(memoryOf(b))})
	}
	for _, b := range g.plan.Buffers {
		own := b
		for own.Over != nil {
			own = own.Over
		}
		g.places[b] = g.places[own]
	}
}

func (g *generator) size(e *ir.Expr) ir.Size { return ir.SizeOf(e, g.position) }

func (g *generator) shape(dims []*ir.Expr) []ir.Size {
	out := make([]ir.Size, len(dims))
	for i, d := range dims {
		out[i] = g.size(d)
	}
	return out
}

// kernel adds one launch with a unit for each variant.
func (g *generator) kernel(k *ir.Kernel) {
	launch := ir.Launch{Kernel: k.Name}
	if k.When != nil {
		launch.When = g.size(k.When)
	}
	reads, writes := ir.IntConst(0), ir.IntConst(0)
	args := k.Args
	if k.LastBlock != nil {
		args = append(slices.Clone(args), k.LastBlock.Kernel.Args...)
	}
	for _, a := range args {
		if a.Write {
			writes = ir.Apply(ir.OpAdd, writes, bytesOf(a.Buffer))
		} else {
			reads = ir.Apply(ir.OpAdd, reads, bytesOf(a.Buffer))
		}
	}
	launch.Reads, launch.Writes = g.size(reads), g.size(writes)
	for _, v := range k.Variants {
		body := g.body(k, v)
		lv := ir.LaunchVariant{Unit: body.unit, Grid: body.grid}
		if k.LastBlock == nil {
			lv.Args = append(g.launchArgs(k, v, body.symbols), body.factors...)
		} else {
			lv.Args = g.pairLaunchArgs(k, v, body.symbols)
		}
		if v.When != nil {
			lv.When = g.size(v.When)
		}
		launch.Variants = append(launch.Variants, lv)
	}
	g.program.Launches = append(g.program.Launches, launch)
}

// body is what launches of one variant share.
type body struct {
	unit    int
	grid    [3]ir.Size
	symbols []string // symbols that the kernel takes
	factors []ir.LaunchArg
}

// body spells a variant, once for all kernels that are alike.
func (g *generator) body(k *ir.Kernel, v *ir.Variant) body {
	if known, ok := g.bodies[v]; ok {
		return known
	}
	k = v.Of(k)
	e := newKernelText(k, v)
	b := body{unit: g.unit(k, v, e.kernel()), grid: g.grid(k, v), symbols: e.symbols, factors: g.factorArgs(e.factors)}
	if k.LastBlock != nil {
		b.symbols = e.allSymbols()
	}
	g.bodies[v] = b
	return b
}

func (g *generator) unit(k *ir.Kernel, v *ir.Variant, text string) int {
	at, ok := g.sources[text]
	if !ok {
		at = len(g.program.Sources)
		g.sources[text] = at
		g.program.Sources = append(g.program.Sources, text)
	}
	u := ir.Unit{Entry: spell.Identifier(k.Name), Source: at, Defines: defines(v), Strict: k.Numerics == ir.Strict, Block: [3]int{v.Schedule.Threads, 1, 1}, Cluster: v.Schedule.Cluster, Waits: true}
	row := strategies[v.Strategy]
	if u.Resident = row.resident; row.shared != nil {
		u.Shared = row.shared(v)
	}
	key := fmt.Sprintf("%+v", u)
	if n, ok := g.units[key]; ok {
		return n
	}
	g.program.Units = append(g.program.Units, u)
	g.units[key] = len(g.program.Units) - 1
	return g.units[key]
}

// defines spells a schedule as macros.
func defines(v *ir.Variant) string {
	s := v.Schedule
	var b strings.Builder
	index := "int"
	if s.Index64 {
		index = "long long"
	}
	fmt.Fprintf(&b, "#define INDEX %s\n#define THREADS %d\n#define VECTOR %d\n", index, s.Threads, s.Vector)
	if s.MinBlocks > 0 {
		fmt.Fprintf(&b, "#define MIN_BLOCKS %d\n", s.MinBlocks)
	}
	if own := strategies[v.Strategy].defines; own != nil {
		b.WriteString(own(v))
	}
	if v.LastBlock != nil {
		b.WriteString(lastBlockDefines(v.LastBlock))
	}
	return b.String()
}

// grid is the number of blocks, as sizes.
func (g *generator) grid(k *ir.Kernel, v *ir.Variant) [3]ir.Size {
	row := strategies[v.Strategy]
	blocks := row.blocks(k, v)
	if v.LastBlock != nil {
		blocks = lastBlockGrid(k, v, blocks)
	}
	if n := v.Schedule.Cluster; row.perCluster && n > 1 {
		blocks = ir.Apply(ir.OpMul, blocks, ir.IntConst(int64(n)))
	}
	one := g.size(ir.IntConst(1))
	return [3]ir.Size{g.size(ir.Simplify(blocks, ir.Facts{})), one, one}
}

// launchArgs lists the kernel's parameters: its buffers, the variant's views of
// them, then the symbols it uses.
func (g *generator) launchArgs(k *ir.Kernel, v *ir.Variant, symbols []string) []ir.LaunchArg {
	var out []ir.LaunchArg
	for _, a := range k.Args {
		place := g.places[a.Buffer]
		place.Write = a.Write
		out = append(out, place)
	}
	for _, w := range v.TensorMaps {
		out = append(out, ir.LaunchArg{Kind: ir.ArgTensorMap, Index: g.tensorMap(k, w)})
	}
	if own := ownOf(k, v); own.counters != nil {
		out = append(out, ir.LaunchArg{Kind: ir.ArgCounters, Index: g.counterPlace(k, own.counters), Write: true})
		if own.bytes != nil {
			out = append(out, ir.LaunchArg{Kind: ir.ArgTemp, Index: g.scratch(own.bytes), Write: true})
		}
	}
	for _, name := range symbols {
		out = append(out, ir.LaunchArg{Kind: ir.ArgSize, Index: g.position[name]})
	}
	return out
}

// scratch adds memory for one launch alone, and returns its index in the program.
func (g *generator) scratch(bytes *ir.Expr) int {
	g.program.Temps = append(g.program.Temps, ir.Temp{Bytes: g.size(ir.Simplify(bytes, ir.Facts{}))})
	return len(g.program.Temps) - 1
}

// tensorMap returns the index in the program of a kernel's view; equal views share one.
func (g *generator) tensorMap(k *ir.Kernel, w *ir.TMAView) int {
	m := ir.TensorMap{Of: g.places[k.Args[w.Arg.Index].Buffer], DType: w.Arg.Type, Dims: g.shape(w.Dims), Strides: g.shape(w.Strides),
		Box: w.Box, Steps: w.Steps, Swizzle: w.Swizzle, TF32: w.TF32}
	if w.Offset != nil {
		m.Offset = g.size(w.Offset)
	}
	key := fmt.Sprintf("%+v", m)
	at, ok := g.maps[key]
	if !ok {
		at = len(g.program.TensorMaps)
		g.maps[key] = at
		g.program.TensorMaps = append(g.program.TensorMaps, m)
	}
	return at
}

// factorArgs are the arguments for the divisors of a variant.
func (g *generator) factorArgs(divisors []divisor) []ir.LaunchArg {
	var out []ir.LaunchArg
	for _, d := range divisors {
		n := ir.Simplify(d.size, ir.Facts{})
		key := n.String()
		at, ok := g.divisors[key]
		if !ok {
			at = len(g.program.Divisors)
			g.divisors[key] = at
			g.program.Divisors = append(g.program.Divisors, g.size(n))
		}
		out = append(out, ir.LaunchArg{Kind: ir.ArgFactor, Index: at})
	}
	return out
}
