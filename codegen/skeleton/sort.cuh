// --- sorting ---------------------------------------------------------------------

// Reads words of a row and calls take(u, column, word): word u of a thread is that of column first + u * THREADS_ + its
// number, or the greatest word beyond the last column. Where the row fills the block, no test stands before a read, so
// that all reads are under way before the first word is needed.
template <class K, int THREADS_, int ITEMS_, class GET, class TAKE> DEVICE void read_words(unsigned first, unsigned cols, GET get, TAKE take) {
    const unsigned mine = first + threadIdx.x;
    if (cols - first >= THREADS_ * ITEMS_) {
#pragma unroll
        for (int u = 0; u < ITEMS_; ++u) take(u, mine + u * THREADS_, get(mine + u * THREADS_));
    } else {
        const int n = mine < cols ? (cols - mine + THREADS_ - 1) / THREADS_ : 0;
#pragma unroll
        for (int u = 0; u < ITEMS_; ++u) take(u, mine + u * THREADS_, u < n ? get(mine + u * THREADS_) : K::ones);
    }
}
