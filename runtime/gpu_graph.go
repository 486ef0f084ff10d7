package runtime

import (
	"errors"

	"github.com/fusec/fusec/runtime/cuda"
)

// gpuGraph is the launches of a frame as one CUDA graph: launched in 1.4 us of host
// time however many there are (H200, driver 580), independent ones side by side.
type gpuGraph struct {
	graph *cuda.Graph
	exec  *cuda.GraphExec
	nodes []cuda.Node // of each launch; zero for one with an empty grid
}

// graphFrom is the least number of launches for which a graph pays.
const graphFrom = 2

// buildGraph makes a graph of the frame's launches with their present arguments.
func (f *gpuFrame) buildGraph() (*gpuGraph, error) {
	g := &gpuGraph{nodes: make([]cuda.Node, len(f.work.launches))}
	if err := g.build(f); err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

func (g *gpuGraph) build(f *gpuFrame) (err error) {
	if g.graph, err = f.gpu.context.NewGraph(); err != nil {
		return err
	}
	order := f.work.dependences(f.layout)
	for i, l := range f.work.launches {
		if l.launch == nil {
			continue
		}
		if g.nodes[i], err = g.graph.AddKernel(l.launch, f.params[i]); err != nil {
			return err
		}
		programmatic := l.waits && len(order[i]) == 1
		for _, before := range order[i] {
			if err := g.graph.AddEdge(g.nodes[before], g.nodes[i], programmatic); err != nil {
				return err
			}
		}
	}
	g.exec, err = g.graph.Instantiate()
	return err
}

func (g *gpuGraph) close() error {
	if g == nil {
		return nil
	}
	var errs []error
	if g.exec != nil {
		errs = append(errs, g.exec.Close())
	}
	if g.graph != nil {
		errs = append(errs, g.graph.Close())
	}
	return errors.Join(errs...)
}
