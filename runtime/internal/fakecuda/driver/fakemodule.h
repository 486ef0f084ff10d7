// What the fake driver does with modules of PTX and their kernels, where there is an
// executor. Included by fakework.h.

// load hands PTX to the executor; a cubin is of no use to it.
static int load(CUmodule *m, const char *image, unsigned n, const int *options, void **values) {
    char text[TEXT_BYTES] = "";
    uint64_t module = 0;
    if (!memcmp(image, "\177ELF", 4)) return 209;
    if (executor.load(executor.user, image, &module, text)) {
        for (unsigned i = 0; i + 1 < n; i++)
            if (options[i] == 5 && options[i + 1] == 6) snprintf(values[i], (size_t)values[i + 1], "%s", text);
        return 218;
    }
    *m = take(sizeof **m);
    (*m)->loaded = module;
    return 0;
}

static int find(CUfunction *out, CUmodule m, const char *name) {
    char text[TEXT_BYTES] = "";
    if (m->count == sizeof m->functions / sizeof *m->functions) return 1;
    CUfunction f = &m->functions[m->count];
    if (strlen(name) >= sizeof f->name || executor.find(executor.user, m->loaded, name, &f->kernel, text)) return 500;
    snprintf(f->name, sizeof f->name, "%s", name);
    f->of = m;
    f->allowed_shared = PLAIN_SHARED - f->kernel.attributes[1];
    m->count++;
    *out = f;
    return 0;
}

// pack checks the shape of a launch and copies its arguments.
static int pack(struct work *w, CUfunction f, const unsigned *shape, unsigned shared, void **params) {
    int threads = 1024;
    attribute(1, &threads);
    for (int i = 0; i < 6; i++)
        if (!shape[i]) return 1;
    if ((uint64_t)shape[3] * shape[4] * shape[5] > (uint64_t)threads) return 1;
    if ((int64_t)shared > f->allowed_shared || (f->kernel.params && !params)) return 1;
    w->kernel = f->kernel.id;
    w->function = f;
    w->shared = shared;
    memcpy(w->grid, shape, sizeof w->grid);
    memcpy(w->block, shape + 3, sizeof w->block);
    for (uint32_t i = 0; i < f->kernel.params; i++)
        memcpy(w->params + f->kernel.param[i].offset, params[i], f->kernel.param[i].size);
    return 0;
}

// cluster checks the size of a launch's clusters.
static int cluster(struct work *w, CUfunction f, const CUlaunchAttributeValue *value) {
    const unsigned dims[3] = {value->clusterDim.x, value->clusterDim.y, value->clusterDim.z};
    int capable = 1;
    attribute(120, &capable);
    for (int i = 0; i < 3; i++) {
        if (!dims[i] || w->grid[i] % dims[i]) return 1;
        w->cluster[i] = dims[i];
    }
    unsigned most = f->allowed_cluster ? 2 * PORTABLE_CLUSTER : PORTABLE_CLUSTER;
    return !capable || dims[0] * dims[1] * dims[2] > most;
}

#ifndef OLD_DRIVER
static int encode(CUtensorMap *map, struct map_request *r, const cuuint64_t *dims, const cuuint64_t *strides,
                  const cuuint32_t *box, const cuuint32_t *steps) {
    char text[TEXT_BYTES] = "";
    if (r->rank < 1 || r->rank > 5) return 1;
    for (uint64_t i = 0; i < r->rank; i++) {
        r->dims[i] = dims[i];
        r->strides[i] = i ? strides[i - 1] : 0;
        r->box[i] = box[i];
        r->steps[i] = steps[i];
    }
    return executor.encode(executor.user, r, map, text) ? refuse(1, text) : 0;
}
#endif
