// A driver without a GPU, for tests: the entry points that the Go side calls,
// working on host memory, with every launch recorded and every call able to fail
// on demand. Where the toolkit's header is installed it is included, so that the
// compiler checks each signature against the real one.
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_include)
#if __has_include(<cuda.h>)
#include <cuda.h>
#define HAVE_CUDA_H 1
#endif
#endif

#ifndef HAVE_CUDA_H
#define CUDAAPI
typedef int CUresult, CUdevice, CUdevice_attribute, CUfunction_attribute, CUmemPool_attribute;
typedef int CUjit_option, CUstreamCaptureMode, CUtensorMapDataType, CUtensorMapInterleave;
typedef int CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct { char bytes[16]; } CUuuid;
typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
typedef struct { _Alignas(64) cuuint64_t opaque[16]; } CUtensorMap;
typedef union { char pad[64]; int flag; struct { unsigned x, y, z; } clusterDim; } CUlaunchAttributeValue;
typedef struct { int id; char pad[4]; CUlaunchAttributeValue value; } CUlaunchAttribute;
typedef struct {
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned numAttrs;
} CUlaunchConfig;
typedef struct { int result; CUgraphNode errorNode, errorFromNode; } CUgraphExecUpdateResultInfo;
#endif

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
static uint64_t pool_threshold, pool_kept;
static int devices = 1, function_shared, function_cluster;
static _Thread_local CUcontext current;

EXPORT void fake_reset(void) {
    pthread_mutex_lock(&lock);
    memset(calls, 0, sizeof calls);
    memset(launched, 0, sizeof launched);
    failing[0] = 0;
    devices = 1;
    function_shared = function_cluster = 0;
    pool_threshold = pool_kept = 0;
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

EXPORT int fake_calls(const char *name) {
    int n = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_CALLS && calls[i].name; i++)
        if (!strcmp(calls[i].name, name)) n = calls[i].count;
    pthread_mutex_unlock(&lock);
    return n;
}

EXPORT int fake_live(void) { return atomic_load(&live); }
EXPORT void fake_devices(int n) { devices = n; }
EXPORT void fake_launched(uint64_t *out) { memcpy(out, launched, sizeof launched); }
EXPORT uint64_t fake_pool_threshold(void) { return pool_threshold; }
EXPORT uint64_t fake_pool_kept(void) { return pool_kept; }
EXPORT int fake_function_shared(void) { return function_shared; }
EXPORT int fake_function_cluster(void) { return function_cluster; }

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
#define CTX_CALL do { FREE_CALL; if (!current) return (CUresult)201; } while (0)
#define FAIL(code) return (CUresult)(code)

static void *take(size_t n) {
    atomic_fetch_add(&live, 1);
    return calloc(1, n ? n : 1);
}

static void give(void *p) {
    atomic_fetch_sub(&live, 1);
    free(p);
}

// ---- objects ----

struct CUctx_st { int unused; };
struct CUfunc_st { char name[64]; };
struct CUmod_st { struct CUfunc_st functions[4]; float global[4]; };
struct CUevent_st { int flags; double ms; };
struct node { int kind; uint64_t a, b, n; float f; };
struct CUgraph_st { int count; struct node nodes[MAX_NODES]; };
struct CUgraphExec_st { struct CUgraph_st graph; };
struct CUstream_st { CUgraph capturing; double clock; };

enum { SCALE, SET8, SET32, COPY };

static struct CUctx_st primary;
static struct CUstream_st default_stream;

static CUstream real(CUstream s) { return s ? s : &default_stream; }

static void run(const struct node *n) {
    float *x = (float *)(uintptr_t)n->a;
    switch (n->kind) {
    case SCALE: for (uint64_t i = 0; i < n->n; i++) x[i] *= n->f; break;
    case SET8: memset((void *)(uintptr_t)n->a, (int)n->b, n->n); break;
    case SET32: for (uint64_t i = 0; i < n->n; i++) ((uint32_t *)x)[i] = (uint32_t)n->b; break;
    case COPY: memmove((void *)(uintptr_t)n->a, (void *)(uintptr_t)n->b, n->n); break;
    }
}

static CUresult queue(CUstream s, struct node n) {
    CUgraph g = real(s)->capturing;
    if (!g) {
        run(&n);
        real(s)->clock += 0.5;
    } else if (g->count == MAX_NODES) {
        FAIL(901);
    } else {
        g->nodes[g->count++] = n;
    }
    return (CUresult)0;
}

// ---- driver and devices ----

