package train

import (
	"fmt"
	"io"

	"github.com/fusec/fusec/runtime"
)

// Planned is the memory of the device that a step needs, in bytes: the state, the gradients, a batch, and what lives between
// kernels, for which both graphs have the same room.
func (t *Trainer) Planned() (int64, error) {
	var between, kept int64
	for _, f := range []*runtime.Function{t.gradient, t.update} {
		p, err := f.Footprint(t.model.Sizes)
		if err != nil {
			return 0, err
		}
		between = max(between, p.Arena)
	}
	for _, name := range t.state.Names() {
		b, err := t.state.Buffer(name)
		if err != nil {
			return 0, err
		}
		kept += b.Bytes()
	}
	for _, b := range t.gradients {
		kept += b.(*runtime.Buffer).Bytes()
	}
	for _, b := range t.inputs {
		kept += b.Bytes()
	}
	return kept + between, nil
}

// sayMemory writes what was planned, and how much less of the device's memory is free than before the trainer was made.
func (t *Trainer) sayMemory(before uint64, out io.Writer) error {
	free, total, err := t.device.MemInfo()
	if err != nil || total == 0 { // the CPU engine does not tell
		return err
	}
	planned, err := t.Planned()
	if err != nil {
		return err
	}
	const gibibyte = 1 << 30
	fmt.Fprintf(out, "memory: %.2f GiB planned, %.2f GiB in use with the kernels' code\n", float64(planned)/gibibyte,
		(float64(before)-float64(free))/gibibyte)
	return nil
}
