package runtime

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/fusec/fusec/ir"
)

// EncodeProgram returns a program in a compact binary form that DecodeProgram
// reads. The form belongs to this build of fusec: it is for caches, not for
// exchange.
func EncodeProgram(p *ir.Program) []byte {
	c := &codec{}
	c.program(p)
	return c.data
}

// DecodeProgram reads what EncodeProgram wrote. Damaged data is an error, never a
// program that does not fit together.
func DecodeProgram(data []byte) (*ir.Program, error) {
	c := &codec{data: data, reading: true}
	p := &ir.Program{}
	c.program(p)
	if c.bad || len(c.data) > 0 {
		return nil, errors.New("malformed program: it is cut short or of another version: compile it again")
	}
	return p, checkProgram(p)
}

// ProgramFormat names the form that EncodeProgram writes and what it means, for files that
// outlive a build: it changes with every field of ir.Program and with the numbers that
// operations and dtypes are stored by. programVersion covers changes that the types do not
// show.
func ProgramFormat() string {
	h := sha256.New()
	fmt.Fprintln(h, programVersion)
	describeType(h, reflect.TypeFor[ir.Program]())
	for _, op := range ir.Ops() {
		fmt.Fprintln(h, int(op), op)
	}
	for _, t := range ir.DTypes() {
		fmt.Fprintln(h, int(t), t)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// programVersion is increased when the meaning of a form changes, for instance the order of a
// kernel's parameters.
const programVersion = 2

// describeType spells a type down to its basic ones.
func describeType(w io.Writer, t reflect.Type) {
	fmt.Fprint(w, t.Kind())
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			fmt.Fprint(w, " ", t.Field(i).Name, " ")
			describeType(w, t.Field(i).Type)
		}
	case reflect.Array:
		fmt.Fprint(w, t.Len())
		describeType(w, t.Elem())
	case reflect.Slice, reflect.Pointer:
		describeType(w, t.Elem())
	}
	fmt.Fprintln(w)
}

// codec walks a program and, at each field, either appends it to data or takes it
// from there: one description serves both directions.
type codec struct {
	data    []byte
	reading bool
	bad     bool // reading has met data that writing does not produce
}

func (c *codec) program(p *ir.Program) {
	c.text(&p.Name)
	list(c, &p.Symbols, c.text)
	list(c, &p.Defaults, c.long)
	list(c, &p.Params, c.param)
	list(c, &p.Temps, c.temp)
	list(c, &p.Counters, c.size)
	list(c, &p.Divisors, c.size)
	list(c, &p.Sources, c.text)
	list(c, &p.Units, c.unit)
	list(c, &p.Launches, c.launch)
	list(c, &p.TensorMaps, c.tensorMap)
	list(c, &p.Constraints, c.check)
	list(c, &p.Checks, c.indexCheck)
}

func (c *codec) param(p *ir.Param) {
	c.text(&p.Name)
	number(c, &p.DType)
	list(c, &p.Shape, c.size)
	c.truth(&p.Output)
	c.text(&p.State)
	c.truth(&p.InPlace)
	c.text(&p.Apart)
	c.text(&p.Where)
}

func (c *codec) temp(t *ir.Temp) { c.size(&t.Bytes) }

func (c *codec) unit(u *ir.Unit) {
	c.text(&u.Entry)
	number(c, &u.Source)
	c.text(&u.Defines)
	c.truth(&u.Strict)
	c.truth(&u.LineInfo)
	number(c, &u.Shared)
	for i := range u.Block {
		number(c, &u.Block[i])
	}
	number(c, &u.Cluster)
	c.truth(&u.Resident)
	c.truth(&u.Waits)
}

func (c *codec) launch(l *ir.Launch) {
	c.text(&l.Kernel)
	c.size(&l.When)
	c.size(&l.Reads)
	c.size(&l.Writes)
	list(c, &l.Variants, c.variant)
}

func (c *codec) variant(v *ir.LaunchVariant) {
	c.size(&v.When)
	number(c, &v.Unit)
	for i := range v.Grid {
		c.size(&v.Grid[i])
	}
	list(c, &v.Args, c.arg)
}

func (c *codec) arg(a *ir.LaunchArg) {
	number(c, &a.Kind)
	number(c, &a.Index)
	c.truth(&a.Write)
}

func (c *codec) tensorMap(m *ir.TensorMap) {
	c.arg(&m.Of)
	number(c, &m.DType)
	c.size(&m.Offset)
	list(c, &m.Dims, c.size)
	list(c, &m.Strides, c.size)
	list(c, &m.Box, func(n *int) { number(c, n) })
	number(c, &m.Swizzle)
	flags := 0 // 1 for TF32, and 2 where there are steps
	if m.TF32 {
		flags = 1
	}
	if m.Steps != nil {
		flags += 2
	}
	number(c, &flags)
	if m.TF32 = flags&1 != 0; flags&2 != 0 {
		list(c, &m.Steps, func(n *int) { number(c, n) })
	}
}

func (c *codec) check(s *ir.SizeCheck) {
	c.size(&s.Cond)
	c.text(&s.Why)
	c.text(&s.Where)
}

func (c *codec) indexCheck(x *ir.IndexCheck) {
	c.text(&x.Tensor)
	number(c, &x.Axis)
	c.size(&x.Extent)
	list(c, &x.Names, c.text)
	list(c, &x.Shape, c.size)
	c.text(&x.Where)
}

func (c *codec) size(s *ir.Size) {
	list(c, (*[]ir.SizeStep)(s), c.step)
}

// step stores the value of leaves only: operations have none.
func (c *codec) step(s *ir.SizeStep) {
	number(c, &s.Op)
	if s.Op == ir.OpConst || s.Op == ir.OpSym {
		c.long(&s.Val)
	}
}

func (c *codec) long(v *int64) {
	if !c.reading {
		c.data = binary.AppendVarint(c.data, *v)
		return
	}
	n := 0
	if *v, n = binary.Varint(c.data); n <= 0 {
		c.fail()
		return
	}
	c.data = c.data[n:]
}

// number is long for smaller types; a value that does not fit is malformed.
func number[T ~uint8 | ~int](c *codec, v *T) {
	wide := int64(*v)
	c.long(&wide)
	if *v = T(wide); int64(*v) != wide {
		c.fail()
	}
}

func (c *codec) truth(v *bool) {
	wide := int64(0)
	if *v {
		wide = 1
	}
	c.long(&wide)
	*v = wide != 0
}

func (c *codec) text(s *string) {
	n := c.length(len(*s))
	if !c.reading {
		c.data = append(c.data, *s...)
		return
	}
	*s = string(c.data[:n])
	c.data = c.data[n:]
}

// length stores how many bytes or elements follow. A number that is read is bounded by the
// bytes that are left, because each element takes at least one.
func (c *codec) length(n int) int {
	wide := int64(n)
	c.long(&wide)
	if c.reading && (wide < 0 || wide > int64(len(c.data))) {
		c.fail()
		return 0
	}
	return int(wide)
}

func list[T any](c *codec, s *[]T, element func(*T)) {
	n := c.length(len(*s))
	if c.reading && n > 0 {
		*s = make([]T, n)
	}
	for i := range *s {
		if element(&(*s)[i]); c.bad {
			return
		}
	}
}

func (c *codec) fail() { c.bad, c.data = true, nil }
