package main

import (
	"cmp"
	"maps"
	goruntime "runtime"
	"slices"
	"sync"
	"time"

	"github.com/fusec/fusec/fuse/explain"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/runtime"
)

// profile is what fusec profile found, as data. Times are in seconds.
type profile struct {
	Version string           `json:"version"` // of fusec
	Graph   string           `json:"graph"`
	Device  string           `json:"device"`
	Figures ir.Device        `json:"figures"` // of the device: what the graph was planned for
	Sizes   map[string]int64 `json:"sizes"`

	Run      spread          `json:"run"`                 // of the whole graph, on the device
	Events   float64         `json:"events,omitempty"`    // subtracted from each time on the device: what events take themselves
	Unclean  string          `json:"unclean,omitempty"`   // why it could not be, and the L2 cache was emptied by writing
	Host     float64         `json:"host"`                // what a call takes beside the run
	Gaps     float64         `json:"gaps"`                // the run, less its kernels apart; negative where they overlap
	Upload   float64         `json:"upload"`              // of the inputs
	Inputs   int64           `json:"inputs"`              // bytes
	Outputs  int64           `json:"outputs"`             // bytes
	Arena    int64           `json:"arena"`               // bytes for all that lives between kernels
	CopyRate float64         `json:"copy_rate,omitempty"` // bytes a second of a copy, on the CPU engine
	Kernels  []kernelProfile `json:"kernels"`             // in the order they run in
	Lines    []lineProfile   `json:"lines"`               // the costliest first
}

// spread sums up repetitions.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Count  int     `json:"count"`
}

// kernelProfile is one kernel.
type kernelProfile struct {
	Name     string  `json:"name"`
	Time     spread  `json:"time"`
	Share    float64 `json:"share"` // of all kernels' time
	Bytes    int64   `json:"bytes"` // that it has to move
	Flops    float64 `json:"flops"`
	Roof     string  `json:"roof,omitempty"`    // what it is bound by
	OfRoof   float64 `json:"of_roof,omitempty"` // the time that this alone takes, over that measured
	Live     int64   `json:"live"`              // bytes of tensors that exist while it runs
	Lines    []int   `json:"lines"`
	Computes string  `json:"computes"`
	// Counters are what the hardware counted, by the keys of hardwareCounters: bytes, or a part of 1.
	Counters map[string]float64 `json:"counters,omitempty"`
}

// lineProfile is a line of the program.
type lineProfile struct {
	File    string  `json:"file"`
	Line    int     `json:"line"`
	Text    string  `json:"text"`
	Seconds float64 `json:"seconds"`
	Share   float64 `json:"share"`
	Kernels []int   `json:"kernels"` // positions, from 1
}

// profiled is what a profile is made of.
type profiled struct {
	device    *runtime.Device
	graph     *ir.Graph
	plan      *ir.Plan
	explained explain.Explanation
	args      arguments
	measured  measurements
}

func newProfile(a *app, x profiled) *profile {
	m := x.measured
	p := &profile{Version: buildVersion(), Graph: x.graph.Name, Device: x.device.Name(), Figures: x.device.Figures(), Sizes: x.args.sizes,
		Run: spreadOf(m.report.Total), Upload: m.upload.Seconds(), Inputs: m.memory.Inputs, Outputs: m.memory.Outputs,
		Arena: m.memory.Arena, Events: m.report.Events.Seconds()}
	if why := m.report.Unclean; why != nil {
		p.Unclean = why.Error()
	}
	if x.device.Kind() == runtime.CPU {
		p.CopyRate = copyRate()
	}
	counted := map[string]map[string]float64{}
	if m.counts != nil {
		for _, k := range m.counts.Kernels {
			counted[k.Name] = countersOf(k)
		}
	}
	notes, live := map[string]explain.KernelNote{}, liveBytes(x.plan, x.args.sizes)
	for _, k := range x.explained.Kernels {
		notes[k.Name] = k
	}
	words := page{app: a, x: x.explained}
	for _, r := range m.report.Kernels {
		if len(r.Times) == 0 {
			continue // not launched
		}
		k := p.kernel(&words, r, notes[r.Name], live[r.Name])
		k.Counters = counted[r.Name]
		p.Kernels = append(p.Kernels, k)
	}
	p.sumUp(m)
	p.attribute(&words, notes)
	return p
}

func spreadOf(times []time.Duration) spread {
	if len(times) == 0 {
		return spread{}
	}
	return spread{runtime.Median(times).Seconds(), slices.Min(times).Seconds(), len(times)}
}

