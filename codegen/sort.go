package codegen

import (
	_ "embed"

	"github.com/fusec/fusec/ir"
)

//go:embed sort.cuh
var sortPrelude string

// sortRoom is how many keys a block of a sort kernel has room for in shared memory.
func sortRoom(s ir.Schedule) int {
	if s.Mapping == ir.SelectMapping {
		return s.Threads
	}
	return s.Threads * s.Items
}

// sortShared is the bytes of dynamic shared memory of a sort kernel: the members of
// Sorter in sort.cuh.
func sortShared(v *ir.Variant) int {
	const digits, bins, word = 256, 2048, 4
	room, warps := sortRoom(v.Schedule), v.Schedule.Threads/32
	key := word
	if v.Sort.Type.Size() > word {
		key = v.Sort.Type.Size()
	}
	indices := 1
	if moves(v) {
		indices = room
	}
	bytes := room*key + word*(indices+max(warps*digits, bins)+warps+1+4)
	return (bytes + 15) / 16 * 16
}

// moves reports whether the kernel keeps the columns of keys beside them.
func moves(v *ir.Variant) bool {
	return v.Schedule.Mapping != ir.SortMapping || v.Sort.Indexed()
}

// sortKernel writes a kernel that puts each row in order: how a key is read, what is
// stored at a place, and the algorithm of the prelude between them.
func (e *emitter) sortKernel() {
	s := e.v.Sort
	e.line("[[maybe_unused]] const INDEX row = (INDEX)blockIdx.x;")
	e.take(e.k.Rows, "row", e.every()...)
	e.line("typedef SortKey<%s> Key;", storageType(s.Type))
	e.line("typedef Sorter<Key, THREADS, ITEMS, ROOM, %t> Block;", moves(e.v))
	e.line("extern __shared__ __align__(16) unsigned char shared[];")
	e.line("Block &block = *reinterpret_cast<Block *>(shared);")
	e.open("const auto get = [&](unsigned c)")
	e.take(e.k.Cols, "c", s.Key)
	e.noted(s.Value.Span, "return sort_word<Key, %t>(%s);", s.Descending, e.s.bare(s.Key))
	e.end()
	e.open("const auto put = [&](unsigned c, bool real, Key::Word word, unsigned column)")
	e.line("[[maybe_unused]] const INDEX %s = (INDEX)c;", e.ranges[s.Places])
	e.placed(s)
	for _, st := range s.Stores {
		e.scalarStore(st)
	}
	e.end()
	method := map[ir.Mapping]string{ir.SortMapping: "all_places", ir.SelectMapping: "first", ir.WindowMapping: "windows"}[e.v.Schedule.Mapping]
	e.line("block.%s((unsigned)%s, (unsigned)%s, get, put);", method, e.s.expr(product(extents(e.k.Cols))), e.s.expr(s.Places.Extent))
}

// placed writes what stands at a place: past the last column the result of no
// elements.
func (e *emitter) placed(s *ir.Sort) {
	op := ir.Min
	if s.Descending {
		op = ir.Max
	}
	value, index := e.names.fresh(s.Value.Name), e.names.fresh(s.Index.Name)
	t := computeType(s.Type)
	none := ir.Cast(op.Identity(s.Type), s.Type.Info().Compute)
	e.noted(s.Value.Span, "[[maybe_unused]] const %s %s = real ? (%s)sort_value<Key, %t>(word) : (%s)%s;", t, value, t, s.Descending, t, literal(none))
	e.line("[[maybe_unused]] const long long %s = real ? (long long)column : 0LL;", index)
	e.place[s.Value], e.place[s.Index] = value, index
}

// end closes a lambda.
func (e *emitter) end() {
	e.indent--
	e.line("};")
}
