package runtime

import "math/bits"

// An access is what one launch does to one tensor.
type access struct {
	item  int // a tensor of the program
	write bool
}

// A span is the memory of a tensor in an arena. A tensor whose span overlaps that of another
// may only be written when all launches that use the other are done. Tensors outside the arena
// have no span.
type span struct{ from, to int64 }

func (s span) meets(other span) bool { return s.from < other.to && other.from < s.to }

// dependences finds, for each launch of a list in a valid order, the earlier launches that it
// must wait for: those that write what it reads, use what it writes, or use memory that it
// takes over. Dependences that follow from others are left out. spans is by item.
func dependences(launches [][]access, spans []span) [][]int {
	out := make([][]int, len(launches))
	before := make([]bitset, len(launches)) // all launches that must come before a launch
	for i, mine := range launches {
		before[i] = newBitset(len(launches))
		for j := i - 1; j >= 0; j-- {
			if before[i].has(j) || !conflict(launches[j], mine, spans) {
				continue
			}
			out[i] = append(out[i], j)
			before[i].add(j)
			before[i].merge(before[j])
		}
	}
	return out
}

// conflict reports whether the order of two launches matters.
func conflict(a, b []access, spans []span) bool {
	for _, x := range a {
		for _, y := range b {
			if (x.write || y.write) && (x.item == y.item || spans[x.item].meets(spans[y.item])) {
				return true
			}
		}
	}
	return false
}

// bitset is a set of small numbers.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+bits.UintSize-1)/bits.UintSize) }

func (s bitset) has(i int) bool { return s[i/64]>>(i%64)&1 != 0 }

func (s bitset) add(i int) { s[i/64] |= 1 << (i % 64) }

func (s bitset) merge(other bitset) {
	for i := range other {
		s[i] |= other[i]
	}
}
