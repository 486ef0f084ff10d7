package hunt

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/conformance/gen"
	"github.com/fusec/fusec/runtime/cuda"
)

var (
	huntSlow    = flag.Duration("hunt.slow", 0, "how long to look for kernels that take longer than estimated, on a GPU")
	huntSlowest = flag.Int("hunt.slowest", 60, "how many of them to list")
)

// mostWait is how long a program may take to compile and to run, beside others. NVRTC takes minutes over some texts, which is a
// fault of those that wrote them.
const mostWait = time.Minute

// TestSlow draws large programs, runs them, and lists the kernels that take the most times their estimate: either the kernel
// is bad at these sizes, or the estimate by which plans are chosen. Without -hunt.slow it times a few on the CPU, for
// which there are no estimates, so that what lists kernels is tested.
func TestSlow(t *testing.T) {
	if *huntSlow == 0 {
		engine := open(t, []string{"cpu"})[0]
		var turn sync.Mutex
		found := 0
		for seed := uint64(1); found < 3; seed++ {
			p := gen.Draw(seed)
			kernels, err := Time(t.Context(), p, engine.Device, &turn, 0, mostTime)
			require.NoError(t, err, p.Source())
			for _, k := range kernels {
				assert.Positive(t, k.Ratio(), k)
				assert.Contains(t, k.String(), k.Kernel)
			}
			found += min(1, len(kernels))
		}
		return
	}
	var (
		turn, mu sync.Mutex
		underWay = map[uint64]bool{}
		lost     bool
		all      []Timed
		tried    int
		engine   = open(t, []string{"cuda"})[0]
	)
	timeOne := func(seed uint64) bool {
		p := gen.DrawTimed(seed)
		mu.Lock()
		underWay[seed] = true
		mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), mostWait)
		defer cancel()
		kernels, err := Time(ctx, p, engine.Device, &turn, leastTime, mostTime)
		mu.Lock()
		defer mu.Unlock()
		tried += min(1, len(kernels))
		all = append(all, kernels...)
		if err != nil && !lost {
			if lost = errors.Is(err, cuda.ErrDeviceLost); lost { // whichever of these programs it was
				t.Errorf("the device is lost, with programs of these seeds under way: %v", slices.Sorted(maps.Keys(underWay)))
			}
			t.Errorf("seed %d: %v\n%s", seed, err, p.Source())
		}
		delete(underWay, seed)
		return !lost
	}
	eachSeed(t, *huntSlow, func() func(uint64) bool { return timeOne })
	slices.SortFunc(all, func(a, b Timed) int { return cmp.Compare(b.Ratio(), a.Ratio()) })
	t.Logf("%d programs, %d kernels", tried, len(all))
	for i, share := range []float64{0.5, 0.75, 0.9, 0.95, 0.99} {
		if n := int(float64(len(all)) * (1 - share)); i < len(all) {
			t.Logf("%.0f%% of them take at most %.2f of the estimate", 100*share, all[n].Ratio())
		}
	}
	for _, k := range all[:min(len(all), *huntSlowest)] {
		t.Log(k)
		if *huntOut != "" {
			name := strings.ReplaceAll(k.Kernel, "/", "_")
			require.NoError(t, os.WriteFile(filepath.Join(*huntOut, name+".fuse"), []byte("# "+k.String()+"\n"+Found(k.Program, "slow")), 0o644))
		}
	}
}
