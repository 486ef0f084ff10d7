package hunt

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/fusec/fusec/conformance/gen"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
)

// A Case is a program of testdata/found: one that went wrong once. Comments at its head say
// what to run:
//
//	# y was twice what it should be.   the first line says what went wrong
//	# sizes: N=5 M=3                    one run for each such line
//	# input z: 2147483647 0 -1          values of an input, in row-major order
//	# seed: 17 hostile                  of the others' values
//	# fails: outside axis 0             running it gives an error that contains this
type Case struct {
	Text    string
	Sizes   []map[string]int64
	Values  map[string][]string
	Fails   string
	seed    uint64
	hostile bool
}

// ParseCase reads the head of a file.
func ParseCase(text string) (*Case, error) {
	c := &Case{Text: text, Values: map[string][]string{}, seed: 1}
	for line := range strings.Lines(text) {
		word, found := strings.CutPrefix(strings.TrimSpace(line), "# ")
		if !found {
			break
		}
		key, rest, found := strings.Cut(word, ":")
		if !found {
			continue
		}
		rest = strings.TrimSpace(rest)
		switch {
		case key == "sizes":
			sizes, err := parseSizes(rest)
			if err != nil {
				return nil, err
			}
			c.Sizes = append(c.Sizes, sizes)
		case key == "seed":
			n, hostile, _ := strings.Cut(rest, " ")
			seed, err := strconv.ParseUint(n, 10, 64)
			if err != nil {
				return nil, err
			}
			c.seed, c.hostile = seed, hostile == "hostile"
		case key == "fails":
			c.Fails = rest
		case strings.HasPrefix(key, "input "):
			c.Values[strings.TrimPrefix(key, "input ")] = strings.Fields(rest)
		}
	}
	if len(c.Sizes) == 0 {
		return nil, fmt.Errorf("no line says # sizes:")
	}
	return c, nil
}

func parseSizes(text string) (map[string]int64, error) {
	out := map[string]int64{}
	for _, word := range strings.Fields(text) {
		name, number, _ := strings.Cut(word, "=")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, err
		}
		out[name] = n
	}
	return out, nil
}

// Inputs are the values of a case's inputs.
func (c *Case) Inputs(g *ir.Graph, sizes map[string]int64) ([]*interp.Tensor, error) {
	inputs, err := gen.Inputs(g, sizes, c.seed, c.hostile)
	if err != nil {
		return nil, err
	}
	for i, v := range g.Inputs {
		words, given := c.Values[v.Name]
		if !given {
			continue
		}
		x := inputs[i]
		if len(words) != x.Len() {
			return nil, fmt.Errorf("input %s has %d elements, not %d", v.Name, x.Len(), len(words))
		}
		for n, word := range words {
			if err := setElement(x, n, word); err != nil {
				return nil, fmt.Errorf("input %s: %w", v.Name, err)
			}
		}
		inputs[i] = interp.FromBytes(x.Type, x.Shape, x.Bytes())
	}
	return inputs, nil
}

func setElement(x *interp.Tensor, n int, word string) error {
	if x.F != nil {
		v, err := strconv.ParseFloat(word, 64)
		if err != nil && !math.IsInf(v, 0) {
			return err
		}
		x.F[n] = v
		return nil
	}
	if word == "true" || word == "false" {
		x.I[n] = map[string]int64{"true": 1}[word]
		return nil
	}
	v, err := strconv.ParseInt(word, 10, 64)
	x.I[n] = v
	return err
}
