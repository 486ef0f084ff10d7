// Package codegen turns a Plan into a Program: CUDA C text and launches. It
// decides nothing: what is computed where, in which widths and with how many
// threads stands in the plan, and codegen spells it. It knows no device and no
// files; the same plan gives the same bytes.
//
// A kernel's text is the prelude (prelude.cuh) and one __global__ function.
// Numbers that distinguish size classes (threads, vector width, items) are macros,
// so that classes which differ in nothing else share their text.
package codegen

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/fusec/fusec/ir"
)

//go:embed prelude.cuh
var prelude string

// Generate spells a plan. It fails only where the plan uses something that has no
// CUDA spelling.
func Generate(p *ir.Plan) (out *ir.Program, err error) {
	g := &generator{plan: p, position: map[string]int{}, sources: map[string]int{}, units: map[string]int{}, maps: map[string]int{}, places: map[*ir.Buffer]ir.LaunchArg{},
		counters: map[string]int{}, divisors: map[string]int{}, bodies: map[*ir.Variant]body{}}
	g.program = &ir.Program{Name: p.Graph.Name}
	g.symbols()
	g.params()
	for _, k := range p.Launched() {
		if err := g.kernel(k); err != nil {
			return nil, fmt.Errorf("kernel %s: %w", k.Name, err)
		}
	}
	return g.program, nil
}

// CUDA returns the complete text of a unit, ready for the compiler.
func CUDA(p *ir.Program, unit int) string {
	u := p.Units[unit]
	return u.Defines + p.Sources[u.Source]
}

type generator struct {
	plan     *ir.Plan
	program  *ir.Program
	position map[string]int
	sources  map[string]int // text to place in Program.Sources
	units    map[string]int // unit to place in Program.Units
	maps     map[string]int // tensor map to place in Program.TensorMaps
	places   map[*ir.Buffer]ir.LaunchArg
	counters map[string]int // of a kernel to place in Program.Tickets
	divisors map[string]int // of a size to place in Program.Divisors
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
			p.Params = append(p.Params, ir.Param{Name: b.Name, DType: b.Type, Shape: g.shape(b.Shape), Output: b.Kind == ir.OutputBuffer, Where: where(b)})
			continue
		}
		g.places[b] = ir.LaunchArg{Kind: ir.ArgTemp, Index: len(p.Temps)}
		p.Temps = append(p.Temps, ir.Temp{Bytes: g.size(bytesOf(b))})
	}
}

func where(b *ir.Buffer) string {
	if b.Value.Origin.Span.IsZero() {
		return ""
	}
	return b.Value.Origin.Span.String()
}

func (g *generator) size(e *ir.Expr) ir.Size { return ir.SizeOf(e, g.position) }

func (g *generator) shape(dims []*ir.Expr) []ir.Size {
	out := make([]ir.Size, len(dims))
	for i, d := range dims {
		out[i] = g.size(d)
	}
	return out
}

func bytesOf(b *ir.Buffer) *ir.Expr {
	return ir.Simplify(ir.Apply(ir.OpMul, product(b.Shape), ir.IntConst(int64(b.Type.Size()))), ir.Facts{})
}

func product(dims []*ir.Expr) *ir.Expr {
	out := ir.IntConst(1)
	for _, d := range dims {
		out = ir.Apply(ir.OpMul, out, d)
	}
	return ir.Simplify(out, ir.Facts{})
}

func extents(ranges []*ir.Range) []*ir.Expr {
	out := make([]*ir.Expr, len(ranges))
	for i, r := range ranges {
		out[i] = r.Extent
	}
	return out
}

// kernel adds one launch with a unit for each variant.
func (g *generator) kernel(k *ir.Kernel) error {
	launch := ir.Launch{Kernel: k.Name}
	reads, writes := ir.IntConst(0), ir.IntConst(0)
	args := k.Args
	if k.Finish != nil {
		args = append(slices.Clone(args), k.Finish.Kernel.Args...)
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
		body, err := g.body(k, v)
		if err != nil {
			return err
		}
		lv := ir.LaunchVariant{Unit: body.unit, Grid: body.grid}
		if k.Finish == nil {
			lv.Args = append(g.launchArgs(k, v, body.symbols), body.factors...)
		} else {
			lv.Args = g.finishLaunchArgs(k, v, body.symbols)
		}
		if v.When != nil {
			lv.When = g.size(v.When)
		}
		launch.Variants = append(launch.Variants, lv)
	}
	g.program.Launches = append(g.program.Launches, launch)
	return nil
}

// body is what launches of one variant share.
type body struct {
	unit    int
	grid    [3]ir.Size
	symbols []string // that the kernel takes
	factors []ir.LaunchArg
}

