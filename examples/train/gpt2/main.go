// Command gpt2 trains a model of GPT-2's shapes, to be measured:
//
//	go run ./examples/train/gpt2 -size 124M -batch 16 -steps 30
//
// Parameters and what passes between layers are bf16; AdamW keeps parameters and moments in f32. The
// tokens are made by a rule that the model can learn, so its loss falls.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"

	"github.com/fusec/fusec/examples/train"
)

// shape is a size of the model, as in Radford et al., "Language models are unsupervised multitask learners", 2019.
type shape struct {
	name                 string
	layers, width, heads int
	words                int // of the vocabulary, in whole tiles of 128: 50257 and some that no text has
	places               int // of a sequence
}

var shapes = []shape{
	{"124M", 12, 768, 12, 50304, 1024},
	{"355M", 24, 1024, 16, 50304, 1024},
	{"774M", 36, 1280, 20, 50304, 1024},
	{"1558M", 48, 1600, 25, 50304, 1024},
}

func shapeNamed(name string) (shape, error) {
	i := slices.IndexFunc(shapes, func(s shape) bool { return s.name == name })
	if i >= 0 {
		return shapes[i], nil
	}
	var names []string
	for _, s := range shapes {
		names = append(names, s.name)
	}
	return shape{}, fmt.Errorf("no size %q: one of %s", name, strings.Join(names, ", "))
}

func main() {
	o := train.Options{}
	o.Flags("auto", 30, 1)
	size := flag.String("size", "124M", "the model: 124M, 355M, 774M or 1558M")
	batch := flag.Int("batch", 16, "sequences of a step")
	text := flag.Bool("text", false, "print the program in place of running it")
	flag.Parse()
	if err := run(*size, *batch, *text, o); err != nil {
		log.Fatal(err)
	}
}

func run(size string, batch int, text bool, o train.Options) error {
	s, err := shapeNamed(size)
	if err != nil {
		return err
	}
	if text {
		fmt.Print(s.program())
		return nil
	}
	m, err := s.model(batch)
	if err != nil {
		return err
	}
	return train.Run(context.Background(), m, o, os.Stdout)
}
