package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/bench"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/sign"
)

// compare starts the processes, in turns, and prints the table.
func (c *startCmd) compare(a *app) (err error) {
	if _, err := firstGPU(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "fusec-start-")
	if err != nil {
		return plainPathError(err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := &starter{cmd: c, app: a, dir: dir}
	if err := s.makeBundle(); err != nil {
		return err
	}
	if _, err := s.warm(); err != nil { // fills the cache
		return err
	}
	kinds := s.kinds()
	for i := range max(c.Repeat, c.Cold) {
		for _, k := range kinds {
			if i < k.repeat {
				k.add(k.start())
			}
		}
	}
	a.ui.table([]column{col("from process start to"), number("runs"), number("median ms"), number("least"),
		number("most"), number("above the context")}, rowsOf(kinds))
	if c.Steps {
		a.ui.printf("\n%s", s.steps)
	}
	for _, k := range kinds {
		err = errors.Join(err, k.err)
	}
	return err
}

// kind is a kind of process, and what was measured of it.
type kind struct {
	name   string
	repeat int
	start  func() (time.Duration, error)
	base   *kind // what its time is compared with; nil for nothing
	times  []time.Duration
	err    error // that ended the measurements
}

// kinds are the kinds of processes, in the order in which they take turns.
func (s *starter) kinds() []*kind {
	c := s.cmd
	cold := c.Repeat
	if c.Cold >= 0 {
		cold = c.Cold
	}
	bare := &kind{name: "a bare context", repeat: c.Repeat, start: s.context}
	empty := &kind{name: "a bare context, empty environment", repeat: c.Repeat, start: s.emptyContext}
	out := []*kind{bare, {name: "fusec, warm cache", repeat: c.Repeat, start: s.warm, base: bare},
		{name: "fusec, empty cache", repeat: cold, start: s.cold, base: bare}, empty,
		{name: "fusec, a bundle, no NVRTC, empty environment", repeat: c.Repeat, start: s.bundle, base: empty}}
	if c.Peer != "" {
		out = append(out, &kind{name: "torch.compile, empty caches", repeat: 1, start: s.torch, base: bare},
			&kind{name: "torch.compile, warm caches", repeat: 1, start: s.torch, base: bare})
	}
	return out
}

// add notes a measurement; one that failed ends them.
func (k *kind) add(took time.Duration, err error) {
	if err != nil {
		k.err = fmt.Errorf("%s: %w", k.name, err)
		k.repeat = 0
		return
	}
	k.times = append(k.times, took)
}

func rowsOf(kinds []*kind) (rows [][]string) {
	for _, k := range kinds {
		switch {
		case k.err != nil:
			rows = append(rows, []string{k.name, "failed", "", "", "", ""})
			continue
		case len(k.times) == 0:
			continue
		}
		least, most := k.times[0], k.times[0]
		for _, t := range k.times {
			least, most = min(least, t), max(most, t)
		}
		rows = append(rows, []string{k.name, fmt.Sprint(len(k.times)), milliseconds(runtime.Median(k.times)),
			milliseconds(least), milliseconds(most), k.above()})
	}
	return rows
}

// above is the median of what each process took more than that of its base in the same
// turn: a machine that is slow for a while is slow for both.
func (k *kind) above() string {
	if k.base == nil {
		return ""
	}
	var more []time.Duration
	for i := range min(len(k.times), len(k.base.times)) {
		more = append(more, k.times[i]-k.base.times[i])
	}
	if len(more) == 0 {
		return ""
	}
	return milliseconds(runtime.Median(more))
}

// starter starts processes.
type starter struct {
	cmd   *startCmd
	app   *app
	dir   string
	key   string // the public key of the bundle
	colds int    // empty caches that were used
	steps string // of the last process with steps
}

func (s *starter) bundleFile() string { return filepath.Join(s.dir, "start.fbundle") }

// makeBundle bundles the program for this GPU; the warm cache then has the kernels, too.
func (s *starter) makeBundle() error {
	src, err := s.cmd.source(s.app)
	if err != nil {
		return err
	}
	dev, err := runtime.Open("cuda", runtime.Options{Cache: cache.Open(cache.Options{Off: true})})
	if err != nil {
		return err
	}
	arch := dev.Arch()
	if err := dev.Close(); err != nil {
		return err
	}
	key, err := sign.NewKey()
	if err != nil {
		return err
	}
	s.key = sign.FormatPublic(sign.Public(key))
	compiler := runtime.NewCompiler(runtime.Options{Cache: cache.Open(cache.Options{Dir: s.folder("warm")})})
	var out bytes.Buffer
	err = fusec.WriteBundle(s.app.ctx, &out, compiler,
		[]fusec.BundleGraph{{Source: src, Options: fusec.Options{Graph: s.cmd.Graph}}},
		fusec.BundleOptions{Archs: []string{arch}, Sizes: s.cmd.Size, Key: key})
	if err != nil {
		return err
	}
	return plainPathError(os.WriteFile(s.bundleFile(), out.Bytes(), 0o600))
}

func (s *starter) folder(name string) string { return filepath.Join(s.dir, name) }

func (s *starter) context() (time.Duration, error) {
	return s.fusec(s.environment(), "--probe", "context")
}

func (s *starter) warm() (time.Duration, error) {
	if s.cmd.Steps {
		return s.result(s.folder("warm"), "--steps")
	}
	return s.result(s.folder("warm"))
}

func (s *starter) cold() (time.Duration, error) {
	s.colds++
	return s.result(s.folder(fmt.Sprint("cold", s.colds)))
}

// result runs the program with a cache in a folder.
func (s *starter) result(folder string, more ...string) (time.Duration, error) {
	c := s.cmd
	args := append([]string{"--probe", "result"}, more...)
	if c.File != "" {
		args = append(args, c.File)
	}
	if c.Layers > 0 {
		args = append(args, "--layers", fmt.Sprint(c.Layers))
	}
	for _, root := range s.app.files.roots {
		args = append(args, "--import-root", root)
	}
	return s.fusec(append(s.environment(), cache.Env+"="+folder), append(args, s.selection()...)...)
}

// environment is the user's. The driver compiles nothing, so its own cache is not used.
func (*starter) environment() []string { return append(os.Environ(), "CUDA_CACHE_DISABLE=1") }

// noNVRTC is all that the environment of these processes holds: NVRTC is looked for where
// it is not, and nowhere else.
func (s *starter) noNVRTC() []string { return []string{"FUSEC_NVRTC=" + s.folder("none")} }

func (s *starter) emptyContext() (time.Duration, error) {
	return s.fusec(s.noNVRTC(), "--probe", "context")
}

func (s *starter) bundle() (time.Duration, error) {
	args := []string{"--probe", "bundle", s.bundleFile(), "--key", s.key}
	return s.fusec(s.noNVRTC(), append(args, s.selection()...)...)
}

// selection are the flags that choose a graph and its sizes.
func (s *starter) selection() (args []string) {
	if s.cmd.Graph != "" {
		args = append(args, "--graph", s.cmd.Graph)
	}
	for name, n := range s.cmd.Size {
		args = append(args, "--size", fmt.Sprintf("%s=%d", name, n))
	}
	return args
}

// fusec starts this program.
func (s *starter) fusec(env []string, args ...string) (time.Duration, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	took, rest, err := s.start(self, append([]string{"start"}, args...), env)
	if rest != "" {
		s.steps = rest
	}
	return took, err
}

// torch starts torch.compile, whose caches are in the folder of the starter.
func (s *starter) torch() (time.Duration, error) {
	script := s.folder("torch_start.py")
	if err := os.WriteFile(script, bench.TorchStart, 0o600); err != nil {
		return 0, plainPathError(err)
	}
	took, _, err := s.start(s.cmd.Python, []string{script}, append(os.Environ(),
		"TORCHINDUCTOR_CACHE_DIR="+s.folder("inductor"), "TRITON_CACHE_DIR="+s.folder("triton")))
	return took, err
}

// start runs a process, which prints on its first line how long it took.
func (s *starter) start(program string, args, env []string) (took time.Duration, rest string, err error) {
	const patience = 5 * time.Minute
	ctx, cancel := context.WithTimeout(s.app.ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	complaints := &tail{}
	cmd.Stderr = complaints
	cmd.Env = append(env, fmt.Sprintf("%s=%d", startedEnv, time.Now().UnixNano()))
	out, err := cmd.Output()
	if err != nil {
		return 0, "", fmt.Errorf("%s: %w: %s", filepath.Base(program), err, complaints.lastLine())
	}
	first, rest, _ := strings.Cut(string(out), "\n")
	ns, err := strconv.ParseInt(strings.TrimSpace(first), 10, 64)
	if err != nil {
		return 0, "", fmt.Errorf("%s: expected nanoseconds, found %.80q", filepath.Base(program), first)
	}
	return time.Duration(ns), rest, nil
}
