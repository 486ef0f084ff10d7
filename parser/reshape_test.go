package parser

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/ir"
)

func TestReshapeParts(t *testing.T) {
	n, c, h, w := ir.Sym("N"), ir.Sym("C"), ir.Sym("H"), ir.Sym("W")
	k := ir.IntConst
	groups := divIndex(c, k(32))
	for _, test := range []struct {
		from, to []*ir.Expr
		want     []reshapePart
	}{
		{[]*ir.Expr{n, c}, []*ir.Expr{mulIndex(n, c)}, []reshapePart{{0, 2, 0, 1}}},
		{[]*ir.Expr{n, c, h}, []*ir.Expr{n, mulIndex(c, h)}, []reshapePart{{0, 1, 0, 1}, {1, 3, 1, 2}}},
		{[]*ir.Expr{n, c, h, w}, []*ir.Expr{n, k(32), groups, mulIndex(h, w)}, []reshapePart{{0, 1, 0, 1}, {1, 2, 1, 3}, {2, 4, 3, 4}}},
		{[]*ir.Expr{k(6), k(4)}, []*ir.Expr{k(2), k(3), k(4)}, []reshapePart{{0, 1, 0, 2}, {1, 2, 2, 3}}},
		{[]*ir.Expr{k(6), k(4)}, []*ir.Expr{k(8), k(3)}, []reshapePart{{0, 2, 0, 2}}},
		{[]*ir.Expr{n}, []*ir.Expr{n, k(1)}, []reshapePart{{0, 1, 0, 2}}},
		{nil, []*ir.Expr{k(1)}, []reshapePart{{0, 0, 0, 1}}},
	} {
		assert.Equal(t, test.want, reshapeParts(sameSize, test.from, test.to), "%s to %s", shapeText(test.from), shapeText(test.to))
	}
}
