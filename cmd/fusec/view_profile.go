package main

import (
	"fmt"

	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/internal/view"
	"github.com/fusec/fusec/ir"
)

// takeProfile makes the command that of what --profile measured: its graph, at its sizes, planned for its device.
func (c *viewCmd) takeProfile() error {
	if c.Profile == "" {
		return nil
	}
	if len(c.Size) > 0 {
		return usagef("--size and --profile: the sizes are those of the profile")
	}
	p, err := readProfile("--profile", c.Profile)
	if err != nil {
		return err
	}
	if c.Graph != "" && c.Graph != p.Graph {
		return usagef("--profile %s is of graph %s, --graph is %s", c.Profile, p.Graph, c.Graph)
	}
	if p.Figures.Name == "" {
		return fmt.Errorf("--profile %s: the figures of its device are missing: make it again with this fusec", c.Profile)
	}
	if c.PTX && p.CopyRate > 0 {
		return usagef("--ptx: %s is of the CPU engine, for which nothing is compiled", c.Profile)
	}
	c.profile, c.Graph, c.Size = p, p.Graph, p.Sizes
	return nil
}

// device is what the page's kernels are planned for.
func (c *viewCmd) device() (ir.Device, error) {
	if c.profile != nil {
		return c.profile.Figures, nil
	}
	return ir.DeviceNamed(c.DeviceFigures)
}

// onCPU reports whether the page is of the CPU engine, which runs the plan and no CUDA text.
func (c *viewCmd) onCPU() bool { return c.profile != nil && c.profile.CopyRate > 0 }

// estimatedFor is the GPU of the page's estimates: the one that is planned for. The CPU engine plans with a large GPU's figures.
func estimatedFor(device ir.Device) ir.Device {
	if device.Arch == "" {
		return ir.Devices()[0]
	}
	return device
}

// choices are those of fusec tune that were in force when the profile was made.
func (c *viewCmd) choices(a *app) []fuse.Choice {
	if c.profile == nil {
		return nil
	}
	return measured(a.openCache(), c.profile.Figures)
}

// profileOf is the profile as the page has it, and what no longer belongs to the plan.
func (c *viewCmd) profileOf(a *app, plan *ir.Plan) *view.Profile {
	p := c.profile
	if p == nil {
		return nil
	}
	places := map[string]int{}
	for i, k := range plan.Kernels {
		places[k.Name] = i
	}
	out := &view.Profile{Device: p.Device, Sizes: p.Sizes, Median: p.Run.Median, Min: p.Run.Min, Count: p.Run.Count, Gaps: p.Gaps,
		Host: p.Host, Upload: p.Upload, Fixed: p.Inputs + p.Outputs, CopyRate: p.CopyRate, Kernels: []view.ProfiledKernel{}}
	for _, k := range p.Kernels {
		at, ok := places[k.Name]
		if !ok {
			at = -1
			a.ui.notef("%s: the program has no kernel %s: it was another one when it was measured", c.Profile, k.Name)
		}
		out.Kernels = append(out.Kernels, view.ProfiledKernel{Kernel: at, Name: k.Name, Median: k.Time.Median, Min: k.Time.Min,
			Roof: k.Roof, OfRoof: k.OfRoof, Live: k.Live, Counted: k.countersWords()})
	}
	return out
}
