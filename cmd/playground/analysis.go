// Command playground is the compiler for a browser: built with GOOS=js GOARCH=wasm it gives its page a function that tells
// of a program what mistakes it has, its kernels, plan, CUDA text and, from the CPU engine, its results.
// scripts/build-playground makes the page.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/codegen"
	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/fuse/explain"
	"github.com/fusec/fusec/internal/view"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/parser"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/tensor"
)

// answer is what the page shows.
type answer struct {
	Errors  string        `json:"errors,omitempty"` // drawn with carets
	Graphs  []graphAnswer `json:"graphs"`
	Results string        `json:"results,omitempty"`
}

// graphAnswer is what a graph becomes.
type graphAnswer struct {
	Name    string `json:"name"`
	Kernels string `json:"kernels"`
	Picture string `json:"picture"`
	Plan    string `json:"plan"`
	CUDA    string `json:"cuda"`
}

const program = "program.fuse"

// analyse compiles a program, and runs its graphs if run is set: with every symbol of the size that the playground gives it, on
// random inputs. It returns an answer in JSON.
func analyse(text string, run bool) string {
	a := answer{Graphs: []graphAnswer{}}
	if err := a.fill(text, run); err != nil {
		a.Errors = diag.Render(err, func(name string) (string, bool) {
			if name == program {
				return text, true
			}
			return parser.Source(name)
		})
	}
	out, err := json.Marshal(a)
	if err != nil {
		return `{"errors": "the answer cannot be written", "graphs": []}`
	}
	return string(out)
}

// fill makes an answer, as far as that goes. A broken invariant is an error: the page goes on.
func (a *answer) fill(text string, run bool) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("internal error: %v", v)
		}
	}()
	file, err := parser.Parse(program, []byte(text), parser.Options{})
	if err != nil {
		return err
	}
	for _, g := range file.Graphs {
		plan, err := fuse.Plan(g, fuse.Options{})
		if plan == nil {
			return err
		}
		shown, failed := graphOf(g, plan)
		a.Graphs = append(a.Graphs, shown)
		if err == nil {
			err = failed
		}
		if err != nil { // a @onekernel that needs more is shown too
			return err
		}
	}
	if !run {
		return nil
	}
	var b strings.Builder
	for _, g := range file.Graphs {
		if err := results(&b, text, g); err != nil {
			fmt.Fprintf(&b, "%s: %s\n", g.Name, err)
		}
	}
	a.Results = b.String()
	return nil
}

func graphOf(g *ir.Graph, plan *ir.Plan) (graphAnswer, error) {
	plan = plan.At(explain.Sizes(g, nil))
	x := explain.Explain(g, plan, explain.Options{Device: ir.Devices()[0]})
	out := graphAnswer{Name: g.Name, Kernels: kernels(x), Plan: ir.PrintPlan(plan)}
	var picture strings.Builder
	if err := view.WriteSVG(&picture, view.Graph{Graph: g, Plan: plan, Explain: x}, ir.Devices()[0]); err != nil {
		return out, err
	}
	out.Picture = picture.String()
	p := codegen.Generate(plan)
	var cuda strings.Builder
	for i, k := range x.Kernels {
		variant := 0
		if k.Class != nil {
			variant = *k.Class
		}
		if i < len(p.Launches) && variant < len(p.Launches[i].Variants) {
			fmt.Fprintf(&cuda, "%s\n", p.Text(p.Launches[i].Variants[variant].Unit))
		}
	}
	out.CUDA = cuda.String()
	return out, nil
}

// kernels says in words what a graph becomes.
func kernels(x explain.Explanation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s instead of %d\n", x.Graph, count(x.Fused.Kernels), x.Unfused.Kernels)
	if x.Fused.Seconds != nil {
		fmt.Fprintf(&b, "about %.4f ms on %s at the sizes of @bench\n", *x.Fused.Seconds*1e3, x.Device)
	}
	for i, k := range x.Kernels {
		fmt.Fprintf(&b, "\n%d  %s  (%s)\n", i+1, k.Name, k.Template)
		if k.Seconds != nil {
			fmt.Fprintf(&b, "   about %.4f ms, bound by %s\n", *k.Seconds*1e3, k.Roof)
		}
		for _, r := range k.Reads {
			fmt.Fprintf(&b, "   reads  %s: %s bytes\n", r.Name, r.Size)
		}
		for _, w := range k.Writes {
			fmt.Fprintf(&b, "   writes %s: %s bytes\n", w.Name, w.Size)
		}
	}
	for _, r := range x.Refused {
		fmt.Fprintf(&b, "\nnot merged: %s into %s\n   because %s\n", r.Producer, r.Consumer, r.Detail)
		if r.Rewrite != "" {
			fmt.Fprintf(&b, "   rewrite %s\n", r.Rewrite)
		}
	}
	return b.String()
}

func count(kernels int) string {
	if kernels == 1 {
		return "1 kernel"
	}
	return fmt.Sprintf("%d kernels", kernels)
}

// sizes are tried for the symbols of a graph, until its conditions hold.
var sizes = []int64{4, 8, 64}

// results runs a graph on the CPU engine.
func results(b *strings.Builder, text string, g *ir.Graph) error {
	ctx := context.Background()
	device, err := runtime.Open("cpu", runtime.Options{Cache: cache.Open(cache.Options{Off: true})})
	if err != nil {
		return err
	}
	defer device.Close()
	f, err := fusec.Load(ctx, device, fusec.Source{Name: program, Text: []byte(text)}, fusec.Options{Graph: g.Name})
	if err != nil {
		return err
	}
	for _, n := range sizes {
		at := map[string]int64{}
		for _, s := range f.Symbols() {
			at[s] = n
		}
		shapes, shapeErr := f.Shapes(at)
		if shapeErr != nil {
			err = shapeErr
			continue
		}
		out, runErr := f.Call(ctx, inputs(g, shapes))
		if runErr != nil {
			return runErr
		}
		fmt.Fprintf(b, "%s, with %d for every size, on random inputs\n", g.Name, n)
		for _, o := range g.Outputs {
			fmt.Fprintf(b, "%s: %v\n%s\n", o.Name, out[o.Name], rows(out[o.Name]))
		}
		return nil
	}
	return err
}

func inputs(g *ir.Graph, shapes map[string][]int) runtime.Args {
	args := runtime.Args{}
	for i, v := range g.Inputs {
		make := tensor.Random
		if !v.Type.IsFloat() {
			make = indices
		}
		x, err := make(v.Type, uint64(i+1), shapes[v.Name]...)
		if err != nil {
			continue // the run says what is missing
		}
		args[v.Name] = x
	}
	return args
}

// indices are small integers, which are places of every axis.
func indices(t ir.DType, seed uint64, shape ...int) (*tensor.Tensor, error) {
	return tensor.RandomInts(t, seed, 0, 2, shape...)
}

// rows prints the first elements of a tensor, a row a line.
func rows(x *tensor.Tensor) string {
	const most = 8
	values, width := x.Floats(), 1
	if n := len(x.Shape); n > 0 {
		width = max(x.Shape[n-1], 1)
	}
	var b strings.Builder
	for row := 0; row*width < len(values) && row < most; row++ {
		for _, v := range values[row*width : row*width+min(width, most)] {
			fmt.Fprintf(&b, "%12.5g", v)
		}
		b.WriteString("\n")
	}
	return b.String()
}
