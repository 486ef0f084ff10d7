package ptxsim

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
)

// mbarrierFamilies are barriers in shared memory (PTX ISA, "mbarrier").
var mbarrierFamilies = map[string]family{
	"mbarrier": mbarrierFamily,
}

// Limits of the counts (PTX ISA, "Contents of the mbarrier object").
const (
	maxArrivals = 1<<20 - 1
	maxBytes    = 1<<20 - 1 // either sign
)

// An mbarrier is the contents of such an object. Its 8 bytes are, from the lowest bit: 20 of
// pending, 20 of expected, 21 of bytes as two's complement, and 1 of phase.
type mbarrier struct {
	pending  int // arrivals that this phase lacks
	expected int // arrivals of the phases to come
	bytes    int // bytes that copies have yet to bring, less those that came before they were expected
	phase    int // its lowest bit

	cta    *cta
	offset uint64 // in its shared memory
}

func decodeMbarrier(v uint64) mbarrier {
	return mbarrier{pending: int(v & maxArrivals), expected: int(v >> 20 & maxArrivals),
		bytes: int(int64(v<<3) >> 43), phase: int(v >> 61 & 1)}
}

func (b *mbarrier) encode() uint64 {
	return uint64(b.pending) | uint64(b.expected)<<20 | uint64(b.bytes)&(1<<21-1)<<40 | uint64(b.phase)<<61
}

// mbarrier is the object at an address of shared memory. It is a fault if the object was never
// initialised, or if something else was written there since.
func (w *warp) mbarrier(lane int, addr uint64) mbarrier {
	now := binary.LittleEndian.Uint64(w.bytes(lane, shared, addr, 8, 8))
	t, offset := w.place(lane, addr)
	was, ok := t.mbarriers[offset]
	switch {
	case !ok:
		panic(w.fault(lane, "no mbarrier has been initialised at %#x of shared memory of block %v", offset, t.id))
	case was != now:
		panic(w.fault(lane, "the mbarrier at %#x of shared memory of block %v is overwritten", offset, t.id))
	}
	b := decodeMbarrier(now)
	b.cta, b.offset = t, offset
	return b
}

// store writes the object back.
func (b *mbarrier) store() {
	v := b.encode()
	binary.LittleEndian.PutUint64(b.cta.shared[b.offset:], v)
	b.cta.mbarriers[b.offset] = v
	b.cta.cluster.launch.events++
}

// arrive counts arrivals, and ends the phase if they were the last.
func (b *mbarrier) arrive(w *warp, lane, count int) {
	if count < 1 || count > b.pending {
		panic(w.fault(lane, "%d arrivals at an mbarrier that expects %d more", count, b.pending))
	}
	b.pending -= count
	if r := b.cta.cluster.races; r != nil {
		r.give(r.count(spot{b.cta, b.offset}).now, w, 1<<lane)
	}
	b.settle()
}

// drop is an arrival of threads that will not come again.
func (b *mbarrier) drop(w *warp, lane, count int) {
	if count > b.expected {
		panic(w.fault(lane, "%d arrivals less at an mbarrier that expects %d", count, b.expected))
	}
	b.expected -= count
	b.arrive(w, lane, count)
}

// expectMore is one more arrival in this phase.
func (b *mbarrier) expectMore(w *warp, lane int) {
	if b.pending++; b.pending > maxArrivals {
		panic(w.fault(lane, "an mbarrier of more than %d arrivals", maxArrivals))
	}
}

// expect adds to the bytes that this phase expects; a negative number counts bytes that have
// come.
func (b *mbarrier) expect(w *warp, lane, n int) {
	if b.bytes += n; b.bytes > maxBytes || b.bytes < -maxBytes {
		panic(w.fault(lane, "an mbarrier that expects %d bytes, more than %d", b.bytes, maxBytes))
	}
	b.settle()
}

func (b *mbarrier) settle() {
	if b.pending == 0 && b.bytes == 0 {
		b.phase ^= 1
		b.pending = b.expected
		if r := b.cta.cluster.races; r != nil {
			r.count(spot{b.cta, b.offset}).turn()
		}
	}
}

