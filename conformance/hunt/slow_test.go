package hunt

import (
	"cmp"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/conformance/gen"
)

var (
	huntSlow    = flag.Duration("hunt.slow", 0, "how long to look for kernels that take longer than estimated, on a GPU")
	huntSlowest = flag.Int("hunt.slowest", 60, "how many of them to list")
)

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
	seed := *huntSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano()) >> 16
	}
	t.Logf("-hunt.seed=%d", seed)
	var (
		next       atomic.Int64
		group      sync.WaitGroup
		turn, mu   sync.Mutex
		underWay   = map[uint64]bool{}
		lost       atomic.Bool
		all        []Timed
		end, tried = time.Now().Add(*huntSlow), 0
		engine     = open(t, []string{"cuda"})[0]
	)
	for range *huntJobs {
		group.Go(func() {
			for n := next.Add(1) - 1; n < int64(*huntCount) && time.Now().Before(end) && !lost.Load(); n = next.Add(1) - 1 {
				p := gen.DrawTimed(seed + uint64(n))
				mu.Lock()
				underWay[p.Seed] = true
				mu.Unlock()
				kernels, err := Time(t.Context(), p, engine.Device, &turn, leastTime, mostTime)
				mu.Lock()
				tried += min(1, len(kernels))
				all = append(all, kernels...)
				switch {
				case err != nil && strings.Contains(err.Error(), "ILLEGAL_ADDRESS") && !lost.Swap(true): // whichever of these programs it was
					t.Errorf("the device is lost, with programs of these seeds under way: %v\nseed %d: %v\n%s", slices.Sorted(maps.Keys(underWay)), p.Seed, err, p.Source())
				case err != nil && !lost.Load():
					t.Errorf("seed %d: %v\n%s", p.Seed, err, p.Source())
				}
				delete(underWay, p.Seed)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	slices.SortFunc(all, func(a, b Timed) int { return cmp.Compare(b.Ratio(), a.Ratio()) })
	t.Logf("%d programs, %d kernels", tried, len(all))
	for i, share := range []float64{0.5, 0.75, 0.9, 0.95, 0.99} {
		if n := int(float64(len(all)) * (1 - share)); i < len(all) {
			t.Logf("%.0f%% of them take at most %.2f of the estimate", 100*share, all[n].Ratio())
		}
	}
	for i, k := range all[:min(len(all), *huntSlowest)] {
		t.Log(k)
		if *huntOut != "" && i < *huntSlowest {
			name := strings.ReplaceAll(k.Kernel, "/", "_")
			require.NoError(t, os.WriteFile(filepath.Join(*huntOut, name+".fuse"), []byte("# "+k.String()+"\n"+Found(k.Program, "slow")), 0o644))
		}
	}
}
