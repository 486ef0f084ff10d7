package cuda

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"
)

// NVRTC is the opened CUDA C compiler. It needs no GPU and no driver. It is safe
// for concurrent use: from version 12.3 on, optimising and assembling, which is
// most of a compile, go on side by side for several goroutines; parsing, and all
// of it in older versions, takes turns inside. It stays open as long as the
// process lives.
type NVRTC struct {
	lib          *library
	location     Location
	major, minor int
	archs        []int
}

// NVRTC's entry points.
const (
	rtcVersion = iota
	rtcGetNumSupportedArchs
	rtcGetSupportedArchs
	rtcCreateProgram
	rtcDestroyProgram
	rtcCompileProgram
	rtcGetProgramLogSize
	rtcGetProgramLog
	rtcGetPTXSize
	rtcGetPTX
	rtcGetCUBINSize
	rtcGetCUBIN
	rtcCount
)

var nvrtcSymbols = [rtcCount]string{
	rtcVersion:              "nvrtcVersion",
	rtcGetNumSupportedArchs: "nvrtcGetNumSupportedArchs",
	rtcGetSupportedArchs:    "nvrtcGetSupportedArchs",
	rtcCreateProgram:        "nvrtcCreateProgram",
	rtcDestroyProgram:       "nvrtcDestroyProgram",
	rtcCompileProgram:       "nvrtcCompileProgram",
	rtcGetProgramLogSize:    "nvrtcGetProgramLogSize",
	rtcGetProgramLog:        "nvrtcGetProgramLog",
	rtcGetPTXSize:           "nvrtcGetPTXSize",
	rtcGetPTX:               "nvrtcGetPTX",
	rtcGetCUBINSize:         "nvrtcGetCUBINSize",
	rtcGetCUBIN:             "nvrtcGetCUBIN",
}

// nvrtcResults names nvrtcResult, by value.
var nvrtcResults = []string{"NVRTC_SUCCESS", "NVRTC_ERROR_OUT_OF_MEMORY",
	"NVRTC_ERROR_PROGRAM_CREATION_FAILURE", "NVRTC_ERROR_INVALID_INPUT", "NVRTC_ERROR_INVALID_PROGRAM",
	"NVRTC_ERROR_INVALID_OPTION", "NVRTC_ERROR_COMPILATION", "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
	"NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
	"NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION", "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
	"NVRTC_ERROR_INTERNAL_ERROR", "NVRTC_ERROR_TIME_FILE_WRITE_FAILED"}

// openNVRTC opens the library at a location, its builtins first: NVRTC asks the
// loader for them by name when it compiles, and finds what is loaded already.
func openNVRTC(at Location) (*NVRTC, error) {
	for _, builtins := range builtinsBeside(at.Path) {
		if _, err := dlOpen(builtins); err != nil {
			return nil, fmt.Errorf("its builtins do not open: %w", err)
		}
	}
	lib, err := openLibrary(at.Path, nvrtcSymbols[:])
	if err != nil {
		return nil, err
	}
	n := &NVRTC{lib: lib, location: at}
	return n, n.identify()
}

// identify asks for the version and the architectures, and refuses what is too old
// to make cubins or to say what it supports (11.2 is the first that does both).
func (n *NVRTC) identify() error {
	var major, minor, count int32
	if err := n.call(rtcVersion, uintptr(unsafe.Pointer(&major)), uintptr(unsafe.Pointer(&minor))); err != nil {
		return err
	}
	n.major, n.minor = int(major), int(minor)
	for symbol, name := range nvrtcSymbols {
		if !n.lib.has(symbol) {
			return fmt.Errorf("%w: version %d.%d has no %s, 11.2 or newer is needed",
				ErrMissingSymbol, major, minor, name)
		}
	}
	if err := n.call(rtcGetNumSupportedArchs, uintptr(unsafe.Pointer(&count))); err != nil {
		return err
	}
	archs := make([]int32, count+1) // one more than is filled, so that there is a first
	if err := n.call(rtcGetSupportedArchs, uintptr(unsafe.Pointer(&archs[0]))); err != nil {
		return err
	}
	for _, arch := range archs[:count] {
		n.archs = append(n.archs, int(arch))
	}
	return nil
}

