
// Either of two values, both of which are computed.
template <typename T> DEVICE T chosen(bool first, const T &a, const T &b) { return first ? a : b; }

// The place of a column, or -1 where there is none. One of the columns, of which there must
// be some, is read in any case: a read behind a branch would wait for those before it.
template <class Place> DEVICE auto place_at(INDEX column, INDEX columns, Place place_of) {
    const auto place = place_of(min(column, columns - 1));
    return column < columns ? place : -1;
}

// The bits of the number of a thread in its team, which has one for each vector: as many as
// the block at most, a power of two.
DEVICE int team_bits(INDEX vectors, int least) {
    const unsigned threads = (unsigned)min(max(vectors, (INDEX)least), (INDEX)THREADS);
    return 32 - __clz((int)(threads - 1));
}
