package ptxsim

import (
	"math/bits"
	"slices"
)

// A parcel is data that a lane sends to shared memory of the cluster, where an mbarrier counts
// its bytes.
type parcel struct {
	lane   int
	to     []byte
	bar    uint64
	values [4]uint64
	note   func(to, from []byte) // reports the store to the race detector; nil: there is none
	before clock                 // the clock of its lane
}

// sendFamily: st.async{.weak}{.shared::cluster}.mbarrier::complete_tx::bytes{.vec}.type [a],
// b, [mbar] and red.async.relaxed.cluster{...}.op.type [a], b, [mbar].
func sendFamily(b *builder, s *statement) exec {
	if !s.has(counted) || !s.only(append([]string{"async", counted}, atomicOps...)...) || !kinds(s.Args, "aba") {
		return nil
	}
	if elementTypes[s.element()] < 4 || vectorOf(s) > 4 {
		return nil
	}
	f := combineOf("exch", "b64")
	if s.Op == "red" {
		f = combineOf(s.which(atomicOps...), s.element())
	}
	if f == nil || s.has("exch") {
		return nil
	}
	a, bar, in := b.access(s, s.Args[0], s.Args[1]), b.pointer(s.Args[2]), spaceOf(s)
	return func(w *warp, mask uint32) {
		parcels := make([]parcel, 0, bits.OnesCount32(mask))
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			parcels = append(parcels, w.parcel(lane, &a, w.sharedAddress(lane, in, bar.at(w, lane))))
		}
		w.later(func() {
			for i := range parcels {
				w.deliver(&parcels[i], a.elem, len(a.regs), f)
			}
		})
	}
}

// parcel copies the values, because registers may change before they arrive.
func (w *warp) parcel(lane int, a *access, bar uint64) parcel {
	to := w.sharedAddress(lane, a.in, a.addr.at(w, lane))
	w.sameBlock(lane, to, bar)
	n := a.elem * len(a.regs)
	p := parcel{lane: lane, bar: bar, to: w.bytes(lane, shared, to, n, n)}
	for i, r := range a.regs {
		p.values[i] = w.regs[r][lane]
	}
	if note := w.noteCopy(lane); note != nil {
		p.note = func(_, from []byte) { note(bar, to, from, true) }
		p.before = w.cta.cluster.races.released(w, lane)
	}
	return p
}

func (w *warp) deliver(p *parcel, elem, n int, f combine) {
	result := slices.Clone(p.to)
	for i := range n {
		at := result[i*elem:]
		write(at, elem, f(read(at, elem), p.values[i]))
	}
	if p.note != nil {
		p.note(p.to, result)
		counts, counter := w.place(p.lane, p.bar)
		w.cta.cluster.races.count(spot{counts, counter}).now.join(p.before)
	}
	copy(p.to, result)
	w.complete(p.lane, p.bar, n*elem)
}

// sameBlock faults where data goes to another block than the mbarrier that counts it.
func (w *warp) sameBlock(lane int, to, bar uint64) {
	data, _ := w.place(lane, to)
	if t, _ := w.place(lane, bar); t != data {
		panic(w.fault(lane, "data for block %v is counted at an mbarrier of block %v", data.id, t.id))
	}
}
