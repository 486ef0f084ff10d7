package interp

import (
	"math"
	words "math/bits"

	"github.com/fusec/fusec/ir"
)

// pages remembers some elements of a value, by position. Elements that lie close together share a page, as they are mostly asked
// for one after the other.
type pages struct {
	float    bool
	elements int64           // of the value
	count    int64           // known
	bytes    int64           // that they take
	table    []*page         // by number, of a value that is not large; nil before the first
	all      map[int64]*page // by number, of others
}

const (
	tableElements = 16 << 20 // of a value with a table, which has 2 MiB then

	pageElements = 64
	pageBytes    = 8*pageElements + 64 // about what a page costs
)

// page is the elements of a page and, for each, whether it is known.
type page struct {
	known uint64
	words [pageElements]uint64 // bits of floats, or integers
}

func newPages(t ir.DType, elements int64) *pages {
	return &pages{float: t.IsFloat(), elements: elements}
}

// find returns the page of a position; nil where there is none.
func (p *pages) find(n int64) *page {
	if p.table != nil {
		return p.table[n/pageElements]
	}
	return p.all[n/pageElements]
}

// add makes the page of a position. It returns how many bytes more that takes.
func (p *pages) add(n int64) (*page, int64) {
	made, bytes := &page{}, int64(pageBytes)
	switch {
	case p.elements > tableElements && p.all == nil:
		p.all = map[int64]*page{}
	case p.elements <= tableElements && p.table == nil:
		p.table = make([]*page, (p.elements+pageElements-1)/pageElements)
		bytes += 8 * int64(len(p.table))
	}
	if p.table != nil {
		p.table[n/pageElements] = made
	} else {
		p.all[n/pageElements] = made
	}
	p.bytes += bytes
	return made, bytes
}

func (p *pages) has(n int64) bool {
	found := p.find(n)
	return found != nil && found.known>>(n%pageElements)&1 != 0
}

func (p *pages) get(n int64) (Scalar, bool) {
	found := p.find(n)
	if found == nil || found.known>>(n%pageElements)&1 == 0 {
		return Scalar{}, false
	}
	return p.scalar(found.words[n%pageElements]), true
}

func (p *pages) scalar(word uint64) Scalar {
	if p.float {
		return Scalar{F: math.Float64frombits(word)}
	}
	return Scalar{I: int64(word)}
}

// set remembers an element that is not known. It returns how many bytes more that takes.
func (p *pages) set(n int64, v Scalar) (more int64) {
	to := p.find(n)
	if to == nil {
		to, more = p.add(n)
	}
	to.known |= 1 << (n % pageElements)
	to.words[n%pageElements] = uint64(v.I)
	if p.float {
		to.words[n%pageElements] = math.Float64bits(v.F)
	}
	p.count++
	return more
}

// each visits the known elements, in no order.
func (p *pages) each(visit func(int64, Scalar)) {
	of := func(number int64, found *page) {
		for known := found.known; known != 0; known &= known - 1 {
			i := words.TrailingZeros64(known)
			visit(number*pageElements+int64(i), p.scalar(found.words[i]))
		}
	}
	for number, found := range p.table {
		if found != nil {
			of(int64(number), found)
		}
	}
	for number, found := range p.all {
		of(number, found)
	}
}
