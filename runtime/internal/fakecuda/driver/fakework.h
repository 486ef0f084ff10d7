// The second half of the fake driver: work on the device. Included by fakecuda.c,
// whose state it shares.

#include "fakemodule.h"

// ---- streams and events ----

CALL cuStreamCreate(CUstream *s, unsigned flags) {
    CTX_CALL;
    if (flags != 1) FAIL(1);
    *s = take(sizeof **s);
    pthread_mutex_lock(&work_lock);
    (*s)->next = streams;
    streams = *s;
    pthread_mutex_unlock(&work_lock);
    return (CUresult)0;
}

// What is queued on a stream that is destroyed still runs. Its memory stays until the reset:
// events and queues name it.
CALL cuStreamDestroy_v2(CUstream s) {
    CTX_CALL;
    real(s)->destroyed = 1;
    atomic_fetch_sub(&live, 1);
    return (CUresult)0;
}

CALL cuStreamSynchronize(CUstream s) {
    CTX_CALL;
    if (real(s)->capturing) FAIL(900);
    return drain_locked(all_of(real(s)));
}

CALL cuStreamQuery(CUstream s) {
    CTX_CALL;
    if (real(s)->capturing) FAIL(900);
    return ask(all_of(real(s)));
}

CALL cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags) {
    CTX_CALL;
    if (!e || flags) FAIL(1);
    if (e->destroyed) violate("an event is waited for after it was destroyed");
    if (!e->recorded.stream) return (CUresult)0;
    struct node wait = {.kind = WAIT, .a = (uintptr_t)e->recorded.stream, .n = e->recorded.entries};
    return queue(s, wait);
}

CALL cuEventCreate(CUevent *e, unsigned flags) {
    CTX_CALL;
    *e = take(sizeof **e);
    (*e)->flags = (int)flags;
    return (CUresult)0;
}

// The memory of an event stays until the reset: its mark may be queued.
CALL cuEventDestroy_v2(CUevent e) {
    CTX_CALL;
    e->destroyed = 1;
    atomic_fetch_sub(&live, 1);
    bury(e);
    return (CUresult)0;
}

CALL cuEventRecord(CUevent e, CUstream s) {
    CTX_CALL;
    if (e->destroyed) violate("an event is recorded after it was destroyed");
    struct node mark = {.kind = RECORD, .a = (uintptr_t)e};
    CUresult code = queue(s, mark);
    if (!(int)code && !real(s)->capturing) e->recorded = all_of(real(s));
    return code;
}

CALL cuEventSynchronize(CUevent e) {
    CTX_CALL;
    if (!e) FAIL(400);
    return drain_locked(e->recorded);
}

CALL cuEventQuery(CUevent e) {
    CTX_CALL;
    if (!e) FAIL(400);
    return ask(e->recorded);
}

static CUresult elapsed(float *ms, CUevent start, CUevent end) {
    if (start->flags || end->flags || !start->recorded.stream || !end->recorded.stream) FAIL(400);
    if (!passed(start->recorded) || !passed(end->recorded)) FAIL(600);
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
    if (executor.user) return (CUresult)load(m, text, n, (const int *)options, values);
    if (memcmp(text, "\177ELF", 4) && !strstr(text, ".version")) {
        if (n != 2 || (int)options[0] != 5 || (int)options[1] != 6) FAIL(1);
        snprintf(values[0], (size_t)values[1], "ptxas fatal: no .version directive");
        FAIL(218);
    }
    *m = take(sizeof **m);
    (*m)->count = NUM_KERNELS;
    for (int i = 0; i < NUM_KERNELS; i++) {
        strcpy((*m)->functions[i].name, kernel_names[i]);
        (*m)->functions[i].of = *m;
    }
    return (CUresult)0;
}

// launch_of finds a queued launch of a module's functions; the queues are locked.
static const struct node *launch_of(CUmodule m) {
    for (CUstream s = streams; s; s = s->next)
        for (struct entry *e = s->first; e; e = e->next)
            if (e->node.function && e->node.function->of == m) return &e->node;
    return NULL;
}

