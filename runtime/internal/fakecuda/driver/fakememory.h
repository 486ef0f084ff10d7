// The memory of the fake driver. Included by fakecuda.c, whose state it shares.

// fits tells whether there is room. What the pool holds is of use to it where that is as much
// as is asked for, and to nobody else.
static int fits(size_t n, int pooled) {
    uint64_t used = n;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < num_allocations; i++) used += allocations[i].bytes;
    if (!pooled || pool_held < n) used += pool_held;
    pthread_mutex_unlock(&lock);
    return !limit || used <= limit;
}

static CUresult allocate(CUdeviceptr *p, size_t n, int pooled) {
    if (n == 0) FAIL(1);
    if (n > (size_t)1 << 32 || !fits(n, pooled)) FAIL(2);
    *p = device_take(n, pooled);
    return (CUresult)0;
}

CALL cuMemAlloc_v2(CUdeviceptr *p, size_t n) { CTX_CALL; return allocate(p, n, 0); }

// Memory that queued work uses is kept, with other contents, so that the work does no harm.
CALL cuMemFree_v2(CUdeviceptr p) {
    CTX_CALL;
    struct allocation a;
    pthread_mutex_lock(&work_lock);
    int known = device_forget(p, &a);
    const struct node *user = known ? pending(a.at, a.bytes) : NULL;
    if (user) {
        violate("memory is freed while %s is queued on it", name_of(user));
        memset((void *)a.at, 0xDD, a.bytes);
        bury((void *)a.at);
    }
    pthread_mutex_unlock(&work_lock);
    if (!known) FAIL(1);
    if (!user) free((void *)a.at);
    atomic_fetch_sub(&live, 1);
    return (CUresult)0;
}

CALL cuMemAllocAsync(CUdeviceptr *p, size_t n, CUstream s) {
    CTX_CALL;
    CUresult code = allocate(p, n, 1);
    if ((int)code) return code;
    if (pool_held >= n) pool_held -= n;
    struct node alloc = {.kind = ALLOC, .a = *p};
    return queue(s, alloc);
}

CALL cuMemFreeAsync(CUdeviceptr p, CUstream s) {
    CTX_CALL;
    pthread_mutex_lock(&lock);
    struct allocation *a = allocation_at(p);
    int twice = a && a->dying;
    if (a) a->dying = 1;
    pthread_mutex_unlock(&lock);
    if (!a || twice) FAIL(1);
    atomic_fetch_sub(&live, 1);
    struct node end = {.kind = FREE, .a = p};
    return queue(s, end);
}

CALL cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice d) {
    CTX_CALL;
    (void)d;
    *pool = (CUmemoryPool)&pool_threshold;
    return (CUresult)0;
}

CALL cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute id, void *value) {
    CTX_CALL;
    if ((int)id != 4) FAIL(1);
    *(uint64_t *)pool = *(uint64_t *)value;
    return (CUresult)0;
}

CALL cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
    CTX_CALL;
    (void)pool;
    pool_kept = keep;
    if (pool_held > keep) pool_held = keep;
    return (CUresult)0;
}

// ---- pinned memory ----

static struct range *pins;
static int room_pins;

static int is_pinned(uint64_t at) {
    int found = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < num_pins && !found; i++) found = at - pins[i].at < pins[i].bytes;
    pthread_mutex_unlock(&lock);
    return found;
}

CALL cuMemHostAlloc(void **p, size_t n, unsigned flags) {
    CTX_CALL;
    if (flags != 1) FAIL(1);
    *p = take(n);
    pthread_mutex_lock(&lock);
    if (num_pins == room_pins) {
        room_pins = 2 * room_pins + 64;
        pins = realloc(pins, (size_t)room_pins * sizeof *pins);
    }
    pins[num_pins++] = (struct range){(uintptr_t)*p, n};
    pthread_mutex_unlock(&lock);
    return (CUresult)0;
}

CALL cuMemFreeHost(void *p) {
    CTX_CALL;
    struct range pin = {0, 0};
    pthread_mutex_lock(&lock);
    for (int i = 0; i < num_pins; i++)
        if (pins[i].at == (uintptr_t)p) {
            pin = pins[i];
            pins[i--] = pins[--num_pins];
        }
    pthread_mutex_unlock(&lock);
    if (!pin.at) FAIL(1);
    pthread_mutex_lock(&work_lock);
    const struct node *user = pending(pin.at, pin.bytes);
    if (user) {
        violate("pinned memory is freed while %s is queued on it", name_of(user));
        memset(p, 0xDD, pin.bytes);
        bury(p);
    }
    pthread_mutex_unlock(&work_lock);
    atomic_fetch_sub(&live, 1);
    if (!user) free(p);
    return (CUresult)0;
}

CALL cuMemGetInfo_v2(size_t *avail, size_t *total) {
    CTX_CALL;
    *avail = (size_t)100 << 30;
    *total = (size_t)139 << 30;
    return (CUresult)0;
}

// ---- copies ----

static struct node copy(int kind, uint64_t to, uint64_t from, size_t n) {
    struct node c = {.kind = kind, .a = to, .b = from, .n = n};
    return c;
}

// Copies without a stream go through the default one. From memory that is not pinned they
// return when that has been read: the copy itself may still be under way.
CALL cuMemcpyHtoD_v2(CUdeviceptr d, const void *s, size_t n) {
    CTX_CALL;
    CUresult code = queue(NULL, copy(COPY_IN, d, (uintptr_t)s, n));
    return (int)code || !is_pinned((uintptr_t)s) ? code : drain_locked(all_of(&default_stream));
}

CALL cuMemcpyDtoH_v2(void *d, CUdeviceptr s, size_t n) {
    CTX_CALL;
    CUresult code = queue(NULL, copy(COPY_OUT, (uintptr_t)d, s, n));
    return (int)code ? code : drain_locked(all_of(&default_stream));
}

CALL cuMemcpyDtoD_v2(CUdeviceptr d, CUdeviceptr s, size_t n) {
    CTX_CALL;
    return queue(NULL, copy(COPY, d, s, n));
}

CALL cuMemcpyHtoDAsync_v2(CUdeviceptr d, const void *s, size_t n, CUstream q) {
    CTX_CALL;
    return queue(q, copy(COPY_IN, d, (uintptr_t)s, n));
}

CALL cuMemcpyDtoHAsync_v2(void *d, CUdeviceptr s, size_t n, CUstream q) {
    CTX_CALL;
    return queue(q, copy(COPY_OUT, (uintptr_t)d, s, n));
}

CALL cuMemcpyDtoDAsync_v2(CUdeviceptr d, CUdeviceptr s, size_t n, CUstream q) {
    CTX_CALL;
    return queue(q, copy(COPY, d, s, n));
}

CALL cuMemsetD8Async(CUdeviceptr d, unsigned char v, size_t n, CUstream q) {
    CTX_CALL;
    return queue(q, copy(SET8, d, v, n));
}

CALL cuMemsetD32Async(CUdeviceptr d, unsigned v, size_t n, CUstream q) {
    CTX_CALL;
    return queue(q, copy(SET32, d, v, n));
}
