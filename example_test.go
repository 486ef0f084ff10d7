package fusec_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/sign"
	"github.com/fusec/fusec/runtime/tensor"
)

const softmax = `
graph softmax(x: f32[N, M]) -> (y: f32[N, M]) {
    m = max(x, axis=-1, keep=true)
    e = exp(x - m)
    y = e / sum(e, axis=-1, keep=true)
}
`

// A graph of four operations becomes one kernel and runs where there is a device
// for it: here on the processor, which is always there.
func Example() {
	program, err := fusec.Compile("softmax.fuse", softmax, fusec.Options{})
	if err != nil {
		log.Fatal(err)
	}
	dev, err := fusec.Open("cpu")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	f, err := program.Load(context.Background(), dev)
	if err != nil {
		log.Fatal(err)
	}
	x, _ := tensor.FromSlice([]float32{0, 0, 1, 1, 1, 1}, 2, 3)
	y, _ := tensor.New(ir.F32, 2, 3)
	if err := f.Run(context.Background(), runtime.Args{"x": x, "y": y}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(program.Plan().Kernels), "kernel")
	fmt.Printf("%.3f\n", y.Floats())
	// Output:
	// 1 kernel
	// [0.212 0.212 0.576 0.333 0.333 0.333]
}

// No GPU is needed to see the CUDA text of a graph.
func ExampleProgram_CUDA() {
	program := fusec.MustCompile("double.fuse", "graph double(x: f32[N]) -> (y: f32[N]) { y = x + x }",
		fusec.Options{Arch: "sm_80"})
	cuda, err := program.CUDA()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(cuda.Launches), "launch of kernel", cuda.Launches[0].Kernel)
	// Output: 1 launch of kernel double_y
}

// Mistakes come with their place.
func ExampleCompile_errors() {
	_, err := fusec.Compile("bad.fuse", "graph g(x: f32[N], w: f32[M]) -> (y: f32[N]) { y = x + w }",
		fusec.Options{})
	fmt.Println(err)
	// Output: bad.fuse:1:52: cannot apply + to f32[N] and f32[M]: N and M may differ
}

// Call allocates the outputs.
func ExampleProgram_Grad() {
	program, err := fusec.Compile("loss.fuse", `
graph loss(x: f32[N, K], w: f32[K], b: f32[1], want: f32[N]) -> (l: f32[]) {
    y = x @ w + b
    l = sum((y - want) ** 2) / 2
}
`, fusec.Options{})
	if err != nil {
		log.Fatal(err)
	}
	gradient, err := program.Grad("loss", fusec.Wrt("w", "b"), fusec.WithValues())
	if err != nil {
		log.Fatal(err)
	}
	device, err := fusec.Open("cpu")
	if err != nil {
		log.Fatal(err)
	}
	defer device.Close()
	step, err := gradient.Load(context.Background(), device)
	if err != nil {
		log.Fatal(err)
	}
	of := func(values []float32, shape ...int) *tensor.Tensor {
		t, err := tensor.FromFloats(ir.F32, values, shape...)
		if err != nil {
			log.Fatal(err)
		}
		return t
	}
	out, err := step.Call(context.Background(), runtime.Args{"x": of([]float32{1, 2, 3, 4}, 2, 2),
		"w": of([]float32{1, 1}, 2), "b": of([]float32{0}), "want": of([]float32{2, 6}, 2)})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(out["l"].Floats(), out["d_w"].Floats(), out["d_b"].Floats())
	// Output: [1] [4 6] [2]
}

// The derivative of a gradient along a direction is a product of the Hessian with a vector.
func ExampleProgram_JVP() {
	program, err := fusec.Compile("f.fuse", "graph f(x: f32[2]) -> (y: f32[]) { y = x[0] ** 2 * x[1] }", fusec.Options{})
	if err != nil {
		log.Fatal(err)
	}
	gradient, err := program.Grad("f")
	if err != nil {
		log.Fatal(err)
	}
	product, err := gradient.JVP("")
	if err != nil {
		log.Fatal(err)
	}
	device, err := fusec.Open("cpu")
	if err != nil {
		log.Fatal(err)
	}
	defer device.Close()
	f, err := product.Load(context.Background(), device)
	if err != nil {
		log.Fatal(err)
	}
	x, _ := tensor.FromSlice([]float32{3, 5}, 2)
	along, _ := tensor.FromSlice([]float32{1, 10}, 2)
	out, err := f.Call(context.Background(), runtime.Args{"x": x, "t_x": along})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(out["t_d_x"].Floats()) // of the gradient [2*x0*x1, x0^2]
	// Output: [70 6]
}

