package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/runtime/tensor"
)

// Args are the arguments of a run by the names of inputs and outputs. A value is a
// *tensor.Tensor, in host memory, or a *Buffer, in that of the function's device;
// other values are errors.
type Args map[string]any

// argument is one checked argument: host memory or a buffer.
type argument struct {
	shape  []int
	host   []byte // nil where buffer is not
	buffer *Buffer
}

// resolveInputs checks the inputs, as far as that can be done one by one, into
// out[:s.inputs].
func (s *signature) resolveInputs(d *Device, args Args, out []argument) error {
	for i := range s.params[:s.inputs] {
		if err := s.resolve(d, args, i, out); err != nil {
			return err
		}
	}
	return nil
}

// resolveOutputs checks the outputs against their shapes in b.
func (s *signature) resolveOutputs(d *Device, args Args, b *binding, scratch *callScratch) error {
	out := scratch.args
	for i := s.inputs; i < len(s.params); i++ {
		if err := s.resolve(d, args, i, out); err != nil {
			return err
		}
		p := &s.params[i]
		if !sameShape(out[i].shape, b.dims[i]) {
			return fmt.Errorf("graph %s: output %s: expected %s, found %s", s.name, p.Name,
				typeName(p.DType, b.dims[i]), typeName(p.DType, out[i].shape))
		}
	}
	if len(args) != len(s.params) {
		return s.surplus(args)
	}
	return s.overlap(out, scratch.extents)
}

func (s *signature) resolve(d *Device, args Args, i int, out []argument) error {
	p := &s.params[i]
	value, ok := args[p.Name]
	if !ok {
		if s.unknown(args) != nil { // the name may be misspelt
			return s.surplus(args)
		}
		return fmt.Errorf("graph %s: %s is missing: expected a tensor of %s", s.name, describe(p), p.DType)
	}
	arg, t, err := argumentOf(d, value)
	if err != nil {
		return fmt.Errorf("graph %s: %s: %w", s.name, describe(p), err)
	}
	out[i] = arg
	if t != p.DType {
		return fmt.Errorf("graph %s: %s: expected elements of %s, found %s", s.name, describe(p), p.DType, t)
	}
	return nil
}

// argumentOf describes a value, and acquires it if it is a buffer; callScratch.release gives
// that back.
func argumentOf(d *Device, value any) (argument, ir.DType, error) {
	switch x := value.(type) {
	case *tensor.Tensor:
		if x == nil {
			return argument{}, 0, errors.New("the tensor is nil")
		}
		if err := x.Check(); err != nil {
			return argument{}, 0, err
		}
		return argument{shape: x.Shape, host: x.Data}, x.DType, nil
	case *Buffer:
		switch {
		case x == nil:
			return argument{}, 0, errors.New("the buffer is nil")
		case x.device == nil:
			return argument{}, 0, errBufferClosed
		case x.device != d:
			return argument{}, 0, fmt.Errorf("the buffer is in the memory of another device, %s: expected %s",
				x.device.name, d.name)
		}
		return argument{shape: x.shape, buffer: x}, x.dtype, x.acquire()
	}
	return argument{}, 0, fmt.Errorf("expected a *tensor.Tensor or *runtime.Buffer, found %T", value)
}

// unknown are the names among the arguments that the graph does not have, sorted.
func (s *signature) unknown(args Args) []string {
	var out []string
	for name := range args {
		if !slices.ContainsFunc(s.params, func(p ir.Param) bool { return p.Name == name }) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// surplus names arguments that the graph does not have, and the names that may have been meant.
func (s *signature) surplus(args Args) error {
	var missing, known []string
	for _, p := range s.params {
		known = append(known, p.Name)
		if _, given := args[p.Name]; !given {
			missing = append(missing, p.Name)
		}
	}
	unknown := s.unknown(args)
	if near := diag.Nearest(unknown[0], missing); near != "" && len(unknown) == 1 {
		return fmt.Errorf("graph %s has no input or output %s: did you mean %s? It has %s", s.name, unknown[0], near,
			diag.Names(known))
	}
	return fmt.Errorf("graph %s has no input or output %s: it has %s", s.name, strings.Join(unknown, ", "),
		diag.Names(known))
}

// An extent is the addresses that an argument has.
type extent struct {
	from, to uintptr
	output   bool
}

// extent is what an argument has; empty where it has nothing. That of a buffer stands for its memory: no other argument
// has the address of the Buffer.
func (a *argument) extent() (e extent) {
	switch {
	case a.buffer != nil && a.buffer.bytes > 0:
		e.from = uintptr(unsafe.Pointer(a.buffer))
		e.to = e.from + 1
	case a.buffer == nil && len(a.host) > 0:
		e.from = uintptr(unsafe.Pointer(&a.host[0]))
		e.to = e.from + uintptr(len(a.host))
	}
	return e
}

// overlap refuses outputs that share memory with another argument: kernels assume
// that they do not. An optimizer's step has a thousand arguments, so they are sorted, in room for as many as there are, and
// only where some overlap all pairs are looked at.
func (s *signature) overlap(args []argument, room []extent) error {
	all := room[:len(args)]
	for i := range args {
		all[i] = args[i].extent()
		all[i].output = i >= s.inputs
	}
	for i := s.inputs; i < len(args); i++ {
		if at := s.states[i]; at >= 0 && s.params[i].InPlace && args[i].is(&args[at]) {
			all[at] = extent{} // what overlaps it overlaps the output
		}
	}
	slices.SortFunc(all, func(a, b extent) int { return cmp.Compare(a.from, b.from) })
	var end, ofOutputs uintptr
	for _, e := range all {
		if e.from < e.to && (e.from < ofOutputs || e.output && e.from < end) {
			return s.overlapOfPairs(args)
		}
		end = max(end, e.to)
		if e.output {
			ofOutputs = max(ofOutputs, e.to)
		}
	}
	return nil
}

// overlapOfPairs looks for the first pair that overlap refuses.
func (s *signature) overlapOfPairs(args []argument) error {
	for i := s.inputs; i < len(args); i++ {
		for j := range i {
			if !args[i].meets(&args[j]) {
				continue
			}
			switch p := &s.params[i]; {
			case p.State == "" || p.State != s.params[j].Name:
			case p.InPlace && args[i].is(&args[j]):
				continue
			case !p.InPlace:
				return fmt.Errorf("graph %s: %s and %s share memory, and the next value cannot take the place of the present one: "+
					"%s: give each its own", s.name, describe(p), describe(&s.params[j]), p.Apart)
			}
			return fmt.Errorf("graph %s: %s and %s share memory: give each its own", s.name,
				describe(&s.params[i]), describe(&s.params[j]))
		}
	}
	return nil
}

// is reports whether two arguments are exactly the same memory.
func (a *argument) is(b *argument) bool {
	if a.buffer != nil || b.buffer != nil {
		return a.buffer == b.buffer
	}
	return len(a.host) == len(b.host) && unsafe.SliceData(a.host) == unsafe.SliceData(b.host)
}

func (a *argument) meets(b *argument) bool {
	if a.buffer != nil || b.buffer != nil {
		return a.buffer == b.buffer && a.buffer.bytes > 0
	}
	if len(a.host) == 0 || len(b.host) == 0 {
		return false
	}
	from, other := uintptr(unsafe.Pointer(&a.host[0])), uintptr(unsafe.Pointer(&b.host[0]))
	return from < other+uintptr(len(b.host)) && other < from+uintptr(len(a.host))
}