func (p *profile) kernel(words *page, r runtime.KernelReport, note explain.KernelNote, live int64) kernelProfile {
	k := kernelProfile{Name: r.Name, Time: spreadOf(r.Times), Bytes: r.Reads + r.Writes, Live: p.Inputs + p.Outputs + live}
	if note.Read.Bytes != nil && note.Written.Bytes != nil {
		k.Bytes = *note.Read.Bytes + *note.Written.Bytes
	}
	if note.Flops != nil {
		k.Flops = *note.Flops
	}
	switch took := k.Time.Median; {
	case took <= 0:
	case p.CopyRate > 0:
		k.Roof, k.OfRoof = "memory", float64(k.Bytes)/p.CopyRate/took
	case note.OfRoof != nil && note.Seconds != nil:
		k.Roof, k.OfRoof = note.Roof, *note.OfRoof**note.Seconds/took
	}
	for _, op := range note.Operations {
		if line := op.Span.Start.Line; line > 0 && !slices.Contains(k.Lines, line) {
			k.Lines = append(k.Lines, line)
		}
	}
	slices.Sort(k.Lines)
	_, k.Computes = words.does(note)
	return k
}

// sumUp fills in what follows from all kernels together.
func (p *profile) sumUp(m measurements) {
	sum := 0.0
	for _, k := range p.Kernels {
		sum += k.Time.Median
	}
	for i := range p.Kernels {
		p.Kernels[i].Share = p.Kernels[i].Time.Median / max(sum, 1e-12)
	}
	p.Gaps = p.Run.Median - sum
	if gaps, ok := gapsOf(m.report); ok {
		p.Gaps = gaps
	}
	p.Host = max(0, spreadOf(m.calls).Median-p.Run.Median)
}

// gapsOf is the median of what each repetition took beside its kernels, where those were timed
// in the repetitions themselves.
func gapsOf(r *runtime.Report) (float64, bool) {
	var gaps []time.Duration
	for i, total := range r.Total {
		for _, k := range r.Kernels {
			if len(k.Times) == 0 {
				continue // not launched
			}
			if len(k.Times) != len(r.Total) {
				return 0, false
			}
			total -= k.Times[i]
		}
		gaps = append(gaps, total)
	}
	return runtime.Median(gaps).Seconds(), len(gaps) > 0
}

// attribute splits the time of each kernel over the lines that it computes, by the number of
// operations that each has there.
func (p *profile) attribute(words *page, notes map[string]explain.KernelNote) {
	type place struct {
		file string
		line int
	}
	lines := map[place]*lineProfile{}
	total := 0.0
	for i, k := range p.Kernels {
		ops := 0
		for _, op := range notes[k.Name].Operations {
			ops += op.Count
		}
		total += k.Time.Median
		for _, op := range notes[k.Name].Operations {
			at := place{op.Span.Start.Filename, op.Span.Start.Line}
			l := lines[at]
			if l == nil {
				l = &lineProfile{File: at.file, Line: at.line, Text: words.lineText(op.Span.Span)}
				lines[at] = l
			}
			l.Seconds += k.Time.Median * float64(op.Count) / float64(ops)
			if !slices.Contains(l.Kernels, i+1) {
				l.Kernels = append(l.Kernels, i+1)
			}
		}
	}
	p.Lines = []lineProfile{}
	for _, l := range slices.SortedFunc(maps.Values(lines), func(a, b *lineProfile) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Line, b.Line))
	}) {
		l.Share = l.Seconds / max(total, 1e-12)
		p.Lines = append(p.Lines, *l)
	}
}

// liveBytes are the bytes of the tensors between kernels that exist while each kernel runs.
func liveBytes(plan *ir.Plan, sizes map[string]int64) map[string]int64 {
	first, last := map[*ir.Buffer]int{}, map[*ir.Buffer]int{}
	for i, k := range plan.Kernels {
		for _, a := range k.Args {
			if a.Buffer.Kind != ir.TempBuffer {
				continue
			}
			if _, seen := first[a.Buffer]; !seen {
				first[a.Buffer] = i
			}
			last[a.Buffer] = i
		}
	}
	out := map[string]int64{}
	for b, from := range first {
		bytes := int64(b.Type.Size())
		for _, e := range b.Shape {
			if n, ok := ir.EvalSize(e, sizes); ok {
				bytes *= n
			}
		}
		for i := from; i <= last[b]; i++ {
			out[plan.Kernels[i].Name] += bytes
		}
	}
	return out
}

// copyRate is how many bytes a second a copy moves on this machine, reads and writes counted:
// the best of a few copies by all cores of more than caches hold.
func copyRate() float64 {
	const bytes, times = 64 << 20, 3
	from, to := make([]byte, bytes), make([]byte, bytes)
	cores := goruntime.GOMAXPROCS(0)
	best := 0.0
	for range times {
		start := time.Now()
		var group sync.WaitGroup
		for i := range cores {
			group.Go(func() { copy(to[i*bytes/cores:(i+1)*bytes/cores], from[i*bytes/cores:]) })
		}
		group.Wait()
		best = max(best, 2*bytes/time.Since(start).Seconds())
	}
	return best
}

// lineText is the whole line of the program at a span.
func (p *page) lineText(s diag.Span) string {
	text, ok := p.files.text(s.Start.Filename)
	if !ok {
		return ""
	}
	return lineOf(text, s.Start.Line)
}
