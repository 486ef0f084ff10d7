// The part of the fake driver that makes it a device: attributes that tests set, memory
// whose bounds are known, and modules of PTX that an executor on the Go side runs.
// Included by fakecuda.c, whose state it shares.

// ---- the executor; the structs are those of execute.go ----

enum { MAX_PARAMS = 512, PARAM_BYTES = 4096, NUM_ATTRIBUTES = 192, NUM_FUNCTION_ATTRIBUTES = 16 };
enum { PORTABLE_CLUSTER = 8, PLAIN_SHARED = 48 << 10, TEXT_BYTES = 4096 };

struct kernel {
    uint64_t id;
    int32_t attributes[NUM_FUNCTION_ATTRIBUTES]; // CUfunction_attribute
    uint32_t params;
    struct { uint32_t offset, size; } param[MAX_PARAMS];
};

struct work {
    uint64_t kernel;
    uint32_t grid[3], block[3], cluster[3], shared;
    CUfunction function;
    unsigned char params[PARAM_BYTES];
};

struct map_request {
    uint64_t type, rank, address, dims[5], strides[5], box[5], steps[5], interleave, swizzle, fill;
};

// Each returns 0, or writes why not to text, of TEXT_BYTES.
static struct {
    uint64_t user; // 0: there is none, and launches run the kernels built in
    int32_t (*load)(uint64_t user, const char *ptx, uint64_t *module, char *text);
    int32_t (*find)(uint64_t user, uint64_t module, const char *name, struct kernel *out, char *text);
    int32_t (*launch)(uint64_t user, const struct work *work, char *text);
    int32_t (*encode)(uint64_t user, const struct map_request *request, void *map, char *text);
} executor;

static int fault;              // of a kernel: all that follows fails with it
static int said_code;          // the code whose text is said
static char said[TEXT_BYTES];
static struct { int set, value; } attributes[NUM_ATTRIBUTES];
static char device_name[128];

EXPORT void fake_execute(uint64_t user, void *load, void *find, void *launch, void *encode) {
    executor.user = user;
    *(void **)&executor.load = load;
    *(void **)&executor.find = find;
    *(void **)&executor.launch = launch;
    *(void **)&executor.encode = encode;
}

EXPORT void fake_name(const char *name) { snprintf(device_name, sizeof device_name, "%s", name); }

EXPORT void fake_attribute(int id, int value) {
    attributes[id].set = 1;
    attributes[id].value = value;
}

// attribute gives the value that was set; *v stays where none was.
static int attribute(int id, int *v) {
    if (id < 0 || id >= NUM_ATTRIBUTES || !attributes[id].set) return 0;
    *v = attributes[id].value;
    return 1;
}

// refuse keeps the words that come with a code, for cuGetErrorString.
static int refuse(int code, const char *text) {
    pthread_mutex_lock(&lock);
    said_code = code;
    snprintf(said, sizeof said, "%s", text);
    pthread_mutex_unlock(&lock);
    return code;
}

// ---- memory ----

// An allocation is of device memory. It is unborn until the stream that it was made on gets
// there, and dying from when its end was queued.
static struct allocation { uintptr_t at, bytes; int pooled, unborn, dying; } *allocations;
static int num_allocations, room;

static void device_reset(void) {
    memset(&executor, 0, sizeof executor);
    memset(attributes, 0, sizeof attributes);
    fault = said_code = num_allocations = 0;
    device_name[0] = 0;
}

// Contents are unspecified: all ones, a NaN.
static CUdeviceptr device_take(size_t n, int pooled) {
    void *p = NULL;
    if (posix_memalign(&p, 256, n)) abort();
    memset(p, 0xFF, n);
    pthread_mutex_lock(&lock);
    if (num_allocations == room) {
        room = 2 * room + 64;
        allocations = realloc(allocations, (size_t)room * sizeof *allocations);
    }
    allocations[num_allocations++] = (struct allocation){(uintptr_t)p, n, pooled, pooled && deferring, 0};
    pthread_mutex_unlock(&lock);
    atomic_fetch_add(&live, 1);
    return (CUdeviceptr)(uintptr_t)p;
}

// allocation_at finds the allocation that begins at an address; the lock is held.
static struct allocation *allocation_at(uint64_t at) {
    for (int i = 0; i < num_allocations; i++)
        if (allocations[i].at == at) return &allocations[i];
    return NULL;
}

// device_forget takes an allocation off the list; false where there is none.
static int device_forget(uint64_t at, struct allocation *out) {
    pthread_mutex_lock(&lock);
    struct allocation *known = allocation_at(at);
    if (known) {
        *out = *known;
        *known = allocations[--num_allocations];
    }
    pthread_mutex_unlock(&lock);
    return known != NULL;
}

// fake_allocations writes addresses and sizes, at most so many pairs, and gives their number.
EXPORT int64_t fake_allocations(uint64_t *out, int64_t most) {
    pthread_mutex_lock(&lock);
    int n = num_allocations;
    for (int i = 0; i < n && i < most; i++) {
        out[2 * i] = allocations[i].at;
        out[2 * i + 1] = allocations[i].bytes;
    }
    pthread_mutex_unlock(&lock);
    return n;
}

// ---- launches ----

// occupancy is how many blocks a multiprocessor holds, as far as attributes say.
static int occupancy(const struct kernel *k, int threads, size_t shared) {
    int resident = 2048, blocks = 32, memory = 228 << 10, reserved = 1024;
    attribute(39, &resident);
    attribute(106, &blocks);
    attribute(81, &memory);
    attribute(111, &reserved);
    int by_threads = resident / ((threads + 31) / 32 * 32);
    int by_shared = memory / (reserved + k->attributes[1] + (int)shared);
    if (by_threads < blocks) blocks = by_threads;
    return by_shared < blocks ? by_shared : blocks;
}

// execute runs a kernel to its end. What goes wrong shows in the calls that follow.
static void execute(const struct work *w) {
    char text[TEXT_BYTES] = "";
    if (!executor.launch(executor.user, w, text)) return;
    fault = refuse(719, text);
}
