// Package prometheus exports what devices do to Prometheus: a Collector is an observer
// of devices and a collector of metrics. It is a module of its own, so that programs
// which do not use it do not depend on the client. It must not know how graphs run.
//
//	metrics := prometheus.NewCollector()
//	registry.MustRegister(metrics)
//	device, err := runtime.Open("auto", runtime.Options{Observer: metrics, SampleKernels: 100})
package prometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fusec/fusec/runtime"
)

// A Collector counts runs, kernels and times. It is safe for concurrent use; one may
// observe any number of devices.
//
//	fusec_runs_total{graph,device,result}          runs that have ended: ok or error
//	fusec_run_seconds{graph,device}                time of the call; of queued runs, until it is queued
//	fusec_run_bytes_total{graph,device}            that kernels had to move
//	fusec_kernel_launches_total{graph,device}
//	fusec_kernels_loaded_total{device,outcome}     kernels brought to a device: compiled, or from where
//	fusec_kernel_load_seconds{device,outcome}      to read or compile one
//	fusec_kernel_seconds{graph,kernel,device}      on the device's clock, of measured runs
type Collector struct {
	runs     *prometheus.CounterVec
	took     *prometheus.HistogramVec
	bytes    *prometheus.CounterVec
	launches *prometheus.CounterVec
	loaded   *prometheus.CounterVec
	loading  *prometheus.HistogramVec
	kernels  *prometheus.HistogramVec
}

// NewCollector returns a collector to register, and to set as runtime.Options.Observer.
func NewCollector() *Collector {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "fusec", Name: name, Help: help}, labels)
	}
	// From a microsecond, in steps of four: a launch takes a few, a long run a second.
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "fusec", Name: name, Help: help,
			Buckets: prometheus.ExponentialBuckets(1e-6, 4, 12)}, labels)
	}
	return &Collector{
		runs:     counter("runs_total", "Runs that have ended.", "graph", "device", "result"),
		took:     histogram("run_seconds", "Time of a run's call.", "graph", "device"),
		bytes:    counter("run_bytes_total", "Bytes that the kernels of runs had to move.", "graph", "device"),
		launches: counter("kernel_launches_total", "Kernels launched.", "graph", "device"),
		loaded:   counter("kernels_loaded_total", "Kernels brought to a device, by where they came from.", "device", "outcome"),
		loading:  histogram("kernel_load_seconds", "Time to read or compile a kernel.", "device", "outcome"),
		kernels:  histogram("kernel_seconds", "Time of a kernel on the device's clock.", "graph", "kernel", "device"),
	}
}

func (c *Collector) all() []prometheus.Collector {
	return []prometheus.Collector{c.runs, c.took, c.bytes, c.launches, c.loaded, c.loading, c.kernels}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range c.all() {
		m.Describe(out)
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	for _, m := range c.all() {
		m.Collect(out)
	}
}

// Ran implements runtime.Observer.
func (c *Collector) Ran(e runtime.RunEvent) {
	result := "ok"
	if e.Err != nil {
		result = "error"
	}
	c.runs.WithLabelValues(e.Graph, e.Device, result).Inc()
	if e.Err != nil {
		return // a failed run has not moved all of these bytes
	}
	c.took.WithLabelValues(e.Graph, e.Device).Observe(e.Took.Seconds())
	c.bytes.WithLabelValues(e.Graph, e.Device).Add(float64(e.Bytes))
	c.launches.WithLabelValues(e.Graph, e.Device).Add(float64(e.Kernels))
}

// Loaded implements runtime.Observer.
func (c *Collector) Loaded(e runtime.LoadEvent) {
	c.loaded.WithLabelValues(e.Device, e.Outcome.String()).Inc()
	c.loading.WithLabelValues(e.Device, e.Outcome.String()).Observe(e.Took.Seconds())
}

// Timed implements runtime.Observer.
func (c *Collector) Timed(e runtime.KernelEvent) {
	c.kernels.WithLabelValues(e.Graph, e.Kernel, e.Device).Observe(e.Took.Seconds())
}
