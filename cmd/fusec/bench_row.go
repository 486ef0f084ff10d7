package main

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// benchRow is what became of a job; with its tags, a line of JSON.
type benchRow struct {
	Op      string           `json:"op"`
	DType   string           `json:"dtype,omitempty"` // "" as written
	Class   string           `json:"class"`
	Sizes   map[string]int64 `json:"sizes,omitempty"`
	Device  string           `json:"device"`
	Bytes   int64            `json:"bytes,omitempty"`    // of the inputs and outputs together
	Copy    *timing          `json:"copy,omitempty"`     // a plain copy that moves as many bytes
	Read    *timing          `json:"read,omitempty"`     // in its place, sums of rows that read as many
	PeerF32 string           `json:"peer_f32,omitempty"` // how the peer multiplied f32: exact, tf32 or default
	Results []benchResult    `json:"results,omitempty"`
	Skipped string           `json:"skipped,omitempty"`
	Error   string           `json:"error,omitempty"`

	title string
	err   error
}

// benchResult is one program in a row. Where it failed, it has an error and no times.
type benchResult struct {
	Name    string  `json:"name"`
	*timing         // nil where Error is set
	Rate    float64 `json:"gb_per_s,omitempty"`
	OfFloor float64 `json:"of_floor_rate,omitempty"` // the time of the copy, or of the read, over this one
	Speedup float64 `json:"speedup,omitempty"`       // this time over that of fusec; of peers
	Wall    *timing `json:"wall,omitempty"`          // on the host's clock, with warm caches; with --wall
	First   float64 `json:"first_ms,omitempty"`      // until the first result: compiling, loading and one run
	Memory  int64   `json:"memory,omitempty"`        // the most bytes of the device that it held, its arguments among them
	Apart   float64 `json:"largest_error,omitempty"` // against fusec, relative to the element and its neighbours
	Note    string  `json:"note,omitempty"`
	Error   string  `json:"error,omitempty"`
	Differs string  `json:"disagreement,omitempty"`
}

func (r *benchRow) failed() bool {
	for _, x := range r.Results {
		if x.Differs != "" {
			return true
		}
	}
	return r.err != nil
}

// row runs one job.
func (r *benchRun) row(j benchJob) *benchRow {
	row := &benchRow{Op: j.Graph, DType: j.dtype, Class: j.class, Sizes: j.sizes, Device: r.device.Name(),
		Skipped: j.Skip, title: j.title(nil)}
	if j.Skip != "" {
		return row
	}
	if row.err = r.fill(row, j); row.err != nil {
		row.Error = row.err.Error()
	}
	return row
}

// loadedCase is a case that is ready to be run.
type loadedCase struct {
	function *runtime.Function
	sig      signature
	args     arguments
	shapes   map[string][]int
	call     runtime.Args
	outputs  []*tensor.Tensor // of one run
}

// fill runs a job that is not skipped.
func (r *benchRun) fill(row *benchRow, j benchJob) (err error) {
	ctx, begun := r.app.ctx, time.Now()
	k, err := r.load(j)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.function.Close()) }()
	row.Sizes, row.title, row.Bytes = k.args.sizes, j.title(k.args.sizes), k.bytes()
	defer func() { err = errors.Join(err, closeBuffers(k.call)) }()
	if err := k.firstRun(ctx, r.device); err != nil {
		return err
	}
	first := time.Since(begun)
	name, plain, floorArgs, err := r.floorOf(k)
	defer func() { err = errors.Join(err, closeBuffers(floorArgs)) }()
	if err != nil {
		return err
	}
	ours := contestantOf(k.function, k.call)
	ours.first, ours.memory = first, k.memory()
	peers, results, err := r.peers(j, k)
	if err != nil {
		return err
	}
	if len(peers) > 0 && k.hasF32() {
		row.PeerF32 = r.peer.f32
	}
	r.alternate(ctx, append([]*contestant{ours, plain}, peers...))
	if err := errors.Join(ours.err, plain.err); err != nil {
		return err
	}
	row.sumUp(ours, name, plain, peers, results)
	if r.peer != nil {
		return r.peer.unload(ctx)
	}
	return nil
}

