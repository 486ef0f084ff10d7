package cpu

// partial is the state of a fold over part of a pass, by lane.
type partial struct {
	float []float64
	int   []int64
	best  []int64 // of argmax and argmin the index, of streamed folds whether there was a term
}

func (f *fold) save(w *worker) partial {
	var p partial
	switch {
	case f.acc.class == classInt && f.acc.vec:
		p.int = append(p.int, ints(w, f.acc.reg)...)
	case f.acc.class == classInt:
		p.int = []int64{w.si[f.acc.reg]}
	default:
		p.float = floatsOf(w, f.acc)
	}
	if o, ok := f.extra(); ok && o.vec {
		p.best = append(p.best, ints(w, o.reg)...)
	} else if ok {
		p.best = []int64{w.si[o.reg]}
	}
	return p
}

// extra is the register that a fold has beside its value.
func (f *fold) extra() (operand, bool) {
	if f.after != nil {
		return f.seen, true
	}
	return f.best, f.op.IsArg()
}

func floatsOf(w *worker, o operand) []float64 {
	if !o.vec {
		return []float64{w.sf[o.reg]}
	}
	out := make([]float64, w.n)
	if o.class == classF32 {
		convert(out, f32s(w, o.reg))
	} else {
		copy(out, f64s(w, o.reg))
	}
	return out
}

func setFloats(w *worker, o operand, v []float64) {
	switch {
	case !o.vec:
		w.sf[o.reg] = v[0]
	case o.class == classF32:
		convert(f32s(w, o.reg), v)
	default:
		copy(f64s(w, o.reg), v)
	}
}

// load makes a finished fold's result readable; nothing for one not finished.
func (f *fold) load(w *worker, p partial) {
	if p.float != nil {
		setFloats(w, f.acc, p.float)
	}
	if p.int != nil {
		setInts(w, f.acc, p.int)
	}
	if o, ok := f.extra(); ok && p.best != nil {
		setInts(w, o, p.best)
	}
	if f.op.IsArg() && p.best != nil {
		index := make([]int64, len(p.best))
		for k, b := range p.best {
			index[k] = max(b, 0)
		}
		setInts(w, f.finished, index)
	}
}

func setInts(w *worker, o operand, v []int64) {
	if o.vec {
		copy(ints(w, o.reg), v)
	} else {
		w.si[o.reg] = v[0]
	}
}

// mergeParts combines the states of the parts of one pass, first to last.
func mergeParts(w *worker, folds []*fold, parts [][]partial) []partial {
	total := parts[0]
	for _, next := range parts[1:] {
		before := append([]partial(nil), total...)
		for k, f := range folds {
			switch {
			case f.op.IsArg():
				total[k] = f.mergeBest(total[k], next[k])
			case f.after != nil:
				a := position(folds, f.after)
				total[k] = f.mergeScaled(w, before[k], next[k], before[a], next[a], total[a])
			default:
				total[k] = f.merge(total[k], next[k])
			}
		}
	}
	return total
}

func position(folds []*fold, f *fold) int {
	for k, other := range folds {
		if other == f {
			return k
		}
	}
	panic("BUG: cpu: fold streamed beside one of another section")
}

func (f *fold) merge(a, b partial) partial {
	combine := f.op.Info().Combine.Info()
	var out partial
	for k, v := range a.float {
		out.float = append(out.float, combine.Float(v, b.float[k], 0))
	}
	for k, v := range a.int {
		out.int = append(out.int, combine.Int(v, b.int[k], 0))
	}
	return out
}

// mergeScaled adds two running values, each brought to the merged value of the
// fold beside it.
func (f *fold) mergeScaled(w *worker, a, b, besideA, besideB, beside partial) partial {
	scaled := func(p, old partial) []float64 {
		setFloats(w, f.old, old.float)
		setFloats(w, f.after.acc, beside.float)
		w.exec(f.rescale)
		factor := floatsOf(w, f.factor)
		for k, v := range p.float {
			if !sameFloat(old.float[k], beside.float[k]) {
				factor[k] *= v
			} else {
				factor[k] = v
			}
		}
		return factor
	}
	out := f.merge(partial{float: scaled(a, besideA)}, partial{float: scaled(b, besideB)})
	for k, seen := range a.best {
		out.best = append(out.best, seen|b.best[k])
	}
	return out
}

func (f *fold) mergeBest(a, b partial) partial {
	out := partial{best: append([]int64(nil), a.best...)}
	out.float, out.int = append(out.float, a.float...), append(out.int, a.int...)
	for k, pos := range b.best {
		switch {
		case pos < 0:
		case a.float != nil && beats(f.op, b.float[k], a.float[k], pos, a.best[k]):
			out.float[k], out.best[k] = b.float[k], pos
		case a.int != nil && beats(f.op, b.int[k], a.int[k], pos, a.best[k]):
			out.int[k], out.best[k] = b.int[k], pos
		}
	}
	return out
}
