package ir

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestStrategiesAreToldApart: every strategy is described, and has a schedule that is no other strategy's.
func TestStrategiesAreToldApart(t *testing.T) {
	names := map[string]bool{}
	for _, s := range Strategies() {
		info := s.Info()
		assert.NotEmpty(t, info.Name)
		assert.NotEmpty(t, info.Doc, info.Name)
		assert.False(t, names[info.Name], "%s is twice in the table", info.Name)
		names[info.Name] = true
		assert.Zero(t, info.Parts&info.May, "%s needs what it may have", info.Name)
		assert.Zero(t, (info.Needs|info.Takes)&anyKnobs, "%s takes a knob that all take", info.Name)
		assert.Zero(t, info.Needs&info.Takes, "%s needs what it takes", info.Name)
		k := &Kernel{}
		if info.Parts&PartColumns != 0 {
			k.Cols = []*Range{{}}
		}
		if info.Parts&PartAccumulate != 0 {
			k.Accumulated = k.Cols
		}
		for _, set := range []Knobs{info.Needs, info.Needs | info.Takes} {
			assert.Equal(t, s, StrategyOf(k, scheduleWith(info.Mapping, set|everyKnob)), "of %s with %s", info.Name, set)
		}
	}
}

// TestStrategiesRefuse: a schedule without a knob that its strategy needs, or with one that it does not
// take, is refused, and so is a body with parts of another strategy's.
func TestStrategiesRefuse(t *testing.T) {
	for _, s := range Strategies() {
		info := s.Info()
		needs := info.Needs | everyKnob
		require.NoError(t, info.fits(needs|info.Takes|anyKnobs), info.Name)
		for i, knob := range knobs {
			switch at := Knobs(1) << i; {
			case needs&at != 0:
				assert.ErrorContains(t, info.fits(needs&^at), "needs "+knob.name, info.Name)
			case (info.Takes|anyKnobs)&at == 0:
				assert.ErrorContains(t, info.fits(needs|at), "does not take "+knob.name, info.Name)
			}
		}
		for i, part := range parts {
			switch at := Parts(1) << i; {
			case info.Parts&at != 0:
				assert.ErrorContains(t, suitsWith(info, info.Parts&^at), "is for bodies with "+part.name, info.Name)
			case info.May&at == 0:
				assert.ErrorContains(t, suitsWith(info, info.Parts|at), "is not for bodies with "+part.name, info.Name)
			}
		}
		assert.NoError(t, suitsWith(info, info.Parts|info.May), info.Name)
	}
}

// suitsWith asks a strategy about a body that has some parts.
func suitsWith(info *StrategyInfo, has Parts) error {
	on := func(p Parts) int { return flag(has&p != 0) }
	k := &Kernel{Template: info.Template, Cols: make([]*Range, on(PartColumns)), Accumulated: make([]*Range, on(PartAccumulate))}
	v := &Variant{Schedule: Schedule{Mapping: info.Mapping}, TensorMaps: make([]*TMAView, on(PartTensorMaps)), Staged: make([]*Local, on(PartStaged)),
		Run: on(PartRun), Least: on(PartLeast), Keep: make([]*Local, on(PartKeep)), Early: make([]*Local, on(PartEarly)),
		Ahead: make([]Ahead, on(PartAhead))}
	if has&PartContract != 0 {
		v.Contract = &Contract{}
	}
	if has&PartAttend != 0 {
		v.Attend = &Attend{}
	}
	if has&PartSort != 0 {
		v.Sort = &Sort{}
	}
	if has&PartStencil != 0 {
		v.Stencil = &Stencil{}
	}
	if has&PartScatter != 0 {
		v.Scatter = &Scatter{}
	}
	if has&PartAcross != 0 {
		v.Across = &Range{}
	}
	if has&PartLastBlock != 0 {
		v.LastBlock = &Variant{}
	}
	return info.suits(k, v)
}

// TestKnobsAreFields: every field of a schedule but its mapping is a knob.
func TestKnobsAreFields(t *testing.T) {
	fields := knobFields()
	assert.Len(t, fields, reflect.TypeFor[Schedule]().NumField()-1)
	for i := range knobs {
		assert.Contains(t, fields, Knobs(1)<<i, knobs[i].name)
	}
}

// knobFields maps knobs to the fields of Schedule that they are.
func knobFields() map[Knobs]int {
	fields := map[Knobs]int{}
	for i := range reflect.TypeFor[Schedule]().NumField() {
		var s Schedule
		setField(&s, i)
		if set := s.Set(); set != 0 {
			fields[set] = i
		}
	}
	return fields
}

func setField(s *Schedule, i int) {
	f := reflect.ValueOf(s).Elem().Field(i)
	if f.Kind() == reflect.Bool {
		f.SetBool(true)
	} else if f.CanInt() {
		f.SetInt(1)
	}
}

// scheduleWith sets knobs of a schedule.
func scheduleWith(m Mapping, set Knobs) Schedule {
	s := Schedule{Mapping: m}
	for knob, field := range knobFields() {
		if set&knob != 0 {
			setField(&s, field)
		}
	}
	return s
}
