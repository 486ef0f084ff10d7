package ir

// Most inequalities that are asked for do not hold, and the search for a proof takes long if their terms contain
// quotients. Comparisons of costs are sums of dozens of quotients. If the inequality fails at some size that meets
// all known facts, no proof is searched for.

// samples are values of polynomials and atoms over sizes alone, at some sizes of the symbols.
type samples struct {
	symbols map[string]int
	atoms   map[*Expr]*[sampleCount]sample
}

type sample struct {
	value int64
	fits  bool
}

// sampleCount is the number of samples: for each sampled size, one with that size for all
// symbols, and one with different sizes.
const sampleCount = 2 * len(sampledSizes)

// refuted reports whether p < 0 at some sample that the facts allow. It only samples if p is over symbols and
// contains quotients or similar atoms.
func (a *algebra) refuted(p poly) bool {
	if !a.symbolic(p) || !a.hasQuotient(p) {
		return false
	}
	for i := range sampleCount {
		if v := a.sampled(p, i); v.fits && v.value < 0 && a.allows(i) {
			return true
		}
	}
	return false
}

func (a *algebra) hasQuotient(p poly) bool {
	for _, t := range p {
		for _, atom := range t.mono {
			if !a.isSymbol(atom) {
				return true
			}
		}
	}
	return false
}

// allows reports whether all facts are known to hold at a sample.
func (a *algebra) allows(i int) bool {
	a.learnFacts()
	for symbol, least := range a.least {
		if v := a.sampledAtom(symbol, i); !v.fits || v.value < least {
			return false
		}
	}
	for _, p := range a.known {
		if v := a.sampled(p, i); a.symbolic(p) && (!v.fits || v.value < 0) {
			return false
		}
	}
	for _, m := range a.facts.Multiples {
		if v := a.sampledAtom(m.Size, i); !v.fits || v.value%m.By != 0 { // as it is written: to simplify a size may lead back here
			return false
		}
	}
	for _, c := range a.granted {
		if v := a.sampledExpr(c, i); !v.fits || v.value == 0 {
			return false
		}
	}
	return true
}

// sampled is the value of p at a sample.
func (a *algebra) sampled(p poly, i int) sample {
	sum := sample{fits: true}
	for _, t := range p {
		product := sample{t.coef, true}
		for _, atom := range t.mono {
			product = product.times(a.sampledAtom(atom, i))
		}
		sum = sum.plus(product)
	}
	return sum
}

// largestSample bounds all intermediate values, so that nothing overflows.
const largestSample = 1 << 62

func (x sample) times(y sample) sample {
	if !x.fits || !y.fits || !mulFits(x.value, y.value) {
		return sample{}
	}
	return sample{x.value * y.value, true}
}

func (x sample) plus(y sample) sample {
	v := x.value + y.value
	return sample{v, x.fits && y.fits && max(x.value, -x.value) < largestSample && max(y.value, -y.value) < largestSample}
}

// sampledAtom is the value of an atom at a sample.
func (a *algebra) sampledAtom(atom *Expr, i int) sample {
	if a.samples.atoms == nil {
		a.samples = samples{map[string]int{}, map[*Expr]*[sampleCount]sample{}}
	}
	values := a.samples.atoms[atom]
	if values == nil {
		values = new([sampleCount]sample)
		for n := range values {
			values[n] = a.sampledExpr(atom, n)
		}
		a.samples.atoms[atom] = values
	}
	return values[i]
}

func (a *algebra) sampledExpr(e *Expr, i int) sample {
	switch e.Op {
	case OpConst:
		return sample{e.Int, true}
	case OpSym:
		return a.sampledSymbol(e.Name, i)
	case OpCast:
		return a.sampledExpr(e.Args[0], i)
	}
	info := e.Op.Info()
	if info.Int == nil || !a.symbolicAtom(e) {
		return sample{}
	}
	var args [3]sample
	for n, arg := range e.Args {
		if args[n] = a.sampledExpr(arg, i); !args[n].fits {
			return sample{}
		}
	}
	switch e.Op {
	case OpMul:
		return args[0].times(args[1])
	case OpAdd:
		return args[0].plus(args[1])
	}
	return sample{info.Int(args[0].value, args[1].value, args[2].value), true}
}

// sampledSymbol is a size for a symbol, a multiple of what the symbol is known to be a multiple
// of.
func (a *algebra) sampledSymbol(name string, i int) sample {
	at, ok := a.samples.symbols[name]
	if !ok {
		at = len(a.samples.symbols)
		a.samples.symbols[name] = at
	}
	step := i / len(sampledSizes) // 0: all symbols alike
	return sample{sampledSizes[(i+step*at)%len(sampledSizes)], true}.times(sample{max(1, a.facts.Divisible[name]), true})
}
