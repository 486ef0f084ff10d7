package ptxsim

import "math/bits"

// shuffleFamilies are instructions by which the lanes of a warp communicate. They execute
// when all lanes of their member mask have come, see together.
var shuffleFamilies = map[string]family{
	"shfl":  shuffleFamily,
	"vote":  voteFamily,
	"match": matchFamily,
	"redux": reduxFamily,
	"elect": electFamily,
}

// unwritten is the value that a lane reads from an inactive lane: undefined on a GPU, a NaN
// here.
const unwritten = 0xFFFFFFFF

// A sourceLane is the lane that one shuffles from, by the operands b and c, and whether it
// is in range.
type sourceLane func(lane, b, c uint32) (from uint32, ok bool)

// sourceLanes are the modes of shfl (PTX ISA, shfl.sync: "Semantics"). c holds a clamp in
// bits 0 to 4 and a mask of segments in bits 8 to 12.
var sourceLanes = map[string]sourceLane{
	"up": func(lane, b, c uint32) (uint32, bool) {
		from := lane - b
		return from, int32(from) >= int32(maxLane(lane, c))
	},
	"down": func(lane, b, c uint32) (uint32, bool) { return lane + b, lane+b <= maxLane(lane, c) },
	"bfly": func(lane, b, c uint32) (uint32, bool) { return lane ^ b, lane^b <= maxLane(lane, c) },
	"idx": func(lane, b, c uint32) (uint32, bool) {
		segments := c >> 8 & 31
		from := lane&segments | b&^segments
		return from, from <= maxLane(lane, c)
	},
}

func maxLane(lane, c uint32) uint32 {
	segments := c >> 8 & 31
	return lane&segments | c&31&^segments
}

// shuffleFamily: shfl.sync.mode.b32 d{|p}, a, b, c, membermask.
func shuffleFamily(b *builder, s *statement) exec {
	mode := sourceLanes[s.which("up", "down", "bfly", "idx")]
	if mode == nil || !s.has("sync") || s.last() != "b32" || len(s.Args) != 5 {
		return nil
	}
	to, inRange := b.into(s.Args[0]), -1
	if p := s.Args[0].pair; p != nil {
		inRange = b.into(*p)
	}
	from, lane2, clamp, members := b.use(s.Args[1]), b.use(s.Args[2]), b.use(s.Args[3]), b.use(s.Args[4])
	return func(w *warp, mask uint32) {
		w.memberOf(members, mask)
		values := w.regs[from] // a copy: d may be a
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			j, ok := mode(uint32(lane), uint32(w.regs[lane2][lane]&31), uint32(w.regs[clamp][lane]))
			if !ok {
				j = uint32(lane)
			}
			if inRange >= 0 {
				w.regs[inRange][lane] = truth(ok)
			}
			if to < 0 {
				continue
			}
			if mask>>j&1 != 0 {
				w.regs[to][lane] = values[j]
			} else {
				w.regs[to][lane] = unwritten
			}
		}
	}
}

// memberOf faults where a lane is not in its own member mask: that is undefined.
func (w *warp) memberOf(members int, mask uint32) {
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		if w.regs[members][lane]>>lane&1 == 0 {
			panic(w.fault(lane, "lane %d is not in its member mask %#x", lane, w.regs[members][lane]))
		}
	}
}

// teams calls f for the lanes of each member mask in turn.
func (w *warp) teams(members int, mask uint32, f func(team uint32)) {
	w.memberOf(members, mask)
	for mask != 0 {
		first := uint32(w.regs[members][bits.TrailingZeros32(mask)])
		team := uint32(0)
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			if uint32(w.regs[members][lane]) == first {
				team |= 1 << lane
			}
		}
		f(team)
		mask &^= team
	}
}

// set writes a value to a register of lanes; to no register where it is -1.
func (w *warp) set(reg int, lanes uint32, v uint64) {
	if reg < 0 {
		return
	}
	for m := lanes; m != 0; m &= m - 1 {
		w.regs[reg][bits.TrailingZeros32(m)] = v
	}
}

