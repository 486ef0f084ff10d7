package ptxsim

import "math/bits"

// asyncFamilies are asynchronous copies.
var asyncFamilies = map[string]family{
	"cp": copyFamily, // cp.reduce.async with it
}

// copyFamily tells the forms of cp apart.
func copyFamily(b *builder, s *statement) exec {
	switch {
	case s.has("bulk"):
		return bulkFamily(b, s)
	case s.has("reduce"), !s.has("async"):
		return nil
	case s.has("commit_group") && len(s.Args) == 0:
		return commitCopies
	case s.has("wait_all") && len(s.Args) == 0:
		return waitAllCopies
	case s.has("wait_group") && len(s.Args) == 1:
		return waitCopies(b.use(s.Args[0]))
	case s.has("mbarrier"):
		return copiesArrive(b, s)
	}
	return copyAsync(b, s)
}

// A copyQueue is the copies of a lane by cp.async that have not landed. They land when the
// lane waits for them, arrives at an mbarrier with them, or ends.
type copyQueue struct {
	pending []smallCopy // oldest first
	landed  int         // number of copies that have landed before those
	groups  []int       // for each group committed: how many copies came before its end
}

// A smallCopy is one such copy: the bytes of from, followed by zeros.
type smallCopy struct {
	to, from []byte
	note     func(to, from []byte) // reports the copy to the race detector; nil: there is none
}

func (c smallCopy) land() {
	if c.note != nil {
		c.note(c.to, c.from)
	}
	clear(c.to[copy(c.to, c.from):])
}

// land performs the lane's copies up to the given number, counted over all that it has issued.
func (q *copyQueue) land(upTo int) {
	n := max(upTo-q.landed, 0)
	for _, c := range q.pending[:n] {
		c.land()
	}
	q.pending = append(q.pending[:0], q.pending[n:]...)
	q.landed += n
}

func (q *copyQueue) issued() int { return q.landed + len(q.pending) }

// copyAsync: cp.async.ca|cg.shared{::cta}.global{.hints} [d], [a], size{, src-size | ignore
// }{, policy}: size is 4, 8 or 16, of which src-size bytes are read (none where the
// predicate ignore holds) and the rest is zero.
func copyAsync(b *builder, s *statement) exec {
	args := s.plain()
	if !s.only("async") || len(args) < 3 || len(args) > 4 || !kinds(args[:3], "aas") ||
		args[2].kind != immOperand {
		return nil
	}
	size := int(args[2].bits)
	if size != 16 && (s.has("cg") || size != 4 && size != 8) {
		return nil
	}
	to, from := b.pointer(args[0]), b.pointer(args[1])
	length := func(*warp, int) int { return size }
	if len(args) == 4 && args[3].class == "pred" {
		ignore := b.condition(args[3])
		length = func(w *warp, lane int) int {
			if ignore.lanes(w, 1<<lane) != 0 {
				return 0
			}
			return size
		}
	} else if len(args) == 4 {
		bytes := b.use(args[3])
		length = func(w *warp, lane int) int { return int(uint32(w.regs[bytes][lane])) }
	}
	return func(w *warp, mask uint32) {
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			w.copyAsync(lane, to.at(w, lane), from.at(w, lane), size, length(w, lane))
		}
	}
}

// copyAsync issues a copy of size bytes of which the first n come from memory.
func (w *warp) copyAsync(lane int, to, from uint64, size, n int) {
	if n > size {
		panic(w.fault(lane, "a copy of %d bytes with %d of the source", size, n))
	}
	if from%uint64(size) != 0 {
		panic(w.fault(lane, "%#x is not a multiple of %d", from, size))
	}
	c := smallCopy{to: w.bytes(lane, shared, to, size, size)}
	if n > 0 {
		c.from = w.bytes(lane, global, from, n, 1)
	}
	q := &w.copies[lane]
	if r := w.cta.cluster.races; r != nil {
		c.note = r.smallCopy(w, lane, to)
	}
	if w.cta.cluster.launch.Early {
		c.land()
		q.landed++
		return
	}
	q.pending = append(q.pending, c)
}

// commitCopies: cp.async.commit_group.
func commitCopies(w *warp, mask uint32) {
	for m := mask; m != 0; m &= m - 1 {
		q := &w.copies[bits.TrailingZeros32(m)]
		q.groups = append(q.groups, q.issued())
	}
}

// waitAllCopies: cp.async.wait_all.
func waitAllCopies(w *warp, mask uint32) {
	for m := mask; m != 0; m &= m - 1 {
		q := &w.copies[bits.TrailingZeros32(m)]
		q.land(q.issued())
		q.groups = q.groups[:0]
	}
}

// waitCopies: cp.async.wait_group n: all but the n latest groups have landed.
func waitCopies(latest int) exec {
	return func(w *warp, mask uint32) {
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			q := &w.copies[lane]
			if n := len(q.groups) - int(uint32(w.regs[latest][lane])); n > 0 {
				q.land(q.groups[n-1])
				q.groups = append(q.groups[:0], q.groups[n:]...)
			}
		}
	}
}

// copiesArrive: cp.async.mbarrier.arrive{.noinc}{.shared}.b64 [a]: arrives at the barrier when
// the lane's copies so far have landed. Without .noinc the barrier expects one more arrival, so
// that this one does not count among those that it was initialised for.
func copiesArrive(b *builder, s *statement) exec {
	if !s.only("async", "mbarrier", "arrive", "noinc") || !s.has("arrive") || !kinds(s.Args, "a") {
		return nil
	}
	at, in, more := b.pointer(s.Args[0]), spaceOf(s), !s.has("noinc")
	return func(w *warp, mask uint32) {
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			addr := w.sharedAddress(lane, in, at.at(w, lane))
			if more {
				bar := w.mbarrier(lane, addr)
				bar.expectMore(w, lane)
				bar.store()
			}
			q, upTo := &w.copies[lane], w.copies[lane].issued()
			w.later(func() {
				q.land(upTo)
				bar := w.mbarrier(lane, addr)
				bar.arrive(w, lane, 1)
				bar.store()
			})
		}
	}
}

// later queues an operation of the current instruction, which errors of the operation name.
func (w *warp) later(operation func()) {
	at := w.at
	w.cta.cluster.later(func() {
		w.at = at
		operation()
	})
}
