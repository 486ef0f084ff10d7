package fusec

import "github.com/fusec/fusec/parser"

// A GradOption says what a derivative is taken by, or what its program returns.
type GradOption func(*parser.GradOptions)

// Wrt names the inputs whose gradients are wanted, in the order of the results, or those along
// which JVP moves. Without it they are all float inputs on which a result depends.
func Wrt(inputs ...string) GradOption {
	return func(o *parser.GradOptions) { o.Wrt = append(o.Wrt, inputs...) }
}

// WithValues keeps the results of the graph, ahead of the derivatives: one program then computes
// a loss and its gradients.
func WithValues() GradOption { return func(o *parser.GradOptions) { o.Values = true } }

// Grad is the program of the gradient of a graph of p's source; "" names p's own graph. It
// takes the graph's inputs and returns d_x, of x's type and shape, for each input x that Wrt
// names. If the graph has one result and that is a scalar, it is differentiated. Otherwise the program
// also takes the adjoint d_y of each float result y, after the other inputs. The name of its graph is
// the graph's followed by _grad. Mistakes, such as an input on which no result depends, are returned
// as a diag.List. The same in a source is graph name = grad(loss, wrt=[w, b]).
func (p *Program) Grad(graph string, opts ...GradOption) (out *Program, err error) {
	return p.derivative(graph, parser.GradOptions{}, opts)
}

// JVP is the program of the derivative of a graph of p's source along a direction: a product of
// its Jacobian with a vector. "" names p's own graph. The program takes the graph's inputs and
// behind them the direction, t_x of x's type and shape for each input x that Wrt names. It
// returns the tangents t_y, of y's type and shape, of all float results y. The name of its graph is
// the graph's followed by _jvp. For a program that Grad returned, the result is a product of the
// Hessian with a vector. Mistakes are returned as a diag.List. The same in a source is graph name =
// jvp(f, wrt=[x]).
func (p *Program) JVP(graph string, opts ...GradOption) (out *Program, err error) {
	return p.derivative(graph, parser.GradOptions{Forward: true}, opts)
}

func (p *Program) derivative(graph string, ask parser.GradOptions, opts []GradOption) (out *Program, err error) {
	if graph == "" {
		graph = p.graph.Name
	}
	stage := "grad"
	defer guard(&stage, "graph "+graph, &err)
	for _, o := range opts {
		o(&ask)
	}
	file, err := p.file.Grad(graph, ask)
	if err != nil {
		return nil, err
	}
	g := file.Graphs[len(file.Graphs)-1]
	p.opts.Numerics.apply(g)
	own := p.opts
	own.Graph = g.Name
	return planned(g, file, own, nil, &stage)
}
