// The queues of streams. Where the driver defers, work stays in the queue of its stream
// until somebody waits for it: a synchronisation runs all of it, a query one piece, an
// event what is ahead of it. What is then still queued although its memory or its code is
// gone would run on a GPU too, at the worst moment: it is a violation, which fails the test.
// Included by fakecuda.c, whose state it shares.

// An entry is a piece of work in a queue. It owns the host memory of copies from memory that
// the driver has to copy ahead of time.
struct entry { struct entry *next; void *staged; struct node node; };

static pthread_mutex_t work_lock = PTHREAD_MUTEX_INITIALIZER; // held to change or to run queues
static CUstream streams = &default_stream;                    // all of them

static int num_pins;                                          // pieces of pinned memory

// ---- what work uses ----

static const char *const kind_names[] = {"an empty launch", "kernel scale", "kernel twice", "kernel plus", "a memset",
    "a memset", "a copy", "a copy to the device", "a copy from the device", "a kernel", "an event's mark",
    "a wait for an event", "an allocation", "a free"};

static const char *name_of(const struct node *n) {
    return n->kind == KERNEL && n->function ? n->function->name : kind_names[n->kind];
}

struct range { uint64_t at, bytes; };

// ranges gives the device memory that work other than a module's kernels uses, and the
// memory of the host behind it.
static int ranges(const struct node *n, struct range *out, int *hosts) {
    *hosts = n->kind == COPY_IN || n->kind == COPY_OUT;
    switch (n->kind) {
    case SCALE: out[0] = (struct range){n->a, 4 * n->n}; return 1;
    case TWICE: out[0] = (struct range){n->a, 4 * n->n}; out[1] = (struct range){n->b, 4 * n->n}; return 2;
    case PLUS:
        out[0] = (struct range){n->a, 4 * n->n}; out[1] = (struct range){n->b, 4 * n->n};
        out[2] = (struct range){n->c, 4 * n->n};
        return 3;
    case SET8: out[0] = (struct range){n->a, n->n}; return 1;
    case SET32: out[0] = (struct range){n->a, 4 * n->n}; return 1;
    case COPY: case COPY_OUT: case COPY_IN:
        out[n->kind == COPY_OUT] = (struct range){n->a, n->n};
        out[n->kind != COPY_OUT] = (struct range){n->b, n->n};
        return 2;
    }
    return 0;
}

// touches tells whether work uses any of a piece of memory. A kernel of a module does where
// one of its parameters, or of the words of one, is an address in it.
static int touches(const struct node *n, uint64_t at, uint64_t bytes) {
    if (n->kind == KERNEL) {
        for (size_t i = 0; i + 8 <= sizeof n->work.params; i += 8) {
            uint64_t word;
            memcpy(&word, n->work.params + i, 8);
            if (word - at < bytes) return 1;
        }
        return 0;
    }
    struct range used[3];
    int hosts, count = ranges(n, used, &hosts);
    for (int i = 0; i < count; i++)
        if (used[i].bytes && used[i].at < at + bytes && at < used[i].at + used[i].bytes) return 1;
    return 0;
}

// pending finds work in the queues that uses a piece of memory; NULL for none. The queues
// are locked.
static const struct node *pending(uint64_t at, uint64_t bytes) {
    for (CUstream s = streams; s; s = s->next)
        for (struct entry *e = s->first; e; e = e->next)
            if (touches(&e->node, at, bytes)) return &e->node;
    return NULL;
}

// check_queued looks at work as it is queued: its memory must not be on its way out.
static void check_queued(const struct node *n) {
    if (n->function && n->function->of->unloaded) violate("%s is launched after its module was unloaded", name_of(n));
    int dying = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < num_allocations; i++)
        dying |= allocations[i].dying && touches(n, allocations[i].at, allocations[i].bytes);
    pthread_mutex_unlock(&lock);
    if (dying) violate("%s is queued on memory that was freed before", name_of(n));
}