// call calls an entry point: see library.call.
//
//go:uintptrescapes
func (n *NVRTC) call(symbol int, args ...uintptr) error {
	if !n.lib.has(symbol) {
		return fmt.Errorf("%w: NVRTC has no %s", ErrMissingSymbol, nvrtcSymbols[symbol])
	}
	if status := n.lib.call(symbol, args...); status != 0 {
		return fmt.Errorf("%s: %s", nvrtcSymbols[symbol], nvrtcResultName(status))
	}
	return nil
}

func nvrtcResultName(status uint32) string {
	if int(status) < len(nvrtcResults) {
		return nvrtcResults[status]
	}
	return fmt.Sprintf("NVRTC error %d", status)
}

// Location is the file that was opened, and what was looked at before it.
func (n *NVRTC) Location() Location { return n.location }

// Version is NVRTC's own version, 12.4 as (12, 4).
func (n *NVRTC) Version() (major, minor int) { return n.major, n.minor }

// Archs are the compute capabilities that NVRTC compiles for, 9.0 as 90, ascending.
func (n *NVRTC) Archs() []int { return slices.Clone(n.archs) }

// SupportsArch reports whether NVRTC compiles for an architecture as options spell
// it: sm_80, sm_90a, compute_100f.
func (n *NVRTC) SupportsArch(arch string) bool {
	_, digits, _ := strings.Cut(arch, "_")
	number := strings.TrimRight(digits, "af")
	capability, err := strconv.Atoi(number)
	if err != nil || !slices.Contains(n.archs, capability) {
		return false
	}
	switch digits[len(number):] {
	case "":
		return true
	case "a": // code for this very architecture
		return capability >= 90 && n.atLeast(12, 0)
	case "f": // code for this family of architectures
		return capability >= 100 && n.atLeast(12, 9)
	}
	return false
}

func (n *NVRTC) atLeast(major, minor int) bool {
	return n.major > major || n.major == major && n.minor >= minor
}

// optionSince: the first version that has an option. What is not listed here is in
// every version from 11.2 on, as far as this table knows.
var optionSince = map[string][2]int{
	"--minimal":       {12, 4}, // leaves out built-in declarations; quicker
	"--pch":           {12, 8}, // precompiled headers
	"--Ofast-compile": {12, 9}, // quicker compiles, slower code
	"--no-cache":      {12, 9}, // keeps NVRTC from its own disk cache
}

// SupportsOption reports whether this version has an option. What follows the name
// (=value) is ignored.
func (n *NVRTC) SupportsOption(option string) bool {
	name, _, _ := strings.Cut(option, "=")
	since, listed := optionSince[name]
	return !listed || n.atLeast(since[0], since[1])
}

// SupportedOptions is options without those that this version does not have.
func (n *NVRTC) SupportedOptions(options ...string) []string {
	var supported []string
	for _, option := range options {
		if n.SupportsOption(option) {
			supported = append(supported, option)
		}
	}
	return supported
}

// A Request is one compile.
type Request struct {
	Name    string   // of the source, for messages and line information; "" for kernel.cu
	Source  string   // CUDA C, which can include nothing
	Options []string // --gpu-architecture=sm_90a and others, passed on as they are
}

// A Result is what a compile made.
type Result struct {
	CUBIN []byte // code for the one architecture; nil if it was virtual (compute_90)
	PTX   []byte // for that architecture and, if it has no suffix, newer ones
	Log   string // warnings; "" for none
}

// A CompileError is a compile that NVRTC refused.
type CompileError struct {
	Name    string   // of the source
	Options []string // it was compiled with
	Reason  string   // NVRTC_ERROR_COMPILATION
	Log     string   // the compiler's messages
}

// Error holds the compiler's messages, which begin with the source's name.
func (e *CompileError) Error() string {
	return fmt.Sprintf("compiling %s with %s: %s\n%s", e.Name, strings.Join(e.Options, " "), e.Reason, e.Log)
}

