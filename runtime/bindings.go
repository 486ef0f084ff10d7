package runtime

import (
	"context"
	"fmt"
	"slices"
)

// recentBinding remembers what the shapes of inputs lead to.
type recentBinding struct {
	shapes [][]int
	*binding
}

// maxBindings is how many combinations of sizes a function remembers.
const maxBindings = 32

// bindSizes is bind for sizes by name.
func (f *Function) bindSizes(sizes map[string]int64) (*binding, error) {
	symbols := make([]int64, len(f.signature.symbols))
	for i, name := range f.signature.symbols {
		v, ok := sizes[name]
		if !ok {
			return nil, fmt.Errorf("graph %s: size %s is missing: expected one for each of %v", f.Name(), name,
				f.signature.symbols)
		}
		symbols[i] = v
	}
	return f.signature.bindSymbols(symbols)
}

func (f *Function) bindInputs(ctx context.Context, args Args, out []argument) (*binding, error) {
	if err := f.signature.resolveInputs(f.device, args, out); err != nil {
		return nil, asArgument(err)
	}
	inputs := out[:f.signature.inputs]
	if b := f.recall(inputs); b != nil {
		return b, nil
	}
	shapes := make([][]int, len(inputs))
	for i, in := range inputs {
		shapes[i] = append([]int(nil), in.shape...)
	}
	b, err := f.signature.bind(shapes)
	if err != nil {
		return nil, asArgument(err)
	}
	return f.remember(ctx, shapes, b)
}

// recall finds the binding of known shapes, nil if there is none.
func (f *Function) recall(inputs []argument) *binding {
	f.mu.Lock()
	defer f.mu.Unlock()
	for at, r := range f.recent {
		if r.fits(inputs) {
			copy(f.recent[1:at+1], f.recent[:at])
			f.recent[0] = r
			return r.binding
		}
	}
	return nil
}

func (r *recentBinding) fits(inputs []argument) bool {
	for i := range inputs {
		if !sameShape(inputs[i].shape, r.shapes[i]) {
			return false
		}
	}
	return true
}

// remember prepares a binding on the device and keeps it. If another goroutine was quicker with
// the same shapes, that goroutine's binding is used.
func (f *Function) remember(ctx context.Context, shapes [][]int, b *binding) (*binding, error) {
	if err := f.executable.bind(ctx, b); err != nil {
		return nil, fmt.Errorf("graph %s: %w", f.Name(), err)
	}
	kept, forgotten := f.keep(&recentBinding{shapes, b})
	for _, b := range forgotten {
		if err := f.executable.retire(b); err != nil {
			f.device.opts.warn(fmt.Errorf("graph %s: %w", f.Name(), err))
		}
	}
	return kept, nil
}

// keep puts a binding first in the list, unless there is one with the same shapes. It returns
// the binding that is kept, and those that are dropped.
func (f *Function) keep(fresh *recentBinding) (kept *binding, forgotten []*binding) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.recent {
		if slices.EqualFunc(r.shapes, fresh.shapes, sameShape) {
			return r.binding, []*binding{fresh.binding}
		}
	}
	rest := f.recent[:min(len(f.recent), maxBindings-1)]
	for _, r := range f.recent[len(rest):] {
		forgotten = append(forgotten, r.binding)
	}
	f.recent = append([]*recentBinding{fresh}, rest...)
	return fresh.binding, forgotten
}