// check_run looks at work as it is run: all its memory must be there.
static int check_run(const struct node *n) {
    struct range used[3];
    int hosts, missing = 0, unborn = 0, count = ranges(n, used, &hosts);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < count - hosts; i++) {
        int found = !used[i].bytes;
        for (int j = 0; j < num_allocations && !found; j++)
            found = used[i].at >= allocations[j].at &&
                    used[i].at + used[i].bytes <= allocations[j].at + allocations[j].bytes;
        missing |= !found;
    }
    for (int i = 0; i < num_allocations; i++)
        unborn |= allocations[i].unborn && touches(n, allocations[i].at, allocations[i].bytes);
    pthread_mutex_unlock(&lock);
    if (missing) violate("%s uses memory that is not allocated", name_of(n));
    if (unborn) violate("%s uses memory that another stream is still to allocate", name_of(n));
    return !missing;
}

// ---- running ----

static void birth(uint64_t at) {
    pthread_mutex_lock(&lock);
    struct allocation *a = allocation_at(at);
    if (a) a->unborn = 0;
    pthread_mutex_unlock(&lock);
}

// end_of_life frees memory in the order of a stream.
static void end_of_life(uint64_t at) {
    struct allocation a;
    if (!device_forget(at, &a)) return;
    const struct node *user = pending(a.at, a.bytes);
    if (user) violate("memory is freed in the order of one stream while %s on another is still to use it", name_of(user));
    if (a.pooled) pool_held += a.bytes;
    if (user) bury((void *)a.at);
    else free((void *)a.at);
}

static void run(CUstream s, const struct node *n) {
    if (fault) return; // nothing runs after a kernel that failed
    if (!check_run(n)) return;
    float *x = (float *)(uintptr_t)n->a, *y = (float *)(uintptr_t)n->b, *z = (float *)(uintptr_t)n->c;
    switch (n->kind) {
    case SCALE: for (uint64_t i = 0; i < n->n; i++) x[i] *= n->f; break;
    case TWICE: for (uint64_t i = 0; i < n->n; i++) x[i] = 2 * y[i]; break;
    case PLUS: for (uint64_t i = 0; i < n->n; i++) x[i] = y[i] + z[i]; break;
    case SET8: memset((void *)(uintptr_t)n->a, (int)n->b, n->n); break;
    case SET32: for (uint64_t i = 0; i < n->n; i++) ((uint32_t *)x)[i] = (uint32_t)n->b; break;
    case COPY: case COPY_IN: case COPY_OUT: memmove((void *)(uintptr_t)n->a, (void *)(uintptr_t)n->b, n->n); break;
    case KERNEL: execute(&n->work); break;
    case RECORD: ((CUevent)(uintptr_t)n->a)->ms = s->clock; return;
    case ALLOC: birth(n->a); return;
    case FREE: end_of_life(n->a); return;
    default: return;
    }
    s->clock += 0.5;
}

static void drain(struct place p);

// advance runs the first entry of a queue and what that has to wait for.
static void advance(CUstream s) {
    struct entry *e = s->first;
    if (e->node.kind == WAIT) drain((struct place){(CUstream)(uintptr_t)e->node.a, e->node.n});
    run(s, &e->node);
    s->first = e->next;
    if (!s->first) s->last = NULL;
    s->done++;
    free(e->staged);
    free(e);
}

// drain runs a stream up to a place. The queues are locked.
static void drain(struct place p) {
    while (p.stream && p.stream->done < p.entries) advance(p.stream);
}

static struct place all_of(CUstream s) { return (struct place){s, s->queued}; }

// While the driver holds its work, nothing runs: whoever waits for any of it waits, and queries
// say that it is not ready.
static int holding;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;

EXPORT void fake_hold(int on) {
    pthread_mutex_lock(&work_lock);
    holding = on;
    if (!on) pthread_cond_broadcast(&released);
    pthread_mutex_unlock(&work_lock);
}

static int passed(struct place p) { return !p.stream || p.stream->done >= p.entries; }

