package tensor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fusec/fusec/ir"
)

// descrOf returns NumPy's name of a type. NumPy itself has no bf16 and f8: what
// ml_dtypes adds is written as raw bytes, and so is it here.
func descrOf(t ir.DType) string {
	switch t {
	case ir.Bool:
		return "|b1"
	case ir.U8:
		return "|u1"
	case ir.I8:
		return "|i1"
	case ir.I16:
		return "<i2"
	case ir.I32:
		return "<i4"
	case ir.U32:
		return "<u4"
	case ir.I64:
		return "<i8"
	case ir.F16:
		return "<f2"
	case ir.BF16:
		return "<V2"
	case ir.F8E4M3, ir.F8E5M2:
		return "|V1"
	case ir.F32:
		return "<f4"
	case ir.F64:
		return "<f8"
	}
	panic(fmt.Sprintf("BUG: tensor: no .npy descr for %v", t))
}

// descrTypes maps what a descr says after the byte order to the types it can hold, the first
// being the one taken where none is expected. Raw bytes have no type of their own.
func descrTypes(code string) (types []ir.DType, raw, ok bool) {
	switch code {
	case "b1", "?":
		return []ir.DType{ir.Bool}, false, true
	case "u1", "B":
		return []ir.DType{ir.U8, ir.F8E4M3, ir.F8E5M2}, false, true
	case "i1", "b":
		return []ir.DType{ir.I8}, false, true
	case "i2":
		return []ir.DType{ir.I16}, false, true
	case "i4":
		return []ir.DType{ir.I32}, false, true
	case "u4":
		return []ir.DType{ir.U32}, false, true
	case "i8":
		return []ir.DType{ir.I64}, false, true
	case "f2":
		return []ir.DType{ir.F16}, false, true
	case "f4":
		return []ir.DType{ir.F32}, false, true
	case "f8":
		return []ir.DType{ir.F64}, false, true
	case "bfloat16":
		return []ir.DType{ir.BF16}, false, true
	case "float8_e4m3fn":
		return []ir.DType{ir.F8E4M3}, false, true
	case "float8_e5m2":
		return []ir.DType{ir.F8E5M2}, false, true
	case "V2", "u2":
		return []ir.DType{ir.BF16, ir.F16}, true, true
	case "V1":
		return []ir.DType{ir.F8E4M3, ir.F8E5M2}, true, true
	}
	return nil, false, false
}

// resolve returns the type that the elements described by descr are read as, and
// whether their bytes are in big-endian order. want is the type expected, or
// ir.Invalid.
func resolve(descr string, want ir.DType) (t ir.DType, big bool, err error) {
	code := strings.TrimLeft(descr, "<>|=")
	if len(descr)-len(code) > 1 {
		code = descr
	}
	if strings.HasPrefix(code, "O") {
		return 0, false, fmt.Errorf("object arrays (descr %q) hold pickled Python objects, "+
			"which are never loaded: store a numeric array", descr)
	}
	types, raw, ok := descrTypes(code)
	if !ok {
		return 0, false, fmt.Errorf("element type %.20q is not supported: convert the array to one of f2 f4 f8 "+
			"i1 i2 i4 i8 u1 u4 b1", descr)
	}
	t, err = choose(descr, types, raw, want)
	return t, descr[0] == '>' && t.Size() > 1, err
}

func choose(descr string, types []ir.DType, raw bool, want ir.DType) (ir.DType, error) {
	if want == ir.Invalid {
		if raw {
			return 0, fmt.Errorf("elements of descr %q are raw bytes, which can be %s: say which is expected",
				descr, names(types, " or "))
		}
		return types[0], nil
	}
	if slices.Contains(types, want) {
		return want, nil
	}
	if _, ok := ir.DTypeNamed(want.String()); !ok {
		return 0, fmt.Errorf("expected element type %v cannot be stored in a tensor", want)
	}
	return 0, fmt.Errorf("expected elements of type %v (descr %q), found descr %q (%s)%s",
		want, descrOf(want), descr, names(types, " or "), numpyCast(want))
}

// numpyCast says how NumPy, whose numbers are f64 and i64 where nothing else is said, makes elements of a type; "" for types
// that it does not have.
func numpyCast(t ir.DType) string {
	descr := descrOf(t)
	kind, ok := map[byte]string{'f': "float", 'i': "int", 'u': "uint"}[descr[1]]
	switch {
	case t == ir.Bool:
		return `: in NumPy, save x.astype("bool")`
	case ok:
		return fmt.Sprintf(`: in NumPy, save x.astype("%s%d")`, kind, 8*t.Size())
	}
	return ""
}

func names(types []ir.DType, sep string) string {
	s := make([]string, len(types))
	for i, t := range types {
		s[i] = t.String()
	}
	return strings.Join(s, sep)
}
