package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/codegen"
	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/fuse/explain"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
)

// input is what the page of a program is made of.
func input(t *testing.T, path, text string) Input {
	t.Helper()
	file, err := parser.Parse(path, []byte(text), parser.Options{})
	require.NoError(t, err)
	device := ir.Devices()[0]
	in := Input{Title: filepath.Base(path), Device: device, Source: func(name string) (string, bool) {
		if name == path {
			return text, true
		}
		return parser.Source(name)
	}}
	for _, g := range file.Graphs {
		plan, err := fuse.Plan(g, fuse.Options{})
		require.NoError(t, err)
		program := codegen.Generate(plan)
		in.Graphs = append(in.Graphs, Graph{Graph: g, Plan: plan, Program: program, Explain: explain.Explain(g, plan, explain.Options{})})
	}
	return in
}

func example(t *testing.T, name string) Input {
	path := "../../examples/" + name
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return input(t, path, string(text))
}

var examples = []string{"softmax.fuse", "ffn.fuse", "cross_entropy.fuse", "attention.fuse", "group_norm.fuse", "linear_cross_entropy.fuse"}

var dataElement = regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`)

// dataOf is the data of a page.
func dataOf(t *testing.T, page string) pageData {
	m := dataElement.FindStringSubmatch(page)
	require.NotNil(t, m)
	var out pageData
	require.NoError(t, json.Unmarshal([]byte(m[1]), &out))
	return out
}

// TestPages: pages need nothing but themselves, and hold every kernel with its text and every operation.
func TestPages(t *testing.T) {
	for _, name := range examples {
		in := example(t, name)
		var b bytes.Buffer
		require.NoError(t, Write(&b, in))
		page := b.String()
		assert.NotRegexp(t, `(src|href)=|@import|url\(|{{`, dataElement.ReplaceAllString(page, ""))
		out := dataOf(t, page)
		for i, g := range out.Graphs {
			plan := in.Graphs[i].Plan.At(in.Graphs[i].Explain.Sizes)
			require.Len(t, g.Kernels, len(plan.Kernels))
			require.Len(t, g.After.Boxes, len(plan.Kernels))
			assert.Len(t, g.Before.Nodes, len(in.Graphs[i].Graph.Values))
			for n, k := range g.Kernels {
				assert.NotEmpty(t, k.Plan)
				assert.Len(t, k.Classes, len(plan.Kernels[n].Variants))
				assert.NotEmpty(t, k.Ops)
				if k.After == "" {
					text := out.Sources[k.Classes[0].Source]
					assert.Contains(t, text, "__global__")
					assert.Contains(t, text, k.Name)
					assert.True(t, strings.Contains(out.Sources[k.Classes[0].Prelude], "struct bf16"))
				}
			}
			checkDrawing(t, g.Before)
			checkDrawing(t, g.After)
		}
	}
}

// TestHostileNames: text of a program does not end the element it stands in.
func TestHostileNames(t *testing.T) {
	in := input(t, "x.fuse", "# </script><b>&\ngraph f(x: f32[N]) -> (y: f32[N]) {\n    y = exp(x)\n}\n")
	in.Title = `<img src=x onerror="1">`
	var b bytes.Buffer
	require.NoError(t, Write(&b, in))
	page := b.String()
	assert.NotContains(t, page, "<img")
	assert.NotContains(t, page, "</script><b>")
	assert.Contains(t, dataOf(t, page).Files[0].Text, "</script><b>")
}

// checkDrawing: nothing overlaps, edges lead down, kernels hold their operations, and nothing is outside.
func checkDrawing(t *testing.T, d drawing) {
	t.Helper()
	const nearly = 1.0
	for i, n := range d.Nodes {
		assert.GreaterOrEqual(t, n.X, -nearly)
		assert.LessOrEqual(t, n.X+n.W, d.W+nearly)
		assert.LessOrEqual(t, n.Y+nodeHeight, d.H+nearly)
		if i > 0 {
			assert.GreaterOrEqual(t, n.Y, d.Nodes[i-1].Y)
		}
		for _, o := range d.Nodes[i+1:] {
			apart := n.X+n.W <= o.X+nearly || o.X+o.W <= n.X+nearly || n.Y+nodeHeight <= o.Y+nearly || o.Y+nodeHeight <= n.Y+nearly
			assert.True(t, apart, "%s and %s overlap", n.Name, o.Name)
		}
	}
	for i, a := range d.Boxes {
		for _, b := range d.Boxes[i+1:] {
			assert.True(t, a.X+a.W <= b.X || b.X+b.W <= a.X || a.Y+a.H <= b.Y || b.Y+b.H <= a.Y, "kernels %d and %d overlap", a.Kernel, b.Kernel)
		}
		for _, n := range d.Nodes {
			if len(n.In) == 1 && n.In[0] == a.Kernel {
				assert.True(t, n.X >= a.X && n.Y >= a.Y && n.X+n.W <= a.X+a.W+nearly && n.Y+nodeHeight <= a.Y+a.H+nearly, n.Name)
			}
		}
	}
	for _, e := range d.Edges {
		for p := 3; p < len(e.Way); p += 2 {
			assert.GreaterOrEqual(t, e.Way[p]+nearly, e.Way[p-2])
		}
	}
}

// TestPlace lays drawn graphs out: boxes do not overlap, edges lead down and pass between boxes.
func TestPlace(t *testing.T) {
	for seed := range uint64(200) {
		pick := rand.New(rand.NewPCG(seed, 9))
		items := make([]item, 1+pick.IntN(40))
		var edges [][2]int
		for i := range items {
			items[i] = item{w: 20 + float64(pick.IntN(100)), h: 20 + float64(pick.IntN(100))}
			for range pick.IntN(3) {
				if i > 0 {
					edges = append(edges, [2]int{pick.IntN(i), i})
				}
			}
		}
		w, h, bends := place(items, edges, gaps{10, 20})
		for i, a := range items {
			require.True(t, a.x >= -0.01 && a.y >= 0 && a.x+a.w <= w+0.01 && a.y+a.h <= h+0.01)
			for _, b := range items[i+1:] {
				apart := a.x+a.w <= b.x || b.x+b.w <= a.x || a.y+a.h <= b.y || b.y+b.h <= a.y
				require.True(t, apart, "seed %d", seed)
			}
		}
		for n, e := range edges {
			require.Less(t, items[e[0]].y+items[e[0]].h, items[e[1]].y)
			for _, p := range bends[n] {
				for _, a := range items {
					inside := p.x > a.x && p.x < a.x+a.w && p.y > a.y+0.01 && p.y < a.y+a.h-0.01
					require.False(t, inside, "seed %d", seed)
				}
			}
		}
	}
}

// large is a page of a graph of the given number of operations, in kernels of five.
func large(operations int) *page {
	g := ir.NewGraph("large")
	n := ir.Sym("N")
	g.Symbols = []ir.Symbol{{Name: "N", Default: 4096}}
	shape := []*ir.Expr{n, ir.IntConst(64)}
	pick := rand.New(rand.NewPCG(1, 1))
	for i := range 20 {
		g.Input(fmt.Sprintf("x%d", i), ir.F32, shape, g.Span)
	}
	plan := &ir.Plan{Graph: g}
	buffers := map[*ir.Value]*ir.Buffer{}
	for len(g.Values) < operations+20 {
		k := &ir.Kernel{Name: fmt.Sprintf("large_k%d", len(plan.Kernels))}
		for range 5 {
			axes := g.NewAxes(shape)
			last := g.Values[max(0, len(g.Values)-1-pick.IntN(3))]
			other := g.Values[max(0, len(g.Values)-1-pick.IntN(60))]
			at := ir.Indices(axes)
			body := ir.Apply(ir.OpAdd, ir.Load(last, at, nil), ir.Apply(ir.OpExp, ir.Load(other, at, nil)))
			v := g.Define(fmt.Sprintf("v%d", len(g.Values)), axes, body, ir.Origin{})
			buffers[v] = &ir.Buffer{Name: v.Name, Value: v}
			k.Members = append(k.Members, v)
			k.Args = append(k.Args, &ir.Arg{Buffer: buffers[v], Write: true})
		}
		plan.Kernels = append(plan.Kernels, k)
	}
	p := &page{in: Input{Title: "large"}, exprs: map[string]int{}, files: map[string]int{}, sources: map[string]int{}}
	p.build()
	p.out.Device = deviceData{Name: "H200", Bandwidth: 4e12, F32: 6e13, Tensor: 7e14, Special: 4e12, Launch: 2e-6, Half: 8 << 20,
		Threads: 2048, Blocks: 32, Shared: 1 << 17}
	in := Graph{Graph: g, Plan: plan}
	out := graphData{Name: "large", Symbols: []symbolData{{"N", 4096}}, Before: p.before(in), After: p.after(in), Refused: []refusalData{}}
	for _, k := range plan.Kernels {
		out.Kernels = append(out.Kernels, kernelData{Name: k.Name, Template: "loop", Space: "i: N", Ops: []opData{}, Reads: []transferData{},
			Writes: []transferData{{"v", "f32[N, 64]", "temporary", "N * 256", p.expr(bytesOf(k.Members[0]))}},
			Work:   []workData{{p.expr(n), 640, 64, 0}}, Refused: []int{}, Plan: "kernel " + k.Name,
			Classes: []classData{{When: -1, Terms: []string{}, Strategy: "pointwise", Schedule: []string{}, Threads: 256, Source: -1, Prelude: -1}}})
	}
	p.out.Files = []fileData{{"large.fuse", ""}}
	p.out.Graphs = []graphData{out}
	return p
}

// TestLargeIsSmall: a page of ten thousand operations is not larger than a picture or two.
func TestLargeIsSmall(t *testing.T) {
	p := large(10_000)
	require.GreaterOrEqual(t, len(p.out.Graphs[0].Before.Nodes), 10_000)
	var b bytes.Buffer
	require.NoError(t, p.write(&b))
	const most = 12 << 20
	assert.Less(t, b.Len(), most)
}
