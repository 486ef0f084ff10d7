// Command spiral trains a classifier of points on three spirals, on the processor in seconds:
//
//	go run ./examples/train/spiral -chart loss.svg -state spiral.safetensors
//
// Started again with the same -state it goes on where it was, with the same bits.
package main

import (
	"context"
	_ "embed"
	"flag"
	"log"
	"math"
	"math/rand/v2"
	"os"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/examples/train"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

//go:embed spiral.fuse
var source []byte

func main() {
	o := train.Options{}
	o.Flags("cpu", 600, 50)
	flag.Parse()
	m, err := model()
	if err == nil {
		err = train.Run(context.Background(), m, o, os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

const (
	arms   = 3
	points = 100 // of an arm
)

// model is the classifier with its first parameters, and all points as every batch.
func model() (*train.Model, error) {
	m := &train.Model{Source: fusec.Source{Name: "spiral.fuse", Text: source}, Initial: map[string]*tensor.Tensor{}}
	for i, p := range []struct {
		name    string
		in, out int
	}{{"w1", 2, 64}, {"w2", 64, 64}, {"w3", 64, 3}} {
		w, err := tensor.Random(ir.F32, uint64(i+1), p.in, p.out)
		if err != nil {
			return nil, err
		}
		for j := range w.Float32s() {
			w.Float32s()[j] /= float32(math.Sqrt(float64(p.in)))
		}
		m.Initial[p.name] = w
	}
	x, at, err := spirals()
	if err != nil {
		return nil, err
	}
	m.Batch = func(int) (runtime.Args, error) { return runtime.Args{"x": x, "at": at}, nil }
	m.Sizes = map[string]int64{"N": arms * points}
	return m, nil
}

// spirals draws points beside the arms, and says of each which arm it is of.
func spirals() (x, at *tensor.Tensor, err error) {
	r := rand.New(rand.NewPCG(1, 2))
	var xs []float32
	var which []int32
	for arm := range arms {
		for i := range points {
			radius := (float64(i) + 1) / points
			angle := 2*math.Pi*float64(arm)/arms + 4*radius + 0.15*r.NormFloat64()
			xs = append(xs, float32(radius*math.Cos(angle)), float32(radius*math.Sin(angle)))
			which = append(which, int32(arm))
		}
	}
	if x, err = tensor.FromSlice(xs, len(which), 2); err != nil {
		return nil, nil, err
	}
	at, err = tensor.FromSlice(which, len(which))
	return x, at, err
}