// The memory of a module stays until the reset: launches may name it.
CALL cuModuleUnload(CUmodule m) {
    CTX_CALL;
    pthread_mutex_lock(&work_lock);
    const struct node *user = launch_of(m);
    if (user) violate("a module is unloaded while %s of it is queued", name_of(user));
    m->unloaded = 1;
    pthread_mutex_unlock(&work_lock);
    atomic_fetch_sub(&live, 1);
    bury(m);
    return (CUresult)0;
}

CALL cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
    CTX_CALL;
    for (int i = 0; i < m->count; i++) {
        *f = &m->functions[i];
        if (!strcmp(name, (*f)->name)) return (CUresult)0;
    }
    FAIL(executor.user ? find(f, m, name) : 500);
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
    if (executor.user && ((int)id < 0 || (int)id >= NUM_FUNCTION_ATTRIBUTES)) FAIL(1);
    *v = executor.user ? f->kernel.attributes[id] : 100 + (int)id;
    return (CUresult)0;
}

CALL cuFuncSetAttribute(CUfunction f, CUfunction_attribute id, int value) {
    CTX_CALL;
    int most = 227 << 10;
    attribute(97, &most);
    if (!f || value > most) FAIL(1);
    if ((int)id == 8) function_shared = f->allowed_shared = value;
    else if ((int)id == 14) function_cluster = f->allowed_cluster = value;
    else FAIL(1);
    return (CUresult)0;
}

CALL cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, CUfunction f, int threads, size_t shared) {
    CTX_CALL;
    if (!f) FAIL(400);
    if (executor.user) *n = occupancy(&f->kernel, threads, shared);
    else *n = shared ? (int)((228 << 10) / shared) : 2048 / threads;
    return (CUresult)0;
}

CALL cuOccupancyMaxActiveClusters(int *n, CUfunction f, const CUlaunchConfig *c) {
    CTX_CALL;
    if (!f || c->numAttrs < 1 || (int)c->attrs[0].id != 4) FAIL(1);
    int blocks = 1, processors = 132, size = (int)c->attrs[0].value.clusterDim.x;
    if (executor.user) blocks = occupancy(&f->kernel, (int)(c->blockDimX * c->blockDimY * c->blockDimZ), c->sharedMemBytes);
    attribute(16, &processors);
    *n = processors * blocks / size;
    if (executor.user && blocks && !*n) *n = 1; // of a small device that is told to hold large clusters
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

// The kernels that every module holds:
//   scale(float *x, float by, unsigned n)                        x[i] *= by
//   twice(const float *x, float *y, int64_t n)                   y[i] = 2 * x[i]
//   plus(const float *a, const float *b, float *y, int64_t n)    y[i] = a[i] + b[i]
// and those of runtime/probe.cu, which change nothing.
static struct node work(CUfunction f, void **params) {
    struct node n = {.kind = NOTHING, .function = f};
    if (!params || !strncmp(f->name, "fusec_", 6)) return n;
    n.a = *(uint64_t *)params[0];
    if (!strcmp(f->name, "twice")) {
        n.kind = TWICE, n.b = n.a, n.a = *(uint64_t *)params[1], n.n = *(uint64_t *)params[2];
    } else if (!strcmp(f->name, "plus")) {
        n.kind = PLUS, n.b = n.a, n.c = *(uint64_t *)params[1], n.a = *(uint64_t *)params[2];
        n.n = *(uint64_t *)params[3];
    } else {
        n.kind = SCALE, n.f = *(float *)params[1], n.n = *(unsigned *)params[2];
    }
    return n;
}

static CUresult launch(const CUlaunchConfig *c, CUfunction f, void **params) {
    if (!executor.user) return queue(c->hStream, work(f, params));
    struct node n = {.kind = KERNEL, .function = f};
    int code = pack(&n.work, f, (const unsigned[6]){c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY,
                    c->blockDimZ}, c->sharedMemBytes, params);
    for (unsigned i = 0; i < c->numAttrs && !code; i++)
        if ((int)c->attrs[i].id == 4) code = cluster(&n.work, f, &c->attrs[i].value);
    if (code) FAIL(code);
    return queue(c->hStream, n);
}

CALL cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                    unsigned bz, unsigned shared, CUstream s, void **params, void **extra) {
    CTX_CALL;
    if (!f || extra) FAIL(1);
    CUlaunchConfig c = {gx, gy, gz, bx, by, bz, shared, s, NULL, 0};
    record(&c);
    return launch(&c, f, params);
}

