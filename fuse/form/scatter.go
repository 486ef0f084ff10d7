package form

import (
	"math"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// ScatterOf finds the key of columns that a condition compares with a row; nil where there is none.
func ScatterOf(where *ir.Expr, rows, cols []*ir.Range) *ir.Scatter {
	terms := Conditions(where)
	for i, term := range terms {
		to, key := placeOf(term, rows, cols)
		if to == nil {
			continue
		}
		s := &ir.Scatter{To: to, Key: key}
		for _, rest := range slices.Delete(slices.Clone(terms), i, i+1) {
			s.Rest = ir.Join(ir.OpAnd, s.Rest, rest)
		}
		depends := rangesThrough(s.Key, s.Rest)
		if depends[to] {
			continue
		}
		for _, r := range rows {
			if depends[r] {
				s.Batch = append(s.Batch, r)
			}
		}
		return s
	}
	return nil
}

// Conditions is the parts of a conjunction.
func Conditions(where *ir.Expr) []*ir.Expr { return ir.Conjuncts(defined(where)) }

// CommonConditions is the conditions of a that are also in b.
func CommonConditions(a, b []*ir.Expr, rows, cols []*ir.Range) (out []*ir.Expr) {
	for _, c := range a {
		if slices.ContainsFunc(b, func(x *ir.Expr) bool { return SameCondition(x, c, rows, cols) }) {
			out = append(out, c)
		}
	}
	return out
}

// SameCondition reports whether two conditions are the same, or compare the same row with the same key, one of
// which has been made a wider integer.
func SameCondition(a, b *ir.Expr, rows, cols []*ir.Range) bool {
	if ir.Equal(a, b) {
		return true
	}
	to, key := placeOf(a, rows, cols)
	other, key2 := placeOf(b, rows, cols)
	return to != nil && to == other && ir.Equal(unwidened(key), unwidened(key2))
}

// unwidened is an integer without the casts that keep every value.
func unwidened(key *ir.Expr) *ir.Expr {
	for key.Op == ir.OpCast && key.Type.IsInt() && key.Args[0].Type.IsInt() &&
		key.Args[0].Type.Size() < key.Type.Size() && (key.Type != ir.U32 || key.Args[0].Type == ir.U8) {
		key = defined(key.Args[0])
	}
	return key
}

// placeOf reads a term as the comparison of a row with a key of the columns.
func placeOf(term *ir.Expr, rows, cols []*ir.Range) (to *ir.Range, key *ir.Expr) {
	term = defined(term)
	if term.Op != ir.OpEq {
		return nil, nil
	}
	for i, side := range term.Args {
		row, key := placeIn(side), defined(term.Args[1-i])
		if key.Op == ir.OpCast && key.Type == ir.Index { // without the cast: the key itself may have more bits
			key = key.Args[0]
		}
		if row != nil && row.Op == ir.OpRange && slices.Contains(rows, row.Range) && IsKey(key, cols) {
			return row.Range, key
		}
	}
	return nil, nil
}

// A Place is a row that a condition compares with a key.
type Place struct {
	To             *ir.Range
	Key, Condition *ir.Expr
}

// PlacesOf finds the rows that the parts of a condition compare with keys from memory, each once, in the order of the rows.
func PlacesOf(where *ir.Expr, rows, cols []*ir.Range) (out []Place) {
	compared := map[*ir.Range]bool{}
	for _, term := range Conditions(where) {
		to, key := placeOf(term, rows, cols)
		if to != nil && !compared[to] && ir.Has(key, ir.OpLoad) {
			compared[to] = true
			out = append(out, Place{to, key, term})
		}
	}
	slices.SortFunc(out, func(a, b Place) int { return slices.Index(rows, a.To) - slices.Index(rows, b.To) })
	return slices.DeleteFunc(out, func(p Place) bool {
		return slices.ContainsFunc(rows, func(r *ir.Range) bool { return compared[r] && ir.DependsOn(p.Key, r) })
	})
}

// IsKey reports whether an expression may say where columns go.
func IsKey(e *ir.Expr, cols []*ir.Range) bool {
	return !e.Type.IsFloat() && e.Type != ir.Bool && anyOf(cols, rangesThrough(e))
}

// PlacesMost is the most places for which rows and keys are compared.
const PlacesMost = math.MaxInt32

// placeIn is an expression without the casts that keep every place up to PlacesMost; nil where there are
// other casts.
func placeIn(e *ir.Expr) *ir.Expr {
	for e = defined(e); e.Op == ir.OpCast; e = defined(e.Args[0]) {
		if t := e.Type; t != ir.Index && (t.IsFloat() || t.Size() < ir.I32.Size()) {
			return nil
		}
	}
	return e
}

// defined is the definition of a local, unless that is a read: a read stays a local, so that it
// is done once.
func defined(e *ir.Expr) *ir.Expr {
	for e.Op == ir.OpLocal && e.Local.Def != nil && algebra.ReadIn(e.Local.Def) == nil {
		e = e.Local.Def
	}
	return e
}

func anyOf(ranges []*ir.Range, in map[*ir.Range]bool) bool {
	return slices.ContainsFunc(ranges, func(r *ir.Range) bool { return in[r] })
}

// rangesThrough is the ranges that expressions depend on, through locals too.
func rangesThrough(exprs ...*ir.Expr) map[*ir.Range]bool {
	out := map[*ir.Range]bool{}
	ir.WalkThrough(func(e *ir.Expr) bool {
		if e.Op == ir.OpRange {
			out[e.Range] = true
		}
		return true
	}, exprs...)
	return out
}

// ScatterIn is the scatter that a value is by itself; nil where it is none.
func ScatterIn(v *ir.Value) *ir.Scatter {
	if where := ConditionOf(v); where != nil {
		return ScatterOf(where, v.Axes, v.Reduce.Ranges)
	}
	return nil
}

// ConditionOf is the condition of a reduction, or of all of its terms; nil where there is none.
func ConditionOf(v *ir.Value) *ir.Expr {
	if v.Reduce == nil || v.Reduce.Rank != nil || ScanOf(v) != nil {
		return nil
	}
	where := v.Reduce.Where
	if where == nil {
		where, _ = ConditionIn(v.Reduce.Op, v.Body)
	}
	return where
}

// ConditionIn reads a term as one that is the identity of a reduction where a condition fails; nil where
// it is none.
func ConditionIn(op ir.Monoid, term *ir.Expr) (where, body *ir.Expr) {
	inner := WithoutCasts(term)
	switch {
	case op.IsArg():
	case inner.Op == ir.OpSelect && inner.Args[2].Op == ir.OpConst &&
		ir.Equal(ir.Cast(inner.Args[2], term.Type), op.Identity(term.Type)):
		return inner.Args[0], ir.Cast(inner.Args[1], term.Type)
	case inner.Type == ir.Bool && op == ir.Sum && !term.Type.IsFloat():
		return inner, ir.Num(term.Type, 1)
	}
	return nil, term
}
