package fuse

import "github.com/fusec/fusec/ir"

// Options is all that planning may depend on. The zero value plans for an H200.
type Options struct {
	Device     ir.Device
	Specialize map[string]int64                     // sizes to bake in
	Choices    []Choice                             // what was measured on the device
	Observe    func(pass string, g *ir.Graph) error // called after every pass
}

// A Choice is the result of a measurement on a device, as an input of planning. It says that
// the sizes of one class of a kernel take another variant than the rules choose, or the same
// variant with another schedule. So a plan stays a function of its inputs. A Choice for a
// kernel that the planner no longer makes changes nothing.
type Choice struct {
	Kernel   string      // KernelID in the plan without choices
	Class    int         // position of the variant that these sizes take by the rules
	Variant  int         // position of the one that they take instead
	Schedule ir.Schedule // and its schedule: one of those that Candidates lists
}
