// A CUPTI without hardware, for tests. Parameters are declared here as C lays them out, apart from those
// of package cuda: a call whose size or fields are not where they are expected is refused.
//
// DENIED refuses to count, as a driver does that lets administrators count only; STRANGE knows no chip; OLD
// lacks the range profiler.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { OK, BAD_PARAMETER, BAD_OPERATION = 7, BAD_METRIC = 17, NOT_SUPPORTED = 27, NOT_PERMITTED = 35 };
enum { PASSES = 2, MOST = 16, CONFIG_BYTES = 40, DATA_BYTES = 72, AVAILABLE_BYTES = 24 };

#define HEAD size_t size; void *priv
#define UP_TO(p, last) (offsetof(__typeof__(*p), last) + sizeof p->last)
#define NEEDS(p, last) if (p->size != UP_TO(p, last) || p->priv) return BAD_PARAMETER

typedef enum { RANGE_PROFILER } profiler_type;
typedef enum { NO_RANGE, AUTO_RANGE, USER_RANGE } range_mode;
typedef enum { NO_REPLAY, APPLICATION_REPLAY, KERNEL_REPLAY, USER_REPLAY } replay_mode;

static struct state {
    int initialized, hosts, enabled, running, pass, metrics, pushed, decoded;
    int depth;
    int refused; // a metric
    char names[MOST][8];
    size_t most;
} now;
static char object, host;

int cuptiGetResultString(int code, const char **text) {
    *text = code == NOT_PERMITTED ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : code == BAD_METRIC ? "CUPTI_ERROR_INVALID_METRIC_NAME" : "CUPTI_ERROR";
    return OK;
}

// fake_open is how much there is that was not given back.
int fake_open(void) { return now.hosts + now.enabled; }

int cuptiProfilerInitialize(struct { HEAD; } *p) {
    NEEDS(p, priv);
    now.initialized = 1;
    return OK;
}

int cuptiDeviceGetChipName(struct { HEAD; size_t device; const char *name; } *p) {
    NEEDS(p, name);
    p->name = "GF00";
    return p->device || !now.initialized ? BAD_PARAMETER : OK;
}

int cuptiProfilerGetCounterAvailability(struct { HEAD; void *context; size_t bytes; uint8_t *image; } *p) {
    NEEDS(p, image);
    if (!p->context) return BAD_PARAMETER;
#ifdef DENIED
    return NOT_PERMITTED;
#endif
    if (p->image && p->bytes != AVAILABLE_BYTES) return BAD_PARAMETER;
    if (p->image) memset(p->image, 3, p->bytes);
    p->bytes = AVAILABLE_BYTES;
    return OK;
}

int cuptiProfilerHostInitialize(struct { HEAD; profiler_type type; const char *chip; const uint8_t *available; void *host; } *p) {
    NEEDS(p, host);
#ifdef STRANGE
    return NOT_SUPPORTED;
#endif
    if (p->type != RANGE_PROFILER || strcmp(p->chip, "GF00") || !p->available || p->available[AVAILABLE_BYTES - 1] != 3) return BAD_PARAMETER;
    p->host = &host;
    now.hosts++;
    now.refused = 0;
    return OK;
}

int cuptiProfilerHostDeinitialize(struct { HEAD; void *host; } *p) {
    NEEDS(p, host);
    if (p->host != &host) return BAD_PARAMETER;
    now.hosts--;
    now.metrics = 0;
    return OK;
}

int cuptiProfilerHostConfigAddMetrics(struct { HEAD; void *host; const char **names; size_t count; } *p) {
    NEEDS(p, count);
    if (p->host != &host || now.refused) return BAD_PARAMETER; // as the library, which counts nothing that is added behind a refusal
    for (size_t i = 0; i < p->count; i++) {
        now.refused = strncmp(p->names[i], "dram__", 6) && strncmp(p->names[i], "sm__", 4);
        if (now.refused) return BAD_METRIC;
    }
    now.metrics += p->count;
    return OK;
}

int cuptiProfilerHostGetConfigImageSize(struct { HEAD; void *host; size_t bytes; } *p) {
    NEEDS(p, bytes);
    p->bytes = CONFIG_BYTES;
    return p->host == &host && now.metrics ? OK : BAD_OPERATION;
}

int cuptiProfilerHostGetConfigImage(struct { HEAD; void *host; size_t bytes; uint8_t *image; } *p) {
    NEEDS(p, image);
    if (p->host != &host || p->bytes != CONFIG_BYTES || (uintptr_t)p->image % 8) return BAD_PARAMETER;
    memset(p->image, 5, p->bytes);
    return OK;
}

#ifndef OLD