// reach waits until a stream has come to a place; the queues are locked.
static void reach(struct place p) {
    while (holding && !passed(p)) pthread_cond_wait(&released, &work_lock);
    drain(p);
}

static CUresult drain_locked(struct place p) {
    pthread_mutex_lock(&work_lock);
    reach(p);
    pthread_mutex_unlock(&work_lock);
    return (CUresult)fault;
}

static CUresult drain_all(void) {
    pthread_mutex_lock(&work_lock);
    for (CUstream s = streams; s; s = s->next) reach(all_of(s));
    pthread_mutex_unlock(&work_lock);
    return (CUresult)fault;
}

// ask answers a query: 600 while there is work ahead of a place. The question lets a piece
// of it run.
static CUresult ask(struct place p) {
    int code = 0;
    pthread_mutex_lock(&work_lock);
    if (!passed(p)) code = 600;
    if (code && !holding) {
        CUstream s = p.stream;
        while (s->first->node.kind == WAIT) {
            CUstream other = (CUstream)(uintptr_t)s->first->node.a;
            if (other->done >= s->first->node.n) break;
            s = other;
        }
        advance(s);
    }
    pthread_mutex_unlock(&work_lock);
    return (CUresult)(fault ? fault : code);
}

// ---- queueing ----

// push puts work at the end of a queue, or runs it. Host memory that is not pinned is read
// now: its owner may change it once the call has returned.
static void push(CUstream s, const struct node *n, int pinned) {
    if (!deferring) {
        check_queued(n);
        run(s, n);
        return;
    }
    struct entry *e = malloc(sizeof *e);
    *e = (struct entry){NULL, NULL, *n};
    if (n->kind == COPY_IN && !pinned) {
        e->staged = malloc(n->n);
        memcpy(e->staged, (void *)(uintptr_t)n->b, n->n);
        e->node.b = (uintptr_t)e->staged;
    }
    pthread_mutex_lock(&work_lock);
    check_queued(n);
    if (s->last) s->last->next = e;
    else s->first = e;
    s->last = e;
    s->queued++;
    if (n->kind == COPY_OUT && !pinned) reach(all_of(s)); // the memory is filled then
    pthread_mutex_unlock(&work_lock);
}

static int is_pinned(uint64_t at);

static CUresult queue(CUstream s, struct node n) {
    s = real(s);
    CUgraph g = s->capturing;
    if (!g) push(s, &n, is_pinned(n.kind == COPY_IN ? n.b : n.a));
    else if (g->count == MAX_NODES) FAIL(901);
    else g->nodes[g->count++] = n;
    return (CUresult)0;
}

// ---- ends ----

static void clear_queues(void) {
    for (CUstream s = streams; s; s = s->next) {
        for (struct entry *e = s->first, *next; e; e = next) {
            next = e->next;
            free(e->staged);
            free(e);
        }
        s->first = s->last = NULL;
        s->done = s->queued;
    }
}

// abandon ends the context: what is queued never runs.
static void abandon(void) {
    pthread_mutex_lock(&work_lock);
    for (CUstream s = streams; s && !fault; s = s->next)
        for (struct entry *e = s->first; e; e = e->next)
            if (e->node.kind <= KERNEL) violate("the context ends with %s queued", name_of(&e->node));
            else if (e->node.kind == FREE) end_of_life(e->node.a); // for the pool it comes to pass
    clear_queues();
    pthread_mutex_unlock(&work_lock);
}

static void queue_reset(void) {
    pthread_mutex_lock(&work_lock);
    clear_queues();
    for (CUstream s = streams, next; s; s = next) {
        next = s->next;
        if (s != &default_stream) free(s);
    }
    memset(&default_stream, 0, sizeof default_stream);
    streams = &default_stream;
    for (int i = 0; i < num_graves; i++) free(graves[i]);
    num_graves = num_pins = holding = 0;
    pthread_mutex_unlock(&work_lock);
}
