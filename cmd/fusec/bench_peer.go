package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fusec/fusec/bench"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/tensor"
)

// peer is another program that runs the same cases, asked over its standard input;
// bench/peers/torch_peer.py describes the protocol. One goroutine at a time may ask.
type peer struct {
	name, device string
	dir          string // for tensors; removed by close
	process      *exec.Cmd
	requests     io.WriteCloser
	replies      *bufio.Reader
	complaints   *tail
	modes        []string
	f32          string // how the present case multiplies f32
	stopped      sync.Once
	gone         bool // it has ended before its time, or talks nonsense
}

// startPeer starts a peer: torch, or a program that speaks its protocol.
func startPeer(ctx context.Context, spec, python string) (p *peer, err error) {
	dir, err := os.MkdirTemp("", "fusec-bench-")
	if err != nil {
		return nil, plainPathError(err)
	}
	p = &peer{dir: dir, complaints: &tail{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	args := []string{spec}
	if spec == "torch" {
		script := p.file("torch_peer.py")
		if err := os.WriteFile(script, bench.TorchPeer, 0o600); err != nil {
			return nil, plainPathError(err)
		}
		args = []string{python, script}
	}
	return p, p.start(ctx, args)
}

// start starts the process and asks who it is.
func (p *peer) start(ctx context.Context, args []string) (err error) {
	p.process = exec.CommandContext(ctx, args[0], args[1:]...)
	p.process.Stderr = p.complaints
	p.process.WaitDelay = time.Second // for children of its own that hold its output
	if p.requests, err = p.process.StdinPipe(); err != nil {
		return err
	}
	out, err := p.process.StdoutPipe()
	if err != nil {
		return err
	}
	p.replies = bufio.NewReader(out)
	if err := p.process.Start(); err != nil {
		return fmt.Errorf("the peer cannot be started: %w", err)
	}
	var hello struct {
		Name, Device string
		Modes        []string
	}
	if err := p.ask(ctx, map[string]any{"do": "hello"}, &hello); err != nil {
		p.stop()
		return err
	}
	p.name, p.device, p.modes = hello.Name, hello.Device, hello.Modes
	return nil
}

// ask sends a request and waits for the reply.
func (p *peer) ask(ctx context.Context, request, reply any) error {
	line, err := json.Marshal(request)
	if err != nil {
		return err
	}
	if _, err := p.requests.Write(append(line, '\n')); err != nil {
		return p.ended(ctx, err)
	}
	answer, err := p.replies.ReadBytes('\n')
	if err != nil {
		return p.ended(ctx, err)
	}
	var failure struct{ Error string }
	if err := json.Unmarshal(answer, &failure); err != nil {
		p.gone = true // its next answer may belong to any earlier question
		return fmt.Errorf("the peer: expected a JSON object, found %.80q", answer)
	}
	if failure.Error != "" {
		return peerRefusal(failure.Error)
	}
	if reply == nil {
		return nil
	}
	return json.Unmarshal(answer, reply)
}

// peerRefusal is the error of a request that the peer could not carry out. The peer goes on running.
type peerRefusal string

// Error returns the first line of the peer's message, as messages of compilers are long.
func (r peerRefusal) Error() string {
	first, _, _ := strings.Cut(string(r), "\n")
	return first
}

// ended says why a peer that should have answered is gone.
func (p *peer) ended(ctx context.Context, err error) error {
	p.gone = true
	p.stop() // after that, all of its output has been read
	switch last := p.complaints.lastLine(); {
	case ctx.Err() != nil:
		return ctx.Err()
	case last != "":
		return fmt.Errorf("the peer has ended: %s", last)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.EPIPE):
		return errors.New("the peer has ended, and has not said why")
	}
	return fmt.Errorf("the peer has ended: %w", err)
}

// stop ends the process, which ends by itself when there is nothing more to read.
// A second stop does nothing.
func (p *peer) stop() {
	const patience = 5 * time.Second
	p.stopped.Do(func() {
		p.requests.Close()
		kill := time.AfterFunc(patience, func() { p.process.Process.Kill() })
		defer kill.Stop()
		p.process.Wait() // its exit code does not matter
	})
}

// close ends the process and removes its files.
func (p *peer) close() error {
	p.stop()
	return os.RemoveAll(p.dir)
}

func (p *peer) file(name string) string { return filepath.Join(p.dir, name) }

// peerTensor describes a tensor to a peer.
type peerTensor struct {
	Name  string `json:"name"`
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
	File  string `json:"file,omitempty"`
}

// load hands a case over, with how it multiplies f32.
func (p *peer) load(
	ctx context.Context, code, f32 string, args arguments, in, out []ir.Param, shapes map[string][]int,
) error {
	inputs, outputs := []peerTensor{}, []peerTensor{}
	for i, x := range args.inputs {
		file := p.file(fmt.Sprintf("in%d", i))
		if err := os.WriteFile(file, x.Data, 0o600); err != nil {
			return plainPathError(err)
		}
		defer os.Remove(file) // it is read by then, and a suite's together are large
		inputs = append(inputs, peerTensor{in[i].Name, x.DType.String(), dimsOf(x.Shape), file})
	}
	for _, o := range out {
		outputs = append(outputs, peerTensor{Name: o.Name, DType: o.DType.String(), Shape: dimsOf(shapes[o.Name])})
	}
	p.f32 = f32
	return p.ask(ctx, map[string]any{"do": "load", "code": code, "f32": f32, "sizes": args.sizes, "inputs": inputs,
		"outputs": outputs}, nil)
}

// dimsOf is never nil, which JSON would write as null.
func dimsOf(shape []int) []int { return append([]int{}, shape...) }

// prepare compiles the case in a mode, and compares what it computes with ours.
func (p *peer) prepare(
	ctx context.Context, mode string, params []ir.Param, ours []*tensor.Tensor,
) (agreement, error) {
	var files []string
	for i := range ours {
		files = append(files, p.file(fmt.Sprintf("out%d", i)))
		defer os.Remove(files[i])
	}
	if err := p.ask(ctx, map[string]any{"do": "prepare", "mode": mode, "files": files}, nil); err != nil {
		return agreement{}, err
	}
	return agree(params, ours, files, p.f32 == f32InTF32)
}

// peerTimes are the times of runs in milliseconds, and the most bytes that the device held; 0 where
// the peer does not say.
type peerTimes struct {
	MS     []float64 `json:"ms"`
	Memory int64     `json:"memory"`
}

// time runs the case; wall asks for times on the host's clock.
func (p *peer) time(ctx context.Context, mode string, b block) (t peerTimes, err error) {
	err = p.ask(ctx, map[string]any{"do": "time", "mode": mode, "warmup": b.warmup, "repeat": b.repeat, "wall": b.wall}, &t)
	if err != nil {
		return t, err
	}
	if len(t.MS) != b.repeat {
		return t, fmt.Errorf("the peer: expected %d times, found %d", b.repeat, len(t.MS))
	}
	for _, ms := range t.MS {
		if !(ms > 0) {
			return t, fmt.Errorf("the peer: expected a time above 0, found %v ms", ms)
		}
	}
	return t, nil
}

// unload frees the case's memory on the peer's side.
func (p *peer) unload(ctx context.Context) error {
	return p.ask(ctx, map[string]any{"do": "unload"}, nil)
}

// tail keeps the end of what is written to it. It is safe for concurrent use.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

// Write keeps p.
func (t *tail) Write(p []byte) (int, error) {
	const limit = 4096
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	t.kept = t.kept[max(0, len(t.kept)-limit):]
	return len(p), nil
}

// lastLine is where Python puts what went wrong.
func (t *tail) lastLine() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := bytes.TrimSpace(t.kept)
	return string(text[bytes.LastIndexByte(text, '\n')+1:])
}
