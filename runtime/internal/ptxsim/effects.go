package ptxsim

import (
	"math/bits"
	"strings"
)

// effectFamilies are instructions without results, and those that ask where they run. Warps
// run one after the other and memory is always coherent: fences and hints have no effect.
var effectFamilies = map[string]family{
	"membar": idle("cta", "gl", "sys", "proxy", "alias", "async", "global"),
	"fence": idle("sc", "acq_rel", "acquire", "release", "cta", "cluster", "gpu", "sys", "proxy", "alias",
		"async", "tensormap::generic", "async::generic", "global", "shared::cta", "shared::cluster",
		"mbarrier_init", "sync_restrict::shared::cta", "sync_restrict::shared::cluster"),
	"prefetch": idle("global", "local", "param", "const", "L1", "L2", "L2::evict_last", "L2::evict_normal",
		"tensormap"),
	"prefetchu":      idle("L1"),
	"discard":        idle("global", "L2"),
	"applypriority":  idle("global", "L2::evict_normal"),
	"griddepcontrol": idle("wait", "launch_dependents"),
	"setmaxnreg":     idle("inc", "dec", "sync", "aligned", "u32"),
	"pmevent":        idle("mask"),
	"nanosleep":      idle("u32"),
	"createpolicy":   policyFamily,
	"activemask":     activeFamily,
	"isspacep":       spaceFamily,
	"trap":           trapFamily,
	"brkpt":          trapFamily,
}

// idle are the forms, of these modifiers, of an instruction that does nothing.
func idle(mods ...string) family {
	known := map[string]bool{}
	for _, m := range mods {
		known[m] = true
	}
	return func(_ *builder, s *statement) exec {
		for _, m := range s.Mods {
			if !known[m] {
				return nil
			}
		}
		return func(*warp, uint32) {}
	}
}

// policyFamily: createpolicy gives a policy for caches, which nothing here reads.
func policyFamily(b *builder, s *statement) exec {
	if len(s.Args) < 1 || s.Args[0].kind != regOperand || s.last() != "b64" {
		return nil
	}
	return whole1(func(d, a *lanes) { *d = *a }).exec([]int{s.Args[0].reg, b.constant(0)})
}

// activeFamily: activemask.b32 d.
func activeFamily(b *builder, s *statement) exec {
	if s.last() != "b32" || len(s.Args) != 1 || s.Args[0].kind != regOperand {
		return nil
	}
	d := s.Args[0].reg
	return func(w *warp, mask uint32) {
		for m := mask; m != 0; m &= m - 1 {
			w.regs[d][bits.TrailingZeros32(m)] = uint64(mask)
		}
	}
}

// spaceFamily: isspacep.space p, a: whether a generic address lies in a state space.
func spaceFamily(b *builder, s *statement) exec {
	windows := map[string]uint64{
		"shared": sharedWindow, "shared::cta": sharedWindow, "shared::cluster": sharedWindow,
		"local": localWindow, "param": paramWindow, "param::entry": paramWindow, "const": moduleWindow,
	}
	window, ok := windows[s.last()]
	switch own := s.last() != "shared::cluster"; {
	case len(s.Mods) != 1:
		return nil
	case s.last() == "global":
		return b.apply(s, single1(func(a uint64) uint64 {
			in := a & windowMask
			return truth(in == 0 || in == moduleWindow)
		}))
	case ok && strings.HasPrefix(s.last(), "shared"):
		return b.apply(s, single1(func(a uint64) uint64 {
			return truth(a&windowMask == window && !(own && a&^windowMask>>rankShift != 0))
		}))
	case ok:
		return b.apply(s, single1(func(a uint64) uint64 { return truth(a&windowMask == window) }))
	}
	return nil
}

// trapFamily: trap and brkpt end the launch.
func trapFamily(_ *builder, s *statement) exec {
	op := s.Op
	if len(s.Mods) != 0 || len(s.Args) != 0 {
		return nil
	}
	return func(w *warp, mask uint32) { panic(w.fault(bits.TrailingZeros32(mask), "%s", op)) }
}
