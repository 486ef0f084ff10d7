package codegen

import (
	"fmt"
	"strings"

	"github.com/fusec/fusec/codegen/skeleton"
	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// kernelText writes the text of one variant: what the table has for its strategy, and what all
// kernels have.
type kernelText struct {
	*emitter
	row           spelled
	lastBlockArgs []string // arguments of the function that last blocks run
}

func newKernelText(k *ir.Kernel, v *ir.Variant) *kernelText {
	row := strategies[v.Strategy]
	return &kernelText{emitter: newEmitter(k, v, row.traits), row: row}
}

// kernel writes the whole text.
func (e *kernelText) kernel() string {
	e.header()
	head := e.b.Len()
	e.kernels()
	text := e.b.String()
	if !strings.Contains(text[head:], "int128(") {
		return text
	}
	return text[:head] + skeleton.Text("int128") + "\n" + text[head:]
}

// kernels writes the text behind the preludes.
func (e *kernelText) kernels() {
	if e.v.LastBlock != nil {
		e.twoKernels()
		return
	}
	parameters := e.parameters()
	body := e.aside(e.body)
	for _, d := range e.factors { // the factors that the body needs
		parameters = append(parameters, "Factor "+d.factor)
	}
	e.open("%s", e.signature(parameters))
	if !e.row.waits {
		e.line("wait_for_prerequisites();")
	}
	e.sizes(e.symbols)
	for _, d := range e.factors {
		e.line("const Divisor<INDEX> %s(%s, %s);", d.name, d.text, d.factor)
	}
	e.b.WriteString(body)
	e.close()
}

// signature is the head of the kernel.
func (e *kernelText) signature(parameters []string) string {
	bounds := "THREADS"
	if e.v.Schedule.MinBlocks > 0 {
		bounds = "THREADS, MIN_BLOCKS"
	}
	return fmt.Sprintf("extern \"C\" __global__ void __launch_bounds__(%s) %s(%s)", bounds, spell.Identifier(e.k.Name),
		strings.Join(parameters, ", "))
}

// body writes what the threads of a block do.
func (e *kernelText) body() {
	e.policies()
	e.row.body(e.emitter)
}

// header says what the kernel is, in the plan's words.
func (e *kernelText) header() {
	e.line("// %s: %s template, %s mapping, rows (%s), columns (%s)", e.k.Name, e.k.Template, e.v.Schedule.Mapping, e.loops(e.k.Rows), e.loops(e.k.Cols))
	for _, m := range e.k.Members {
		e.noted(m.Origin.Span, "//   %s%s", m.Name, origin(m))
	}
	e.b.WriteString(skeleton.Text("prelude"))
	if findsPlaces(e.k) {
		e.b.WriteString(skeleton.Text("keys", "arg"))
	}
	if e.row.preludes != nil {
		e.b.WriteString(e.row.preludes(e.k, e.v))
	}
	if e.v.LastBlock != nil {
		e.b.WriteString(skeleton.Text("fresh", "last_block"))
	}
	e.line("")
}

func origin(m *ir.Value) string {
	if m.Origin.Call == "" {
		return ""
	}
	return " of " + m.Origin.Call
}

func (e *kernelText) loops(ranges []*ir.Range) string {
	parts := make([]string, len(ranges))
	for i, r := range ranges {
		parts[i] = fmt.Sprintf("%s: %s", r.Name, r.Extent)
	}
	return strings.Join(parts, ", ")
}

func (e *kernelText) parameters() []string {
	var parts []string
	for _, a := range e.k.Args {
		qualifier := "__restrict__ "
		if a.Shared {
			qualifier = ""
		}
		parts = append(parts, pointer(a)+qualifier+e.args[a])
	}
	for _, w := range e.v.TensorMaps {
		parts = append(parts, "const __grid_constant__ TensorMap "+e.views[w])
	}
	if own := ownOf(e.k, e.v); own.counters != nil {
		qualifier := "__restrict__ "
		if own.bytes != nil {
			qualifier = ""
		}
		e.counters = e.names.Fresh("counters")
		parts = append(parts, "unsigned *"+qualifier+e.counters)
		if own.bytes != nil {
			e.workspace = e.names.Fresh("workspace")
			parts = append(parts, "unsigned long long *"+e.workspace)
		}
	}
	for _, name := range e.symbols {
		parts = append(parts, fmt.Sprintf("long long %s_size", spell.Identifier(name)))
	}
	return parts
}
