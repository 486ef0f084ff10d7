package codegen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// A kernel whose last blocks run another one (ir.LastBlock). Its text is a function for each of the two,
// and a kernel that calls them: the second function runs in the block that comes last of its group
// (last_block.cuh). The functions differ from separate kernels only in where the block's number comes
// from. The blocks of a group have neighbouring numbers, so that some groups are reduced while others
// still run.

// lastBlockMacros are the macros that differ between the two functions. Those of the second are defined
// with a prefix, and the text renames them for its function.
var lastBlockMacros = []string{"VECTOR", "ITEMS", "COL_THREADS", "ROW_THREADS", "CLUSTER"}

const lastBlockPrefix = "LAST_BLOCK_"

// lastBlockDefines spells the schedule of the body that last blocks run.
func lastBlockDefines(v *ir.Variant) string {
	var b strings.Builder
	for _, line := range strings.SplitAfter(defines(v), "\n") {
		name, value, _ := strings.Cut(strings.TrimPrefix(line, "#define "), " ")
		if slices.Contains(lastBlockMacros, name) {
			b.WriteString("#define " + lastBlockPrefix + name + " " + value)
		}
	}
	return b.String()
}

// lastBlockGrid is the number of blocks, given the number for each part. A kernel without parts has last
// blocks too.
func lastBlockGrid(k *ir.Kernel, v *ir.Variant, blocks *ir.Expr) *ir.Expr {
	if grouped(k, v) {
		return ir.Apply(ir.OpMul, blocks, ir.Apply(ir.OpMax, product(extents(k.LastBlock.Parts)), ir.IntConst(1)))
	}
	return ir.Apply(ir.OpMax, blocks, ir.IntConst(1))
}

// twoKernels writes both functions and the kernel.
func (e *kernelText) twoKernels() {
	f := e.lastBlockText()
	first, second := e.names.Fresh(e.k.Name+"_parts"), e.names.Fresh(e.k.Name+"_last_block")
	e.block = "block"
	e.function(first, grouped(e.k, e.v), e.body)
	e.line("")
	e.line("// %s, rows (%s), columns (%s)", f.k.Name, f.loops(f.k.Rows), f.loops(f.k.Cols))
	for _, m := range f.k.Members {
		e.noted(m.Origin.Span, "//   %s%s", m.Name, origin(m))
	}
	for _, name := range lastBlockMacros {
		e.line("#undef %s", name)
		e.line("#define %s %s%s", name, lastBlockPrefix, name)
	}
	f.function(second, false, f.body)
	e.b.WriteString(f.b.String())
	e.line("")
	e.open("%s", e.signature(e.pairParameters(f)))
	e.line("wait_for_prerequisites();")
	e.sizes(union(e.symbols, f.symbols))
	e.callBoth(first, second, f)
	e.close()
}

// lastBlockText is the emitter of the other function.
func (e *kernelText) lastBlockText() *kernelText {
	f := newKernelText(e.k.LastBlock.Kernel, e.v.LastBlock)
	f.block = "block"
	for _, a := range f.k.Args {
		f.fresh[a] = !a.Write && writes(e.k, a.Buffer)
	}
	return f
}

func writes(k *ir.Kernel, b *ir.Buffer) bool {
	return slices.ContainsFunc(k.Args, func(a *ir.Arg) bool { return a.Write && a.Buffer == b })
}

// function writes a body as a function of the kernel's arguments, of its symbols, and of the number of the
// block, or those of its group and its part.
func (e *kernelText) function(name string, parts bool, body func()) {
	var params []string
	for _, a := range e.k.Args {
		params = append(params, pointer(a)+e.args[a])
	}
	for _, s := range e.symbols {
		params = append(params, "[[maybe_unused]] const INDEX "+spell.Identifier(s))
	}
	params = append(params, "[[maybe_unused]] const unsigned block")
	if parts {
		params = append(params, "[[maybe_unused]] const unsigned part")
	}
	e.open("DEVICE void %s(%s)", name, strings.Join(params, ", "))
	if parts {
		e.take(e.k.LastBlock.Parts, "(INDEX)part", e.every()...)
	}
	body()
	e.close()
}