CALL cuInit(unsigned flags) { FREE_CALL; if (flags) FAIL(1); return (CUresult)0; }
CALL cuDriverGetVersion(int *version) { FREE_CALL; *version = 12040; return (CUresult)0; }

static const struct { int code; const char *name, *text; } errors[] = {
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
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
        if (errors[i].code == (int)code) *text = errors[i].text;
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
    snprintf(name, (size_t)len, "Fake GPU %d", d);
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

// An attribute's value is ten times its number, but for the capability; the driver
// is too old for the last.
CALL cuDeviceGetAttribute(int *v, CUdevice_attribute id, CUdevice d) {
    FREE_CALL;
    (void)d;
    if ((int)id == 127) FAIL(1);
    *v = (int)id == 75 ? 9 : (int)id == 76 ? 0 : 10 * (int)id;
    return (CUresult)0;
}

// ---- contexts ----

CALL cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d) {
    FREE_CALL;
    (void)d;
    atomic_fetch_add(&live, 1);
    *c = &primary;
    return (CUresult)0;
}

CALL cuDevicePrimaryCtxRelease_v2(CUdevice d) {
    FREE_CALL;
    (void)d;
    atomic_fetch_sub(&live, 1);
    return (CUresult)0;
}

CALL cuCtxSetCurrent(CUcontext c) { FREE_CALL; current = c; return (CUresult)0; }
CALL cuCtxGetDevice(CUdevice *d) { CTX_CALL; *d = 0; return (CUresult)0; }
CALL cuCtxSynchronize(void) { CTX_CALL; return (CUresult)0; }

// ---- memory ----

static CUresult allocate(CUdeviceptr *p, size_t n) {
    if (n == 0) FAIL(1);
    if (n > (size_t)1 << 32) FAIL(2);
    *p = (CUdeviceptr)(uintptr_t)take(n);
    return (CUresult)0;
}

CALL cuMemAlloc_v2(CUdeviceptr *p, size_t n) { CTX_CALL; return allocate(p, n); }
CALL cuMemFree_v2(CUdeviceptr p) { CTX_CALL; give((void *)(uintptr_t)p); return (CUresult)0; }

CALL cuMemAllocAsync(CUdeviceptr *p, size_t n, CUstream s) {
    CTX_CALL;
    (void)s;
    return allocate(p, n);
}

CALL cuMemFreeAsync(CUdeviceptr p, CUstream s) {
    CTX_CALL;
    (void)s;
    give((void *)(uintptr_t)p);
    return (CUresult)0;
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
    return (CUresult)0;
}

CALL cuMemHostAlloc(void **p, size_t n, unsigned flags) {
    CTX_CALL;
    if (flags != 1) FAIL(1);
    *p = take(n);
    return (CUresult)0;
}

CALL cuMemFreeHost(void *p) { CTX_CALL; give(p); return (CUresult)0; }

CALL cuMemGetInfo_v2(size_t *avail, size_t *total) {
    CTX_CALL;
    *avail = (size_t)100 << 30;
    *total = (size_t)139 << 30;
    return (CUresult)0;
}

CALL cuMemcpyHtoD_v2(CUdeviceptr d, const void *s, size_t n) {
    CTX_CALL;
    memcpy((void *)(uintptr_t)d, s, n);
    return (CUresult)0;
}

CALL cuMemcpyDtoH_v2(void *d, CUdeviceptr s, size_t n) {
    CTX_CALL;
    memcpy(d, (void *)(uintptr_t)s, n);
    return (CUresult)0;
}

CALL cuMemcpyDtoD_v2(CUdeviceptr d, CUdeviceptr s, size_t n) {
    CTX_CALL;
    memmove((void *)(uintptr_t)d, (void *)(uintptr_t)s, n);
    return (CUresult)0;
}

CALL cuMemcpyHtoDAsync_v2(CUdeviceptr d, const void *s, size_t n, CUstream q) {
    CTX_CALL;
    return queue(q, (struct node){COPY, d, (uintptr_t)s, n, 0});
}

CALL cuMemcpyDtoHAsync_v2(void *d, CUdeviceptr s, size_t n, CUstream q) {
    CTX_CALL;
    return queue(q, (struct node){COPY, (uintptr_t)d, s, n, 0});
}

CALL cuMemcpyDtoDAsync_v2(CUdeviceptr d, CUdeviceptr s, size_t n, CUstream q) {
    CTX_CALL;
    return queue(q, (struct node){COPY, d, s, n, 0});
}

CALL cuMemsetD8Async(CUdeviceptr d, unsigned char v, size_t n, CUstream q) {
    CTX_CALL;
    return queue(q, (struct node){SET8, d, v, n, 0});
}

