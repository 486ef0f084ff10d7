package runtime

import (
	"context"
	_ "embed" // the text of the kernels
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cuda"
)

//go:embed probe.cu
var probeText string

// The kernels of probe.cu, as units of a program.
const (
	probeRead = iota
	probeWait
	probeNothing
)

// probeThreads is the threads of a block of the kernels that fill the device.
const probeThreads = 512

// probeProgram is probe.cu as a program, so that its kernels are compiled and kept as all others are.
func probeProgram() *ir.Program {
	block := func(threads int) [3]int { return [3]int{threads, 1, 1} }
	return &ir.Program{Name: "probe", Sources: []string{probeText}, Units: []ir.Unit{
		probeRead:    {Entry: "fusec_read", Block: block(probeThreads)},
		probeWait:    {Entry: "fusec_wait", Block: block(1)},
		probeNothing: {Entry: "fusec_nothing", Block: block(probeThreads)},
	}}
}

// A probe is the kernels that the runtime runs itself in order to measure others. It belongs to a
// gpu, and is made when first asked for.
type probe struct {
	mu       sync.Mutex
	program  *gpuProgram                    // nil until it is made
	launches [probeNothing + 1]*cuda.Launch // valid then
}

// ready loads the kernels, the first time. It fails where they are not stored and cannot be compiled.
func (p *probe) ready(ctx context.Context, g *gpu) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.program != nil {
		return nil
	}
	text := probeProgram()
	x := &gpuProgram{gpu: g, program: text, kernels: g.kernelSource(nil), arch: archOf(g.device), units: make([]gpuUnit, len(text.Units))}
	for unit, u := range text.Units {
		if err := p.load(ctx, x, unit, u); err != nil {
			return errors.Join(fmt.Errorf("kernel %s: %w", u.Entry, err), x.close())
		}
	}
	p.program = x
	return nil
}

func (p *probe) load(ctx context.Context, x *gpuProgram, unit int, u ir.Unit) error {
	if _, err := x.loadUnit(ctx, unit); err != nil {
		return err
	}
	config := cuda.LaunchConfig{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{uint32(u.Block[0]), 1, 1}}
	if limits := x.gpu.device.Limits; unit != probeWait { // as many blocks as there is room for, as a kernel that is measured has
		config.Grid[0] = uint32(max(1, limits.SMs*max(1, limits.MaxThreadsPerSM/probeThreads)))
	}
	var err error
	p.launches[unit], err = x.units[unit].function.Launch(config)
	return err
}

func (p *probe) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.program == nil {
		return nil
	}
	x := p.program
	p.program = nil
	return x.close()
}

// read queues the reading of zeros, which replaces what is in the L2 cache.
func (p *probe) read(s *cuda.Stream, zeros block) error {
	const vector = 16
	params := cuda.NewParams(8, 8)
	params.SetPointer(0, zeros.at)
	params.SetInt64(1, zeros.bytes/vector)
	return p.launches[probeRead].RunCurrent(s, params)
}

// wait queues a time in which the stream does nothing else.
func (p *probe) wait(s *cuda.Stream, d time.Duration) error {
	params := cuda.NewParams(8)
	params.SetInt64(0, d.Nanoseconds())
	return p.launches[probeWait].RunCurrent(s, params)
}

// The time in which the host surely queues a launch with an event, and what a run has beside its launches.
const (
	queueLaunch = 10 * time.Microsecond
	queueRun    = 30 * time.Microsecond
)

// eventTime is how much longer two events with a launch between them are apart than the launch
// takes. Launches of an empty kernel that fills the device take a certain time each, one behind the other; what is left
// between the events when that is subtracted for all of them is the events' own.
func (p *probe) eventTime(s *cuda.Stream, start, end *cuda.Event) (time.Duration, error) {
	const rounds, many = 9, 9
	var one, more []time.Duration
	for range rounds {
		for _, of := range []struct {
			launches int
			times    *[]time.Duration
		}{{1, &one}, {many, &more}} {
			took, err := p.timeNothing(s, of.launches, start, end)
			if err != nil {
				return 0, err
			}
			*of.times = append(*of.times, took)
		}
	}
	launch := (Median(more) - Median(one)) / (many - 1)
	return max(0, Median(one)-launch), nil
}

// timeNothing is the time between two events with launches of an empty kernel between them.
func (p *probe) timeNothing(s *cuda.Stream, launches int, start, end *cuda.Event) (time.Duration, error) {
	if err := errors.Join(p.wait(s, queueRun+time.Duration(launches)*queueLaunch), start.Record(s)); err != nil {
		return 0, err
	}
	for range launches {
		if err := p.launches[probeNothing].RunCurrent(s, nil); err != nil {
			return 0, err
		}
	}
	if err := errors.Join(end.Record(s), end.Synchronize()); err != nil {
		return 0, err
	}
	return between(start, end)
}
