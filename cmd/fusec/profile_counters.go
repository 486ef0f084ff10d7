package main

import (
	"fmt"
	"math"

	"github.com/fusec/fusec/runtime"
)

// hardwareCounter is something that the hardware counts for each kernel.
type hardwareCounter struct {
	key     string // in JSON
	head    string // of its column
	words   string // after its value, in a sentence
	bytes   bool   // else a part of the most that there can be
	metrics []string
}

// hardwareCounters are what --counters shows. Of a row's metrics, which are named as CUPTI and Nsight
// Compute name them, the first that the chip has is taken.
var hardwareCounters = []hardwareCounter{
	{"dram_read", "read", "read from memory", true, []string{"dram__bytes_read.sum", "dram__bytes_op_read.sum"}},
	{"dram_written", "written", "written to memory", true, []string{"dram__bytes_write.sum", "dram__bytes_op_write.sum"}},
	{"l2_hits", "L2 hits", "of sectors found in the L2 cache", false, []string{"lts__t_sector_hit_rate.pct"}},
	{"occupancy", "occupancy", "of the warps that a multiprocessor holds", false,
		[]string{"sm__warps_active.avg.pct_of_peak_sustained_active"}},
	{"tensor", "tensor pipes", "of the tensor pipes' cycles busy", false,
		[]string{"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
			"sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active"}},
	{"issue", "issue slots", "of issue slots used", false, []string{"sm__inst_issued.avg.pct_of_peak_sustained_active",
		"smsp__issue_active.avg.pct_of_peak_sustained_active"}},
}

// counterMetrics are the metrics of all rows, in order.
func counterMetrics() (all []string) {
	for _, c := range hardwareCounters {
		all = append(all, c.metrics...)
	}
	return all
}

// countersOf are the values of a kernel's counters by their keys, without those that the chip does not
// have; nil where nothing was counted.
func countersOf(k runtime.KernelReport) map[string]float64 {
	values := k.Counters
	if len(values) == 0 {
		return nil
	}
	out := map[string]float64{}
	for _, c := range hardwareCounters {
		const percent = 100
		for i := range c.metrics {
			v := values[i]
			if math.IsNaN(v) || math.IsInf(v, 0) {
				continue
			}
			if !c.bytes {
				v /= percent
			}
			out[c.key] = v
			break
		}
		values = values[len(c.metrics):]
	}
	return out
}

// text is a value as a person reads it.
func (c *hardwareCounter) text(v float64) string {
	if c.bytes {
		return byteText(int64(v))
	}
	return percent(v)
}

// countersWords are the counters of a kernel as pieces of a sentence.
func (k kernelProfile) countersWords() (out []string) {
	for _, c := range hardwareCounters {
		if v, ok := k.Counters[c.key]; ok {
			out = append(out, c.text(v)+" "+c.words)
		}
	}
	return out
}

// printCounters prints what the hardware has counted, if anything.
func (a *app) printCounters(p *profile) {
	columns := []column{number("")}
	for _, c := range hardwareCounters {
		columns = append(columns, number(c.head))
	}
	var rows [][]string
	for i, k := range p.Kernels {
		if k.Counters == nil {
			continue
		}
		row := []string{fmt.Sprint(i + 1)}
		for _, c := range hardwareCounters {
			text := "-"
			if v, ok := k.Counters[c.key]; ok {
				text = c.text(v)
			}
			row = append(row, text)
		}
		rows = append(rows, append(row, cutTo(k.Computes, 40)))
	}
	if len(rows) == 0 {
		return
	}
	a.ui.table(append(columns, col("computes")), rows)
	a.ui.printf("\n")
}