CALL cuMemsetD32Async(CUdeviceptr d, unsigned v, size_t n, CUstream q) {
    CTX_CALL;
    return queue(q, (struct node){SET32, d, v, n, 0});
}

// ---- streams and events ----

CALL cuStreamCreate(CUstream *s, unsigned flags) {
    CTX_CALL;
    if (flags != 1) FAIL(1);
    *s = take(sizeof **s);
    return (CUresult)0;
}

CALL cuStreamDestroy_v2(CUstream s) { CTX_CALL; give(s); return (CUresult)0; }
CALL cuStreamSynchronize(CUstream s) { CTX_CALL; FAIL(real(s)->capturing ? 900 : 0); }
CALL cuStreamQuery(CUstream s) { CTX_CALL; FAIL(real(s)->capturing ? 900 : 0); }

CALL cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags) {
    CTX_CALL;
    if (!e || flags) FAIL(1);
    (void)s;
    return (CUresult)0;
}

CALL cuEventCreate(CUevent *e, unsigned flags) {
    CTX_CALL;
    *e = take(sizeof **e);
    (*e)->flags = (int)flags;
    return (CUresult)0;
}

CALL cuEventDestroy_v2(CUevent e) { CTX_CALL; give(e); return (CUresult)0; }
CALL cuEventRecord(CUevent e, CUstream s) { CTX_CALL; e->ms = real(s)->clock; return (CUresult)0; }
CALL cuEventSynchronize(CUevent e) { CTX_CALL; FAIL(e ? 0 : 400); }
CALL cuEventQuery(CUevent e) { CTX_CALL; FAIL(e ? 0 : 400); }

static CUresult elapsed(float *ms, CUevent start, CUevent end) {
    if (start->flags || end->flags) FAIL(400);
    *ms = (float)(end->ms - start->ms);
    return (CUresult)0;
}

// The header maps this name to a version of its own from CUDA 13 on.
#undef cuEventElapsedTime
CALL cuEventElapsedTime(float *ms, CUevent start, CUevent end) {
    CTX_CALL;
    return elapsed(ms, start, end);
}

// ---- modules and functions ----

CALL cuModuleLoadDataEx(CUmodule *m, const void *image, unsigned n, CUjit_option *options, void **values) {
    CTX_CALL;
    const char *text = image;
    if (memcmp(text, "\177ELF", 4) && !strstr(text, ".version")) {
        if (n != 2 || (int)options[0] != 5 || (int)options[1] != 6) FAIL(1);
        snprintf(values[0], (size_t)values[1], "ptxas fatal: no .version directive");
        FAIL(218);
    }
    *m = take(sizeof **m);
    strcpy((*m)->functions[0].name, "scale");
    return (CUresult)0;
}

CALL cuModuleUnload(CUmodule m) { CTX_CALL; give(m); return (CUresult)0; }

CALL cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
    CTX_CALL;
    if (strcmp(name, m->functions[0].name)) FAIL(500);
    *f = &m->functions[0];
    return (CUresult)0;
}

CALL cuModuleGetGlobal_v2(CUdeviceptr *p, size_t *n, CUmodule m, const char *name) {
    CTX_CALL;
    if (strcmp(name, "table")) FAIL(500);
    *p = (CUdeviceptr)(uintptr_t)m->global;
    *n = sizeof m->global;
    return (CUresult)0;
}

CALL cuFuncGetAttribute(int *v, CUfunction_attribute id, CUfunction f) {
    CTX_CALL;
    if (!f) FAIL(400);
    *v = 100 + (int)id;
    return (CUresult)0;
}

CALL cuFuncSetAttribute(CUfunction f, CUfunction_attribute id, int value) {
    CTX_CALL;
    if (!f || value > 227 << 10) FAIL(1);
    if ((int)id == 8) function_shared = value;
    else if ((int)id == 14) function_cluster = value;
    else FAIL(1);
    return (CUresult)0;
}

CALL cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, CUfunction f, int threads, size_t shared) {
    CTX_CALL;
    if (!f) FAIL(400);
    *n = shared ? (int)((228 << 10) / shared) : 2048 / threads;
    return (CUresult)0;
}

CALL cuOccupancyMaxActiveClusters(int *n, CUfunction f, const CUlaunchConfig *c) {
    CTX_CALL;
    if (!f || c->numAttrs < 1 || (int)c->attrs[0].id != 4) FAIL(1);
    *n = 132 / (int)c->attrs[0].value.clusterDim.x;
    return (CUresult)0;
}

// ---- launches ----

