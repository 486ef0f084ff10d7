package main

import (
	"encoding/json"
	"os"
)

// traceEvent is one event of a timeline in the format that Perfetto and chrome://tracing read.
// Times are in microseconds.
type traceEvent struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"` // X: from Start on for Took; C: a counter; M: a name
	Start float64        `json:"ts"`
	Took  float64        `json:"dur,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Args  map[string]any `json:"args,omitempty"`
}

// The tracks of a timeline.
const (
	traceProcess = 1
	hostTrack    = 1
	deviceTrack  = 2
)

// events lays one run out: the upload and the call on the host's track, the kernels one behind
// the other on the device's, with what lies between them dealt out evenly, and the memory that
// is in use.
func (p *profile) events() []traceEvent {
	const micro = 1e6
	name := func(kind string, track int, text string) traceEvent {
		return traceEvent{Name: kind, Phase: "M", PID: traceProcess, TID: track, Args: map[string]any{"name": text}}
	}
	out := []traceEvent{name("process_name", 0, "fusec "+p.Graph), name("thread_name", hostTrack, "host"),
		name("thread_name", deviceTrack, p.Device)}
	at := p.Upload
	out = append(out, traceEvent{Name: "upload of the inputs", Phase: "X", Took: p.Upload * micro, PID: traceProcess, TID: hostTrack},
		traceEvent{Name: "call", Phase: "X", Start: at * micro, Took: (p.Host + p.Run.Median) * micro, PID: traceProcess, TID: hostTrack})
	at += p.Host
	gap := max(0, p.Gaps) / float64(max(1, len(p.Kernels)))
	for i, k := range p.Kernels {
		at += gap
		args := map[string]any{"kernel": i + 1, "name": k.Name, "lines": k.Lines, "bytes": k.Bytes, "flops": k.Flops, "roof": k.Roof,
			"of_roof": k.OfRoof}
		for key, v := range k.Counters {
			args["counted_"+key] = v
		}
		out = append(out, traceEvent{Name: k.Computes, Phase: "X", Start: at * micro, Took: k.Time.Median * micro,
			PID: traceProcess, TID: deviceTrack, Args: args},
			traceEvent{Name: "memory", Phase: "C", Start: at * micro, PID: traceProcess, Args: map[string]any{"bytes": k.Live}})
		at += k.Time.Median
	}
	return append(out, traceEvent{Name: "memory", Phase: "C", Start: at * micro, PID: traceProcess,
		Args: map[string]any{"bytes": p.Inputs + p.Outputs}})
}

func (p *profile) writeTrace(path string) error {
	text, err := json.MarshalIndent(map[string]any{"displayTimeUnit": "ns", "traceEvents": p.events()}, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o666)
}
