// --- selecting from rows that blocks share --------------------------------------------

// Finds the first places of a row together with other blocks, each of which has a slice of it, a number of whole pieces.
// A block leaves the first places of its slice in memory, in the order of the slices. The block of the row that comes
// last finds the first places among these.
template <class K, int PIECE, class BLOCK, class GET, class PUT>
DEVICE void select_shared(BLOCK &block, unsigned cols, unsigned wanted, unsigned row, unsigned slice, unsigned slices, unsigned *counters, void *memory, GET get, PUT put) {
    typedef Ranked<K, false> R;
    typedef typename R::Entry Entry;
    if (slices == 1) {
        block.places(cols, wanted, get, put);
        return;
    }
    const unsigned pieces = (max(cols, 1u) - 1) / PIECE + 1, size = ((pieces - 1) / slices + 1) * PIECE;
    const unsigned base = (unsigned)min((unsigned long long)slice * size, (unsigned long long)cols), own = min(cols - base, size);
    Entry *const found = reinterpret_cast<Entry *>(memory) + (long long)row * slices * wanted;
    block.places(own, min(own, wanted), [&](unsigned c) { return get(base + c); }, [&](unsigned p, bool, typename K::Word word, unsigned column) {
        found[slice * wanted + p] = R::entry(word, base + column);
    });
    if (!comes_last(counters, row, slices)) return;
    const unsigned all = cols / size * wanted + min(cols % size, wanted); // slices before the last have more columns than places
    block.places(all, wanted, [&](unsigned c) { return R::word(fresh(found + c)); }, [&](unsigned p, bool real, typename K::Word word, unsigned at) {
        put(p, real, word, real ? R::column(fresh(found + at)) : 0);
    });
}
