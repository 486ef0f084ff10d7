// --- selecting from rows that blocks share --------------------------------------------

// Finds the first places of a row together with other blocks, each of which has a slice of it, a number of whole pieces.
// A block leaves the first places of its slice in memory, in the order of the slices. The block of the row that comes
// last finds the first places among these. One loop does both, since NVRTC takes minutes over two copies of the selector.
template <class K, int PIECE, class BLOCK, class GET, class PUT>
DEVICE void select_shared(BLOCK &block, unsigned cols, unsigned wanted, unsigned row, unsigned slice, unsigned slices, unsigned *counters, void *memory, GET get, PUT put) {
    typedef Ranked<K, false> R;
    typedef typename R::Entry Entry;
    const unsigned pieces = (max(cols, 1u) - 1) / PIECE + 1, size = ((pieces - 1) / slices + 1) * PIECE;
    const unsigned base = (unsigned)min((unsigned long long)slice * size, (unsigned long long)cols);
    Entry *const found = reinterpret_cast<Entry *>(memory) + (long long)row * slices * wanted;
    unsigned from = min(cols - base, size); // of how many keys the first are found now
    bool again = false;                     // whether they are what all blocks have found
#pragma unroll 1
    while (true) {
        const bool final = again || slices == 1;
        block.places(from, final ? wanted : min(from, wanted), [&](unsigned c) { return again ? R::word(fresh(found + c)) : get(base + c); },
                     [&](unsigned p, bool real, typename K::Word word, unsigned at) {
                         if (final)
                             put(p, real, word, again && real ? R::column(fresh(found + at)) : at);
                         else
                             found[slice * wanted + p] = R::entry(word, base + at);
                     });
        if (final || !comes_last(counters, row, slices)) return;
        again = true;
        from = cols / size * wanted + min(cols % size, wanted); // slices before the last have more columns than places
    }
}
