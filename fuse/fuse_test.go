package fuse

import (
	"fmt"
	"testing"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

func TestScratch(t *testing.T) {
	g := ir.NewGraph("softmax")
	g.Symbols = []ir.Symbol{{Name: "N"}, {Name: "M"}}
	x := g.Input("x", ir.BF16, []*ir.Expr{ir.Sym("N"), ir.Sym("M")}, diag.Span{})
	ax := g.NewAxes([]*ir.Expr{ir.Sym("N"), ir.IntConst(1)})
	k := g.NewRange("k", ir.Sym("M"))
	m := g.Define("m", ax, ir.Reduce(&ir.Reduction{Op: ir.Max, Ranges: []*ir.Range{k}}, ir.Load(x, []*ir.Expr{ax[0].At(), k.At()}, nil)), ir.Origin{})
	ex := g.NewAxes(x.Shape())
	e := g.Define("e", ex, ir.Apply(ir.OpExp, ir.Apply(ir.OpSub, ir.Load(x, ir.Indices(ex), nil), ir.Load(m, []*ir.Expr{ex[0].At(), ir.IntConst(0)}, nil))), ir.Origin{})
	sx := g.NewAxes([]*ir.Expr{ir.Sym("N"), ir.IntConst(1)})
	k2 := g.NewRange("k", ir.Sym("M"))
	s := g.Define("s", sx, ir.Reduce(&ir.Reduction{Op: ir.Sum, Ranges: []*ir.Range{k2}}, ir.Load(e, []*ir.Expr{sx[0].At(), k2.At()}, nil)), ir.Origin{})
	yx := g.NewAxes(x.Shape())
	y := g.Define("y", yx, ir.Apply(ir.OpDiv, ir.Load(e, ir.Indices(yx), nil), ir.Load(s, []*ir.Expr{yx[0].At(), ir.IntConst(0)}, nil)), ir.Origin{})
	g.Output("y", y, diag.Span{})
	p, err := Plan(g, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range p.Kernels {
		fmt.Println(k.Name, len(k.Rows), len(k.Cols), len(k.Variants))
		for _, v := range k.Variants {
			fmt.Printf("%+v locals %d keep %d sections %d\n", v.Schedule, len(v.Locals), len(v.Keep), len(v.Sections))
		}
	}
	fmt.Println(p.Refused)
}