CALL cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **params, void **extra) {
    CTX_CALL;
    if (!f || extra) FAIL(1);
    record(c);
    return launch(c, f, params);
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

CALL cuGraphCreate(CUgraph *g, unsigned flags) {
    CTX_CALL;
    if (flags) FAIL(1);
    *g = take(sizeof **g);
    return (CUresult)0;
}

// Sets a node's function, shape and arguments; a cluster that it has stays.
static CUresult node_params(struct node *n, const CUDA_KERNEL_NODE_PARAMS *p) {
    if (!executor.user) {
        *n = work(p->func, p->kernelParams);
        return (CUresult)0;
    }
    n->kind = KERNEL;
    n->function = p->func;
    return (CUresult)pack(&n->work, p->func, (const unsigned[6]){p->gridDimX, p->gridDimY, p->gridDimZ, p->blockDimX,
                          p->blockDimY, p->blockDimZ}, p->sharedMemBytes, p->kernelParams);
}

CALL cuGraphAddKernelNode_v2(CUgraphNode *n, CUgraph g, const CUgraphNode *after, size_t count,
                             const CUDA_KERNEL_NODE_PARAMS *p) {
    CTX_CALL;
    if (after || count || !p->func || p->extra || !p->gridDimX || !p->blockDimX || g->count == MAX_NODES) FAIL(1);
    int at = g->count++;
    g->handles[at] = (struct CUgraphNode_st){g, at};
    *n = &g->handles[at];
    return node_params(&g->nodes[at], p);
}

CALL cuGraphKernelNodeSetAttribute(CUgraphNode n, CUkernelNodeAttrID id, const CUlaunchAttributeValue *value) {
    CTX_CALL;
    if (!n || ((int)id != 2 && (int)id != 4) || !value) FAIL(1);
    if (!executor.user || (int)id != 4) return (CUresult)0;
    struct node *at = &n->of->nodes[n->at];
    return (CUresult)cluster(&at->work, at->work.function, value);
}

CALL cuGraphAddDependencies_v2(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                               const CUgraphEdgeData *data, size_t count) {
    CTX_CALL;
    for (size_t i = 0; i < count; i++) {
        // Kernels run in the order in which they were added, which edges must agree with.
        if (from[i]->of != g || to[i]->of != g || from[i]->at >= to[i]->at) FAIL(1);
        if (data[i].type != data[i].from_port || data[i].type > 1 || data[i].to_port) FAIL(1);
        edges++;
        programmatic_edges += data[i].type;
    }
    return (CUresult)0;
}

CALL cuGraphExecKernelNodeSetParams_v2(CUgraphExec x, CUgraphNode n, const CUDA_KERNEL_NODE_PARAMS *p) {
    CTX_CALL;
    if (!p->func || n->at >= x->graph.count) FAIL(1);
    return node_params(&x->graph.nodes[n->at], p);
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

// A launch of a graph waits for the one before, whatever their streams. Its nodes are copied:
// what the graph becomes later is for later launches.
CALL cuGraphLaunch(CUgraphExec x, CUstream s) {
    CTX_CALL;
    if (x->last.stream && x->last.stream != real(s)) {
        struct node wait = {.kind = WAIT, .a = (uintptr_t)x->last.stream, .n = x->last.entries};
        queue(s, wait);
    }
    for (int i = 0; i < x->graph.count; i++) queue(s, x->graph.nodes[i]);
    x->last = all_of(real(s));
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
    if (executor.user) {
        struct map_request r = {(uint64_t)type, rank, (uintptr_t)address, {0}, {0}, {0}, {0}, (uint64_t)interleave,
                                (uint64_t)swizzle, (uint64_t)fill};
        return (CUresult)encode(map, &r, dims, strides, box, steps);
    }
    uint64_t words[16] = {(uint64_t)type, rank, (uintptr_t)address, dims[0], dims[rank - 1],
                          rank > 1 ? strides[rank - 2] : 0, box[0], box[rank - 1], steps[0],
                          (uint64_t)interleave, (uint64_t)swizzle, (uint64_t)l2, (uint64_t)fill};
    memcpy(map, words, sizeof words);
    return (CUresult)0;
}

#endif
