// Package explain tells people what a plan does: which kernels there are and what each computes and moves, what
// that takes beside the same operations one by one, and why regions stayed apart.
package explain

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// Options say for whom a plan is explained.
type Options struct {
	Device ir.Device        // the device whose times are estimated; the zero value means an H200
	Sizes  map[string]int64 // of symbols; those not listed take their @bench default
}

// Explanation is what a plan does and why, as data. It is plain: nothing in it
// refers to the plan, and it is written as JSON as it stands.
type Explanation struct {
	Graph   string           `json:"graph"`
	Device  string           `json:"device"`
	Sizes   map[string]int64 `json:"sizes,omitempty"` // the sizes that amounts in bytes are for
	Kernels []KernelNote     `json:"kernels"`
	Refused []RefusalNote    `json:"refused"`
	Fused   Total            `json:"fused"`
	Unfused Total            `json:"unfused"` // every operation as written, a kernel each
	States  []StateNote      `json:"states,omitempty"`

	// Places are where the values of the plan come from, by name. Passes make values whose
	// names are in no program.
	Places map[string]Part `json:"-"`
}

// Part is where a value comes from: a place of the program, and the place in a library function
// that is called there. It also names the value's reduction, such as "max"; "" for none.
type Part struct {
	Span diag.Span
	Is   string
}

// Amount is a number of bytes: over symbols and, where every symbol has a size,
// as a number.
type Amount struct {
	Size  string   `json:"size"`
	Bytes *int64   `json:"bytes,omitempty"`
	Expr  *ir.Expr `json:"-"` // Size, to be evaluated for other sizes
}

// Work is what is computed at each of a number of points.
type Work struct {
	Points   *ir.Expr // over symbols
	Flops    float64  // f32 operations, a fused multiply-add counted as two
	Copies   float64  // the same for instructions that bring operands to tiles, which are no operations of the program
	Special  float64  // special functions
	Products float64  // operations of matrix products, two for each multiply-add
}

// Place is a span that is written as file:line:column.
type Place struct{ diag.Span }

// MarshalText writes the start of the span.
func (p Place) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// KernelNote is one kernel.
type KernelNote struct {
	Name        string      `json:"name"`
	LastBlockOf string      `json:"last_block_of,omitempty"` // the kernel whose last blocks run this one: it has no launch
	Idle        bool        `json:"idle,omitempty"`          // at these sizes it has no element to write, and is not launched
	Template    string      `json:"template"`
	Mapping     string      `json:"mapping"`
	Rows        []RangeNote `json:"rows"`
	Cols        []RangeNote `json:"cols"`
	Folds       string      `json:"folds,omitempty"` // the product whose tiles it folds as it multiplies them, so that the product is not written
	Depth       []RangeNote `json:"depth,omitempty"` // the ranges that this product sums over
	Operations  []Operation `json:"operations"`
	Copies      *CopyNote   `json:"copies,omitempty"` // of a kernel without operations
	Terms       []string    `json:"terms,omitempty"`  // of an f32 product: the tensors that it splits into terms of bf16, "" for what is computed
	Reads       []Transfer  `json:"reads"`
	Writes      []Transfer  `json:"writes"`
	Read        Amount      `json:"read"`
	Written     Amount      `json:"written"`
	Class       *int        `json:"class,omitempty"` // which of Classes the sizes choose
	Classes     []Class     `json:"classes"`
	Seconds     *float64    `json:"seconds,omitempty"` // estimated
	Work        []Work      `json:"-"`                 // what it computes, over symbols
	Rate        float64     `json:"-"`                 // of products, a second
	Finding     float64     `json:"-"`                 // seconds in which a scatter finds what goes where
	Roof        string      `json:"roof,omitempty"`    // what the estimate is bound by: memory, arithmetic, special functions, products, launch
	OfRoof      *float64    `json:"of_roof,omitempty"` // the part of Seconds that this alone takes
	Flops       *float64    `json:"flops,omitempty"`   // operations on floats, those of products included
	Slower      string      `json:"slower,omitempty"`  // why a matrix product does not run on warpgroups
}

// RangeNote is one loop of a kernel's iteration space.
type RangeNote struct {
	Name   string `json:"name"`
	Extent string `json:"extent"`
}

// Operation is what a kernel computes at one place of the program.
type Operation struct {
	Name  string `json:"name"`
	Count int    `json:"count"`          // how often it stands there: a library function may repeat it
	Value string `json:"value"`          // the value it is part of
	Call  string `json:"call,omitempty"` // the library functions it comes from, outermost first
	Span  Place  `json:"span"`
}

