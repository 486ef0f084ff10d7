package runtime

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/tensor"
)

// TestZeroValuesAreErrors calls every method of every type that can be closed, on its zero
// value: none panics, and those that can fail say that it is closed. So do those that were
// given a zero value.
func TestZeroValuesAreErrors(t *testing.T) {
	x, err := tensor.New(ir.F32, 2)
	assert.NoError(t, err)
	known := map[reflect.Type]reflect.Value{
		reflect.TypeFor[context.Context](): reflect.ValueOf(t.Context()),
		reflect.TypeFor[*tensor.Tensor]():  reflect.ValueOf(x),
		reflect.TypeFor[ir.DType]():        reflect.ValueOf(ir.F32),
		reflect.TypeFor[*Stream]():         reflect.ValueOf(new(Stream)),
		reflect.TypeFor[*Buffer]():         reflect.ValueOf(new(Buffer)),
	}
	for _, zero := range []any{new(Device), new(Function), new(Stream), new(Buffer), new(HostBuffer)} {
		v := reflect.ValueOf(zero)
		for i := range v.NumMethod() {
			name := v.Type().Elem().Name() + "." + v.Type().Method(i).Name
			m := v.Method(i)
			var in []reflect.Value
			for n := range m.Type().NumIn() {
				if m.Type().IsVariadic() && n == m.Type().NumIn()-1 {
					break
				}
				arg, ok := known[m.Type().In(n)]
				if !ok {
					arg = reflect.Zero(m.Type().In(n))
				}
				in = append(in, arg)
			}
			if name == "Device.Load" || name == "Device.LoadCompiled" || name == "Device.LoadPlan" {
				continue // which take what only a compiler makes
			}
			assert.NotPanics(t, func() {
				out := m.Call(in)
				if len(out) == 0 || v.Type().Method(i).Name == "Close" || name == "Device.Fallback" {
					return
				}
				if err, ok := out[len(out)-1].Interface().(error); ok || out[len(out)-1].Type() == reflect.TypeFor[error]() {
					assert.Error(t, err, name)
				}
			}, name)
		}
	}
	assert.ErrorIs(t, new(Function).Run(t.Context(), nil), ErrClosed)
	assert.ErrorIs(t, new(Stream).Wait(t.Context()), ErrClosed)
	assert.ErrorIs(t, new(Buffer).Upload(x), ErrClosed)
	_, err = new(Device).NewStream()
	assert.ErrorIs(t, err, ErrClosed)
}

func TestNamesOfThings(t *testing.T) {
	_, fn := loadTriple(t, Options{})
	assert.Equal(t, "triple(x: f32[N]) -> (y: f32[N])", fn.String())
	assert.Equal(t, "[x: f32[N] y: f32[N]]", fmt.Sprint(fn.Params()))
	assert.Contains(t, fn.Device().String(), "(cuda, sm_")
	assert.Equal(t, "no device", new(Device).String())
	s, err := fn.Device().NewStream()
	assert.NoError(t, err)
	assert.Contains(t, s.String(), "a stream of ")
	assert.ErrorIs(t, fn.Run(t.Context(), Args{"x": ramp(t, 4)}), ErrArgument)
	assert.ErrorIs(t, fn.Run(t.Context(), Args{"x": ramp(t, 4), "y": ramp(t, 5)}), ErrArgument)
	assert.NoError(t, fn.Run(t.Context(), Args{"x": ramp(t, 4), "y": ramp(t, 4)}))
}
