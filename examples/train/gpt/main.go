// Command gpt trains a language model of two blocks, 64 wide, on the characters of a text, and lets it write:
//
//	go run ./examples/train/gpt -steps 300 -state gpt.safetensors -chart loss.svg
//
// The text is a file (-text), or sentences that the program makes. Started again with the same
// -state it goes on where it was, with the same bits.
package main

import (
	ctx "context"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"os"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/examples/train"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

//go:embed gpt.fuse
var source []byte

const (
	context = 64 // characters that the model sees
	pieces  = 8  // of the text in a batch
	width   = 64
)

func main() {
	o := train.Options{}
	o.Flags("auto", 300, 10)
	file := flag.String("text", "", "the text to learn")
	flag.Parse()
	if err := run(*file, o); err != nil {
		log.Fatal(err)
	}
}

func run(file string, o train.Options) error {
	text := makeText(2000)
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text = string(data)
	}
	m, err := model(text)
	if err != nil {
		return err
	}
	return train.Run(ctx.Background(), m, o, os.Stdout)
}

// model is the language model with its first parameters.
func model(text string) (*train.Model, error) {
	c := newCorpus(text)
	if len(c.text) <= context {
		return nil, fmt.Errorf("the text has %d characters: expected more than %d", len(c.text), context)
	}
	m := &train.Model{Source: fusec.Source{Name: "gpt.fuse", Text: source}, Initial: map[string]*tensor.Tensor{},
		Batch: c.batch, Tokens: pieces * context,
		Sizes: map[string]int64{"B": pieces, "S": context, "V": int64(len(c.letters))}}
	for i, p := range parameters(len(c.letters)) {
		x, err := tensor.Random(ir.F32, uint64(i+1), p.shape...)
		if err != nil {
			return nil, err
		}
		for j, v := range x.Float32s() {
			x.Float32s()[j] = v * float32(p.scale)
			if p.scale == 0 {
				x.Float32s()[j] = 1
			}
		}
		m.Initial[p.name] = x
	}
	m.Report = func(t *train.Trainer, out io.Writer) error { return c.write(t, out) }
	return m, nil
}

// parameter is a parameter and how its first values are drawn.
type parameter struct {
	name  string
	scale float64 // of normal numbers; 0 for ones
	shape []int
}

func parameters(letters int) []parameter {
	fan := 1 / math.Sqrt(width)
	out := []parameter{{"table", 0.125, []int{letters, width}}, {"places", 0.02, []int{context, width}}, {"norm3", 0, []int{width}}}
	for _, block := range []string{"_a", "_b"} {
		out = append(out, parameter{"norm1" + block, 0, []int{width}}, parameter{"norm2" + block, 0, []int{width}},
			parameter{"qkv" + block, fan, []int{width, 3 * width}}, parameter{"out" + block, fan / 2, []int{width, width}},
			parameter{"up" + block, fan, []int{width, 4 * width}}, parameter{"down" + block, fan / 4, []int{4 * width, width}})
	}
	return out
}

// write lets the model go on from the beginning of the text.
func (c *corpus) write(t *train.Trainer, out io.Writer) error {
	f, err := fusec.Load(ctx.Background(), t.Device(), fusec.Source{Name: "gpt.fuse", Text: source}, fusec.Options{Graph: "follow"})
	if err != nil {
		return err
	}
	defer f.Close()
	next, err := tensor.New(ir.I64, 1)
	if err != nil {
		return err
	}
	seen := append([]int32(nil), c.text[:8]...)
	for range 120 {
		x, err := tensor.FromSlice(seen[max(0, len(seen)-context):], 1, min(len(seen), context))
		if err != nil {
			return err
		}
		if err := t.State().Run(ctx.Background(), f, runtime.Args{"at": x, "next": next}); err != nil {
			return err
		}
		seen = append(seen, int32(next.Ints()[0]))
	}
	for _, n := range seen {
		fmt.Fprint(out, string(c.letters[n]))
	}
	fmt.Fprintln(out)
	return nil
}
