//go:build linux && !nocuda

package runtime

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

func TestEncodedProgramsReadBack(t *testing.T) {
	p := tripleProgram()
	p.Defaults, p.Params[0].Where = []int64{1 << 40}, "triple.fuse:3:4"
	got, err := DecodeProgram(EncodeProgram(p))
	require.NoError(t, err)
	assert.Equal(t, p, got)
}

// TestEveryFieldIsEncoded fills all fields there are, so that one added to
// ir.Program and forgotten here fails.
func TestEveryFieldIsEncoded(t *testing.T) {
	p, next := &ir.Program{}, int64(0)
	fill(reflect.ValueOf(p).Elem(), &next)
	c := &codec{data: EncodeProgram(p), reading: true}
	got := &ir.Program{}
	c.program(got)
	require.False(t, c.bad)
	assert.Equal(t, p, got)
}

// fill gives every field under v a value of its own.
func fill(v reflect.Value, next *int64) {
	*next++
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint(*next))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(*next)
	case reflect.Uint8:
		v.SetUint(uint64(*next % 200))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), next)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[ir.SizeStep]() { // whose value only leaves have
			v.Set(reflect.ValueOf(ir.SizeStep{Op: ir.OpSym, Val: *next}))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), next)
		}
	default:
		panic("a kind that fill does not know: " + v.Kind().String())
	}
}

// TestDamagedProgramsAreRefused cuts and changes every byte: an error or a program
// that fits together, never a panic.
func TestDamagedProgramsAreRefused(t *testing.T) {
	whole := EncodeProgram(mappedProgram())
	for i := range whole {
		_, err := DecodeProgram(whole[:i])
		assert.Error(t, err, "cut at %d", i)
		for _, flip := range []byte{1, 0x80, 0xff} {
			damaged := append([]byte(nil), whole...)
			damaged[i] ^= flip
			if p, err := DecodeProgram(damaged); err == nil {
				assert.NoError(t, checkProgram(p))
			}
		}
	}
	_, err := DecodeProgram(append(whole, 0))
	assert.Error(t, err)
}

func TestMalformedPrograms(t *testing.T) {
	for want, change := range map[string]func(*ir.Program){
		"no unit":          func(p *ir.Program) { p.Launches[0].Variants[0].Unit = 3 },
		"no source":        func(p *ir.Program) { p.Units[0].Source = -1 },
		"unknown argument": func(p *ir.Program) { p.Launches[0].Variants[0].Args[0].Index = 2 },
		"behind an output": func(p *ir.Program) { p.Params = append(p.Params, ir.Param{Name: "late"}) },
		"names no symbol":  func(p *ir.Program) { p.Temps[0].Bytes = symbol(1) },
		"is malformed":     func(p *ir.Program) { p.Constraints[0].Cond = ir.Size{{Op: ir.OpAdd}} },
		"blocks of":        func(p *ir.Program) { p.Units[0].Block[1] = 0 },
		"shared memory":    func(p *ir.Program) { p.Units[0].Shared = -1 },
		"2 defaults":       func(p *ir.Program) { p.Defaults = []int64{1, 2} },
	} {
		p := tripleProgram()
		change(p)
		assert.ErrorContains(t, checkProgram(p), want)
	}
	p := tripleProgram()
	p.Temps[0].Bytes = ir.Size{{Op: 250}}
	assert.Error(t, checkProgram(p), "an operation that there is none of")
	p.Temps[0].Bytes = ir.Size{}
	assert.Error(t, checkProgram(p), "a size without a value")
}

// TestNumbersOutsideAreRefused: whatever a program names by its number is one of those that there are.
func TestNumbersOutsideAreRefused(t *testing.T) {
	for name, of := range map[string]func(*ir.Program) (number *int, count int){
		"source": func(p *ir.Program) (*int, int) { return &p.Units[0].Source, len(p.Sources) },
		"unit":   func(p *ir.Program) (*int, int) { return &p.Launches[0].Variants[0].Unit, len(p.Units) },
	} {
		_, count := of(tripleProgram())
		for n := -1; n <= count; n++ {
			p := tripleProgram()
			number, _ := of(p)
			*number = n
			assert.Equal(t, n < 0 || n == count, checkProgram(p) != nil, "%s %d of %d", name, n, count)
		}
	}
}

