package runtime

import "fmt"

// A Footprint is what a run needs of the device's memory, in bytes.
type Footprint struct {
	Inputs, Outputs int64 // the arguments; they are also in the arena if they are host tensors
	Arena           int64 // memory for tensors between kernels; 0 on the CPU engine, which does not report it
	Least           int64 // the most bytes of the arena that live at one time: no arena can be smaller
}

// Footprint returns what a run with the given sizes needs, with arguments in buffers. It
// loads nothing.
func (f *Function) Footprint(sizes map[string]int64) (Footprint, error) {
	if f.device == nil {
		return Footprint{}, errNotLoaded
	}
	b, err := f.bindSizes(sizes)
	if err != nil {
		return Footprint{}, err
	}
	p, err := f.executable.footprint(b)
	if err != nil {
		return Footprint{}, fmt.Errorf("graph %s: %w", f.Name(), err)
	}
	for i, bytes := range b.bytes {
		if f.signature.params[i].Output {
			p.Outputs += bytes
		} else {
			p.Inputs += bytes
		}
	}
	return p, nil
}
