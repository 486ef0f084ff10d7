// --- sorting longer rows -----------------------------------------------------------

// Sorts rows of any length, SIZE places at a time: it cuts off the keys up to the last of these places, leaves out those
// that are in their places already, and sorts the rest.
template <class K, int THREADS_, int ITEMS_> struct WindowSorter : Cutter<THREADS_> {
    typedef Cutter<THREADS_> Base;
    typedef typename K::Word Word;
    typedef typename Base::template Cut<Word> Cut;
    static constexpr int SIZE = THREADS_ * ITEMS_;
    OrderSorter<K, THREADS_, ITEMS_> window;
    unsigned indices[SIZE];

    template <class GET> struct Row {
        const GET &get;
        unsigned cols;
        template <class F> DEVICE void each(F f) const {
            for (unsigned i = threadIdx.x; i < cols; i += THREADS_) f(get(i), i);
        }
    };

    template <class GET, class PUT> DEVICE void places(unsigned cols, unsigned wanted, GET get, PUT put) {
        const unsigned real = min(wanted, cols);
        Cut last = {0, 0, 0, 0};
        unsigned taken = 0; // how many keys that equal the last cut are in their places
        for (unsigned done = 0; done < real; done += SIZE) {
            const unsigned count = min(real, done + SIZE);
            const Cut c = this->template cut<Word, K::bits>(count, Row<GET>{get, cols});
            for (unsigned p = count - done + threadIdx.x; p < SIZE; p += THREADS_) window.words[p] = K::ones;
            collect(cols, done, count, last, taken, c, get);
            window.sorted([&](unsigned p, unsigned i) {
                if (p < count - done) put(done + p, true, window.words[i], indices[i]);
            });
            __syncthreads();
            last = c;
            taken = count - c.below;
        }
        for (unsigned p = real + threadIdx.x; p < wanted; p += THREADS_) put(p, false, K::ones, 0u);
    }

    // Copies the keys of ranks from done to count - 1 to shared memory, in order of index.
    template <class GET> DEVICE void collect(unsigned cols, unsigned done, unsigned count, const Cut &last, unsigned taken, const Cut &c, GET get) {
        unsigned old = 0, now = 0, room = 0, total;
        for (unsigned base = 0; base < cols; base += THREADS_) {
            const unsigned i = base + threadIdx.x;
            const Word k = i < cols ? get(i) : K::ones;
            const bool wasEqual = i < cols && done > 0 && last.same(k), isEqual = i < cols && c.same(k);
            const unsigned ahead = this->before((unsigned)wasEqual | (unsigned)isEqual << 16, total);
            const bool begun = done == 0 || !last.less(k) && !(wasEqual && old + (ahead & 0xffff) < taken);
            const bool inside = i < cols && begun && (c.less(k) || isEqual && c.below + now + (ahead >> 16) < count);
            old += total & 0xffff;
            now += total >> 16;
            const unsigned to = room + this->before(inside, total);
            if (inside) {
                window.words[to] = k;
                indices[to] = i;
            }
            room += total;
        }
        __syncthreads();
    }
};
