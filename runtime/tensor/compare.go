package tensor

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/fusec/fusec/ir/num"
)

// Tolerance is how far a value may lie from the expected one: by at most
// Abs + Rel*|expected|. The zero value asks for equality.
type Tolerance struct{ Abs, Rel float64 }

// Diff is the outcome of Compare.
type Diff struct {
	Mismatches int     // elements beyond the tolerance
	MaxAbs     float64 // largest |got-want|; infinite where only one is NaN or infinite
	MaxRel     float64 // largest |got-want|/|want|, over the elements with want != 0
	First      []int   // index of the first mismatch; nil where there is none
	Got, Want  float64 // the values there
}

// OK reports whether every element lay within the tolerance.
func (d Diff) OK() bool { return d.Mismatches == 0 }

// String describes the first mismatch and the largest errors.
func (d Diff) String() string {
	if d.OK() {
		return fmt.Sprintf("equal within tolerance (max abs error %.3g, max rel error %.3g)", d.MaxAbs, d.MaxRel)
	}
	return fmt.Sprintf("%d elements differ, first at %v: got %v, want %v "+
		"(max abs error %.3g, max rel error %.3g)", d.Mismatches, d.First, d.Got, d.Want, d.MaxAbs, d.MaxRel)
}

// Equal reports whether both tensors have the same type, shape and values; NaN
// equals NaN and 0 equals -0.
func Equal(a, b *Tensor) bool {
	if a.DType != b.DType {
		return false
	}
	if bytes.Equal(a.Data, b.Data) {
		return slices.Equal(a.Shape, b.Shape)
	}
	d, err := Compare(a, b, Tolerance{})
	return err == nil && d.OK()
}

// Compare measures got against want. NaN equals NaN, and an infinity equals
// itself. The types may differ (a bf16 result against an f32 reference); where
// both are integers or bool the comparison is exact. The shapes must be equal.
func Compare(got, want *Tensor, tol Tolerance) (Diff, error) {
	for _, x := range []*Tensor{got, want} {
		if err := x.Check(); err != nil {
			return Diff{}, err
		}
	}
	if !slices.Equal(got.Shape, want.Shape) {
		return Diff{}, fmt.Errorf("shapes differ: got %v, want %v", got, want)
	}
	if !got.DType.IsFloat() && !want.DType.IsFloat() {
		return compareInts(got, want, tol), nil
	}
	return compareFloats(got, want, tol), nil
}

func compareFloats(got, want *Tensor, tol Tolerance) (d Diff) {
	var a, b [block]float64
	for at := 0; at < got.Len(); at += block {
		n := min(block, got.Len()-at)
		num.ToFloat64s(a[:n], got.DType, part(got, at, n))
		num.ToFloat64s(b[:n], want.DType, part(want, at, n))
		for i := range n {
			if a[i] != b[i] && !(a[i] != a[i] && b[i] != b[i]) {
				d.add(want, at+i, a[i], b[i], math.Abs(a[i]-b[i]), tol)
			}
		}
	}
	return d
}

// compareInts subtracts as integers: i64 values that differ by 1 may be one
// float64.
func compareInts(got, want *Tensor, tol Tolerance) (d Diff) {
	var a, b [block]int64
	for at := 0; at < got.Len(); at += block {
		n := min(block, got.Len()-at)
		num.ToInt64s(a[:n], got.DType, part(got, at, n))
		num.ToInt64s(b[:n], want.DType, part(want, at, n))
		for i := range n {
			if a[i] != b[i] {
				abs := float64(uint64(max(a[i], b[i])) - uint64(min(a[i], b[i])))
				d.add(want, at+i, float64(a[i]), float64(b[i]), abs, tol)
			}
		}
	}
	return d
}

// add counts one pair of unequal values.
func (d *Diff) add(x *Tensor, at int, got, want, abs float64, tol Tolerance) {
	if abs != abs {
		abs = math.Inf(1)
	}
	d.MaxAbs = max(d.MaxAbs, abs)
	if want != 0 && want == want {
		d.MaxRel = max(d.MaxRel, ratio(abs, math.Abs(want)))
	}
	if abs <= tol.Abs+tol.Rel*math.Abs(want) && !math.IsInf(abs, 1) {
		return
	}
	if d.Mismatches == 0 {
		d.First, d.Got, d.Want = x.Index(at), got, want
	}
	d.Mismatches++
}

func ratio(abs, want float64) float64 {
	if math.IsInf(abs, 1) {
		return abs
	}
	return abs / want
}

func part(x *Tensor, at, n int) []byte {
	size := x.DType.Size()
	return x.Data[at*size : (at+n)*size]
}
