
// --- scatter: columns put in the order of the places they go to -------------------
//
// A block has PLACES places, and lists the columns that go there. Where it has no room for all, it counts the columns of
// each place and takes some places at a time, as many as there is room for. A place with more columns than that is taken
// alone, in pieces. The columns of a place keep their order whatever the threads do, so that results are the same each
// time.

constexpr int ROOM = 2048;               // columns that a block lists at a time
constexpr int EACH = 4;                  // keys that a thread looks at in one step
constexpr int STEP = EACH * THREADS;     // keys that a block looks at in one step
constexpr int WARPS = THREADS / 32;
static_assert(EACH * WARPS == 32 && PLACES <= THREADS, "counts of a step for a warp, places for the block");

struct alignas(16) Listed {
    INDEX column[2 * ROOM];              // the listed columns in their order; from ROOM on by place, then in their order
    unsigned short place[ROOM];          // the place of each listed column
    int count[PLACES];                   // how many columns each place has
    int begin[PLACES + 1];               // where those of a place begin, from ROOM on
    int found[2][EACH * WARPS];          // how many each warp finds in each part of a step
    unsigned short slice[WARPS][PLACES]; // how many columns of a place a warp's slice of the list has, then where they go
    int shared;                          // how many places all teams share
    unsigned short shares[PLACES];       // these places
};
static_assert(THREADS * 16 <= 4 * ROOM, "room for a state of each thread where the list was before it was put in order");

// Counts the columns of each place. place_of gives that of a column, or -1.
template <class Place> DEVICE void count_places(Listed &s, INDEX columns, Place place_of) {
    for (int i = threadIdx.x; i < PLACES; i += THREADS) s.count[i] = 0;
    __syncthreads();
    constexpr int PREFETCH = 2 * EACH; // keys that a thread has under way
    for (INDEX base = 0; base < columns; base += PREFETCH * THREADS) {
        int place[PREFETCH];
#pragma unroll
        for (int u = 0; u < PREFETCH; ++u) place[u] = place_at(base + u * THREADS + threadIdx.x, columns, place_of);
#pragma unroll
        for (int u = 0; u < PREFETCH; ++u)
            if (place[u] >= 0) atomicAdd(&s.count[place[u]], 1);
    }
    __syncthreads();
}

// Lists the columns from `next` on that go to places from low to high, until there might be no room for another step.
// Returns where it stopped. All threads get the same size.
template <class Place> DEVICE INDEX list_columns(Listed &s, INDEX next, INDEX columns, int low, int high, int &size, Place place_of) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    size = 0;
    __syncthreads(); // the list from before is not needed any more
    int prefetched[EACH]; // places of the next step's columns
#pragma unroll
    for (int u = 0; u < EACH; ++u) prefetched[u] = columns > 0 ? place_at(next + u * THREADS + threadIdx.x, columns, place_of) : -1;
    for (int turn = 0; next < columns && size + STEP <= ROOM; next += STEP, turn ^= 1) {
        int place[EACH];
        unsigned mine[EACH];
#pragma unroll
        for (int u = 0; u < EACH; ++u) {
            place[u] = prefetched[u];
            prefetched[u] = place_at(next + (EACH + u) * THREADS + threadIdx.x, columns, place_of);
        }
#pragma unroll
        for (int u = 0; u < EACH; ++u) {
            mine[u] = __ballot_sync(0xffffffffu, place[u] >= low && place[u] < high);
            if (lane == 0) s.found[turn][u * WARPS + warp] = __popc(mine[u]);
        }
        if (!__syncthreads_or((mine[0] | mine[1] | mine[2] | mine[3]) != 0)) continue;
        int before = s.found[turn][lane]; // a lane for each warp and part, in the order of columns
#pragma unroll
        for (int d = 1; d < 32; d *= 2) {
            const int other = __shfl_up_sync(0xffffffffu, before, d);
            if (lane >= d) before += other;
        }
        const int total = __shfl_sync(0xffffffffu, before, 31);
#pragma unroll
        for (int u = 0; u < EACH; ++u) {
            const int at = size + __shfl_sync(0xffffffffu, before, u * WARPS + warp) - __popc(mine[u]) + __popc(mine[u] & ((1u << lane) - 1));
            if (mine[u] >> lane & 1) {
                s.column[at] = next + u * THREADS + threadIdx.x;
                s.place[at] = (unsigned short)place[u];
            }
        }
        size += total;
    }
    __syncthreads();
    return min(next, columns);
}