// CopyNote says what a kernel without operations copies, and what for.
type CopyNote struct {
	Of       []string `json:"of"`               // the values it reads
	Layout   string   `json:"layout,omitempty"` // the order of the copy, where it is another one
	Inserted bool     `json:"inserted"`         // the compiler made it; the program does not say it
	Span     Place    `json:"span"`             // where it stands in the program; of one that is inserted, what reads it
}

// Transfer is a tensor that a kernel reads or writes, and what of it moves at least.
type Transfer struct {
	Name  string   `json:"name"`
	DType string   `json:"dtype"`
	Shape []string `json:"shape"`
	Kind  string   `json:"kind"` // input, output or temporary
	Amount
}

// Class is a kernel's body for one class of sizes.
type Class struct {
	When     string   `json:"when,omitempty"`  // "" for a class that takes all sizes
	Terms    []string `json:"terms,omitempty"` // the parts of When, all of which must hold; without those on 32-bit offsets
	Schedule Schedule `json:"schedule"`
	Slices   string   `json:"slices,omitempty"` // number of slices of a tile's columns, whose sums pass through memory; an expression if sizes are not known
	Passes   int      `json:"passes"`           // over the columns
	Kept     int      `json:"kept"`             // values of a row that stay on chip between passes
}

// Schedule is an ir.Schedule that is written with names: those of its fields that are set,
// in lower case with underscores.
type Schedule struct{ ir.Schedule }

// MarshalJSON writes the fields that are set.
func (s Schedule) MarshalJSON() ([]byte, error) {
	out := map[string]any{"mapping": s.Mapping.String()}
	v := reflect.ValueOf(s.Schedule)
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.Name != "Mapping" && !v.Field(i).IsZero() {
			out[underscored(f.Name)] = v.Field(i).Interface()
		}
	}
	return json.Marshal(out)
}

