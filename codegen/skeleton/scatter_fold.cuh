
// One of two values, both of which are computed.
template <typename T> DEVICE T chosen(bool first, const T &a, const T &b) { return first ? a : b; }

// The place of a column, or -1 where there is no such column. A key is read in any case, of another column then, because
// a read behind a branch would wait for those before it. There must be at least one column.
template <class Place> DEVICE auto place_at(INDEX column, INDEX columns, Place place_of) {
    const auto place = place_of(min(column, columns - 1));
    return column < columns ? place : -1;
}

// The bits of a thread's number in its team. A team has a thread for each vector: a power of two, and at most the block.
DEVICE int team_bits(INDEX vectors, int least) {
    const unsigned threads = (unsigned)min(max(vectors, (INDEX)least), (INDEX)THREADS);
    return 32 - __clz((int)(threads - 1));
}
