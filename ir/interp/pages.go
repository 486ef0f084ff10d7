package interp

import (
	"math"
	words "math/bits"

	"github.com/fusec/fusec/ir"
)

// pages remembers some elements of a value, by position. Elements that lie close together share a page, as they are mostly asked
// for one after the other.
type pages struct {
	float bool
	count int64
	all   map[int64]*page
	at    int64 // the number of the page used last
	last  *page
}

const (
	pageElements = 64
	pageBytes    = 8*pageElements + 64 // about what a page costs
)

// page is the elements of a page and, for each, whether it is known.
type page struct {
	known uint64
	words [pageElements]uint64 // bits of floats, or integers
}

func newPages(t ir.DType) *pages { return &pages{float: t.IsFloat(), all: map[int64]*page{}, at: -1} }

// find returns the page of a position; nil where there is none.
func (p *pages) find(n int64) *page {
	if number := n / pageElements; number != p.at {
		p.at, p.last = number, p.all[number]
	}
	return p.last
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
		to, more = &page{}, pageBytes
		p.all[n/pageElements], p.last = to, to
	}
	to.known |= 1 << (n % pageElements)
	to.words[n%pageElements] = uint64(v.I)
	if p.float {
		to.words[n%pageElements] = math.Float64bits(v.F)
	}
	p.count++
	return more
}

func (p *pages) bytes() int64 { return int64(len(p.all)) * pageBytes }

// each visits the known elements, in no order.
func (p *pages) each(visit func(int64, Scalar)) {
	for number, of := range p.all {
		for known := of.known; known != 0; known &= known - 1 {
			i := words.TrailingZeros64(known)
			visit(number*pageElements+int64(i), p.scalar(of.words[i]))
		}
	}
}
