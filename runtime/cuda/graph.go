package cuda

import (
	"errors"
	"fmt"
	"unsafe"
)

// A Graph is work recorded from a stream (Capture) or built of kernels (NewGraph), to
// be made executable with Instantiate.
// Not safe for concurrent use.
type Graph struct {
	ctx    *Context
	handle uintptr
	closed bool
}

// Capture records what fn queues on s, instead of running it. fn runs inside
// Context.Do and must stay on its goroutine. What it queues may not wait for the
// device, nor copy from or to Go memory (the graph would keep the address);
// arguments of kernels are copied into the graph. Close the graph.
func (s *Stream) Capture(fn func() error) (graph *Graph, err error) {
	err = s.ctx.Do(func() error {
		graph, err = s.capture(fn)
		return err
	})
	return graph, err
}

// capture ends the capture however fn ends, because a stream that is left capturing is useless.
func (s *Stream) capture(fn func() error) (graph *Graph, err error) {
	const threadLocal = 1 // calls on other threads neither join nor disturb the capture
	driver := s.ctx.driver
	if err := driver.invoke(symStreamBeginCapture, s.handle, threadLocal); err != nil {
		return nil, err
	}
	finished := false
	defer func() {
		if !finished { // fn panicked, so neither the recording nor an error matters
			if graph, _ := s.endCapture(); graph != nil {
				_ = graph.Close()
			}
		}
	}()
	failed := fn()
	finished = true
	graph, err = s.endCapture()
	if failed == nil {
		return graph, err
	}
	if graph != nil {
		err = graph.Close()
	}
	return nil, errors.Join(failed, err)
}

func (s *Stream) endCapture() (*Graph, error) {
	g := &Graph{ctx: s.ctx}
	err := s.ctx.driver.call(symStreamEndCapture, s.handle, uintptr(unsafe.Pointer(&g.handle)))
	if err != nil {
		return nil, err
	}
	return g, nil
}

// Nodes is the number of nodes: kernels, copies, memsets.
func (g *Graph) Nodes() (int, error) {
	var n uint64
	err := g.ctx.call(symGraphGetNodes, g.handle, 0, uintptr(unsafe.Pointer(&n)))
	return int(n), err
}

// Close destroys the graph; executables made from it live on. A second Close does
// nothing.
func (g *Graph) Close() error {
	if g.closed {
		return nil
	}
	g.closed = true
	return g.ctx.invoke(symGraphDestroy, g.handle)
}

// A GraphExec is an executable graph. Launches of one GraphExec run one after the
// other, whatever their streams; its methods must not be called concurrently.
type GraphExec struct {
	ctx    *Context
	handle uintptr
	closed bool
}

// Instantiate makes the graph executable. Close the result.
func (g *Graph) Instantiate() (*GraphExec, error) {
	x := &GraphExec{ctx: g.ctx}
	if err := g.ctx.call(symGraphInstantiate, uintptr(unsafe.Pointer(&x.handle)), g.handle, 0); err != nil {
		return nil, err
	}
	return x, nil
}

// Launch queues the whole graph on s.
func (x *GraphExec) Launch(s *Stream) error { return x.ctx.invoke(symGraphLaunch, x.handle, s.handle) }

// Upload moves the graph to the device ahead of its first launch.
func (x *GraphExec) Upload(s *Stream) error { return x.ctx.invoke(symGraphUpload, x.handle, s.handle) }

// execUpdateResult is CUgraphExecUpdateResultInfo.
type execUpdateResult struct {
	result    uint32
	_         uint32
	errorNode uintptr
	fromNode  uintptr
}

// updateRefusals names CUgraphExecUpdateResult.
var updateRefusals = []string{"", "unknown error", "the topology changed", "the type of a node changed",
	"the function of a kernel changed", "parameters changed in an unsupported way", "unsupported change",
	"the function changed in an unsupported way", "attributes changed"}

// Update gives the executable graph the arguments and shapes of g, which must have
// the same nodes and edges; else the error matches ErrGraphUpdate and the
// executable must be instantiated anew.
func (x *GraphExec) Update(g *Graph) error {
	var info execUpdateResult
	err := x.ctx.call(symGraphExecUpdate, x.handle, g.handle, uintptr(unsafe.Pointer(&info)))
	if err == nil || info.result == 0 {
		return err
	}
	reason := fmt.Sprintf("reason %d", info.result)
	if int(info.result) < len(updateRefusals) {
		reason = updateRefusals[info.result]
	}
	return withDetail(err, reason)
}

// Close destroys the executable once its launches have run. A second Close does
// nothing.
func (x *GraphExec) Close() error {
	if x.closed {
		return nil
	}
	x.closed = true
	return x.ctx.invoke(symGraphExecDestroy, x.handle)
}
