
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

// Folds the states that all teams of the block have for the same vectors, in the order of the teams; the first team gets
// the whole. There is memory for a state of each thread.
template <class R, typename T> DEVICE void fold_teams(T &state, void *memory, int bits) {
    T *const states = reinterpret_cast<T *>(memory);
    __syncthreads(); // what was in memory before is not needed any more
    states[threadIdx.x] = state;
    __syncthreads();
    if (threadIdx.x >> bits == 0)
        for (int at = threadIdx.x + (1 << bits); at < THREADS; at += 1 << bits) state = R::apply(state, states[at]);
}

// The most columns of a place that one team folds alone: twice its share. A place with more is shared by all teams.
constexpr int ALONE = 32; // at least
DEVICE int most_alone(int columns, int teams) { return teams == 1 ? columns : max(ALONE, 2 * columns / teams); }

// The part of a list that a team folds of a place that all teams share.
struct Share {
    int begin, end;
    DEVICE Share(int first, int last, int team, int teams) {
        const int each = (last - first + teams - 1) / teams;
        begin = min(first + team * each, last);
        end = min(begin + each, last);
    }
};