// record: grid, block, shared, stream, number of attributes, then of each its id
// and three words.
static void record(const CUlaunchConfig *c) {
    uint64_t r[64] = {c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ,
                      c->sharedMemBytes, (uintptr_t)c->hStream, c->numAttrs};
    for (unsigned i = 0; i < c->numAttrs; i++) {
        r[9 + 4 * i] = (uint64_t)c->attrs[i].id;
        r[10 + 4 * i] = c->attrs[i].value.clusterDim.x;
        r[11 + 4 * i] = c->attrs[i].value.clusterDim.y;
        r[12 + 4 * i] = c->attrs[i].value.clusterDim.z;
    }
    pthread_mutex_lock(&lock);
    memcpy(launched, r, sizeof r);
    pthread_mutex_unlock(&lock);
}

// The one kernel there is: scale(float *x, float by, unsigned n).
static CUresult launch(CUstream s, void **params) {
    if (!params) return (CUresult)0;
    return queue(s, (struct node){SCALE, *(uint64_t *)params[0], 0, *(unsigned *)params[2],
                                  *(float *)params[1]});
}

CALL cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                    unsigned bz, unsigned shared, CUstream s, void **params, void **extra) {
    CTX_CALL;
    if (!f || extra) FAIL(1);
    CUlaunchConfig c = {gx, gy, gz, bx, by, bz, shared, s, NULL, 0};
    record(&c);
    return launch(s, params);
}

CALL cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **params, void **extra) {
    CTX_CALL;
    if (!f || extra) FAIL(1);
    record(c);
    return launch(c->hStream, params);
}

// ---- graphs ----

CALL cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode mode) {
    CTX_CALL;
    if (!s || (int)mode != 1) FAIL(900);
    if (s->capturing) FAIL(1);
    s->capturing = take(sizeof *s->capturing);
    return (CUresult)0;
}

CALL cuStreamEndCapture(CUstream s, CUgraph *g) {
    CUgraph captured = s->capturing;
    s->capturing = NULL;
    int code = enter(__func__);
    if (code) {
        if (captured) give(captured);
        FAIL(code);
    }
    if (!captured) FAIL(901);
    *g = captured;
    return (CUresult)0;
}

CALL cuGraphGetNodes(CUgraph g, CUgraphNode *nodes, size_t *n) {
    CTX_CALL;
    if (nodes) FAIL(1);
    *n = (size_t)g->count;
    return (CUresult)0;
}

CALL cuGraphDestroy(CUgraph g) { CTX_CALL; give(g); return (CUresult)0; }

CALL cuGraphInstantiateWithFlags(CUgraphExec *x, CUgraph g, unsigned long long flags) {
    CTX_CALL;
    if (flags) FAIL(1);
    *x = take(sizeof **x);
    (*x)->graph = *g;
    return (CUresult)0;
}

CALL cuGraphUpload(CUgraphExec x, CUstream s) { CTX_CALL; (void)s; FAIL(x ? 0 : 400); }

CALL cuGraphLaunch(CUgraphExec x, CUstream s) {
    CTX_CALL;
    (void)s;
    for (int i = 0; i < x->graph.count; i++) run(&x->graph.nodes[i]);
    return (CUresult)0;
}

CALL cuGraphExecUpdate_v2(CUgraphExec x, CUgraph g, CUgraphExecUpdateResultInfo *info) {
    CTX_CALL;
    if (x->graph.count != g->count) {
        memset(info, 0, sizeof *info);
        info->result = 2;
        FAIL(910);
    }
    x->graph = *g;
    return (CUresult)0;
}

CALL cuGraphExecDestroy(CUgraphExec x) { CTX_CALL; give(x); return (CUresult)0; }

#ifndef OLD_DRIVER // which ends here: no tensor maps

// ---- tensor maps ----

// The "encoding" is the arguments, so that the test can see that all twelve came
// through in their places.
CALL cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                            const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box,
                            const cuuint32_t *steps, CUtensorMapInterleave interleave,
                            CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2,
                            CUtensorMapFloatOOBfill fill) {
    FREE_CALL;
    if ((uintptr_t)map % 64 || (uintptr_t)address % 16) FAIL(1);
    uint64_t words[16] = {(uint64_t)type, rank, (uintptr_t)address, dims[0], dims[rank - 1],
                          rank > 1 ? strides[rank - 2] : 0, box[0], box[rank - 1], steps[0],
                          (uint64_t)interleave, (uint64_t)swizzle, (uint64_t)l2, (uint64_t)fill};
    memcpy(map, words, sizeof words);
    return (CUresult)0;
}

#endif