// load compiles the case and makes its inputs up.
func (r *benchRun) load(j benchJob) (*loadedCase, error) {
	text := j.program.Text
	if j.dtype != "" {
		text = j.program.Retype(j.Case, j.dtype)
	}
	src := fusec.Source{Name: j.program.Name, Text: []byte(text), ReadFile: r.app.files.imports(j.program.Name)}
	f, err := fusec.Load(r.app.ctx, r.device, src, fusec.Options{Graph: j.Graph})
	if err != nil {
		return nil, err
	}
	k := &loadedCase{function: f, call: runtime.Args{}}
	k.sig = signatureOf(f, func() (*ir.Graph, error) { return r.app.benchGraph(src.Name, text, j.Graph) })
	if err = checkSizes(j.sizes, k.sig.symbols); err == nil {
		k.args, err = inputSpec{sizes: j.sizes, seed: r.Seed, plain: !r.Scale}.arguments(k.sig)
	}
	if err == nil {
		k.shapes, err = f.Shapes(k.args.sizes)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return k, nil
}

// memory is what a run holds of the device; 0 where the engine does not tell.
func (k *loadedCase) memory() int64 {
	p, err := k.function.Footprint(k.args.sizes)
	if err != nil || k.function.Device().Kind() == runtime.CPU {
		return 0
	}
	return p.Inputs + p.Outputs + p.Arena
}

// hasF32 reports whether a case has inputs of f32.
func (k *loadedCase) hasF32() bool {
	return slices.ContainsFunc(k.sig.inputs, func(p ir.Param) bool { return p.DType == ir.F32 })
}

// bytes is what has to move at least: each input and each output once.
func (k *loadedCase) bytes() int64 { return k.bytesOf(k.sig.inputs) + k.bytesOf(k.sig.outputs) }

func (k *loadedCase) bytesOf(params []ir.Param) int64 {
	var n int64
	for _, p := range params {
		size := int64(p.DType.Size())
		for _, d := range k.shapes[p.Name] {
			size *= int64(d)
		}
		n += size
	}
	return n
}

// firstRun brings the inputs to the device, runs, and brings the outputs back.
func (k *loadedCase) firstRun(ctx context.Context, d *runtime.Device) error {
	for i, p := range k.sig.inputs {
		b, err := d.NewBuffer(p.DType, k.shapes[p.Name]...)
		if err != nil {
			return err
		}
		k.call[p.Name] = b
		if err := b.Upload(k.args.inputs[i]); err != nil {
			return err
		}
	}
	for _, p := range k.sig.outputs {
		b, err := d.NewBuffer(p.DType, k.shapes[p.Name]...)
		if err != nil {
			return err
		}
		k.call[p.Name] = b
	}
	if err := k.function.Run(ctx, k.call); err != nil {
		return err
	}
	for _, p := range k.sig.outputs {
		x, err := k.call[p.Name].(*runtime.Buffer).Tensor()
		if err != nil {
			return err
		}
		k.outputs = append(k.outputs, x)
	}
	return nil
}

// peers readies the peer in all modes. Modes that it cannot do are not an error of
// the row; a peer that is gone is.
func (r *benchRun) peers(j benchJob, k *loadedCase) ([]*contestant, []benchResult, error) {
	if r.peer == nil || j.Torch == "" {
		return nil, nil, nil
	}
	ctx := r.app.ctx
	f32, err := r.f32Of(k)
	if err != nil {
		return nil, nil, err
	}
	if err := r.peer.load(ctx, j.Torch, f32, k.args, k.sig.inputs, k.sig.outputs, k.shapes); err != nil {
		return nil, nil, err
	}
	var all []*contestant
	var results []benchResult
	for _, mode := range r.PeerModes {
		c, result := peerContestant(r.peer, mode), benchResult{Name: mode, Note: j.Unchecked}
		begun := time.Now()
		agreed, err := r.peer.prepare(ctx, mode, k.sig.outputs, k.outputs)
		c.first = time.Since(begun)
		var refusal peerRefusal
		switch {
		case errors.As(err, &refusal):
			c.err = err
		case err != nil:
			return nil, nil, err
		case j.Unchecked == "":
			result.judge(agreed)
		}
		all, results = append(all, c), append(results, result)
	}
	return all, results, nil
}

// f32Of is how the peer is to multiply f32.
func (r *benchRun) f32Of(k *loadedCase) (string, error) {
	if r.PeerF32 != f32OfGraph {
		return r.PeerF32, nil
	}
	g, err := k.sig.graph()
	if err != nil {
		return "", err
	}
	if g.TF32 {
		return f32InTF32, nil
	}
	return f32Exact, nil
}

// judge notes how results agree. JSON has no number for an infinite distance, so only the text of the
// disagreement mentions it.
func (x *benchResult) judge(a agreement) {
	if !math.IsInf(a.worst, 1) {
		x.Apart = a.worst
	}
	if a.err != nil {
		x.Differs = a.err.Error()
	}
}

// sumUp makes results of times.
func (row *benchRow) sumUp(ours *contestant, name string, plain *contestant, peers []*contestant, results []benchResult) {
	t := newTiming(plain.ms)
	if name == "read" {
		row.Read = &t
	} else {
		row.Copy = &t
	}
	row.Results = []benchResult{row.result(benchResult{Name: "fusec"}, ours)}
	for i, c := range peers {
		x := row.result(results[i], c)
		if x.timing != nil {
			x.Speedup = x.Median / row.Results[0].Median
		}
		row.Results = append(row.Results, x)
	}
}

func (row *benchRow) result(x benchResult, c *contestant) benchResult {
	if c.err != nil {
		x.Error = c.err.Error()
		return x
	}
	t := newTiming(c.ms)
	_, floor := row.floor()
	x.timing, x.Rate, x.OfFloor = &t, t.rate(row.Bytes), floor.Median/t.Median
	x.First, x.Memory = c.first.Seconds()*1e3, c.memory
	if c.wall != nil {
		wall := newTiming(c.wall)
		x.Wall = &wall
	}
	return x
}

// floor is what the row is compared with, and its name.
func (row *benchRow) floor() (string, *timing) {
	if row.Read != nil {
		return "read", row.Read
	}
	return "copy", row.Copy
}
