package cpu

import (
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// running is a result that is accumulated over rows: it is kept in memory, where it
// starts as the identity of its reduction.
type running struct {
	arg   int
	dtype ir.DType
	start *ir.Expr // constant
}

// asStores returns the variant with its accumulated results written as stores: each stores the
// result after one more row.
func (g *gen) asStores(k *ir.Kernel, v *ir.Variant) *ir.Variant {
	if len(k.Accumulated) == 0 {
		return v
	}
	var sections []*ir.Section
	for _, s := range v.Sections {
		section := *s
		section.Stores = append([]*ir.Store(nil), s.Stores...)
		for _, p := range s.Partials {
			now := ir.Read(p.Arg, p.Offset, nil, nil)
			section.Stores = append(section.Stores, &ir.Store{Arg: p.Arg, Offset: p.Offset, Span: p.Span,
				Value: ir.Apply(p.Op.Info().Combine, now, p.Body)})
			g.running = append(g.running, running{p.Arg.Index, p.Arg.Type, p.Op.Identity(p.Body.Type)})
		}
		sections = append(sections, &section)
	}
	out := *v
	out.Sections = sections
	return &out
}

// guardAccumulated compiles the condition that a row of the chunk exists.
func (g *gen) guardAccumulated(k *ir.Kernel) {
	if k.Inside == nil {
		return
	}
	g.beginSection(&section{})
	g.inside, g.guarded = g.value(k.Inside), true
	g.pin(g.inside)
}

// startRunning sets the results that are accumulated over rows to their identities.
func (l *launch) startRunning() {
	for _, r := range l.running {
		b, size := l.bufs[r.arg], r.dtype.Size()
		for at := 0; at+size <= len(b); at += size {
			num.Store(r.dtype, b[at:at+size], r.start.Val)
		}
	}
}

// eachRow calls row for the rows of a job: those of its chunk, in order.
func (l *launch) eachRow(w *worker, item int64, row func()) {
	steps := int64(1)
	for _, a := range l.accumulated {
		steps *= a.extent
	}
	for n := range steps {
		seek(w, l.accumulated, n)
		l.begin(w, item)
		if !l.guarded || w.si[l.inside.reg] != 0 {
			row()
		}
	}
}
