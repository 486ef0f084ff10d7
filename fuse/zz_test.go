package fuse
import ("testing";"os";"fmt";"github.com/fusec/fusec/parser";"github.com/fusec/fusec/ir")
func TestZZ(t *testing.T){
	b,_:=os.ReadFile(os.Getenv("ZZ"))
	f,_:=parser.Parse("a",b,parser.Options{})
	g,_:=f.Graph("")
	w,_:=Normalize(g,Options{})
	fmt.Println(ir.Print(w))
	fu:=formed(w,Options{Device:ir.Devices()[0]})
	for _,r:=range fu.schedule(){ for _,m:=range r.members{fmt.Print(m.Name," ")}; if r.product!=nil{fmt.Print("PRODUCT ",r.product.Name)}; fmt.Println(names(r.space), "cols",names(ordered(r.space,r.cols)))}
}