int cuptiRangeProfilerEnable(struct { HEAD; void *context; void *object; } *p) {
    NEEDS(p, object);
    if (!p->context || now.enabled) return BAD_PARAMETER;
    p->object = &object;
    now = (struct state){.initialized = 1, .hosts = now.hosts, .metrics = now.metrics, .enabled = 1};
    return OK;
}

#define PROFILER_CALL(name) int name(struct { HEAD; void *object; } *p)
#define NEEDS_PROFILER NEEDS(p, object); if (p->object != &object) return BAD_PARAMETER

PROFILER_CALL(cuptiRangeProfilerDisable) {
    NEEDS_PROFILER;
    now.enabled = 0;
    return OK;
}

int cuptiRangeProfilerGetCounterDataSize(struct { HEAD; void *object; const char **names; size_t count, ranges; uint32_t nodes; size_t bytes; } *p) {
    NEEDS(p, bytes);
    if (p->object != &object || p->count != (size_t)now.metrics || p->ranges > MOST || p->nodes < p->ranges) return BAD_PARAMETER;
    now.most = p->ranges;
    p->bytes = DATA_BYTES;
    return OK;
}

int cuptiRangeProfilerCounterDataImageInitialize(struct { HEAD; void *object; size_t bytes; uint8_t *data; } *p) {
    NEEDS(p, data);
    if (p->object != &object || p->bytes != DATA_BYTES) return BAD_PARAMETER;
    memset(p->data, 7, p->bytes);
    return OK;
}

int cuptiRangeProfilerSetConfig(struct {
    HEAD;
    void *object;
    size_t config_bytes;
    const uint8_t *config;
    size_t data_bytes;
    uint8_t *data;
    range_mode ranges;
    replay_mode replay;
    size_t most;
    uint16_t levels, least;
    size_t pass;
    uint16_t target;
} *p) {
    NEEDS(p, target);
    if (p->object != &object || p->config_bytes != CONFIG_BYTES || p->config[CONFIG_BYTES - 1] != 5) return BAD_PARAMETER;
    if (p->data_bytes != DATA_BYTES || p->data[DATA_BYTES - 1] != 7) return BAD_PARAMETER;
    if (p->ranges != USER_RANGE || p->replay != USER_REPLAY || p->most != now.most) return BAD_PARAMETER;
    return p->levels != 1 || p->least != 1 || p->pass || p->target != 1 ? BAD_PARAMETER : OK;
}

PROFILER_CALL(cuptiRangeProfilerStart) {
    NEEDS_PROFILER;
    if (now.running || now.pass == PASSES) return BAD_OPERATION;
    now.running = 1;
    now.pushed = 0;
    return OK;
}

int cuptiRangeProfilerStop(struct { HEAD; void *object; size_t pass, level; uint8_t last; } *p) {
    NEEDS(p, last);
    if (!now.running || now.depth || (size_t)now.pushed != now.most) return BAD_OPERATION;
    now.running = 0;
    p->pass = now.pass++;
    p->last = now.pass == PASSES;
    return OK;
}

int cuptiRangeProfilerPushRange(struct { HEAD; void *object; const char *name; } *p) {
    NEEDS(p, name);
    if (!now.running || now.depth++ || (size_t)now.pushed == now.most) return BAD_OPERATION;
    snprintf(now.names[now.pushed++], sizeof now.names[0], "%s", p->name);
    return OK;
}

PROFILER_CALL(cuptiRangeProfilerPopRange) {
    NEEDS_PROFILER;
    return now.depth-- == 1 ? OK : BAD_OPERATION;
}

int cuptiRangeProfilerDecodeData(struct { HEAD; void *object; size_t dropped; } *p) {
    NEEDS(p, dropped);
    if (now.running || now.pass != PASSES) return BAD_OPERATION;
    now.decoded = 1;
    return OK;
}

// The data has the ranges in the opposite order.
int cuptiRangeProfilerCounterDataGetRangeInfo(struct { HEAD; const uint8_t *data; size_t bytes, index; const char *delimiter; const char *name; } *p) {
    NEEDS(p, name);
    if (!now.decoded || p->bytes != DATA_BYTES || p->index >= now.most || strcmp(p->delimiter, "/")) return BAD_PARAMETER;
    p->name = now.names[now.most - 1 - p->index];
    return OK;
}

// A value is 1000 times the number of its range, and the length of the metric's name.
int cuptiProfilerHostEvaluateToGpuValues(struct { HEAD; void *host; const uint8_t *data; size_t bytes, index; const char **names; size_t count; double *values; } *p) {
    NEEDS(p, values);
    if (p->host != &host || p->bytes != DATA_BYTES || p->data[0] != 7 || p->count != (size_t)now.metrics) return BAD_PARAMETER;
    for (size_t i = 0; i < p->count; i++) p->values[i] = 1000.0 * (now.most - 1 - p->index) + strlen(p->names[i]);
    return OK;
}

#endif
