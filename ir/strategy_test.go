package ir

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
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
		if info.Parts&PartWalk != 0 {
			k.Walk = k.Cols
		}
		for _, set := range []Knobs{info.Needs, info.Needs | info.Takes} {
			assert.Equal(t, s, StrategyOf(k, scheduleWith(info.Mapping, set|everyKnob)), "of %s with %s", info.Name, set)
		}
	}
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
