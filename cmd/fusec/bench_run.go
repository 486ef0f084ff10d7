package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
	"github.com/fusec/fusec/runtime"
)

// benchRun is a run over many rows.
type benchRun struct {
	*benchCmd
	app    *app
	device *runtime.Device
	peer   *peer // nil without one
	floors floors
	rows   []*benchRow
}

// measure runs the jobs one after the other and prints each. A row that fails does
// not keep the others from being run.
func (c *benchCmd) measure(a *app, jobs []benchJob) (err error) {
	r := &benchRun{benchCmd: c, app: a}
	if r.device, err = c.open(a); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.device.Close()) }()
	if r.floors, err = loadFloors(a.ctx, r.device); err != nil {
		return err
	}
	if c.Peer != "" {
		if r.peer, err = startPeer(a.ctx, c.Peer, c.Python); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.peer.close()) }()
		r.dropModes()
	}
	var old oldRows
	if c.Compare != "" {
		if old, err = readRows(c.Compare); err != nil { // an error is better reported before anything is measured
			return err
		}
	}
	r.printHead()
	if err := r.all(jobs); err != nil {
		return err
	}
	if old != nil {
		r.printChanges(old)
	}
	if c.HTML != "" {
		if err := r.writePage(c.HTML); err != nil {
			return err
		}
	}
	return r.verdict()
}

// dropModes leaves out what the peer cannot do at all, and says so once.
func (r *benchRun) dropModes() {
	r.PeerModes = slices.DeleteFunc(r.PeerModes, func(mode string) bool {
		missing := !slices.Contains(r.peer.modes, mode)
		if missing {
			r.app.ui.notef("%s has no %s", r.peer.name, mode)
		}
		return missing
	})
}

// all runs the jobs until the time is up or the user has enough.
func (r *benchRun) all(jobs []benchJob) error {
	bar := newProgressBar(r.app, len(jobs))
	begun := time.Now()
	for i, j := range jobs {
		if why := r.over(begun); why != "" {
			bar.end()
			r.app.ui.notef("%s: %s left out, from %s", why, count(len(jobs)-i, "row"), j.title(nil))
			break
		}
		bar.begin(j.title(nil))
		row := r.row(j)
		if r.app.ctx.Err() != nil {
			break
		}
		r.rows = append(r.rows, row)
		bar.done()
		if !bar.shown() {
			r.print(row)
		}
	}
	bar.end()
	if bar.shown() { // then no rows were printed yet, as they would have broken the bar
		for _, row := range r.rows {
			r.print(row)
		}
	}
	r.printSummary()
	return r.app.ctx.Err()
}

// over says why no more rows are to be begun; "" to go on.
func (r *benchRun) over(begun time.Time) string {
	switch {
	case r.Limit > 0 && time.Since(begun) > r.Limit:
		return fmt.Sprintf("--limit %s is over", r.Limit)
	case r.peer != nil && r.peer.gone:
		return "the peer is gone"
	}
	return ""
}

// verdict is an error where a row failed or disagreed, or the peer did not last; what
// of is printed by then.
func (r *benchRun) verdict() error {
	if r.peer != nil && r.peer.gone {
		return errFailed
	}
	for _, row := range r.rows {
		if row.failed() {
			return errFailed
		}
	}
	return nil
}

// benchGraph is one graph of a source.
func (a *app) benchGraph(name, text, graph string) (*ir.Graph, error) {
	file, err := parser.Parse(name, []byte(text), parser.Options{ReadFile: a.files.imports(name)})
	if err != nil {
		return nil, err
	}
	return file.Graph(graph)
}

// contestant is one of those who take turns in a row.
type contestant struct {
	block  func(ctx context.Context, b block) ([]float64, error) // times in milliseconds
	turn   int                                                   // runs in one turn
	ms     []float64
	wall   []float64     // on the host's clock, where asked for
	first  time.Duration // until its first result: compiling, loading and one run; 0 where it is not known
	memory int64         // the most bytes that the device held for it; 0 where it is not known
	err    error         // it takes no more turns
}