// complete is the arrival of bytes by a copy.
func (w *warp) complete(lane int, addr uint64, n int) {
	b := w.mbarrier(lane, addr)
	if r := w.cta.cluster.races; r != nil {
		c := r.count(spot{b.cta, b.offset})
		c.now.set(c.agent, c.steps)
	}
	b.expect(w, lane, -n)
	b.store()
}

func mbarrierFamily(b *builder, s *statement) exec {
	if !s.only("init", "inval", "arrive", "arrive_drop", "expect_tx", "complete_tx", "noComplete", "test_wait",
		"try_wait", "parity", "pending_count") || s.last() != "b64" {
		return nil
	}
	switch s.which("init", "inval", "arrive", "arrive_drop", "test_wait", "try_wait", "expect_tx", "complete_tx",
		"pending_count") {
	case "init":
		return initMbarrier(b, s)
	case "inval":
		return invalidateMbarrier(b, s)
	case "arrive", "arrive_drop":
		return arriveMbarrier(b, s)
	case "test_wait", "try_wait":
		return waitMbarrier(b, s)
	case "expect_tx":
		return countMbarrier(b, s, 1)
	case "complete_tx":
		return countMbarrier(b, s, -1)
	case "pending_count":
		return pendingMbarrier(b, s)
	}
	return nil
}

// initMbarrier: mbarrier.init{.shared}.b64 [a], count. To initialise one that has not been
// invalidated is undefined.
func initMbarrier(b *builder, s *statement) exec {
	if !kinds(s.Args, "ac") {
		return nil
	}
	at, in, count := b.pointer(s.Args[0]), spaceOf(s), b.use(s.Args[1])
	return func(w *warp, mask uint32) {
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			addr := w.sharedAddress(lane, in, at.at(w, lane))
			now := binary.LittleEndian.Uint64(w.bytes(lane, shared, addr, 8, 8))
			t, offset := w.own(lane, addr)
			if was, ok := t.mbarriers[offset]; ok && was == now {
				panic(w.fault(lane, "the mbarrier at %#x of shared memory is initialised again", offset))
			}
			n := int(uint32(w.regs[count][lane]))
			if n < 1 || n > maxArrivals {
				panic(w.fault(lane, "an mbarrier of %d arrivals: expected 1 to %d", n, maxArrivals))
			}
			bar := mbarrier{pending: n, expected: n, cta: t, offset: offset}
			bar.store()
		}
	}
}

// own is place for objects that must be in the block's own shared memory.
func (w *warp) own(lane int, addr uint64) (*cta, uint64) {
	t, offset := w.place(lane, addr)
	if t != w.cta {
		panic(w.fault(lane, "%#x is in shared memory of block %v: expected the block's own", addr, t.id))
	}
	return t, offset
}

// invalidateMbarrier: mbarrier.inval{.shared}.b64 [a].
func invalidateMbarrier(b *builder, s *statement) exec {
	if !kinds(s.Args, "a") {
		return nil
	}
	at, in := b.pointer(s.Args[0]), spaceOf(s)
	return func(w *warp, mask uint32) {
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			addr := w.sharedAddress(lane, in, at.at(w, lane))
			w.own(lane, addr)
			bar := w.mbarrier(lane, addr)
			delete(bar.cta.mbarriers, bar.offset)
		}
	}
}

// arriveMbarrier: mbarrier.arrive{.noComplete}{.mods}.b64 state, [a]{, count},
// mbarrier.arrive.expect_tx{.mods}.b64 state, [a], bytes, and the same with arrive_drop. The
// state is the object's before, and _ where that is in another block.
func arriveMbarrier(b *builder, s *statement) exec {
	expects, drops, keeps := s.has("expect_tx"), s.has("arrive_drop"), s.has("noComplete")
	if n := len(s.Args); n < 2 || n > 3 || s.Args[1].kind != addrOperand || (expects || keeps) && n < 3 {
		return nil
	}
	to, at, in, operand := b.into(s.Args[0]), b.pointer(s.Args[1]), spaceOf(s), b.constant(1)
	if len(s.Args) == 3 {
		operand = b.use(s.Args[2])
	}
	return func(w *warp, mask uint32) {
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			bar := w.mbarrier(lane, w.sharedAddress(lane, in, at.at(w, lane)))
			before, count := bar.encode(), int(uint32(w.regs[operand][lane]))
			if expects {
				bar.expect(w, lane, count)
				count = 1
			}
			if keeps && count >= bar.pending {
				panic(w.fault(lane, "noComplete, and the last %d arrivals at an mbarrier", count))
			}
			if drops {
				bar.drop(w, lane, count)
			} else {
				bar.arrive(w, lane, count)
			}
			bar.store()
			if to >= 0 {
				w.regs[to][lane] = before
			}
		}
	}
}

