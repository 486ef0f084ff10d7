package main

import (
	"fmt"
	"strings"
	"text/template"
)

// parameter is a parameter of the model.
type parameter struct {
	Name  string
	Shape []int
	Scale float64 // of the normal numbers that it begins with; where that is 0, it begins with Fill
	Fill  float32
	Decay string // of AdamW: weights of products decay, and embeddings
}

// Dims is the shape as a program writes it.
func (p parameter) Dims() string {
	return strings.ReplaceAll(fmt.Sprint(p.Shape), " ", ", ")
}

// parametersOf are the parameters in the order in which the program takes them. What adds to the residual
// stream begins smaller the more layers there are, as GPT-2 has it.
func (s shape) parameters() []parameter {
	const spread = 0.02
	d := s.width
	weight := func(name string, scale float64, shape ...int) parameter {
		return parameter{name, shape, scale, 0, "0.1"}
	}
	vector := func(name string, fill float32, width int) parameter {
		return parameter{name, []int{width}, 0, fill, "0.0"}
	}
	adds := spread / sqrt(2*s.layers)
	out := []parameter{weight("table", spread, s.words, d), weight("places", spread/2, s.places, d)}
	for l := range s.layers {
		at := func(name string) string { return fmt.Sprintf("%s_%d", name, l) }
		out = append(out,
			vector(at("norm1"), 1, d), vector(at("norm1_b"), 0, d),
			weight(at("qkv"), spread, d, 3*d), vector(at("qkv_b"), 0, 3*d),
			weight(at("out"), adds, d, d), vector(at("out_b"), 0, d),
			vector(at("norm2"), 1, d), vector(at("norm2_b"), 0, d),
			weight(at("up"), spread, d, 4*d), vector(at("up_b"), 0, 4*d),
			weight(at("down"), adds, 4*d, d), vector(at("down_b"), 0, d))
	}
	return append(out, vector("norm3", 1, d), vector("norm3_b", 0, d))
}

// program is the text of the model: its loss, the gradients of that, and a step of AdamW. For each bf16 parameter
// w the step keeps f_w, the same in f32, and its moments m_w and v_w.
func (s shape) program() string {
	var layers []string
	for l := range s.layers {
		var of []string
		for _, p := range s.parameters() {
			if name, ok := strings.CutSuffix(p.Name, fmt.Sprintf("_%d", l)); ok {
				of = append(of, name+fmt.Sprintf("_%d", l))
			}
		}
		layers = append(layers, fmt.Sprintf("x%d = block(x%d, %s)", l+1, l, strings.Join(of, ", ")))
	}
	var out strings.Builder
	must(programText.Execute(&out, map[string]any{"Parameters": s.parameters(), "Layers": layers, "Last": s.layers,
		"Heads": s.heads, "Width": s.width}))
	return out.String()
}

func must(err error) {
	if err != nil {
		panic(err) // the template is part of the program
	}
}

var programText = template.Must(template.New("gpt2").Parse(`const HEADS = {{.Heads}}

# block adds attention of each token on those before it, and then what two layers make of each.
fn block(x: T[B, S, D], norm1: T[D], norm1_b: T[D], qkv: T[D, E], qkv_b: T[E], out: T[D, D], out_b: T[D],
    norm2: T[D], norm2_b: T[D], up: T[D, F], up_b: T[F], down: T[F, D], down_b: T[D]) -> T[B, S, D] {
    h = permute(reshape(layer_norm(x, norm1, norm1_b) @ qkv + qkv_b, B, S, 3, HEADS, D / HEADS), (2, 0, 3, 1, 4))
    y = attention(h[0], h[1], h[2], causal=true)
    z = x + reshape(transpose(y, 1, 2), B, S, D) @ out + out_b
    return z + gelu_tanh(layer_norm(z, norm2, norm2_b) @ up + up_b) @ down + down_b
}

graph loss(at: i32[B, S], next: i32[B, S]{{range .Parameters}},
    {{.Name}}: bf16{{.Dims}}{{end}}) -> (l: f32[]) {
    x0 = embedding(at, table) + places[:S]
{{- range .Layers}}
    {{.}}
{{- end}}
    z = reshape(layer_norm(x{{.Last}}, norm3, norm3_b), B * S, {{.Width}}) @ transpose(table, 0, 1)
    l = cross_entropy(f32(z), reshape(next, B * S))
}

graph gradient = grad(loss, wrt=[{{range $i, $p := .Parameters}}{{if $i}}, {{end}}{{$p.Name}}{{end}}], values=true)

# A step of AdamW for every parameter. The norm of all gradients together is at most 1.
graph update(state step: i32{{range .Parameters}},
    state {{.Name}}: bf16{{.Dims}}, state f_{{.Name}}: f32{{.Dims}}, state m_{{.Name}}: f32{{.Dims}},
    state v_{{.Name}}: f32{{.Dims}}, d_{{.Name}}: bf16{{.Dims}}{{end}}) -> () {
    s = f32(step + 1)
    rate = warmup_cosine(s, 20, 1000, 0.0006, floor=0.00006)
    total = {{range $i, $p := .Parameters}}{{if $i}} +
        {{end}}sum_squares(f32(d_{{$p.Name}})){{end}}
    clip = clip_factor(total, 1.0)
{{- range .Parameters}}
    next_{{.Name}}, m_{{.Name}}, v_{{.Name}} = adamw(f_{{.Name}}, f32(d_{{.Name}}) * clip, m_{{.Name}}, v_{{.Name}}, rate, s, beta2=0.95, weight_decay={{.Decay}})
    f_{{.Name}} = next_{{.Name}}
    {{.Name}} = bf16(next_{{.Name}})
{{- end}}
    step = step + 1
}
`))
