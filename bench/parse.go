package bench

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The size classes. Medium is the graph's @bench, which is not repeated here.
const (
	Small  = "small"  // fits in the cache: what a launch costs
	Medium = "medium" // tens of MiB
	Large  = "large"  // hundreds of MiB: what the memory gives
	Batch  = "batch"  // one row length, growing numbers of rows
)

// Check is the class of the sizes at which tests compare a graph with the reference; bench runs none of them.
const Check = "check"

// Classes lists the size classes, the smallest first.
func Classes() []string { return []string{Small, Medium, Large, Batch} }

// A Case is a graph to measure. It is immutable.
type Case struct {
	Graph     string
	Torch     string             // Python of the inputs and symbols: an expression, or the lines of a function; "" where none is known
	Sizes     map[string][]Sizes // by class; Medium is empty: it is the graph's @bench
	Keep      []string           // parameters that keep their type whatever Retype is asked for
	DTypes    []string           // the types to measure it in where none are asked for; nil as written
	Skip      string             // why it is not to be run; "" to run it
	Unchecked string             // why results need not agree with a peer's; "" where they must
}

// Sizes are values for the symbols of a graph.
type Sizes map[string]int64

var (
	directive = regexp.MustCompile(`^#\s*(torch|small|large|batch|check|keep|dtypes|skip|unchecked):\s*(.*?)\s*$`)
	bodyLine  = regexp.MustCompile(`^#     ( *\S.*?)\s*$`)
)

// Parse finds the graphs of a source and the comments above each that are meant for
// it: `# torch: EXPRESSION`, `# small: N=1 M=2; N=3 M=4` (also large, batch, check),
// `# keep: NAME...`, `# dtypes: TYPE...`, `# skip: WHY` and `# unchecked: WHY`. Lines that are indented behind
// `# torch:` alone are those of a function, which ends in a return. Mistakes in other
// parts of the text are left to who compiles it.
func Parse(name, text string) (Program, error) {
	p := Program{Name: name, Text: text}
	next := newCase()
	inTorch := false
	graphs := graphsOf(text)
	for i, line := range strings.Split(text, "\n") {
		if m := bodyLine.FindStringSubmatch(line); inTorch && m != nil {
			next.Torch += m[1] + "\n"
			continue
		}
		if inTorch && next.Torch == "" {
			return p, fmt.Errorf("%s:%d: torch: expected something after the colon", name, i)
		}
		if inTorch = strings.TrimSpace(line) == "# torch:"; inTorch {
			continue
		}
		if m := directive.FindStringSubmatch(line); m != nil {
			if err := next.set(m[1], m[2]); err != nil {
				return p, fmt.Errorf("%s:%d: %s: %w", name, i+1, m[1], err)
			}
		}
		for ; len(graphs) > 0 && graphs[0].line == i+1; graphs = graphs[1:] {
			next.Graph = graphs[0].name
			p.Cases = append(p.Cases, next)
			next = newCase()
		}
	}
	return p, nil
}

func newCase() Case { return Case{Sizes: map[string][]Sizes{}} }

func (c *Case) set(key, value string) (err error) {
	if value == "" {
		return fmt.Errorf("expected something after the colon")
	}
	switch key {
	case "torch":
		c.Torch = value
	case "keep":
		c.Keep = strings.Fields(value)
	case "dtypes":
		c.DTypes = strings.Fields(value)
	case "skip":
		c.Skip = value
	case "unchecked":
		c.Unchecked = value
	default:
		c.Sizes[key], err = parseSizes(value)
	}
	return err
}

// parseSizes reads lists like N=1 M=2, apart by semicolons.
func parseSizes(text string) ([]Sizes, error) {
	var out []Sizes
	for list := range strings.SplitSeq(text, ";") {
		sizes := Sizes{}
		for _, field := range strings.Fields(list) {
			name, value, _ := strings.Cut(field, "=")
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil || n < 0 || name == "" {
				return nil, fmt.Errorf("expected sizes like N=256 M=1024; N=1 M=4096, found %q", field)
			}
			sizes[name] = n
		}
		out = append(out, sizes)
	}
	return out, nil
}

// String spells sizes as the comments do, by name.
func (s Sizes) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		parts = append(parts, fmt.Sprintf("%s=%d", name, s[name]))
	}
	return strings.Join(parts, " ")
}