// waitMbarrier: mbarrier.test_wait{.mods}.b64 p, [a], state and
// mbarrier.test_wait.parity{.mods}.b64 p, [a], parity: whether the phase of that state or
// of that parity is over; try_wait{, time-limit} lets the lanes wait for a while. Here, the
// warp's turn ends for those lanes where one finds it is not.
func waitMbarrier(b *builder, s *statement) exec {
	n, tries := len(s.Args), s.has("try_wait")
	if n != 3 && !(tries && n == 4) || s.Args[1].kind != addrOperand {
		return nil
	}
	to, at, in, which := b.into(s.Args[0]), b.pointer(s.Args[1]), spaceOf(s), b.use(s.Args[2])
	shift := 61 // of the phase in a state
	if s.has("parity") {
		shift = 0
	}
	return func(w *warp, mask uint32) {
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			addr := w.sharedAddress(lane, in, at.at(w, lane))
			w.own(lane, addr)
			bar := w.mbarrier(lane, addr)
			over := bar.phase != int(w.regs[which][lane]>>shift&1)
			w.regs[to][lane] = truth(over)
			w.yielded = w.yielded || !over
			if r := w.cta.cluster.races; r != nil && over {
				r.take(r.count(spot{bar.cta, bar.offset}).over, w, 1<<lane)
			}
		}
	}
}

// countMbarrier: mbarrier.expect_tx{.mods}.b64 [a], bytes; complete_tx, which counts them
// as come.
func countMbarrier(b *builder, s *statement, sign int) exec {
	if !kinds(s.Args, "ab") {
		return nil
	}
	at, in, bytes := b.pointer(s.Args[0]), spaceOf(s), b.use(s.Args[1])
	return func(w *warp, mask uint32) {
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			bar := w.mbarrier(lane, w.sharedAddress(lane, in, at.at(w, lane)))
			bar.expect(w, lane, sign*int(uint32(w.regs[bytes][lane])))
			bar.store()
		}
	}
}

// pendingMbarrier: mbarrier.pending_count.b64 count, state.
func pendingMbarrier(b *builder, s *statement) exec {
	if !kinds(s.Args, "ds") {
		return nil
	}
	to, state := b.into(s.Args[0]), b.use(s.Args[1])
	return func(w *warp, mask uint32) {
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			w.set(to, 1<<lane, w.regs[state][lane]&maxArrivals)
		}
	}
}

// objects are the mbarriers of a block by their offset, but for those whose memory has
// been used for something else.
func (t *cta) objects() []mbarrier {
	var out []mbarrier
	for _, offset := range slices.Sorted(maps.Keys(t.mbarriers)) {
		if v := t.mbarriers[offset]; binary.LittleEndian.Uint64(t.shared[offset:]) == v {
			b := decodeMbarrier(v)
			b.cta, b.offset = t, offset
			out = append(out, b)
		}
	}
	return out
}

// describeBarriers describes what the mbarriers of a block are waiting for.
func (t *cta) describeBarriers(b *strings.Builder) {
	for _, bar := range t.objects() {
		fmt.Fprintf(b, "\n  block %v, mbarrier at %#x: phase %d lacks %d of %d arrivals and %d bytes", t.id,
			bar.offset+sharedStart, bar.phase, bar.pending, bar.expected, bar.bytes)
	}
}

// checkBarriers faults where a block ends with bytes announced that never came, or the
// other way round.
func (t *cta) checkBarriers() {
	for _, bar := range t.objects() {
		if bar.bytes != 0 {
			panic(&fault{fmt.Sprintf("block %v has ended, and its mbarrier at %#x lacks %d bytes", t.id,
				bar.offset+sharedStart, bar.bytes)})
		}
	}
}
