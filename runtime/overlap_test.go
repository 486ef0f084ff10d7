package runtime

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// drawnArguments are a signature and arguments for it, some of which share memory.
func drawnArguments(draw *rand.Rand) (signature, []argument) {
	var params []ir.Param
	inputs, outputs := 1+draw.IntN(4), 1+draw.IntN(4)
	for i := range inputs {
		params = append(params, ir.Param{Name: fmt.Sprint("i", i)})
	}
	for i := range outputs {
		p := ir.Param{Name: fmt.Sprint("o", i), Output: true}
		if draw.IntN(2) == 0 {
			p.State, p.InPlace = fmt.Sprint("i", draw.IntN(inputs)), draw.IntN(4) > 0
		}
		params = append(params, p)
	}
	host := make([]byte, 64)
	buffers := []*Buffer{{bytes: 4}, {bytes: 4}, {bytes: 4}, {bytes: 4}, {bytes: 4}, {}}
	args := make([]argument, len(params))
	for i := range args {
		from := draw.IntN(60)
		switch {
		case draw.IntN(2) == 0:
			args[i].buffer = buffers[draw.IntN(len(buffers))]
		default:
			args[i].host = host[from : from+draw.IntN(5)]
		}
		if p := params[i]; p.State != "" && draw.IntN(2) == 0 {
			for j := range inputs {
				if params[j].Name == p.State {
					args[i] = args[j]
				}
			}
		}
	}
	return newSignature("g", nil, params, nil), args
}

// TestOverlapIsFound: arguments overlap where some pair of them does.
func TestOverlapIsFound(t *testing.T) {
	draw, refused := rand.New(rand.NewPCG(1, 2)), 0
	for range 20000 {
		s, args := drawnArguments(draw)
		want := s.overlapOfPairs(args)
		require.Equal(t, want, s.overlap(args, make([]extent, len(args))))
		if want != nil {
			refused++
		}
	}
	require.Greater(t, refused, 2000)
	require.Less(t, refused, 18000)
}

// BenchmarkOverlap is the check of an optimizer's step for a model of 12 layers.
func BenchmarkOverlap(b *testing.B) {
	var params []ir.Param
	var args []argument
	for i := range 740 {
		params, args = append(params, ir.Param{Name: fmt.Sprint(i)}), append(args, argument{buffer: &Buffer{bytes: 4}})
	}
	for i := range 592 {
		params = append(params, ir.Param{Name: fmt.Sprint(i), Output: true, State: fmt.Sprint(i), InPlace: true})
		args = append(args, args[i])
	}
	s, order := newSignature("g", nil, params, nil), make([]extent, len(args))
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			if s.overlap(args, order) != nil {
				b.Fatal("they overlap")
			}
		}
	})
	b.Run("pairs", func(b *testing.B) {
		for b.Loop() {
			if s.overlapOfPairs(args) != nil {
				b.Fatal("they overlap")
			}
		}
	})
}
