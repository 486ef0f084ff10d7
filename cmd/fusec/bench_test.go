package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/bench"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
	"github.com/fusec/fusec/runtime/tensor"
)

// fakePeer is a peer for scripts. Its cases are made of single words: copy writes
// the first input as the output, zero and short write another, refuse declines to
// compile, die ends the process, babble answers with something else, and hasty
// leaves out a time. Runs take 1, 3 and 5 ms in turn.
func fakePeer() {
	var request struct {
		Do, Mode, Code  string
		Inputs, Outputs []peerTensor
		Files           []string
		Repeat          int
	}
	var code string
	var data []byte
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		must(json.Unmarshal(lines.Bytes(), &request))
		switch request.Do {
		case "hello":
			fmt.Println(`{"name": "a fake", "device": "nothing", "modes": ["eager", "compile"]}`)
			continue
		case "load":
			code = request.Code
			var err error
			data, err = os.ReadFile(request.Inputs[0].File)
			must(err)
		case "prepare":
			if answered := fakePrepare(code, request.Mode, request.Files[0], data); answered {
				continue
			}
		case "time":
			times := slices.Repeat([]float64{1, 3, 5}, request.Repeat)[:request.Repeat]
			if code == "hasty" {
				times = times[1:]
			}
			must(json.NewEncoder(os.Stdout).Encode(map[string]any{"ms": times}))
			continue
		}
		fmt.Println("{}")
	}
}

// fakePrepare writes an output; it reports whether it has answered as well.
func fakePrepare(code, mode, file string, data []byte) bool {
	switch {
	case code == "die":
		fmt.Fprintln(os.Stderr, "Traceback\nOutOfPatience: no more")
		os.Exit(1)
	case code == "babble":
		fmt.Println("hello?")
		return true
	case code == "refuse" && mode == "compile":
		fmt.Println(`{"error": "TooHard: not today\nand a long trace"}`)
		return true
	case code == "zero":
		data = make([]byte, len(data))
	case code == "short":
		data = data[1:]
	}
	must(os.WriteFile(file, data, 0o600))
	return false
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// TestSuiteCompiles compiles every case in every type, and holds that the sizes are
// for the symbols that there are.
func TestSuiteCompiles(t *testing.T) {
	for _, name := range bench.Suites() {
		programs, err := bench.Suite(name)
		require.NoError(t, err)
		for _, p := range programs {
			for _, c := range p.Cases {
				dtypes := benchTypes
				if name != bench.Operators {
					dtypes = (&benchCmd{}).dtypes(c)
				}
				for _, dtype := range dtypes {
					requireCase(t, p, c, dtype)
				}
			}
		}
	}
}

func requireCase(t *testing.T, p bench.Program, c bench.Case, dtype string) {
	text := p.Text
	if dtype != "" {
		text = p.Retype(c, dtype)
	}
	file, err := parser.Parse(p.Name, []byte(text), parser.Options{})
	require.NoError(t, err, "%s %s", c.Graph, dtype)
	g, err := file.Graph(c.Graph)
	require.NoError(t, err)
	for class, list := range c.Sizes {
		for _, sizes := range list {
			assert.Len(t, sizes, len(g.Symbols), "%s %s", c.Graph, class)
			assert.NoError(t, checkSizes(sizes, symbolNames(g)))
		}
	}
	for _, s := range g.Symbols {
		assert.Positive(t, s.Default, "%s has no @bench for %s", c.Graph, s.Name)
	}
}

func symbolNames(g *ir.Graph) []string {
	var out []string
	for _, s := range g.Symbols {
		out = append(out, s.Name)
	}
	return out
}

func TestTiming(t *testing.T) {
	got := newTiming([]float64{4, 1, 3, 2})
	assert.Equal(t, timing{Runs: 4, Median: 2.5, Mean: 2.5, SD: math.Sqrt(5.0 / 3), Min: 1, Max: 4}, got)
	assert.Equal(t, timing{Runs: 1, Median: 7, Mean: 7, Min: 7, Max: 7}, newTiming([]float64{7}))
	assert.Equal(t, 2.0, newTiming([]float64{3}).rate(6e6), "6 MB in 3 ms are 2 GB/s")
	assert.InDelta(t, 4, geometricMean([]float64{2, 8}), 1e-12)
}

// agreeOn compares two vectors as a peer's output is compared.
func agreeOn(t *testing.T, dtype ir.DType, ours, theirs []float32, shape ...int) agreement {
	if len(shape) == 0 {
		shape = []int{len(ours)}
	}
	a, err := tensor.FromFloats(dtype, ours, shape...)
	require.NoError(t, err)
	b, err := tensor.FromFloats(dtype, theirs, shape...)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "out")
	require.NoError(t, os.WriteFile(file, b.Data, 0o600))
	got, err := agree([]ir.Param{{Name: "y"}}, []*tensor.Tensor{a}, []string{file}, false)
	require.NoError(t, err)
	return got
}

