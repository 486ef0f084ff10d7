package fuse

import "github.com/fusec/fusec/ir"

// Options is all that planning may depend on. The zero value plans for an H200.
type Options struct {
	Device     ir.Device
	Specialize map[string]int64                     // sizes to bake in
	Choices    []Choice                             // what was measured on the device
	Observe    func(pass string, g *ir.Graph) error // called after every pass
}

// A Choice is what a measurement on a device decided, as an input of planning: the
// sizes of one class of a kernel take another variant than the rules would give them,
// or the same one with another schedule. A plan stays a function of its inputs; a
// Choice for a kernel that the planner no longer makes changes nothing.
type Choice struct {
	Kernel   string      // KernelID in the plan without choices
	Class    int         // position of the variant that these sizes take by the rules
	Variant  int         // position of the one that they take instead
	Schedule ir.Schedule // and its schedule: one of those that Candidates lists
}
