package cuda

import (
	"runtime"
	"unsafe"
)

// A Node is a kernel of a Graph that was built, not captured.
type Node struct {
	handle uintptr
	launch *Launch
}

// kernelNodeParams is CUDA_KERNEL_NODE_PARAMS_v2.
type kernelNodeParams struct {
	function    uintptr
	grid, block [3]uint32
	shared      uint32
	_           uint32
	params      uintptr
	extra       uintptr
	kernel      uintptr
	context     uintptr
}

// NewGraph returns an empty graph, to be built with AddKernel and AddEdge. Close it.
func (c *Context) NewGraph() (*Graph, error) {
	g := &Graph{ctx: c}
	if err := c.call(symGraphCreate, uintptr(unsafe.Pointer(&g.handle)), 0); err != nil {
		return nil, err
	}
	return g, nil
}

// AddKernel adds a launch with the given arguments, which are copied, after nothing.
func (g *Graph) AddKernel(l *Launch, params *Params) (Node, error) {
	n := Node{launch: l}
	p := l.nodeParams(params)
	err := g.ctx.call(symGraphAddKernelNode, uintptr(unsafe.Pointer(&n.handle)), g.handle, 0, 0,
		uintptr(unsafe.Pointer(&p)))
	runtime.KeepAlive(params)
	if err != nil {
		return n, l.explain(err)
	}
	for i := range l.attrs {
		if l.attrs[i].id == attrProgrammatic {
			continue // in a graph that is a matter of edges
		}
		err := g.ctx.call(symGraphKernelNodeSetAttribute, n.handle, uintptr(l.attrs[i].id),
			uintptr(unsafe.Pointer(&l.attrs[i].value)))
		if err != nil {
			return n, l.explain(err)
		}
	}
	return n, nil
}

func (l *Launch) nodeParams(params *Params) kernelNodeParams {
	c := &l.config
	p := kernelNodeParams{function: l.function.handle, grid: c.Grid, block: c.Block, shared: c.Shared}
	if params != nil {
		p.params = address(params.pointers)
	}
	return p
}

// AddEdge makes one kernel run after another. Over a programmatic edge the later one
// may be launched before the earlier one has ended, and waits for it itself
// (griddepcontrol.wait).
func (g *Graph) AddEdge(from, to Node, programmatic bool) error {
	const programmaticPort, programmaticType = 1, 1
	var edge struct {
		fromPort, toPort, kind uint8
		_                      [5]uint8
	}
	if programmatic {
		edge.fromPort, edge.kind = programmaticPort, programmaticType
	}
	return g.ctx.call(symGraphAddDependencies, g.handle, uintptr(unsafe.Pointer(&from.handle)),
		uintptr(unsafe.Pointer(&to.handle)), uintptr(unsafe.Pointer(&edge)), 1)
}

// SetParams gives a kernel of the executable graph, which was made of the graph that
// the node is of, new arguments: for later launches, not those under way. That graph
// must still be open.
func (x *GraphExec) SetParams(n Node, params *Params) error {
	p := x.ctx.driver.nodes.Get().(*kernelNodeParams)
	*p = n.launch.nodeParams(params)
	err := x.ctx.invoke(symGraphExecKernelNodeSetParams, x.handle, n.handle, uintptr(unsafe.Pointer(p)))
	runtime.KeepAlive(params)
	x.ctx.driver.nodes.Put(p) // which keeps it alive until here
	return err
}