// Compile compiles one source to a cubin and PTX in one go. It is *CompileError
// where NVRTC refuses, ErrUnsupportedArch where it does not know the architecture.
//
// NVRTC cannot be interrupted: when ctx ends first, Compile returns its error at
// once and what was begun ends in the background, unseen.
func (n *NVRTC) Compile(ctx context.Context, r Request) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	if r.Name == "" {
		r.Name = "kernel.cu"
	}
	if err := n.check(r); err != nil {
		return Result{}, err
	}
	type outcome struct {
		result Result
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		result, err := n.compile(r)
		done <- outcome{result, err}
	}()
	select {
	case out := <-done:
		return out.result, out.err
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
}

// check refuses what NVRTC would misread or explain badly.
func (n *NVRTC) check(r Request) error {
	for _, text := range append([]string{r.Name, r.Source}, r.Options...) {
		if strings.IndexByte(text, 0) >= 0 {
			return &CompileError{Name: r.Name, Options: r.Options, Reason: "invalid input",
				Log: "the name, the source or an option holds a NUL byte, where C takes it to end"}
		}
	}
	for _, option := range r.Options {
		if arch := archOf(option); arch != "" && !n.SupportsArch(arch) {
			return fmt.Errorf("%w: NVRTC %d.%d (%s) knows %v, not %s: install a newer NVRTC or compile for "+
				"an older architecture", ErrUnsupportedArch, n.major, n.minor, n.location.Path, n.archs, arch)
		}
	}
	return nil
}

// archOf is the architecture that an option names, "" if it is about something else.
func archOf(option string) string {
	for _, prefix := range []string{"--gpu-architecture=", "-arch="} {
		if arch, ok := strings.CutPrefix(option, prefix); ok {
			return arch
		}
	}
	return ""
}

func (n *NVRTC) compile(r Request) (Result, error) {
	var program uintptr
	source, name := nulTerminated(r.Source), nulTerminated(r.Name)
	err := n.call(rtcCreateProgram, uintptr(unsafe.Pointer(&program)), uintptr(unsafe.Pointer(&source[0])),
		uintptr(unsafe.Pointer(&name[0])), 0, 0, 0)
	if err != nil {
		return Result{}, err
	}
	defer n.call(rtcDestroyProgram, uintptr(unsafe.Pointer(&program)))
	status := n.runCompiler(program, r.Options)
	log, err := n.read(program, rtcGetProgramLogSize, rtcGetProgramLog)
	if err != nil {
		return Result{}, err
	}
	if status != 0 {
		return Result{}, &CompileError{Name: r.Name, Options: r.Options, Reason: nvrtcResultName(status),
			Log: strings.TrimSpace(goString(log))}
	}
	return n.results(program, strings.TrimSpace(goString(log)))
}

// runCompiler hands over the options as C does: an array of pointers to strings.
func (n *NVRTC) runCompiler(program uintptr, options []string) uint32 {
	var pinner runtime.Pinner
	defer pinner.Unpin()
	pointers := make([]uintptr, len(options)+1) // one more, so that there is a first
	for i, option := range options {
		text := nulTerminated(option)
		pinner.Pin(&text[0])
		pointers[i] = uintptr(unsafe.Pointer(&text[0]))
	}
	return n.lib.call(rtcCompileProgram, program, uintptr(len(options)), uintptr(unsafe.Pointer(&pointers[0])))
}

func (n *NVRTC) results(program uintptr, log string) (Result, error) {
	cubin, err := n.read(program, rtcGetCUBINSize, rtcGetCUBIN)
	if err != nil {
		return Result{}, err
	}
	ptx, err := n.read(program, rtcGetPTXSize, rtcGetPTX)
	if err != nil {
		return Result{}, err
	}
	return Result{CUBIN: cubin, PTX: []byte(goString(ptx)), Log: log}, nil
}

// read fetches one output of a program; nil if it has none.
func (n *NVRTC) read(program uintptr, sizeSymbol, getSymbol int) ([]byte, error) {
	var size uint64
	if err := n.call(sizeSymbol, program, uintptr(unsafe.Pointer(&size))); err != nil || size == 0 {
		return nil, err
	}
	data := make([]byte, size)
	if err := n.call(getSymbol, program, uintptr(unsafe.Pointer(&data[0]))); err != nil {
		return nil, err
	}
	return data, nil
}