// Computes where the columns of each place begin. Thread p gives how many columns place p has.
DEVICE void begin_places(Listed &s, int count, int size) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int before = count; // becomes the sum up to this place
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const int other = __shfl_up_sync(0xffffffffu, before, d);
        if (lane >= d) before += other;
    }
    if (lane == 31) s.found[0][warp] = before;
    __syncthreads();
    for (int w = 0; w < warp; ++w) before += s.found[0][w];
    if (threadIdx.x < PLACES) s.begin[threadIdx.x] = before - count;
    if (threadIdx.x == 0) s.begin[PLACES] = size;
}

// Sorts the list by place; columns of a place keep their order. Each warp counts the places in a slice of the list, and
// the counts of all warps say where the columns of each slice go.
DEVICE void sort_places(Listed &s, int size) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned below = (1u << lane) - 1;
    for (int i = lane; i < PLACES; i += 32) s.slice[warp][i] = 0;
    __syncwarp();
    const int each = (size + THREADS - 1) / THREADS * 32, end = min((warp + 1) * each, size);
    for (int base = warp * each; base < end; base += 32) {
        const int i = base + lane, place = i < end ? s.place[i] : PLACES;
        const unsigned same = __match_any_sync(0xffffffffu, place);
        if (i < end && !(same & below)) s.slice[warp][place] += (unsigned short)__popc(same);
        __syncwarp();
    }
    __syncthreads();
    int count = 0;
    if (threadIdx.x < PLACES)
        for (int w = 0; w < WARPS; ++w) count += s.slice[w][threadIdx.x];
    begin_places(s, count, size);
    if (threadIdx.x < PLACES) {
        int at = s.begin[threadIdx.x];
        for (int w = 0; w < WARPS; ++w) {
            const int own = s.slice[w][threadIdx.x];
            s.slice[w][threadIdx.x] = (unsigned short)at;
            at += own;
        }
    }
    __syncthreads();
    for (int base = warp * each; base < end; base += 32) {
        const int i = base + lane, place = i < end ? s.place[i] : PLACES;
        const unsigned same = __match_any_sync(0xffffffffu, place);
        const int at = i < end ? s.slice[warp][place] : 0;
        __syncwarp();
        if (i < end) {
            s.column[ROOM + at + __popc(same & below)] = s.column[i];
            if (!(same & below)) s.slice[warp][place] = (unsigned short)(at + __popc(same));
        }
        __syncwarp();
    }
    __syncthreads();
}

// The end of the places from low on whose columns can be listed together; at least one.
DEVICE int places_together(const Listed &s, int low, int places) {
    int high = low + 1;
    for (int sum = s.count[low]; high < places; ++high) {
        sum += s.count[high];
        if (sum > ROOM - STEP) break;
    }
    return high;
}

// Finds the places from low to high that have more columns than one team folds alone, and returns how many they are.
DEVICE int find_shared(Listed &s, int low, int high, int size, int most) {
    if (size <= most) return 0;
    __syncthreads();
    if (threadIdx.x == 0) s.shared = 0;
    __syncthreads();
    const int place = low + threadIdx.x;
    if (place < high && s.begin[place + 1] - s.begin[place] > most) s.shares[atomicAdd(&s.shared, 1)] = (unsigned short)place;
    __syncthreads();
    return s.shared;
}