// voteFamily: vote.sync.mode.pred p, {!}a, membermask; vote.sync.ballot.b32 d, {!}a,
// membermask.
func voteFamily(b *builder, s *statement) exec {
	var result func(yes, team uint32) uint64
	switch s.which("all", "any", "uni", "ballot") {
	case "all":
		result = func(yes, team uint32) uint64 { return truth(yes == team) }
	case "any":
		result = func(yes, _ uint32) uint64 { return truth(yes != 0) }
	case "uni":
		result = func(yes, team uint32) uint64 { return truth(yes == team || yes == 0) }
	case "ballot":
		result = func(yes, _ uint32) uint64 { return uint64(yes) }
	}
	if result == nil || !s.has("sync") || len(s.Args) != 3 {
		return nil
	}
	to, of, members := b.into(s.Args[0]), b.condition(s.Args[1]), b.use(s.Args[2])
	return func(w *warp, mask uint32) {
		w.teams(members, mask, func(team uint32) { w.set(to, team, result(of.lanes(w, team), team)) })
	}
}

// matchFamily: match.any.sync.type d, a, membermask gives the lanes whose value is the
// lane's; match.all.sync.type d{|p}, a, membermask all lanes or, where values differ, none.
func matchFamily(b *builder, s *statement) exec {
	size := elementTypes[s.element()]
	if !s.has("sync") || s.which("any", "all") == "" || size < 4 || len(s.Args) != 3 {
		return nil
	}
	to, from, members := b.into(s.Args[0]), b.use(s.Args[1]), b.use(s.Args[2])
	all, same := s.has("all"), -1
	if p := s.Args[0].pair; p != nil {
		same = b.into(*p)
	}
	unused := 64 - 8*size
	return func(w *warp, mask uint32) {
		w.teams(members, mask, func(team uint32) {
			values := w.regs[from]
			for m := team; m != 0; m &= m - 1 {
				lane := bits.TrailingZeros32(m)
				equal := uint32(0)
				for o := team; o != 0; o &= o - 1 {
					other := bits.TrailingZeros32(o)
					if (values[lane]^values[other])<<unused == 0 {
						equal |= 1 << other
					}
				}
				if all {
					w.set(same, 1<<lane, truth(equal == team))
					equal = uint32(choose(equal == team, uint64(team), 0))
				}
				w.set(to, 1<<lane, uint64(equal))
			}
		})
	}
}

// reduxFamily: redux.sync.op.type d, a, membermask, of 32-bit integers.
func reduxFamily(b *builder, s *statement) exec {
	f := combineOf(s.which("add", "min", "max", "and", "or", "xor"), s.element())
	if f == nil || !s.only("sync", "add", "min", "max", "and", "or", "xor") || len(s.Args) != 3 {
		return nil
	}
	if e := s.element(); e != "u32" && e != "s32" && e != "b32" {
		return nil
	}
	to, from, members := b.into(s.Args[0]), b.use(s.Args[1]), b.use(s.Args[2])
	return func(w *warp, mask uint32) {
		w.teams(members, mask, func(team uint32) {
			first := bits.TrailingZeros32(team)
			v := w.regs[from][first]
			for m := team & (team - 1); m != 0; m &= m - 1 {
				v = f(v, w.regs[from][bits.TrailingZeros32(m)])
			}
			w.set(to, team, v)
		})
	}
}

// electFamily: elect.sync d|p, membermask. Which lane leads is not specified, only that it
// is the same each time: it is the lowest here, the highest in launches that run backwards.
func electFamily(b *builder, s *statement) exec {
	if !s.has("sync") || len(s.Args) != 2 || s.Args[0].pair == nil {
		return nil
	}
	to, leads, members := b.into(s.Args[0]), b.into(*s.Args[0].pair), b.use(s.Args[1])
	return func(w *warp, mask uint32) {
		w.teams(members, mask, func(team uint32) {
			leader := bits.TrailingZeros32(team)
			if w.cta.cluster.launch.Backwards {
				leader = bits.Len32(team) - 1
			}
			w.set(to, team, uint64(leader))
			w.set(leads, team, 0)
			w.set(leads, 1<<leader, 1)
		})
	}
}
