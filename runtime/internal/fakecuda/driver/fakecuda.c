// A driver without a GPU, for tests: the entry points that the Go side calls,
// working on host memory, with every launch recorded and every call able to fail
// on demand. It carries work out as it is queued or, where it was told to defer, no
// sooner than somebody waits for it: see fakequeue.h.
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fakecuda.h"

#define EXPORT __attribute__((visibility("default")))
#define CALL EXPORT CUresult CUDAAPI

// ---- control, called by the tests ----

enum { MAX_CALLS = 128, MAX_NODES = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct { const char *name; int count; } calls[MAX_CALLS];
static char failing[64];
static int failing_code, failing_after;
static atomic_int live;             // resources handed out and not given back
static uint64_t launched[64];       // the last launch, see record
static uint64_t pool_threshold, pool_kept, pool_held;
static uint64_t limit;              // bytes of device memory; 0 for as many as are asked for
static int contexts;                // references to the primary context
static int deferring;               // work waits until somebody waits for it
static char violation[512];         // the first misuse that no status code tells; "" for none
static int devices = 1, function_shared, function_cluster;
static int edges, programmatic_edges; // that graphs were built with
static _Thread_local CUcontext current;

// violate notes a misuse that a GPU may forgive or not: tests fail for it.
static void violate(const char *format, ...) {
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&lock);
    if (!violation[0]) vsnprintf(violation, sizeof violation, format, args);
    pthread_mutex_unlock(&lock);
    va_end(args);
}

// fake_violation writes the first misuse, of at most so many bytes, and forgets it.
EXPORT void fake_violation(char *out, int64_t most) {
    pthread_mutex_lock(&lock);
    snprintf(out, (size_t)most, "%s", violation);
    violation[0] = 0;
    pthread_mutex_unlock(&lock);
}

#include "fakedevice.h"

static void queue_reset(void);

EXPORT void fake_reset(void) {
    queue_reset();
    pthread_mutex_lock(&lock);
    memset(calls, 0, sizeof calls);
    memset(launched, 0, sizeof launched);
    failing[0] = 0;
    devices = 1;
    function_shared = function_cluster = edges = programmatic_edges = 0;
    pool_threshold = pool_kept = pool_held = limit = 0;
    contexts = 0;
    violation[0] = 0;
    device_reset();
    atomic_store(&live, 0);
    pthread_mutex_unlock(&lock);
}

// The call of that name fails with code, once, after so many that succeed.
EXPORT void fake_fail(const char *name, int code, int after) {
    pthread_mutex_lock(&lock);
    snprintf(failing, sizeof failing, "%s", name);
    failing_code = code;
    failing_after = after;
    pthread_mutex_unlock(&lock);
}

EXPORT int64_t fake_calls(const char *name) {
    int n = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_CALLS && calls[i].name; i++)
        if (!strcmp(calls[i].name, name)) n = calls[i].count;
    pthread_mutex_unlock(&lock);
    return n;
}

EXPORT int64_t fake_live(void) { return atomic_load(&live); }
EXPORT void fake_devices(int n) { devices = n; }
EXPORT void fake_launched(uint64_t *out) { memcpy(out, launched, sizeof launched); }
EXPORT uint64_t fake_pool_threshold(void) { return pool_threshold; }
EXPORT uint64_t fake_pool_kept(void) { return pool_kept; }
EXPORT uint64_t fake_pool_held(void) { return pool_held; }
EXPORT void fake_limit(uint64_t bytes) { limit = bytes; }
EXPORT void fake_defer(int on) { deferring = on; }
EXPORT int64_t fake_edges(void) { return edges; }
EXPORT int64_t fake_programmatic_edges(void) { return programmatic_edges; }
EXPORT int64_t fake_function_shared(void) { return function_shared; }
EXPORT int64_t fake_function_cluster(void) { return function_cluster; }

