package main

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/cuda"
)

type doctorCmd struct {
	Verbose bool `short:"v" help:"Also list every place that was searched."`
}

// Help is the long help text.
func (*doctorCmd) Help() string {
	return `Looks for the CUDA driver, its devices, the NVRTC compiler and the cache, and says
what is missing with the command that mends it. A machine without a GPU is well:
programs run on the embedded engine.

Examples:

    fusec doctor -v`
}

// finding is one part of the machine.
type finding struct {
	part  string
	ok    bool
	spare bool // only an option misses it
	text  []string
	mend  string // what to do; "" where nothing need be done
}

// Run prints the findings. It fails only if nothing works at all. That cannot happen on a machine that
// runs this program, because the embedded engine needs nothing else.
func (c *doctorCmd) Run(a *app) error {
	findings := append([]finding{a.engineFinding()}, driverFindings()...)
	findings = append(findings, nvrtcFinding(c.Verbose), cuptiFinding(c.Verbose), a.cacheFinding())
	for _, f := range findings {
		mark := a.ui.style(green, "ok     ")
		switch {
		case f.spare:
			mark = a.ui.style(yellow, "absent ")
		case !f.ok:
			mark = a.ui.style(red, "missing")
		}
		a.ui.printf("%s  %s\n", mark, a.ui.style(bold, f.part))
		for _, line := range f.text {
			a.ui.printf("         %s\n", line)
		}
		if f.mend != "" {
			a.ui.printf("         %s %s\n", a.ui.style(cyan, "to mend:"), f.mend)
		}
	}
	return nil
}

func (a *app) engineFinding() finding {
	return finding{part: "embedded engine", ok: true, text: []string{
		fmt.Sprintf("fusec %s on %s/%s, %s", buildVersion(), runtime.GOOS, runtime.GOARCH,
			count(runtime.NumCPU(), "core"))}}
}

func driverFindings() []finding {
	driver, err := cuda.Open()
	if err != nil {
		return []finding{{part: "CUDA driver", text: []string{err.Error()},
			mend: "install the NVIDIA driver, or give the container the GPU (--gpus all)"}}
	}
	major, minor := driver.Version()
	version := fmt.Sprintf("CUDA %d.%d, %s", major, minor, driver.Path())
	out := []finding{{part: "CUDA driver", ok: true, text: []string{version}}}
	n, err := driver.DeviceCount()
	if err != nil || n == 0 {
		return append(out, finding{part: "devices", text: []string{"the driver sees none"},
			mend: "look at CUDA_VISIBLE_DEVICES"})
	}
	devices := finding{part: "devices", ok: true}
	for i := range n {
		devices.text = append(devices.text, deviceText(driver, i))
	}
	return append(out, devices)
}

func deviceText(driver *cuda.Driver, i int) string {
	dev, err := driver.Device(i)
	if err != nil {
		return fmt.Sprintf("cuda:%d %s", i, err)
	}
	return fmt.Sprintf("cuda:%d %s, %s, %s, %s", i, dev.Name, dev.Arch(), byteText(int64(dev.TotalMemory)),
		count(dev.Limits.SMs, "multiprocessor"))
}

func nvrtcFinding(verbose bool) finding {
	nvrtc, err := cuda.FindNVRTC(cuda.FindOptions{})
	if err != nil {
		f := finding{part: "NVRTC", text: []string{err.Error()},
			mend: "scripts/get-nvrtc (needed for kernels that are not in the cache yet)"}
		var none *cuda.NotFoundError
		switch {
		case !errors.As(err, &none):
		case verbose:
			f.text = append(f.text, trailText(none.Trail)...)
		default:
			f.text = append(f.text, "searched "+count(len(none.Trail), "place")+" (fusec doctor -v lists them)")
		}
		return f
	}
	at := nvrtc.Location()
	major, minor := nvrtc.Version()
	f := finding{part: "NVRTC", ok: true, text: []string{fmt.Sprintf("%d.%d, %s", major, minor, at.Path),
		"found in " + at.Place, "compiles for " + archsText(nvrtc.Archs())}}
	if verbose {
		f.text = append(f.text, trailText(at.Trail)...)
	}
	return f
}

// cuptiFinding looks for what counts, of no newer version than the driver.
func cuptiFinding(verbose bool) finding {
	var options cuda.FindOptions
	if driver, err := cuda.Open(); err == nil {
		options.MaxMajor, _ = driver.Version()
	}
	lib, err := cuda.FindCUPTI(options)
	if err == nil {
		return finding{part: "CUPTI", ok: true, text: []string{lib.Path() + ", for fusec profile --counters"}}
	}
	f := finding{part: "CUPTI", spare: true, text: []string{"not found; only fusec profile --counters needs it (fusec doctor -v says what to do)"}}
	if verbose {
		f.text = []string{"only fusec profile --counters needs it", err.Error()}
	}
	return f
}

func archsText(archs []int) string {
	var out []string
	for _, a := range archs {
		out = append(out, fmt.Sprintf("sm_%d", a))
	}
	return strings.Join(out, " ")
}

func trailText(trail []cuda.Attempt) []string {
	var out []string
	for _, t := range trail {
		out = append(out, fmt.Sprintf("tried %s (%s): %s", t.Path, t.Place, t.Reason))
	}
	return out
}

// cacheFinding tries the cache with an entry of its own, the same every time.
func (a *app) cacheFinding() finding {
	var warnings []string
	warn := func(err error) { warnings = append(warnings, err.Error()) }
	c := cache.Open(cache.Options{Getenv: a.getenv, OnWarning: warn})
	f := finding{part: "cache"}
	if c.Dir() == "" {
		f.text = append([]string{"nothing is kept: every process compiles its kernels again"}, warnings...)
		f.mend = fmt.Sprintf("unset %s or set it to a folder that you alone can write to", cache.Env)
		return f
	}
	key := cache.NewKey(cache.Plan).String("probe", "doctor").Sum()
	f.ok = c.Put(key, cache.Entry{})
	stats, err := c.Stats()
	if err == nil {
		full := byteText(stats.Bytes) + " of " + byteText(stats.MaxBytes)
		f.text = append(f.text, c.Dir()+": "+full)
	}
	f.text = append(f.text, warnings...)
	if !f.ok {
		f.mend = fmt.Sprintf("make %s writable (%s puts the cache elsewhere)", c.Dir(), cache.Env)
	}
	return f
}
