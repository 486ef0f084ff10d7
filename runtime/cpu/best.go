package cpu

import "github.com/fusec/fusec/ir"

// takeBest folds a tile and its indices into an argmax or argmin.
func takeBest[T element](
	f *fold, w *worker, in intake, at bank[T], t *opTable[T], tile []T, index []int64, lo, hi int,
) {
	mask := []int64(nil)
	if in.u.kind == onMask {
		mask = ints(w, in.u.mask.reg)
	}
	if !f.acc.vec && mask == nil && takeExtreme(f, w, t, tile[lo:hi], index[lo:hi]) {
		return
	}
	for k := lo; k < hi; k++ {
		switch {
		case mask != nil && mask[k] == 0:
		case f.acc.vec:
			best := &w.i64[f.best.reg][k]
			if acc := at(w, f.acc.reg); beats(f.op, tile[k], acc[k], index[k], *best) {
				acc[k], *best = tile[k], index[k]
			}
			w.i64[f.finished.reg][k] = max(*best, 0)
		default:
			f.takeScalar(w, float64(tile[k]), int64(tile[k]), index[k])
		}
	}
}

// takeExtreme folds lanes that all take part: only those equal to the tile's
// extreme can win. It reports whether it could, which NaN prevents.
func takeExtreme[T element](f *fold, w *worker, t *opTable[T], tile []T, index []int64) bool {
	if len(tile) == 0 {
		return true
	}
	extreme := t.smallest
	if f.op == ir.ArgMax {
		extreme = t.largest
	}
	top := extreme(tile, tile[0])
	if top != top {
		return false
	}
	for k, v := range tile {
		if v == top {
			f.takeScalar(w, float64(v), int64(v), index[k])
		}
	}
	return true
}

func (f *fold) takeScalar(w *worker, v float64, i, index int64) {
	best := &w.si[f.best.reg]
	if f.class == classInt && beats(f.op, i, w.si[f.acc.reg], index, *best) {
		w.si[f.acc.reg], *best = i, index
	}
	if f.class != classInt && beats(f.op, v, w.sf[f.acc.reg], index, *best) {
		w.sf[f.acc.reg], *best = v, index
	}
	w.si[f.finished.reg] = max(*best, 0)
}

// beats reports whether v with the index pos comes before the best so far: NaN
// before all, then the larger (smaller) one, then that with the smaller index.
func beats[T element](op ir.Monoid, v, acc T, pos, best int64) bool {
	switch {
	case best < 0:
		return true
	case v != v || acc != acc:
		return v != v && (acc == acc || pos < best)
	case v == acc:
		return pos < best
	}
	return (v > acc) == (op == ir.ArgMax)
}
