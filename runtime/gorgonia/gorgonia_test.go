//go:build gorgonia

package gorgonia_test

import (
	"context"
	"fmt"
	"log"
	goruntime "runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/gorgonia"
	"github.com/fusec/fusec/runtime/tensor"
)

const source = "graph double_plus(x: f32[N], y: f32[N]) -> (z: f32[N]) { z = 2 * x + y }"

// A program that holds a context, a stream and memory of gorgonia.org/cu runs a graph
// on them.
func Example() {
	goruntime.LockOSThread() // cu calls the driver for the thread's current context
	defer goruntime.UnlockOSThread()
	device, err := cu.GetDevice(0)
	if err != nil {
		log.Fatal(err)
	}
	owner, err := device.RetainPrimaryCtx()
	if err != nil {
		log.Fatal(err)
	}
	if err := cu.SetCurrentContext(owner); err != nil {
		log.Fatal(err)
	}
	stream, err := cu.MakeStream(cu.NonBlocking)
	if err != nil {
		log.Fatal(err)
	}
	x := upload([]float32{1, 2, 3})
	y := upload([]float32{10, 20, 30})
	z := upload(make([]float32, 3))

	d, err := gorgonia.Device(owner, runtime.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	ctx := context.Background()
	f, err := fusec.Load(ctx, d, fusec.Source{Name: "g.fuse", Text: []byte(source)}, fusec.Options{})
	if err != nil {
		log.Fatal(err)
	}
	s, err := gorgonia.Stream(d, stream)
	if err != nil {
		log.Fatal(err)
	}
	args := runtime.Args{}
	for name, p := range map[string]cu.DevicePtr{"x": x, "y": y, "z": z} {
		if args[name], err = gorgonia.Buffer(d, p, ir.F32, 3); err != nil {
			log.Fatal(err)
		}
	}
	if err := f.Queue(ctx, s, args); err != nil {
		log.Fatal(err)
	}
	if err := stream.Synchronize(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(download(z, 3))
	// Output: [12 24 36]
}

func upload(values []float32) cu.DevicePtr {
	p, err := cu.MemAlloc(int64(4 * len(values)))
	if err == nil {
		err = cu.MemcpyHtoD(p, unsafe.Pointer(&values[0]), int64(4*len(values)))
	}
	if err != nil {
		log.Fatal(err)
	}
	return p
}

func download(p cu.DevicePtr, n int) []float32 {
	values := make([]float32, n)
	if err := cu.MemcpyDtoH(unsafe.Pointer(&values[0]), p, int64(4*n)); err != nil {
		log.Fatal(err)
	}
	return values
}

// The whole runtime works on the driver that cu links.
func TestRuntimeOnTheLinkedDriver(t *testing.T) {
	d, err := runtime.Open("cuda", runtime.Options{OpenDriver: gorgonia.Open})
	require.NoError(t, err)
	defer d.Close()
	src := "graph softmax_rows(a: f32[N, M], b: f32[M, K]) -> (y: f32[N, K]) { y = softmax(a @ b) }"
	f, err := fusec.Load(t.Context(), d, fusec.Source{Name: "s.fuse", Text: []byte(src)}, fusec.Options{})
	require.NoError(t, err)
	cpu, err := fusec.Open("cpu")
	require.NoError(t, err)
	defer cpu.Close()
	reference, err := fusec.Load(t.Context(), cpu, fusec.Source{Name: "s.fuse", Text: []byte(src)}, fusec.Options{})
	require.NoError(t, err)
	args := runtime.Args{"a": random(t, 1, 33, 64), "b": random(t, 2, 64, 70)}
	want, err := reference.Call(t.Context(), args)
	require.NoError(t, err)
	for range 3 { // the first run, and those that replay a graph
		got, err := f.Call(t.Context(), args)
		require.NoError(t, err)
		assert.InDeltaSlice(t, want["y"].Floats(), got["y"].Floats(), 1e-4)
	}
}

func random(t *testing.T, seed uint64, shape ...int) *tensor.Tensor {
	x, err := tensor.Random(ir.F32, seed, shape...)
	require.NoError(t, err)
	return x
}