// pairParameters lists the kernel's parameters: the arguments of both functions, each once, the counters,
// and the symbols of both.
func (e *kernelText) pairParameters(f *kernelText) []string {
	var out []string
	for _, a := range e.k.Args {
		out = append(out, pointer(a)+"__restrict__ "+e.args[a])
	}
	for _, a := range f.k.Args {
		if name, ok := e.argOf(a.Buffer); ok {
			e.lastBlockArgs = append(e.lastBlockArgs, name)
			continue
		}
		name := e.names.Fresh(a.Name)
		e.lastBlockArgs = append(e.lastBlockArgs, name)
		out = append(out, pointer(a)+"__restrict__ "+name)
	}
	e.counters = e.names.Fresh("counters")
	out = append(out, "unsigned *__restrict__ "+e.counters)
	for _, name := range union(e.symbols, f.symbols) {
		out = append(out, fmt.Sprintf("long long %s_size", spell.Identifier(name)))
	}
	return out
}

// allSymbols are the symbols of the kernel and of the one that its last blocks run.
func (e *kernelText) allSymbols() []string {
	return union(e.symbols, symbolsOf(e.k.LastBlock.Kernel, e.v.LastBlock))
}

// argOf is the name of the kernel's argument for a buffer.
func (e *kernelText) argOf(b *ir.Buffer) (string, bool) {
	at := slices.IndexFunc(e.k.Args, func(a *ir.Arg) bool { return a.Buffer == b })
	if at < 0 {
		return "", false
	}
	return e.args[e.k.Args[at]], true
}

func union(a, b []string) []string {
	out := append(slices.Clone(a), b...)
	slices.Sort(out)
	return slices.Compact(out)
}

// callBoth writes which block runs which function.
func (e *kernelText) callBoth(first, second string, f *kernelText) {
	call := func(name string, args []string, symbols []string, places ...string) string {
		args = slices.Clone(args)
		for _, s := range symbols {
			args = append(args, spell.Identifier(s))
		}
		return fmt.Sprintf("%s(%s)", name, strings.Join(append(args, places...), ", "))
	}
	var own []string
	for _, a := range e.k.Args {
		own = append(own, e.args[a])
	}
	parts := e.s.Bare(product(extents(e.k.LastBlock.Parts)))
	block, cluster := "blockIdx.x", ""
	if n := e.v.Schedule.Cluster; n > 1 {
		block, cluster = fmt.Sprintf("blockIdx.x / %d", n), fmt.Sprintf(" * %d", n)
	}
	if grouped(e.k, e.v) {
		e.line("const unsigned parts = (unsigned)(%s), together = max(parts, 1u);", parts)
		e.line("const unsigned group = %s / together, part = %s %% together;", block, block)
		e.line("if (part < parts) %s;", call(first, own, e.symbols, "group", "part"))
		e.line("if (comes_last(%s, group, together%s)) %s;", e.counters, cluster, call(second, e.lastBlockArgs, f.symbols, "group"))
		return
	}
	e.line("if (%s > 0) %s;", parts, call(first, own, e.symbols, block))
	e.line("if (comes_last(%s, 0, gridDim.x)) %s;", e.counters, call(second, e.lastBlockArgs, f.symbols, "0"))
}

// pairLaunchArgs lists the kernel's parameters as arguments of a launch.
func (g *generator) pairLaunchArgs(k *ir.Kernel, v *ir.Variant, symbols []string) []ir.LaunchArg {
	var out []ir.LaunchArg
	add := func(a *ir.Arg) {
		place := g.places[a.Buffer]
		place.Write = a.Write
		out = append(out, place)
	}
	for _, a := range k.Args {
		add(a)
	}
	for _, a := range k.LastBlock.Kernel.Args {
		if !slices.ContainsFunc(k.Args, func(own *ir.Arg) bool { return own.Buffer == a.Buffer }) {
			add(a)
		}
	}
	groups := ir.IntConst(1)
	if grouped(k, v) {
		groups = strategies[v.Strategy].blocks(k, v)
	}
	out = append(out, ir.LaunchArg{Kind: ir.ArgCounters, Index: g.counterPlace(k, groups), Write: true})
	for _, name := range symbols {
		out = append(out, ir.LaunchArg{Kind: ir.ArgSize, Index: g.position[name]})
	}
	return out
}

// counterPlace is the index in the program of a kernel's counters, one for each group.
func (g *generator) counterPlace(k *ir.Kernel, groups *ir.Expr) int {
	n := ir.Simplify(groups, ir.Facts{})
	key := k.Name + " " + n.String()
	at, ok := g.counters[key]
	if !ok {
		at = len(g.program.Counters)
		g.counters[key] = at
		g.program.Counters = append(g.program.Counters, g.size(n))
	}
	return at
}
