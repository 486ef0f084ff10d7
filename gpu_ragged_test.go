package fusec

import (
	"fmt"
	"testing"

	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
)

// ragged are programs of rows that are held, read once and streamed, of one type and of several, beside
// rows that all of them share and rows that are looked up, for lengths that are no whole number of vectors.
var ragged = map[string]string{
	"softmax":    "graph g(x: bf16[N, M]) -> (y: bf16[N, M]) { y = softmax(x) }",
	"layer_norm": "graph g(x: bf16[N, M], w: bf16[M], b: f32[M]) -> (y: bf16[N, M], z: f32[N, M]) { z = layer_norm(f32(x), f32(w), b)\n y = bf16(z) }",
	"sums":       "graph g(x: f32[N, M], w: f16[M]) -> (y: f32[N], z: f32[N]) { y = sum(x * f32(w), axis=1)\n z = max(x, axis=1) }",
	"places":     "graph g(x: f16[N, M]) -> (y: i64[N], z: f16[N, M]) { y = argmax(x, axis=1)\n z = x - max(x, axis=1, keep=true) }",
	"bytes":      "graph g(x: u8[N, M], w: f32[N, M]) -> (y: u8[N, M]) { y = u8(f32(x) - min(f32(x), axis=1, keep=true) + 0 * sum(w, axis=1, keep=true)) }",
	"looked_up":  "graph g(at: i64[N], x: bf16[7, M]) -> (y: bf16[N, M]) { y = softmax(embedding(at, x)) }",
	"doubles":    "graph g(x: f64[N, M]) -> (y: f64[N, M]) { y = x / sum(abs(x), axis=1, keep=true) }",
}

// TestRaggedRowsOnGPU compares rows around the ends of the rungs with the interpreter.
func TestRaggedRowsOnGPU(t *testing.T) {
	compareRagged(t, openGPU(t, runtime.Options{}), []int64{17, 33, 100, 129, 257, 513, 1001, 1023, 1025, 2047, 2049, 4095, 4097, 8191, 8193, 16383, 20001})
}

func TestRaggedRowsSimulated(t *testing.T) {
	for _, arch := range []string{"sm_80", "sm_90a"} {
		_, dev := openSimulated(t, simtest.Config{Arch: arch, Order: simtest.Order{Races: true}})
		compareRagged(t, dev, []int64{33, 257, 1023, 1025, 4095})
	}
}

func compareRagged(t *testing.T, dev *runtime.Device, columns []int64) {
	for name, src := range ragged {
		p, f := loaded(t, dev, src)
		for _, m := range columns {
			t.Run(fmt.Sprint(dev.Arch(), " ", name, " ", m), func(t *testing.T) {
				compareWithInterpreter(t, p.Graph(), f, map[string]int64{"N": 11, "M": m})
			})
		}
	}
}