// underscored is RowThreads as row_threads and Index64 as index64.
func underscored(name string) string {
	var b strings.Builder
	for i, c := range name {
		if unicode.IsUpper(c) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// RefusalNote is a merge that was considered and not taken.
type RefusalNote struct {
	Producer string   `json:"producer"`
	Consumer string   `json:"consumer"`
	Template string   `json:"template"`
	Reason   string   `json:"reason"`
	Detail   string   `json:"detail"`
	Span     Place    `json:"span"`
	Saved    Amount   `json:"saved"`             // what the merge would have kept from memory
	From     Place    `json:"from"`              // where the producer is computed; Span is where it is read
	Seconds  *float64 `json:"seconds,omitempty"` // about, to write and to read what the merge would have saved
	Rewrite  string   `json:"rewrite,omitempty"` // what the program could say instead; "" where nothing helps
	Inserted bool     `json:"inserted"`          // the compiler made the producer or the consumer; the program cannot change it
}

// StateNote says how an input that is state gets its next value.
type StateNote struct {
	Name    string `json:"name"`
	InPlace bool   `json:"in_place"`      // whether the next value takes the memory of the present one
	Why     string `json:"why,omitempty"` // why it has a second buffer; "" if it has none
}

// statesOf describes the states of a plan.
func statesOf(plan *ir.Plan) (out []StateNote) {
	for _, b := range plan.Buffers {
		if b.Updates != nil {
			out = append(out, StateNote{b.Updates.Name, b.InPlace, b.Apart})
		}
	}
	return out
}

// Total sums kernels.
type Total struct {
	Kernels int      `json:"kernels"`
	Read    Amount   `json:"read"`
	Written Amount   `json:"written"`
	Seconds *float64 `json:"seconds,omitempty"`
}

// Explain describes the plan of g: kernels, refusals, and beside them what the
// program would cost without fusion.
func Explain(g *ir.Graph, plan *ir.Plan, opts Options) Explanation {
	if opts.Device.Name == "" {
		opts.Device = ir.Devices()[0]
	}
	x := &explainer{device: opts.Device, graph: g, tf32: g.TF32, sizes: Sizes(g, opts.Sizes), sorts: sorts{}, scatters: scatters{}, filled: 1, windowed: 1}
	plan = plan.At(x.sizes)
	out := Explanation{Graph: g.Name, Device: opts.Device.Name, Sizes: x.sizes,
		Kernels: []KernelNote{}, Refused: []RefusalNote{}, States: statesOf(plan)}
	x.places = placesOf(plan.Graph.Values)
	x.readers = readersOf(g, plan.Graph.Values)
	out.Places = x.parts(plan.Graph.Values)
	fused := newTally()
	lastBlocks := map[*ir.Kernel]string{}
	for _, k := range plan.Kernels {
		if k.LastBlock != nil {
			lastBlocks[k.LastBlock.Kernel] = k.Name
		}
		out.Kernels = append(out.Kernels, x.kernel(k, lastBlocks[k], fused))
	}
	out.Refused = append(out.Refused, x.refusals(g, plan)...)
	out.Fused = x.total(fused)
	out.Unfused = x.total(unfused(g, x))
	return out
}

// Sizes joins the given sizes with the defaults of the graph.
func Sizes(g *ir.Graph, given map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for _, s := range g.Symbols {
		if v, ok := given[s.Name]; ok {
			out[s.Name] = v
		} else if s.Default > 0 {
			out[s.Name] = s.Default
		}
	}
	return out
}

type explainer struct {
	graph  *ir.Graph // the program
	tf32   bool      // of the graph
	device ir.Device
	sizes  map[string]int64
	places map[*ir.Value]diag.Span
	// readers are the first readers of the values that the compiler inserted.
	readers  map[*ir.Value]*ir.Value
	sorts    sorts
	scatters scatters
	filled   float64 // the least part of a device's rate that tiles of multiply-adds reach: a library's are taken to be as full
	windowed float64 // the same of tiles of windows
}

func (x *explainer) kernel(k *ir.Kernel, lastBlockOf string, sum *tally) KernelNote {
	n := KernelNote{Name: k.Name, LastBlockOf: lastBlockOf, Template: k.Template.String(), Rows: rangeNotes(k.Rows),
		Cols: rangeNotes(k.Cols), Operations: operations(k.Members), Terms: termsOf(k.Members), Reads: []Transfer{}, Writes: []Transfer{}}
	if len(n.Operations) == 0 {
		n.Copies = x.copyNote(k.Members)
	}
	if c := k.Variants[0].Contract; c != nil && c.Product != nil {
		n.Folds, n.Depth = c.Product.Name, rangeNotes(c.Depth)
	}
	cost := newTally()
	chosen := x.classes(k, &n)
	cost.rate, n.Slower = min(x.productRate(chosen), x.loopRate(k, chosen)), x.notWarpgroups(k, chosen)
	for _, a := range k.Args {
		if a.Write {
			bytes := writtenBytes(a.Buffer, k)
			cost.write(bytes)
			n.Writes = append(n.Writes, x.transfer(a.Buffer, bytes))
		} else {
			bytes := Touched(a.Buffer.Value, k.Members)
			cost.read(bytes)
			n.Reads = append(n.Reads, x.transfer(a.Buffer, bytes))
		}
	}
	for _, v := range k.Members {
		var to *ir.Range
		if s := form.ScatterIn(v); s != nil && chosen.Scatter != nil {
			to = s.To
		}
		cost.compute(v, to, x)
	}
	if chosen.Sort != nil {
		x.sorts.add(chosen, k)
		cost.sort(chosen, k, x)
	}
	if chosen.Scatter != nil {
		n.Finding = x.scatter(chosen, k)
		cost.finding = n.Finding
		x.scatters.add(k, n.Finding)
	}
	cost.kernels = 1
	computed := cost.flops + cost.products
	x.copies(chosen, k.Cols, cost)
	if b := x.amount(cost.writes).Bytes; b != nil && *b == 0 && len(n.Writes) > 0 {
		cost, n.Idle = newTally(), true
	}
	t := x.total(cost)
	n.Read, n.Written, n.Seconds = t.Read, t.Written, t.Seconds
	n.Work, n.Rate = cost.work, cost.rate
	if t.Seconds != nil {
		n.Roof, n.OfRoof = x.roof(cost, t)
		n.Flops = &computed
	}
	if lastBlockOf != "" {
		cost.kernels = 0
	}
	sum.add(cost)
	return n
}

// slices says into how many slices the columns of a variant's tiles are cut; "" where they are not.
func (x *explainer) slices(v *ir.Variant) string {
	if v.Contract == nil || v.Contract.Slices == nil {
		return ""
	}
	if n, ok := x.eval(v.Contract.Slices); ok {
		return strconv.FormatInt(n, 10)
	}
	return v.Contract.Slices.String()
}

// classes lists the variants of a kernel, and returns the one that the sizes choose; the
// first where that is unknown.
func (x *explainer) classes(k *ir.Kernel, n *KernelNote) *ir.Variant {
	undecided := false // an earlier class may or may not be chosen
	for i, v := range k.Variants {
		c := Class{Schedule: Schedule{v.Schedule}, Slices: x.slices(v), Kept: len(v.Keep)}
		for _, s := range v.Sections {
			if s.Level == ir.FullLevel {
				c.Passes++
			}
		}
		if v.When != nil {
			c.When, c.Terms = v.When.String(), termsText(v.When)
		}
		holds, known := x.eval(algebra.OrTrue(v.When))
		undecided = undecided || !known
		if !undecided && holds != 0 && n.Class == nil {
			n.Class = &i
		}
		n.Classes = append(n.Classes, c)
	}
	chosen := 0
	if n.Class != nil {
		chosen = *n.Class
	}
	n.Mapping = n.Classes[chosen].Schedule.Mapping.String()
	return k.Variants[chosen]
}

// termsText lists the parts of a condition, each once, except those that say that offsets fit
// 32 bits.
func termsText(when *ir.Expr) []string {
	var out []string
	for _, e := range ir.Conjuncts(when) {
		if text := e.String(); !fits32(e) && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// fits32 reports whether a condition is one on offsets of 32 bits.
func fits32(e *ir.Expr) bool { return e.Op == ir.OpLt && e.Args[1].IsConst(forecast.Largest32) }

// refusals describes the merges that were not taken between kernels that run at these sizes. A plan
// also has kernels for other sizes; their refusals are left out.
func (x *explainer) refusals(g *ir.Graph, plan *ir.Plan) (out []RefusalNote) {
	runs, written := map[string]bool{}, map[string]bool{}
	for _, k := range plan.Kernels {
		for _, v := range k.Members {
			runs[v.Name] = true
		}
	}
	for _, v := range g.Values {
		written[v.Name] = true
	}
	for _, r := range plan.Refused {
		if runs[r.Producer] && runs[r.Consumer] {
			note := x.refusal(plan.Graph, r)
			note.Inserted = !written[r.Producer] || !written[r.Consumer]
			out = append(out, note)
		}
	}
	return out
}

// refusal describes a merge that was not taken. If the read between the two has no place in the
// program, as in library functions, the place is that of the reader.
func (x *explainer) refusal(g *ir.Graph, r ir.Refusal) RefusalNote {
	var producer, consumer *ir.Value
	for _, v := range g.Values {
		switch v.Name {
		case r.Consumer:
			consumer = v
		case r.Producer:
			producer = v
		}
	}
	if r.Span.IsZero() && consumer != nil {
		r.Span = x.places[consumer]
	}
	out := RefusalNote{Producer: r.Producer, Consumer: r.Consumer, Template: r.Template.String(),
		Reason: r.Reason.String(), Detail: r.Detail, Span: Place{r.Span}}
	if producer != nil && consumer != nil {
		out.From, out.Rewrite = Place{x.places[producer]}, x.rewrite(g, r.Reason, producer, consumer)
	}
	if r.Bytes != nil {
		out.Saved = x.amount(r.Bytes)
	}
	if bytes := out.Saved.Bytes; bytes != nil && x.device.Bandwidth > 0 {
		const passes = 2 // it is written and read
		seconds := passes * float64(*bytes) / x.device.Bandwidth
		out.Seconds = &seconds
	}
	return out
}

func (x *explainer) transfer(b *ir.Buffer, bytes *ir.Expr) Transfer {
	kinds := [...]string{ir.InputBuffer: "input", ir.OutputBuffer: "output", ir.TempBuffer: "temporary",
		ir.CheckBuffer: "check"}
	t := Transfer{Name: b.Name, DType: b.Type.String(), Shape: []string{}, Kind: kinds[b.Kind],
		Amount: x.amount(bytes)}
	for _, d := range b.Shape {
		t.Shape = append(t.Shape, d.String())
	}
	return t
}

func rangeNotes(ranges []*ir.Range) []RangeNote {
	out := []RangeNote{}
	for _, r := range ranges {
		out = append(out, RangeNote{r.Name, r.Extent.String()})
	}
	return out
}

func (x *explainer) amount(e *ir.Expr) Amount {
	e = ir.Simplify(e, ir.Facts{Positive: true})
	a := Amount{Size: e.String(), Expr: e}
	if v, ok := x.eval(e); ok {
		a.Bytes = &v
	}
	return a
}

// eval gives the value of a size where every symbol in it is known.
func (x *explainer) eval(e *ir.Expr) (v int64, ok bool) {
	unknown := func(e *ir.Expr) bool {
		_, have := x.sizes[e.Name]
		return e.Op == ir.OpSym && !have
	}
	if ir.Contains(e, unknown) {
		return 0, false
	}
	return ir.EvalSize(e, x.sizes)
}