func TestAgree(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	long := slices.Repeat([]float32{1}, 1<<17+3) // more than one part
	wrong := slices.Clone(long)
	wrong[1<<17+1] = 1.5
	for _, c := range []struct {
		name         string
		dtype        ir.DType
		ours, theirs []float32
		fine         bool
	}{
		{"equal", ir.F32, []float32{1, 2, nan, inf}, []float32{1, 2, nan, inf}, true},
		{"close", ir.F32, []float32{1, 2.00001}, []float32{1, 2}, true},
		{"near 0 beside larger ones", ir.F32, []float32{1e-6, 100}, []float32{-1e-6, 100}, true},
		{"apart", ir.F32, []float32{1, 2.01}, []float32{1, 2}, false},
		{"apart, but not in bf16", ir.BF16, []float32{1, 2.01}, []float32{1, 2}, true},
		{"apart in bf16", ir.BF16, []float32{1, 2.5}, []float32{1, 2}, false},
		{"not a number", ir.F32, []float32{1, nan}, []float32{1, 2}, false},
		{"infinite", ir.F32, []float32{1, 2}, []float32{1, inf}, false},
		{"of the other sign", ir.F32, []float32{inf}, []float32{-inf}, false},
		{"not zero", ir.F32, []float32{1e-30}, []float32{0}, false},
		{"one far along", ir.F32, long, wrong, false},
		{"empty", ir.F32, nil, nil, true},
	} {
		got := agreeOn(t, c.dtype, c.ours, c.theirs)
		assert.Equal(t, c.fine, got.err == nil, "%s: %v", c.name, got)
	}
	assert.ErrorContains(t, agreeOn(t, ir.F32, long, wrong).err, "output y[131073]: fusec has 1, the peer 1.5")
}

// TestTF32Agrees: results of products in tf32 may be as far apart as its roundings, and what is no f32 no farther than before.
func TestTF32Agrees(t *testing.T) {
	assert.Equal(t, 1e-4, peerTolerance(ir.F32, false))
	assert.Equal(t, 8.0/1024, peerTolerance(ir.F32, true))
	assert.Equal(t, peerTolerance(ir.BF16, false), peerTolerance(ir.BF16, true))
	assert.Zero(t, peerTolerance(ir.I32, true))
}

// TestAgreeByRows: a row larger than the others has larger roundings, and they have not.
func TestAgreeByRows(t *testing.T) {
	theirs := slices.Repeat([]float32{0.01}, 1024*4)
	copy(theirs, []float32{10, 10, 0.01, 10})
	ours := slices.Clone(theirs)
	ours[2] = 0.05
	assert.NoError(t, agreeOn(t, ir.BF16, ours, theirs, 1024, 4).err)
	ours[2], ours[4*700+2] = 0.01, 0.05
	assert.ErrorContains(t, agreeOn(t, ir.BF16, ours, theirs, 1024, 4).err, "output y[700 2]")
	assert.NoError(t, agreeOn(t, ir.F32, []float32{3}, []float32{3}, 1, 1).err)
}

func TestBands(t *testing.T) {
	r := &benchRun{app: &app{ui: &ui{color: true}}}
	for speedup, want := range map[float64]string{
		1.2: "\x1b[1;32m1.20x\x1b[0m", 1: "\x1b[32m1.00x\x1b[0m", 0.9: "\x1b[33m0.90x\x1b[0m",
		0.5: "\x1b[31m0.50x\x1b[0m",
	} {
		assert.Equal(t, want, r.band(speedup))
	}
}

func TestSpeedupOverBest(t *testing.T) {
	row := &benchRow{Results: []benchResult{{Name: "fusec"}, {Name: "eager", Speedup: 3},
		{Name: "compile", Speedup: 1.5}, {Name: "max-autotune", Error: "none"}}}
	assert.Equal(t, 3.0, row.speedup("eager"))
	assert.Equal(t, 1.5, row.speedup(bestOfPeers))
	assert.Zero(t, row.speedup("max-autotune"))
}
