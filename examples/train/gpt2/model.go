package main

import (
	"math"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/examples/train"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// model is the model with its first parameters.
func (s shape) model(batch int) (*train.Model, error) {
	m := &train.Model{Source: fusec.Source{Name: "gpt2.fuse", Text: []byte(s.program())}, Initial: map[string]*tensor.Tensor{},
		Tokens: batch * s.places, Sizes: map[string]int64{"B": int64(batch), "S": int64(s.places)},
		Batch: func(step int) (runtime.Args, error) { return s.batch(step, batch) }}
	for i, p := range s.parameters() {
		x, err := tensor.Random(ir.F32, uint64(i+1), p.Shape...)
		if err != nil {
			return nil, err
		}
		narrow := make([]tensor.BF16, len(x.Float32s()))
		for j, v := range x.Float32s() {
			x.Float32s()[j] = p.Fill + v*float32(p.Scale)
			narrow[j] = tensor.ToBF16(x.Float32s()[j])
		}
		m.Initial["f_"+p.Name] = x
		if m.Initial[p.Name], err = tensor.FromSlice(narrow, p.Shape...); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// batch makes the sequences of a step. Each goes on from a first token of its own by the same rule, which
// takes every token to another one, so what comes next can be learnt from the token before it. One token in four
// is drawn instead, so that the loss does not fall to zero.
func (s shape) batch(step, sequences int) (runtime.Args, error) {
	used := min(251, s.words) // tokens that occur
	tokens := make([]int32, 0, sequences*s.places)
	next := make([]int32, 0, sequences*s.places)
	for i := range sequences {
		drawn := step*7919 + i*104729
		token := drawn % used
		for range s.places {
			tokens = append(tokens, int32(token))
			token = (token*6 + 11) % used
			drawn = (drawn*1103515245 + 12345) % (1 << 31)
			if drawn>>16%4 == 0 {
				token = drawn >> 20 % used
			}
			next = append(next, int32(token))
		}
	}
	at, err := tensor.FromSlice(tokens, sequences, s.places)
	if err != nil {
		return nil, err
	}
	follow, err := tensor.FromSlice(next, sequences, s.places)
	return runtime.Args{"at": at, "next": follow}, err
}

func sqrt(n int) float64 { return math.Sqrt(float64(n)) }
