package fusec

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cache"
)

// fakeTimer is a device on which a kernel takes what its schedule says.
type fakeTimer struct {
	sizes map[string]int64
	took  func(s ir.Schedule, kernel int) (time.Duration, error)
	calls int
}

func (f *fakeTimer) prepare(context.Context, []*ir.Plan, int) {}

func (f *fakeTimer) time(_ context.Context, plan *ir.Plan, kernel int) (time.Duration, error) {
	f.calls++
	for _, v := range plan.Launched()[kernel].Variants {
		if v.When == nil {
			return f.took(v.Schedule, kernel)
		}
		if holds, ok := ir.EvalSize(v.When, f.sizes); ok && holds != 0 {
			return f.took(v.Schedule, kernel)
		}
	}
	return 0, errors.New("no variant")
}

const severalKernels = `graph two(x: f32[N, 1024], w: f32[1024]) -> (y: f32[N, 1024], z: f32[1024]) {
    y = softmax(x) * w
    z = sum(sort(y, axis=1), axis=0)
}`

func fakeTuner(t *testing.T, took func(s ir.Schedule, kernel int) (time.Duration, error)) (*tuner, *fakeTimer) {
	graph, _, err := parse(Source{Name: "two.fuse", Text: []byte(severalKernels)}, Options{})
	require.NoError(t, err)
	sizes := map[string]int64{"N": 128}
	bench := &fakeTimer{sizes: sizes, took: took}
	return &tuner{bench: bench, graph: graph, options: fuse.Options{Device: ir.Devices()[0]}, sizes: sizes}, bench
}

func threads(s ir.Schedule) time.Duration { return time.Duration(s.Threads) * time.Microsecond }

func TestTuningTakesTheFastest(t *testing.T) {
	tuner, bench := fakeTuner(t, func(s ir.Schedule, _ int) (time.Duration, error) { return threads(s), nil })
	tuned, err := tuner.run(context.Background())
	require.NoError(t, err)
	require.Len(t, tuned, len(mustPlan(t, tuner).Kernels))
	for i, k := range tuned {
		fewest := time.Hour
		for _, c := range fuse.Candidates(mustPlan(t, tuner), mustPlan(t, tuner).Launched()[i], tuner.sizes) {
			fewest = min(fewest, threads(c.Schedule))
		}
		assert.Equal(t, fewest, k.Best, k.Kernel)
		if k.Best < k.ByRules {
			require.NotNil(t, k.Choice)
			assert.Equal(t, fewest, threads(k.Choice.Schedule))
		} else {
			assert.Nil(t, k.Choice)
		}
	}
	assert.Greater(t, bench.calls, 10)
	again, _ := fakeTuner(t, func(s ir.Schedule, _ int) (time.Duration, error) { return threads(s), nil })
	same, err := again.run(context.Background())
	require.NoError(t, err)
	assert.Equal(t, tuned, same, "the same times give the same choices")
}

func mustPlan(t *testing.T, u *tuner) *ir.Plan {
	p, err := fuse.Plan(u.graph, u.options)
	require.NoError(t, err)
	return p
}

// What is not clearly faster is not chosen, and neither is what fails or gives other
// results, however fast.
func TestTuningKeepsTheRulesWhereNothingIsFaster(t *testing.T) {
	steps := time.Duration(0)
	tuner, _ := fakeTuner(t, func(ir.Schedule, int) (time.Duration, error) {
		steps = (steps + 7) % 13 // noise of a hundredth
		return time.Millisecond + steps*time.Microsecond, nil
	})
	tuned, err := tuner.run(context.Background())
	require.NoError(t, err)
	for _, k := range tuned {
		assert.Nil(t, k.Choice, "noise is no reason")
	}
	base := mustPlan(t, tuner)
	byRules := map[ir.Schedule]bool{}
	for _, k := range base.Kernels {
		byRules[fuse.Candidates(base, k, tuner.sizes)[0].Schedule] = true
	}
	tuner, _ = fakeTuner(t, func(s ir.Schedule, _ int) (time.Duration, error) {
		if !byRules[s] {
			return time.Nanosecond, fmt.Errorf("output y: %w", errWrong)
		}
		return time.Millisecond, nil
	})
	tuned, err = tuner.run(context.Background())
	require.NoError(t, err)
	for _, k := range tuned {
		assert.Nil(t, k.Choice)
		assert.Equal(t, time.Millisecond, k.Best)
	}
	tuner, _ = fakeTuner(t, func(ir.Schedule, int) (time.Duration, error) {
		return 0, errors.New("the device is gone")
	})
	_, err = tuner.run(context.Background())
	assert.ErrorContains(t, err, "the device is gone", "the rules' own choice must run")
}

func TestTuningEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	tuner, bench := fakeTuner(t, nil)
	bench.took = func(s ir.Schedule, _ int) (time.Duration, error) {
		if bench.calls > 4 {
			cancel()
			return 0, ctx.Err()
		}
		return threads(s), nil
	}
	_, err := tuner.run(ctx)
	assert.ErrorIs(t, err, context.Canceled)
}

// Stored choices are an input of every plan for that device, and of no other; what is
// measured anew replaces what was stored for its class.
func TestStoredChoicesDecidePlans(t *testing.T) {
	store := cache.Open(cache.Options{Dir: t.TempDir()})
	device := ir.Devices()[0]
	src := Source{Name: "two.fuse", Text: []byte(severalKernels)}
	before, err := ProgramFor(src, Options{}, device, store)
	require.NoError(t, err)
	plain := Options{}.Request(src, device, store)
	assert.Empty(t, plain.Choices)

	tuner, _ := fakeTuner(t, func(s ir.Schedule, _ int) (time.Duration, error) { return threads(s), nil })
	tuned, err := tuner.run(context.Background())
	require.NoError(t, err)
	var found []StoredChoice
	for _, k := range tuned {
		if k.Choice != nil {
			found = append(found, StoredChoice{Choice: *k.Choice, Graph: "two", Name: k.Kernel, Sizes: tuner.sizes,
				ByRules: k.ByRules, Best: k.Best})
		}
	}
	require.NotEmpty(t, found)
	storeChoices(store, device, tuner.measured, found)
	assert.ElementsMatch(t, found, Choices(store, device))
	after, err := ProgramFor(src, Options{}, device, store)
	require.NoError(t, err)
	assert.NotEqual(t, before, after)
	again, err := ProgramFor(src, Options{}, device, store)
	require.NoError(t, err)
	assert.Equal(t, after, again)
	assert.NotEmpty(t, Options{}.Request(src, device, store).Choices, "the plan cache tells them apart")
	other, err := ProgramFor(src, Options{}, ir.Devices()[1], store)
	require.NoError(t, err)
	untouched, err := ProgramFor(src, Options{}, ir.Devices()[1], cache.Open(cache.Options{Off: true}))
	require.NoError(t, err)
	assert.Equal(t, untouched, other)

	replayed, err := tuner.replay(context.Background(), Choices(store, device))
	require.NoError(t, err)
	for i, k := range replayed {
		assert.Equal(t, tuned[i].Choice, k.Choice)
		assert.Equal(t, tuned[i].Best, k.Best)
	}
	storeChoices(store, device, tuner.measured, nil)
	assert.Empty(t, Choices(store, device), "the rules have them back")
}

func TestTuningIsForGPUs(t *testing.T) {
	_, err := Tune(context.Background(), openCPU(t), scaledGraph().Source, Options{}, TuneOptions{})
	assert.ErrorContains(t, err, "tuning is for GPUs")
}
