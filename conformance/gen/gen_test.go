package gen

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDrawnProgramsAreRight: the parser takes every program that is drawn, and its conditions
// hold at its sizes.
func TestDrawnProgramsAreRight(t *testing.T) {
	features, lines, python, indexed := map[string]int{}, 0, 0, 0
	for seed := range uint64(300) {
		p := Draw(seed)
		g, err := graphOf(p.Source())
		require.NoError(t, err, "seed %d:\n%s", seed, p.Source())
		_, err = Inputs(g, p.Sizes, seed, p.Hostile)
		require.NoError(t, err, p.Source())
		for _, f := range p.Features() {
			features[f]++
		}
		lines += len(p.Lines)
		for _, l := range p.Lines {
			if target, _, _ := strings.Cut(l.Text, " = "); strings.Contains(target, "[") {
				indexed++
			}
		}
		if _, ok := p.Python(); ok {
			python++
		}
		require.Equal(t, p.Source(), Draw(seed).Source(), "a seed stands for one program")
	}
	t.Logf("%d lines, %d features; the oracle reads %d programs", lines, len(features), python)
	require.Greater(t, len(features), 100)
	require.Greater(t, lines, 600)
	require.Greater(t, indexed, 100, "lines that say what each element is")
	for _, s := range shapers {
		require.Positive(t, features[s.feature], "%s is never right", s.feature)
	}
}

// TestDrawnLargeProgramsAreRight: the parser takes every one, and each core is drawn.
func TestDrawnLargeProgramsAreRight(t *testing.T) {
	for _, draw := range []func(uint64) *Program{DrawLarge, DrawTimed} {
		for seed := range uint64(200) {
			p := draw(seed)
			_, err := graphOf(p.Source())
			require.NoError(t, err, "seed %d:\n%s", seed, p.Source())
			require.Equal(t, p.Source(), draw(seed).Source(), "a seed stands for one program")
		}
	}
	for _, c := range slices.Concat(cores, windowCores) {
		right := 0
		for seed := range uint64(8) {
			if newLarge(seed).core(c) {
				right++
			}
		}
		require.NotZero(t, right, c)
	}
}

// TestShrinkKeepsTheFailure: a program that fails for one line is cut down to that line.
func TestShrinkKeepsTheFailure(t *testing.T) {
	found := 0
	for seed := uint64(0); found < 5; seed++ {
		p := Draw(seed)
		fails := func(p *Program) bool { return strings.Contains(p.Source(), "argsort") }
		if len(p.Lines) < 4 || !fails(p) {
			continue
		}
		found++
		small := Shrink(p, 500, fails)
		require.True(t, fails(small))
		require.LessOrEqual(t, len(small.Lines), 2, small.Source())
		_, err := graphOf(small.Source())
		require.NoError(t, err)
	}
}

// TestSeedsStandForOneProgram: a failure is found again by its seed.
func TestSeedsStandForOneProgram(t *testing.T) {
	for _, seed := range []uint64{3, 649, 884} { // the last two have a symbol that no input of theirs needs
		first := Draw(seed).Source()
		for range 20 {
			require.Equal(t, first, Draw(seed).Source())
		}
	}
}
