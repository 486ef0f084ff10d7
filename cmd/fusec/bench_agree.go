package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/tensor"
)

// peerTolerance is how far the results of two sound programs may lie apart, relative
// to an element and its neighbours. Eager mode rounds every intermediate value to the
// type, so that a few units in the last place add up; f32 sums differ by their order. Where both multiply
// f32 in tf32, whose factors have 11 significant bits, each rounds these in its own way.
func peerTolerance(t ir.DType, tf32 bool) float64 {
	const units, order, epsilonTF32 = 8, 1e-4, 1.0 / 1024
	switch {
	case !t.IsFloat():
		return 0
	case tf32 && t.Size() >= ir.F32.Size():
		return units * epsilonTF32
	}
	return max(units*t.Info().Epsilon, order)
}

// agreement is how a peer's results compare with ours.
type agreement struct {
	worst float64 // largest difference, relative to the element and the root mean square, of all or of its row
	err   error   // the first disagreement
}

// agree compares the outputs with the files that a peer has written them to; tf32 says that f32 was multiplied so.
func agree(params []ir.Param, ours []*tensor.Tensor, files []string, tf32 bool) (agreement, error) {
	var out agreement
	for i, x := range ours {
		data, err := os.ReadFile(files[i])
		if err != nil {
			return out, fmt.Errorf("the peer's output %s: %w", params[i].Name, plainPathError(err))
		}
		theirs, err := tensor.FromBytes(x.DType, data, x.Shape...)
		if err != nil {
			return out, fmt.Errorf("the peer's output %s: %w", params[i].Name, err)
		}
		tolerance := peerTolerance(x.DType, tf32)
		d := differences(x, theirs)
		out.worst = max(out.worst, d.worst)
		if d.worst > tolerance && out.err == nil {
			out.err = fmt.Errorf("output %s%v: fusec has %v, the peer %v: more than %.2g apart", params[i].Name,
				x.Index(d.at), x.At(x.Index(d.at)...), theirs.At(x.Index(d.at)...), tolerance)
		}
	}
	return out, nil
}

// difference is the worst element of a part of a tensor.
type difference struct {
	worst float64
	at    int
}

// differences finds the element that is the farthest off, part by part on all cores. Roundings are of the size of an element's
// neighbours: some rows may be larger than most, as are those of the first keys in the gradients of causal attention.
func differences(ours, theirs *tensor.Tensor) difference {
	scale, rows, length := rootMeanSquareOf(theirs), rowScales(theirs), lengthOf(theirs)
	var mu sync.Mutex
	var worst difference
	forParts(ours.Len(), func(from, to int) {
		d := difference{}
		a, b := floatsOf(ours, from, to), floatsOf(theirs, from, to)
		for i := range a {
			gap := distance(a[i], b[i])
			if gap == 0 {
				continue
			}
			if gap /= math.Abs(b[i]) + max(scale, rows[(from+i)/length]); !(gap <= d.worst) { // NaN, of an infinity, is worse than any
				d = difference{orInfinite(gap), from + i}
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if d.worst > worst.worst {
			worst = d
		}
	})
	return worst
}

func orInfinite(x float64) float64 {
	if x != x {
		return math.Inf(1)
	}
	return x
}

// lengthOf is the elements of a row.
func lengthOf(x *tensor.Tensor) int {
	if len(x.Shape) == 0 {
		return 1
	}
	return max(x.Shape[len(x.Shape)-1], 1)
}

// rowScales is the root mean square of each row.
func rowScales(x *tensor.Tensor) []float64 {
	length := lengthOf(x)
	out := make([]float64, x.Len()/length)
	forParts(len(out), func(from, to int) {
		for row := from; row < to; row++ {
			sum, n := squares(floatsOf(x, row*length, (row+1)*length))
			out[row] = math.Sqrt(sum / float64(max(n, 1)))
		}
	})
	return out
}

// squares adds up the squares of what is finite, and counts it.
func squares(values []float64) (sum float64, n int) {
	for _, v := range values {
		if v-v == 0 {
			sum, n = sum+v*v, n+1
		}
	}
	return sum, n
}

// rootMeanSquareOf leaves out what is not finite.
func rootMeanSquareOf(x *tensor.Tensor) float64 {
	var mu sync.Mutex
	sum, n := 0.0, 0
	forParts(x.Len(), func(from, to int) {
		part, finite := squares(floatsOf(x, from, to))
		mu.Lock()
		defer mu.Unlock()
		sum, n = sum+part, n+finite
	})
	return math.Sqrt(sum / float64(max(n, 1)))
}

// forParts calls visit for the parts of n elements, side by side.
func forParts(n int, visit func(from, to int)) {
	const part = 1 << 16
	var begun atomic.Int64
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (n+part-1)/part) {
		group.Go(func() {
			for from := int(begun.Add(part)) - part; from < n; from = int(begun.Add(part)) - part {
				visit(from, min(from+part, n))
			}
		})
	}
	group.Wait()
}

func floatsOf(x *tensor.Tensor, from, to int) []float64 {
	size := x.DType.Size()
	part := tensor.Tensor{DType: x.DType, Shape: []int{to - from}, Data: x.Data[from*size : to*size]}
	return part.Floats()
}
