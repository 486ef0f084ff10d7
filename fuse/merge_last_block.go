package fuse

import (
	"cmp"
	"slices"

	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// lastBlocks finds the regions that can run as last-block reductions of others, and moves each of them
// right after the region whose last blocks run it. In the list, each region comes after those that it
// reads.
func (pt *partition) lastBlocks(regions []*region) ([]*region, map[*region]*lastBlockPair) {
	of, place := map[*region]*lastBlockPair{}, make(map[*region]float64, len(regions))
	for i, r := range regions {
		place[r] = float64(i)
	}
	for _, then := range regions {
		if of[then] != nil || !pt.pairable(then) {
			continue
		}
		first := pt.lastSource(place, then)
		if first == nil || of[first] != nil || !pt.pairable(first) || pt.apart(first, then) || first.size.args+then.size.args > mostArgs {
			continue
		}
		if p := pt.lastBlockPair(first, then); p != nil {
			of[first], of[then] = p, p
			place[then] = place[first] + 0.5
		}
	}
	out := slices.Clone(regions)
	slices.SortStableFunc(out, func(a, b *region) int { return cmp.Compare(place[a], place[b]) })
	return out, of
}

// pairable reports whether a region can take part in a last-block reduction: it is a kernel of rows and
// columns in which nothing carries over from row to row or from column to column. Scatters cannot, because
// they have mappings of their own.
func (p *program) pairable(r *region) bool {
	if slices.ContainsFunc(r.members, func(v *ir.Value) bool { return form.ScatterIn(v) != nil }) {
		return false
	}
	return len(r.cols) > 0 && p.may(r, lastBlocks)
}

// lastSource is the region that comes last of those whose results r reads.
func (pt *partition) lastSource(place map[*region]float64, r *region) (last *region) {
	for _, v := range r.members {
		for _, from := range pt.sources[v] {
			if home := pt.home[from]; home != nil && home != r && (last == nil || place[home] > place[last]) {
				last = home
			}
		}
	}
	return last
}

// lastBlockPair matches two regions: then reads results of first at its own rows, and folds them over the
// other rows of first. It returns nil where it does anything else.
func (pr *program) lastBlockPair(first, then *region) *lastBlockPair {
	al := &alignment{to: map[*ir.Range]*ir.Range{}, from: map[*ir.Range]*ir.Range{}}
	m := &matcher{alignment: al, facts: pr.facts}
	if pr.alignEdges(m, first, then) != nil || m.want != nil || len(al.to) != len(then.space) {
		return nil
	}
	for _, r := range first.space {
		if first.cols[r] == (al.from[r] != nil) {
			return nil
		}
	}
	for _, v := range first.members {
		if then.inputs[v] && !first.ofEachRow(v) {
			return nil
		}
	}
	p := &lastBlockPair{first: first, then: then, parts: map[*ir.Range]bool{}, to: al.to}
	for r := range then.cols {
		p.parts[al.to[r]] = true
	}
	return p
}

// ofEachRow reports whether a member has one element for each row of the region.
func (r *region) ofEachRow(v *ir.Value) bool {
	own := map[*ir.Range]bool{}
	for _, axis := range v.Axes {
		for s := range ir.FreeRanges(r.at[v][axis]) {
			own[s] = true
		}
	}
	for _, s := range r.space {
		if own[s] == r.cols[s] {
			return false
		}
	}
	return true
}

// together lowers two regions for one launch, and reports whether the last blocks of the first run the
// other. Where they do not, neither is lowered.
func (ls *lowerings) together(p *lastBlockPair) bool {
	first := ls.lower(p.first, p)
	ls.lower(p.then, p)
	lastBlockKernel{ls.done[p.first]}.lastBlock(ls.done[p.then])
	if first.LastBlock == nil {
		delete(ls.done, p.first)
		delete(ls.done, p.then)
	}
	return first.LastBlock != nil
}
