package fuse

import (
	"sort"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// edgeRefusals are the reasons why a value and one that reads it have kernels of their own, by these two values.
type edgeRefusals map[[2]*ir.Value]ir.Refusal

// attention records why values that weigh others are no attention.
func (rs edgeRefusals) attention(p *program, list []ir.Refusal) {
	for _, no := range list {
		rs[p.edgeOf(no)] = no
	}
}

// reductionEpilogues records why reductions of products are kernels of their own.
func (rs edgeRefusals) reductionEpilogues(p *program, list []ir.Refusal) {
	for _, no := range list {
		if key := p.edgeOf(no); rs[key].Template != ir.AttendTemplate { // a refusal of attention says more
			rs[key] = no
		}
	}
}

// edgeOf returns the values that a refusal names.
func (p *program) edgeOf(no ir.Refusal) [2]*ir.Value {
	return [2]*ir.Value{p.named(no.Producer), p.named(no.Consumer)}
}

// unmerged records why two regions were not merged. Regions that only share a tensor are not recorded.
func (rs edgeRefusals) unmerged(p *program, a, b *region, no *form.Refusal) {
	producer, consumer, span := p.edge(a, b)
	if producer == nil {
		return
	}
	if no.Span.IsZero() {
		no.Span = span
	}
	key := [2]*ir.Value{producer, consumer}
	if rs[key].Template != ir.LoopTemplate {
		return // the reason that is recorded already says more
	}
	rs[key] = ir.Refusal{Producer: producer.Name, Consumer: consumer.Name, Span: span,
		Template: ir.LoopTemplate, Reason: no.Reason, Detail: no.Detail, Bytes: algebra.Bytes(producer)}
}

// forget drops the reasons why a value is not in the kernel of what it reads.
func (rs edgeRefusals) forget(reader *ir.Value) {
	for edge := range rs {
		if edge[1] == reader {
			delete(rs, edge)
		}
	}
}

// final lists the reasons, but for values that were merged later, by the names of the values.
func (rs edgeRefusals) final(home map[*ir.Value]*region) (out []ir.Refusal) {
	for edge, no := range rs {
		if home[edge[0]] != home[edge[1]] {
			out = append(out, no)
		}
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := out[i], out[j]
		return a.Consumer < b.Consumer || a.Consumer == b.Consumer && a.Producer < b.Producer
	})
	return out
}