// largeProgram has 60 kernels of their own, of the length of generated ones.
func largeProgram() *ir.Program {
	p := tripleProgram()
	unit, launch := p.Units[0], p.Launches[1]
	p.Sources, p.Units, p.Launches = nil, nil, nil
	for i := range 60 {
		unit.Source = i
		p.Sources = append(p.Sources, strings.Repeat(twiceText, 80))
		p.Units = append(p.Units, unit, unit, unit)
		p.Launches = append(p.Launches, launch)
	}
	return p
}

func TestDecodingIsQuick(t *testing.T) {
	data := EncodeProgram(largeProgram())
	best := time.Hour
	for range 10 { // the machine may be busy with something else
		start := time.Now()
		_, err := DecodeProgram(data)
		require.NoError(t, err)
		best = min(best, time.Since(start))
	}
	assert.Less(t, best, slowness*3*time.Millisecond)
}

func BenchmarkDecodeProgram(b *testing.B) {
	data := EncodeProgram(largeProgram())
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := DecodeProgram(data); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzDecodeProgram(f *testing.F) {
	f.Add(EncodeProgram(tripleProgram()))
	f.Fuzz(func(t *testing.T, data []byte) {
		if p, err := DecodeProgram(data); err == nil {
			require.NoError(t, checkProgram(p))
		}
	})
}

func TestPlanCache(t *testing.T) {
	type options struct{ Strict bool }
	dir, p := t.TempDir(), tripleProgram()
	c := NewPlanCache(newCache(t, dir))
	r := Request{Name: "a.fuse", Source: []byte("graph ..."), Options: options{}, Device: ir.Devices()[0]}
	files := map[string][]byte{"lib.fuse": []byte("fn ...")}
	read := func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return text, nil
		}
		return nil, os.ErrNotExist
	}
	_, ok := c.Get(r, read)
	require.False(t, ok)
	c.Put(r, files, p)
	got, ok := NewPlanCache(newCache(t, dir)).Get(r, read)
	require.True(t, ok)
	assert.Equal(t, p, got)

	for name, change := range map[string]func(*Request){
		"source":  func(r *Request) { r.Source = []byte("graph") },
		"graph":   func(r *Request) { r.Graph = "g" },
		"name":    func(r *Request) { r.Name = "b.fuse" },
		"options": func(r *Request) { r.Options = options{true} },
		"device":  func(r *Request) { r.Device.SMs++ },
	} {
		other := r
		change(&other)
		_, ok := c.Get(other, read)
		assert.False(t, ok, name)
	}
	files["lib.fuse"] = []byte("fn changed")
	_, ok = c.Get(r, read)
	assert.False(t, ok, "an import has changed")
	delete(files, "lib.fuse")
	_, ok = c.Get(r, read)
	assert.False(t, ok, "an import is gone")
	_, ok = c.Get(r, nil)
	assert.False(t, ok, "no imports allowed")
}

func TestImportsThatAreDamaged(t *testing.T) {
	read := func(name string) ([]byte, error) { return map[string][]byte{"b": []byte("x")}[name], nil }
	for _, first := range []string{"", "a"} { // no name is as good as any
		whole := encodeImports(map[string][]byte{first: nil, "b": []byte("x")})
		require.True(t, importsSame(whole, read))
		for i := 1; i < len(whole); i++ {
			ends := i == 1+len(first)+sha256.Size // the first one
			assert.Equal(t, ends, importsSame(whole[:i], read), "%q, cut at %d", first, i)
		}
	}
	whole := encodeImports(map[string][]byte{"b": []byte("x")})
	for _, length := range []uint64{0, 2, 3, math.MaxInt64, math.MaxUint64 - sha256.Size, math.MaxUint64} {
		assert.False(t, importsSame(append(binary.AppendUvarint(nil, length), whole[1:]...), read), "a name of %d bytes", length)
	}
	assert.False(t, importsSame(whole, func(string) ([]byte, error) { return nil, errors.New("gone") }))
}

func TestBuildIdentity(t *testing.T) {
	id := buildIdentity()
	assert.NotEmpty(t, id)
	assert.Equal(t, id, buildIdentity())
	assert.Empty(t, linkerID(t.TempDir()))
}
