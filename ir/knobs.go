package ir

import (
	"fmt"
	"strings"
)

// Knobs is a set of the fields of Schedule.
type Knobs uint32

// The knobs, in the order in which plans print them.
const (
	KnobThreads Knobs = 1 << iota
	KnobRowThreads
	KnobCluster
	KnobColThreads
	KnobChain
	KnobLookBack
	KnobVector
	KnobItems
	KnobUnroll
	KnobMinBlocks
	KnobTileM
	KnobTileN
	KnobPartM
	KnobPartN
	KnobTileK
	KnobStages
	KnobRegisterChunks
	KnobRun
	KnobShared
	KnobTurns
	KnobSplitK
	KnobBlocks
	KnobDynamic
	KnobIndex64
)

// knobs has a row for each knob: its name in plans, and its value in a schedule, 0 if it is not
// set.
var knobs = []struct {
	name string
	flag bool // set or not, with no number
	of   func(*Schedule) int
}{
	{"threads", false, func(s *Schedule) int { return s.Threads }},
	{"row threads", false, func(s *Schedule) int { return s.RowThreads }},
	{"cluster", false, func(s *Schedule) int { return s.Cluster }},
	{"column threads", false, func(s *Schedule) int { return s.ColThreads }},
	{"chain", false, func(s *Schedule) int { return s.Chain }},
	{"look-back", false, func(s *Schedule) int { return s.LookBack }},
	{"vector", false, func(s *Schedule) int { return s.Vector }},
	{"items", false, func(s *Schedule) int { return s.Items }},
	{"unroll", false, func(s *Schedule) int { return s.Unroll }},
	{"blocks a multiprocessor", false, func(s *Schedule) int { return s.MinBlocks }},
	{"tile rows", false, func(s *Schedule) int { return s.TileM }},
	{"tile columns", false, func(s *Schedule) int { return s.TileN }},
	{"part rows", false, func(s *Schedule) int { return s.PartM }},
	{"part columns", false, func(s *Schedule) int { return s.PartN }},
	{"depth", false, func(s *Schedule) int { return s.TileK }},
	{"stages", false, func(s *Schedule) int { return s.Stages }},
	{"register chunks", false, func(s *Schedule) int { return s.RegisterChunks }},
	{"run", false, func(s *Schedule) int { return s.Run }},
	{"shared", false, func(s *Schedule) int { return s.Shared }},
	{"turns", false, func(s *Schedule) int { return s.Turns }},
	{"split-k", false, func(s *Schedule) int { return s.SplitK }},
	{"blocks", false, func(s *Schedule) int { return s.Blocks }},
	{"dynamic scheduler", true, func(s *Schedule) int { return flag(s.Dynamic) }},
	{"64-bit offsets", true, func(s *Schedule) int { return flag(s.Index64) }},
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// String lists the names of the knobs.
func (k Knobs) String() string {
	var names []string
	for i, knob := range knobs {
		if k&(1<<i) != 0 {
			names = append(names, knob.name)
		}
	}
	return strings.Join(names, ", ")
}

// Set returns the knobs that a schedule sets.
func (s Schedule) Set() Knobs {
	var set Knobs
	for i, knob := range knobs {
		if knob.of(&s) != 0 {
			set |= 1 << i
		}
	}
	return set
}

// accepts reports whether fits returns no error.
func (i *StrategyInfo) accepts(set Knobs) bool {
	needs := i.Needs | everyKnob
	return set&needs == needs && set&^(needs|i.Takes|anyKnobs) == 0
}

// fits checks that a schedule which sets some knobs has those that the strategy needs, and none that it
// does not take.
func (i *StrategyInfo) fits(set Knobs) error {
	needs := i.Needs | everyKnob
	if missing := needs &^ set; missing != 0 {
		return fmt.Errorf("strategy %s needs %s", i.Name, missing)
	}
	if other := set &^ (needs | i.Takes | anyKnobs); other != 0 {
		return fmt.Errorf("strategy %s does not take %s", i.Name, other)
	}
	return nil
}

// Parts is a set of the things that a kernel and a body may have beside sections and locals.
type Parts uint32

// The parts.
const (
	PartColumns Parts = 1 << iota
	PartAccumulate
	PartContract
	PartAttend
	PartSort
	PartScatter
	PartTensorMaps
	PartAcross
	PartStencil
	PartStaged
	PartRun
	PartLeast
	PartKeep
	PartEarly
	PartAhead
	PartLastBlock
)

// parts has a row for each part: its name, and whether a body has it.
var parts = []struct {
	name string
	has  func(*Kernel, *Variant) bool
}{
	{"columns", func(k *Kernel, _ *Variant) bool { return len(k.Cols) > 0 }},
	{"rows to accumulate over", func(k *Kernel, _ *Variant) bool { return len(k.Accumulated) > 0 }},
	{"a product", func(_ *Kernel, v *Variant) bool { return v.Contract != nil }},
	{"an attention", func(_ *Kernel, v *Variant) bool { return v.Attend != nil }},
	{"an order", func(_ *Kernel, v *Variant) bool { return v.Sort != nil }},
	{"a scatter", func(_ *Kernel, v *Variant) bool { return v.Scatter != nil }},
	{"tensor maps", func(_ *Kernel, v *Variant) bool { return len(v.TensorMaps) > 0 }},
	{"a range across", func(_ *Kernel, v *Variant) bool { return v.Across != nil }},
	{"a stencil", func(_ *Kernel, v *Variant) bool { return v.Stencil != nil }},
	{"staged reads", func(_ *Kernel, v *Variant) bool { return len(v.Staged) > 0 }},
	{"a run of columns", func(_ *Kernel, v *Variant) bool { return v.Run > 0 }},
	{"a least length", func(_ *Kernel, v *Variant) bool { return v.Least > 0 }},
	{"kept values", func(_ *Kernel, v *Variant) bool { return len(v.Keep) > 0 }},
	{"early reads", func(_ *Kernel, v *Variant) bool { return len(v.Early) > 0 }},
	{"reads ahead of stores", func(_ *Kernel, v *Variant) bool { return len(v.Ahead) > 0 }},
	{"a last-block reduction", func(_ *Kernel, v *Variant) bool { return v.LastBlock != nil }},
}

// String lists the names of the parts.
func (p Parts) String() string {
	var names []string
	for i, part := range parts {
		if p&(1<<i) != 0 {
			names = append(names, part.name)
		}
	}
	return strings.Join(names, ", ")
}

// suits checks that the strategy is for such a kernel and body.
func (i *StrategyInfo) suits(k *Kernel, v *Variant) error {
	var has Parts
	for at, part := range parts {
		if part.has(k, v) {
			has |= 1 << at
		}
	}
	missing, other := i.Parts&^has, has&^(i.Parts|i.May)
	switch sorts := k.Template == SortTemplate; {
	case missing != 0:
		return fmt.Errorf("strategy %s is for bodies with %s", i.Name, missing)
	case other != 0:
		return fmt.Errorf("strategy %s is not for bodies with %s", i.Name, other)
	case i.Mapping != v.Schedule.Mapping:
		return fmt.Errorf("strategy %s has %s mapping, its schedule %s mapping", i.Name, i.Mapping, v.Schedule.Mapping)
	case i.Template != LoopTemplate && i.Template != k.Template, i.Template == LoopTemplate && sorts:
		return fmt.Errorf("strategy %s is not for kernels of the %s template", i.Name, k.Template)
	}
	return nil
}
