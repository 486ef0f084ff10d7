package main

import (
	"math"
	"slices"
)

// timing sums up runs. Times are milliseconds.
type timing struct {
	Runs   int     `json:"runs"`
	Median float64 `json:"median_ms"`
	Mean   float64 `json:"mean_ms"`
	SD     float64 `json:"sd_ms"` // of a sample: 0 for one run
	Min    float64 `json:"min_ms"`
	Max    float64 `json:"max_ms"`
}

// newTiming sums up the times of at least one run.
func newTiming(ms []float64) timing {
	sorted := slices.Sorted(slices.Values(ms))
	n := len(sorted)
	t := timing{Runs: n, Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Min: sorted[0], Max: sorted[n-1]}
	for _, v := range sorted {
		t.Mean += v / float64(n)
	}
	for _, v := range sorted {
		t.SD += (v - t.Mean) * (v - t.Mean)
	}
	t.SD = math.Sqrt(t.SD / float64(max(n-1, 1)))
	return t
}

// rate is what moving so many bytes in the median time comes to, in GB/s.
func (t timing) rate(bytes int64) float64 { return float64(bytes) / (t.Median * 1e6) }

// geometricMean is NaN for no values.
func geometricMean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(values)))
}
