package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// floors are the plain kernels that rows are compared with: nothing that moves as many
// bytes can be much faster.
type floors struct{ copy, read *runtime.Function }

const (
	copySource = "graph copy(x: f32[N]) -> (y: f32[N]) { y = x }"
	readSource = "graph read(x: f32[N, 4096]) -> (y: f32[N]) { y = sum(x, axis=1) }"
	readRow    = 4096 // elements of its rows
)

// readsMost is how many times the bytes written are read where a row is compared with
// a kernel that reads.
const readsMost = 16

func loadFloors(ctx context.Context, d *runtime.Device) (f floors, err error) {
	load := func(text string) *runtime.Function {
		fn, e := fusec.Load(ctx, d, fusec.Source{Name: "floor.fuse", Text: []byte(text)}, fusec.Options{})
		err = errors.Join(err, e)
		return fn
	}
	return floors{copy: load(copySource), read: load(readSource)}, err
}

// floorOf is the kernel that a case is compared with, and its arguments, which the
// caller closes whatever the error.
func (r *benchRun) floorOf(k *loadedCase) (name string, c *contestant, args runtime.Args, err error) {
	name, function := "copy", r.floors.copy
	out := k.bytesOf(k.sig.outputs)
	all := k.bytes()
	size := int64(ir.F32.Size())
	n := int(max(all/(2*size), 1))
	shapes := map[string][]int{"x": {n}, "y": {n}}
	if out*readsMost < all {
		name, function = "read", r.floors.read
		n = int(max(all/(size*(readRow+1)), 1))
		shapes = map[string][]int{"x": {n, readRow}, "y": {n}}
	}
	args = runtime.Args{}
	for param, shape := range shapes {
		b, err := r.device.NewBuffer(ir.F32, shape...)
		if err != nil {
			return name, nil, args, fmt.Errorf("the %s to compare with: %w", name, err)
		}
		args[param] = b
	}
	x, err := tensor.Random(ir.F32, 1, shapes["x"]...)
	if err != nil {
		return name, nil, args, err
	}
	return name, contestantOf(function, args), args, args["x"].(*runtime.Buffer).Upload(x)
}

func closeBuffers(args runtime.Args) error {
	var errs []error
	for _, b := range args {
		errs = append(errs, b.(*runtime.Buffer).Close())
	}
	return errors.Join(errs...)
}