static int enter(const char *name) {
    int code = 0, i = 0;
    pthread_mutex_lock(&lock);
    while (i < MAX_CALLS - 1 && calls[i].name && strcmp(calls[i].name, name)) i++;
    calls[i].name = name;
    calls[i].count++;
    if (!strcmp(failing, name) && failing_after-- == 0) {
        code = failing_code;
        failing[0] = 0;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

#define FREE_CALL do { int code_ = enter(__func__); if (code_) return (CUresult)code_; } while (0)
#define CTX_CALL do { FREE_CALL; if (!current) return (CUresult)201; if (fault) return (CUresult)fault; } while (0)
#define FAIL(code) return (CUresult)(code)

static void *take(size_t n) {
    atomic_fetch_add(&live, 1);
    return calloc(1, n ? n : 1);
}

static void give(void *p) {
    atomic_fetch_sub(&live, 1);
    free(p);
}

// What is gone for its user and may still be named, by work that is queued or by mistake.
static void **graves;
static int num_graves, room_graves;

static void bury(void *p) {
    pthread_mutex_lock(&lock);
    if (num_graves == room_graves) {
        room_graves = 2 * room_graves + 64;
        graves = realloc(graves, (size_t)room_graves * sizeof *graves);
    }
    graves[num_graves++] = p;
    pthread_mutex_unlock(&lock);
}

// ---- objects ----

struct CUctx_st { int unused; };
struct CUfunc_st { char name[128]; CUmodule of; int allowed_shared, allowed_cluster; struct kernel kernel; };
struct CUmod_st { int count, unloaded; struct CUfunc_st functions[8]; float global[4]; uint64_t loaded; };

// A node is a piece of work: what kind, and on which memory.
struct node { int kind; uint64_t a, b, n; float f; uint64_t c; CUfunction function; struct work work; };
struct CUgraphNode_st { CUgraph of; int at; };
struct CUgraph_st { int count; struct node nodes[MAX_NODES]; struct CUgraphNode_st handles[MAX_NODES]; };

// A place is how far a stream must come: as many entries of its queue.
struct place { CUstream stream; uint64_t entries; };
struct CUevent_st { int flags, destroyed; double ms; struct place recorded; };
struct CUgraphExec_st { struct CUgraph_st graph; struct place last; };
struct CUstream_st {
    CUgraph capturing;
    double clock;
    int destroyed;
    struct entry *first, *last; // of its queue
    uint64_t queued, done;      // entries so far
    CUstream next;              // of all streams
};

enum { NOTHING, SCALE, TWICE, PLUS, SET8, SET32, COPY, COPY_IN, COPY_OUT, KERNEL, RECORD, WAIT, ALLOC, FREE };

enum { NUM_KERNELS = 6 };
static const char *const kernel_names[NUM_KERNELS] = {"scale", "twice", "plus", "fusec_read", "fusec_wait",
                                                          "fusec_nothing"};

static struct CUctx_st primary;
static struct CUstream_st default_stream;

static CUstream real(CUstream s) {
    if (s && s->destroyed) violate("a stream is used after it was destroyed");
    return s ? s : &default_stream;
}

#include "fakequeue.h"

// ---- driver and devices ----

CALL cuInit(unsigned flags) { FREE_CALL; if (flags) FAIL(1); return (CUresult)0; }
// Newer than any compiler, so that tests use whichever one is there.
CALL cuDriverGetVersion(int *version) { FREE_CALL; *version = 99000; return (CUresult)0; }

static const struct { int code; const char *name, *text; } errors[] = {
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
};

CALL cuGetErrorName(CUresult code, const char **text) {
    *text = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == (int)code) *text = errors[i].name;
    return (CUresult)(*text ? 0 : 1);
}

CALL cuGetErrorString(CUresult code, const char **text) {
    *text = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == (int)code) *text = (int)code == said_code ? said : errors[i].text;
    return (CUresult)(*text ? 0 : 1);
}

CALL cuDeviceGetCount(int *n) { FREE_CALL; *n = devices; return (CUresult)0; }

CALL cuDeviceGet(CUdevice *d, int ordinal) {
    FREE_CALL;
    if (ordinal < 0 || ordinal >= devices) FAIL(101);
    *d = ordinal;
    return (CUresult)0;
}

CALL cuDeviceGetName(char *name, int len, CUdevice d) {
    FREE_CALL;
    if (device_name[0]) snprintf(name, (size_t)len, "%s", device_name);
    else snprintf(name, (size_t)len, "Fake GPU %d", d);
    return (CUresult)0;
}

CALL cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice d) {
    FREE_CALL;
    for (int i = 0; i < 16; i++) uuid->bytes[i] = (char)(i + d);
    return (CUresult)0;
}

CALL cuDeviceTotalMem_v2(size_t *n, CUdevice d) {
    FREE_CALL;
    *n = ((size_t)139 + (size_t)d) << 30;
    return (CUresult)0;
}

// An attribute's value, where none was set, is ten times its number, but for the
// capability; the driver is too old for the last.
CALL cuDeviceGetAttribute(int *v, CUdevice_attribute id, CUdevice d) {
    FREE_CALL;
    (void)d;
    if (attribute(id, v)) return (CUresult)0;
    if ((int)id == 127) FAIL(1);
    *v = (int)id == 75 ? 9 : (int)id == 76 ? 0 : 10 * (int)id;
    return (CUresult)0;
}

// ---- contexts ----

CALL cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d) {
    FREE_CALL;
    (void)d;
    pthread_mutex_lock(&work_lock);
    while (holding) pthread_cond_wait(&released, &work_lock);
    pthread_mutex_unlock(&work_lock);
    atomic_fetch_add(&live, 1);
    pthread_mutex_lock(&lock);
    contexts++;
    pthread_mutex_unlock(&lock);
    *c = &primary;
    return (CUresult)0;
}

CALL cuDevicePrimaryCtxRelease_v2(CUdevice d) {
    FREE_CALL;
    (void)d;
    atomic_fetch_sub(&live, 1);
    pthread_mutex_lock(&lock);
    int last = --contexts == 0;
    pthread_mutex_unlock(&lock);
    if (last) abandon();
    return (CUresult)0;
}

CALL cuCtxSetCurrent(CUcontext c) { FREE_CALL; current = c; return (CUresult)0; }
CALL cuCtxGetDevice(CUdevice *d) { CTX_CALL; *d = 0; return (CUresult)0; }
CALL cuCtxSynchronize(void) { CTX_CALL; return drain_all(); }
CALL cuCtxResetPersistingL2Cache(void) { CTX_CALL; return (CUresult)0; }

#include "fakememory.h"
#include "fakework.h"
