package view

// Profile is what was measured of a graph. Times are in seconds.
type Profile struct {
	Device   string           `json:"device"`
	Sizes    map[string]int64 `json:"sizes"`
	Median   float64          `json:"median"` // of whole runs
	Min      float64          `json:"min"`
	Count    int              `json:"count"`
	Gaps     float64          `json:"gaps"` // a run, less its kernels apart; negative where they overlap
	Host     float64          `json:"host"` // what a call takes beside the run
	Upload   float64          `json:"upload"`
	Fixed    int64            `json:"fixed"`               // bytes of inputs and outputs
	CopyRate float64          `json:"copy_rate,omitempty"` // bytes a second, on the CPU engine: its only roof
	Kernels  []ProfiledKernel `json:"kernels"`             // in the order they run in
}

// ProfiledKernel is a kernel of a profile.
type ProfiledKernel struct {
	Kernel int     `json:"k"` // in the plan; -1 where it has no such kernel
	Name   string  `json:"name"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Roof   string  `json:"roof"` // what it is bound by
	OfRoof float64 `json:"of"`   // the time that this alone takes, over that measured
	Live   int64   `json:"live"` // bytes of tensors that exist while it runs
	// Counted is what the hardware has counted, each a piece of a sentence: "1.0 MiB read from memory".
	Counted []string `json:"counted,omitempty"`
}