// body spells a variant, once for all kernels that are alike.
func (g *generator) body(k *ir.Kernel, v *ir.Variant) (body, error) {
	if known, ok := g.bodies[v]; ok {
		return known, nil
	}
	if len(v.Units) > 0 {
		own := *k
		own.Rows = v.Rows(k)
		k = &own
	}
	e := newEmitter(k, v)
	text, err := e.kernel()
	if err != nil {
		return body{}, err
	}
	b := body{unit: g.unit(k, v, text), grid: g.grid(k, v), symbols: e.symbols, factors: g.factorArgs(e.factors)}
	if k.Finish != nil {
		b.symbols = e.allSymbols()
	}
	g.bodies[v] = b
	return b, nil
}

func (g *generator) unit(k *ir.Kernel, v *ir.Variant, text string) int {
	at, ok := g.sources[text]
	if !ok {
		at = len(g.program.Sources)
		g.sources[text] = at
		g.program.Sources = append(g.program.Sources, text)
	}
	u := ir.Unit{Entry: identifier(k.Name), Source: at, Defines: defines(v), Strict: k.Numerics == ir.Strict, Block: [3]int{v.Schedule.Threads, 1, 1}, Cluster: v.Schedule.Cluster, Waits: true}
	if v.Sort != nil {
		_, u.Shared = sortBlock(v)
	}
	if aheadOf(v) {
		u.Shared, u.Resident = v.Schedule.Shared, true
		if len(k.Walk) > 0 {
			u.Shared, u.Resident = aheadShared(v), false
		}
	}
	if columnsAhead(v) {
		u.Shared = columnsShared(v)
	}
	switch v.Schedule.Mapping {
	case ir.ContractMapping:
		u.Shared = contractShared(v)
	case ir.WarpgroupMapping:
		u.Shared = warpgroupShared(v)
	case ir.SliceMapping:
		u.Shared = sliceShared(v)
	case ir.RowProductMapping:
		u.Shared = rowProductShared(v)
	}
	if v.Attend != nil {
		u.Shared = attendShared(v)
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
	switch {
	case s.Mapping == ir.RowMapping:
		fmt.Fprintf(&b, "#define ROW_THREADS %d\n#define CLUSTER %d\n#define ITEMS %d\n", s.RowThreads, max(s.Cluster, 1), max(s.Items, s.Unroll))
		if aheadOf(v) {
			fmt.Fprintf(&b, "#define STAGES %d\n", s.Stages)
			if s.Unroll > 0 {
				fmt.Fprintf(&b, "#define HELD %d\n", s.Held)
			} else {
				fmt.Fprintf(&b, "#define ROWS_SHARED %d\n", s.Shared)
			}
		}
	case v.Sort != nil:
		fmt.Fprintf(&b, "#define ITEMS %d\n", s.Items)
	case s.Mapping == ir.ContractMapping:
		b.WriteString(contractDefines(v))
	case v.Attend != nil:
		b.WriteString(attendDefines(v))
	case s.Mapping == ir.WarpgroupMapping:
		b.WriteString(warpgroupDefines(v))
	case s.Mapping == ir.SliceMapping:
		b.WriteString(sliceDefines(s))
	case s.Mapping == ir.GemvMapping:
		b.WriteString(gemvDefines(s))
	case s.Mapping == ir.RowProductMapping:
		b.WriteString(rowProductDefines(s))
	case scatters(s.Mapping):
		b.WriteString(scatterDefines(s))
	case s.Mapping == ir.HistogramMapping:
		fmt.Fprintf(&b, "#define RUNNING %d\n", s.TileM)
	case s.Mapping == ir.TileMapping:
		fmt.Fprintf(&b, "#define TILE_M %d\n#define TILE_N %d\n", s.TileM, s.TileN)
	case s.ColThreads > 0:
		fmt.Fprintf(&b, "#define COL_THREADS %d\n#define ITEMS %d\n", s.ColThreads, s.Unroll)
		switch {
		case s.Chain > 0:
			fmt.Fprintf(&b, "#define CHAIN %d\n", s.Chain)
		case s.Behind > 0:
			fmt.Fprintf(&b, "#define BEHIND %d\n", s.Behind)
		}
	case s.Mapping == ir.FlatMapping && s.Unroll > 1:
		fmt.Fprintf(&b, "#define ITEMS %d\n", s.Unroll)
		if columnsAhead(v) {
			fmt.Fprintf(&b, "#define STAGES %d\n", s.Stages)
		}
	}
	if v.Finish != nil {
		b.WriteString(finishDefines(v.Finish))
	}
	return b.String()
}

// grid is the number of blocks as sizes.
func (g *generator) grid(k *ir.Kernel, v *ir.Variant) [3]ir.Size {
	blocks := blocksOf(k, v)
	if v.Finish != nil {
		blocks = finishGrid(k, v, blocks)
	}
	if s := v.Schedule; s.Mapping == ir.RowMapping && s.Cluster > 1 {
		blocks = ir.Apply(ir.OpMul, blocks, ir.IntConst(int64(s.Cluster)))
	}
	one := g.size(ir.IntConst(1))
	return [3]ir.Size{g.size(ir.Simplify(blocks, ir.Facts{})), one, one}
}

// blocksOf is the number of blocks, or in row mapping of clusters, that the rows are
// dealt out over.
func blocksOf(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	s, rows := v.Schedule, dealt(k, v)
	var blocks *ir.Expr
	switch s.Mapping {
	case ir.ContractMapping, ir.RowProductMapping:
		blocks = contractGrid(v)
	case ir.WarpgroupMapping:
		blocks = warpgroupGrid(v)
	case ir.SliceMapping:
		blocks = sliceGrid(v)
	case ir.GemvMapping:
		blocks = gemvGrid(v)
	case ir.TileMapping:
		blocks = tileGrid(k, v)
	case ir.AttendMapping, ir.AttendWarpgroupMapping:
		blocks = attendGrid(v)
	case ir.SortMapping, ir.SelectMapping, ir.PieceMapping, ir.WindowMapping:
		blocks = product(extents(k.Rows))
	case ir.ScatterMapping, ir.ScatterOnceMapping, ir.ScatterBinsMapping:
		blocks = scatterGrid(v)
	case ir.HistogramMapping:
		blocks = histogramGrid(k, v)
	case ir.RowMapping:
		blocks = ceilDiv(product(extents(rows)), int64(s.Threads/s.RowThreads))
		if len(k.Walk) > 0 {
			blocks = product(extents(k.Rows[:len(k.Rows)-len(k.Walk)]))
		}
	default:
		n := ir.IntConst(1)
		if len(rows) > 0 {
			outer, lane := rows[:len(rows)-1], rows[len(rows)-1]
			n = ir.Apply(ir.OpMul, product(extents(outer)), ceilDiv(lane.Extent, int64(s.Vector)))
		}
		blocks = ceilDiv(n, int64(s.Threads/max(1, s.ColThreads)))
		switch {
		case len(k.Cols) == 0:
			blocks = ceilDiv(n, int64(s.Threads*max(1, s.Unroll)))
		case s.Chain > 0:
			blocks = ir.Apply(ir.OpMul, blocks, chainParts(k, s))
		case s.Behind > 0:
			blocks = slabBlocks(k, v)
		}
	}
	return blocks
}

func ceilDiv(e *ir.Expr, by int64) *ir.Expr {
	if by == 1 {
		return e
	}
	return ir.Apply(ir.OpFloorDiv, ir.Apply(ir.OpAdd, e, ir.IntConst(by-1)), ir.IntConst(by))
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
	for _, w := range v.Views {
		out = append(out, ir.LaunchArg{Kind: ir.ArgTensorMap, Index: g.tensorMap(k, w)})
	}
	if v.Schedule.Tickets {
		out = append(out, ir.LaunchArg{Kind: ir.ArgTickets, Index: g.tickets(k, ir.IntConst(1)), Write: true})
	}
	if v.Schedule.HandsOn() {
		out = append(out, ir.LaunchArg{Kind: ir.ArgTickets, Index: g.tickets(k, chainCounters(k, v)), Write: true})
	}
	if v.Schedule.Mapping == ir.ScatterBinsMapping {
		out = append(out, ir.LaunchArg{Kind: ir.ArgTickets, Index: g.tickets(k, binCounters(v)), Write: true},
			ir.LaunchArg{Kind: ir.ArgTemp, Index: g.scratch(binBytes(k, v)), Write: true})
	}
	for _, name := range symbols {
		out = append(out, ir.LaunchArg{Kind: ir.ArgSize, Index: g.position[name]})
	}
	return out
}

// scratch adds memory that one launch alone uses, and returns its place in the program.
func (g *generator) scratch(bytes *ir.Expr) int {
	g.program.Temps = append(g.program.Temps, ir.Temp{Bytes: g.size(ir.Simplify(bytes, ir.Facts{}))})
	return len(g.program.Temps) - 1
}

// tensorMap returns the place of a kernel's view in the program, which holds equal ones once.
func (g *generator) tensorMap(k *ir.Kernel, w *ir.View) int {
	m := ir.TensorMap{Of: g.places[k.Args[w.Arg.Index].Buffer], DType: w.Arg.Type, Dims: g.shape(w.Dims), Strides: g.shape(w.Strides),
		Box: w.Box, Swizzle: w.Swizzle, TF32: w.TF32}
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