// A block is some runs, one behind the other.
type block struct {
	warmup, repeat int
	wall           bool // timed on the host's clock, from the call to the end, and with warm caches
}

// rounds is how often the contestants take turns: so that what changes over time,
// like the clock of a warm chip, hits all alike.
const rounds = 5

// alternate lets the contestants run in turns. Those that fail drop out.
func (c *benchCmd) alternate(ctx context.Context, all []*contestant) {
	for range rounds {
		for _, x := range all {
			if x.err == nil {
				c.take(ctx, x)
			}
		}
	}
}

// take is one turn.
func (c *benchCmd) take(ctx context.Context, x *contestant) {
	const warmup = 2
	if x.turn == 0 {
		if x.turn, x.err = c.turn(ctx, x); x.err != nil {
			return
		}
	}
	ms, err := x.block(ctx, block{warmup: warmup, repeat: x.turn})
	x.ms, x.err = append(x.ms, ms...), err
	if c.Wall && err == nil {
		ms, x.err = x.block(ctx, block{warmup: warmup, repeat: x.turn, wall: true})
		x.wall = append(x.wall, ms...)
	}
}

// turn finds out how many runs make a turn: as many as asked for, or as fit in a
// share of the time that a row may take, up to a number that settles the median.
func (c *benchCmd) turn(ctx context.Context, x *contestant) (int, error) {
	budget, most := 2000.0, 20 // milliseconds, of all turns together
	if c.Fast {
		budget, most = 400, 6
	}
	if c.Repeat > 0 {
		return (c.Repeat + rounds - 1) / rounds, nil
	}
	ms, err := x.block(ctx, block{warmup: 1, repeat: 1})
	if err != nil {
		return 0, err
	}
	return min(max(int(budget/(rounds*max(ms[0], 1e-3))), 1), most), nil
}

// milliseconds of durations.
func inMilliseconds(times []time.Duration) []float64 {
	out := make([]float64, len(times))
	for i, t := range times {
		out[i] = max(t.Seconds(), 1e-9) * 1e3 // what a clock does not resolve took some time all the same
	}
	return out
}

// contestantOf runs a function.
func contestantOf(f *runtime.Function, args runtime.Args) *contestant {
	return &contestant{block: func(ctx context.Context, b block) ([]float64, error) {
		if b.wall {
			return wallTimes(ctx, f, args, b)
		}
		report, err := f.Measure(ctx, args, runtime.Measure{Warmup: b.warmup, Repeat: b.repeat, FlushL2: true})
		if err != nil {
			return nil, err
		}
		return inMilliseconds(report.Total), nil
	}}
}

// wallTimes calls a function as a service does: a call returns when the results are there.
func wallTimes(ctx context.Context, f *runtime.Function, args runtime.Args, b block) ([]float64, error) {
	var times []time.Duration
	for i := range b.warmup + b.repeat {
		begun := time.Now()
		if err := f.Run(ctx, args); err != nil {
			return nil, err
		}
		if i >= b.warmup {
			times = append(times, time.Since(begun))
		}
	}
	return inMilliseconds(times), nil
}

// peerContestant runs what a peer has prepared.
func peerContestant(p *peer, mode string) *contestant {
	c := &contestant{}
	c.block = func(ctx context.Context, b block) ([]float64, error) {
		t, err := p.time(ctx, mode, b)
		c.memory = max(c.memory, t.Memory)
		return t.MS, err
	}
	return c
}

// title names a row.
func (j benchJob) title(sizes map[string]int64) string {
	text := j.Graph
	if j.dtype != "" {
		text += " " + j.dtype
	}
	if sizes == nil {
		sizes = j.sizes
	}
	if sizes == nil {
		return text + " " + j.class
	}
	return fmt.Sprintf("%s %s", text, sizesText(sizes))
}