func ExampleLoad() {
	dev, err := fusec.Open("cpu")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	f, err := fusec.Load(context.Background(), dev, fusec.Source{Name: "softmax.fuse", Text: []byte(softmax)},
		fusec.Options{})
	if err != nil {
		log.Fatal(err)
	}
	x, _ := tensor.FromSlice([]float32{3, 3}, 1, 2)
	out, err := f.Call(context.Background(), runtime.Args{"x": x})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(out["y"], out["y"].Floats())
	// Output: f32[1, 2] [0.5 0.5]
}

// A program from a file, loaded through the disk cache: README.md shows this.
func ExampleReadSource() {
	ctx := context.Background()
	source, err := fusec.ReadSource("examples/softmax.fuse")
	if err != nil {
		log.Fatal(err)
	}
	device, err := fusec.Open("cpu") // "auto" is the first GPU, or the CPU where there is none
	if err != nil {
		log.Fatal(err)
	}
	defer device.Close()
	softmax, err := fusec.Load(ctx, device, source, fusec.Options{})
	if err != nil {
		log.Fatal(err)
	}
	x, err := tensor.FromFloats(ir.BF16, []float32{0, 0, 1, 1, 1, 1}, 2, 3)
	if err != nil {
		log.Fatal(err)
	}
	out, err := softmax.Call(ctx, runtime.Args{"x": x})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.3f\n", out["y"].Floats())
	// Output:
	// [0.212 0.212 0.574 0.334 0.334 0.334]
}

// A bundle is compiled where the application is built, and runs where there is
// neither NVRTC nor a cache. The application holds the public key.
func ExampleOpenBundle() {
	const line = "fusec-public-ed25519 UNhY4JhezH9gQYqvDMWrWH9CwlcKiECVqejMrND2VFw="
	key, err := sign.ParsePublic(line) // the contents of app.key.pub
	if err != nil {
		log.Fatal(err)
	}
	b, err := fusec.OpenBundle("app.fbundle", key) // or EmbeddedBundle, with go:embed
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	dev, err := fusec.Open("auto")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	f, err := b.Load(context.Background(), dev, "softmax")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.Params())
}

// A stream of runs on tensors that stay on the device.
func ExampleOpen_streams() {
	ctx := context.Background()
	var counters runtime.Counters
	device, err := runtime.Open("cpu", runtime.Options{Observer: &counters})
	if err != nil {
		log.Fatal(err)
	}
	defer device.Close()
	source := fusec.Source{Name: "halve.fuse", Text: []byte("graph halve(x: f32[N]) -> (y: f32[N]) { y = x / 2 }")}
	halve, err := fusec.Load(ctx, device, source, fusec.Options{})
	if err != nil {
		log.Fatal(err)
	}
	stream, err := device.NewStream()
	if err != nil {
		log.Fatal(err)
	}
	host, err := device.NewHostBuffer(ir.F32, 4) // copies from and to it do not wait
	if err != nil {
		log.Fatal(err)
	}
	a, errA := device.NewBuffer(ir.F32, 4)
	b, errB := device.NewBuffer(ir.F32, 4)
	if err := errors.Join(errA, errB); err != nil {
		log.Fatal(err)
	}
	copy(host.Tensor().Float32s(), []float32{4, 8, 12, 16})
	err = errors.Join(
		stream.Upload(a, host.Tensor()),
		halve.Queue(ctx, stream, runtime.Args{"x": a, "y": b}),
		halve.Queue(ctx, stream, runtime.Args{"x": b, "y": a}),
		stream.Download(host.Tensor(), a),
		stream.Wait(ctx),
	)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(host.Tensor().Float32s(), counters.Totals().Runs, "runs")
	// Output: [1 2 3 4] 2 runs
}

func ExampleFunction_NewState() {
	ctx := context.Background()
	device, err := fusec.Open("cpu")
	if err != nil {
		log.Fatal(err)
	}
	defer device.Close()
	source := fusec.Source{Name: "step.fuse", Text: []byte(`
graph step(state w: f32[N], state v: f32[N], g: f32[N]) -> () {
    w, v = sgd(w, g, v, f32(0.1), momentum=0.5)
}`)}
	step, err := fusec.Load(ctx, device, source, fusec.Options{})
	if err != nil {
		log.Fatal(err)
	}
	state, err := step.NewState(map[string]int64{"N": 2}) // zeros
	if err != nil {
		log.Fatal(err)
	}
	defer state.Close()
	g, err := tensor.FromSlice([]float32{10, -20}, 2)
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		if err := state.Run(ctx, step, runtime.Args{"g": g}); err != nil {
			log.Fatal(err)
		}
	}
	w, err := state.Get("w")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(w.Float32s())
	// Output: [-2.5 5]
}
