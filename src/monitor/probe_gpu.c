/* probe_gpu.c: NVIDIA GPUs by NVML, which is loaded at run time if it is installed.  Tested with a library that
 * imitates NVML, not on hardware.
 *
 * If CUDA_VISIBLE_DEVICES lists numbers, only these GPUs count; else all GPUs of the machine.
 */
#include "monitor/probe.h"

#include <dlfcn.h>
#include <stdlib.h>

enum { MAX_GPUS = 16, NVML_SUCCESS = 0 };
static const uint64_t every_ns = 90000000; /* the driver refreshes no faster */

/* As in nvml.h. */
typedef void *nvml_device;
struct nvml_use {
    unsigned gpu, memory; /* percent */
};
struct nvml_memory {
    unsigned long long total, free, used;
};

struct nvml {
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *);
    int (*handle)(unsigned, nvml_device *);
    int (*use)(nvml_device, struct nvml_use *);
    int (*memory)(nvml_device, struct nvml_memory *);
    int (*power_mw)(nvml_device, unsigned *);
    int (*power_limit_mw)(nvml_device, unsigned *);
};

static const struct {
    size_t place;
    const char *symbol;
} symbols[] = {
    { offsetof(struct nvml, init), "nvmlInit_v2" },
    { offsetof(struct nvml, shutdown), "nvmlShutdown" },
    { offsetof(struct nvml, count), "nvmlDeviceGetCount_v2" },
    { offsetof(struct nvml, handle), "nvmlDeviceGetHandleByIndex_v2" },
    { offsetof(struct nvml, use), "nvmlDeviceGetUtilizationRates" },
    { offsetof(struct nvml, memory), "nvmlDeviceGetMemoryInfo" },
    { offsetof(struct nvml, power_mw), "nvmlDeviceGetPowerUsage" },
    { offsetof(struct nvml, power_limit_mw), "nvmlDeviceGetEnforcedPowerLimit" },
};

struct state {
    void *library; /* NULL: no GPU */
    struct nvml nvml;
    nvml_device gpus[MAX_GPUS];
    unsigned n_gpus;
    dr_snapshot last;
    uint64_t next_ns;
};

static bool find_symbols(struct state *s)
{
    for (size_t i = 0; i < DR_COUNT(symbols); i++) {
        void *found = dlsym(s->library, symbols[i].symbol);
        if (!found)
            return false;
        *(void **)((char *)&s->nvml + symbols[i].place) = found; /* POSIX: functions fit into void * */
    }
    return true;
}

static bool is_visible(unsigned gpu)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    uint64_t number;
    if (!list || !dr__next_u64(&list, &number))
        return true; /* not set, or not numbers */
    while (number != gpu) {
        if (*list++ != ',' || !dr__next_u64(&list, &number))
            return false;
    }
    return true;
}

static void find_gpus(struct state *s)
{
    unsigned n = 0;
    if (s->nvml.count(&n) != NVML_SUCCESS)
        return;
    for (unsigned i = 0; i < n && s->n_gpus < MAX_GPUS; i++)
        if (is_visible(i) && s->nvml.handle(i, &s->gpus[s->n_gpus]) == NVML_SUCCESS)
            s->n_gpus++;
}

static void open_library(void *state, dr__host *host)
{
    struct state *s = state;
    if (host->redirected)
        return;
    s->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!s->library)
        return;
    if (find_symbols(s) && s->nvml.init() == NVML_SUCCESS) {
        find_gpus(s);
        return;
    }
    dlclose(s->library);
    s->library = NULL;
}

static void sense_use(struct state *s, dr_snapshot *out)
{
    double busy = 0, moving = 0;
    for (unsigned i = 0; i < s->n_gpus; i++) {
        struct nvml_use use;
        if (s->nvml.use(s->gpus[i], &use) != NVML_SUCCESS)
            return;
        busy += use.gpu / 100.0 / s->n_gpus;
        moving += use.memory / 100.0 / s->n_gpus;
    }
    dr__sense(out, DR_SENSOR_GPU_BUSY, busy, 1);
    dr__sense(out, DR_SENSOR_GPU_BANDWIDTH, moving, 1);
}

static void sense_memory(struct state *s, dr_snapshot *out)
{
    double used = 0, total = 0;
    for (unsigned i = 0; i < s->n_gpus; i++) {
        struct nvml_memory memory;
        if (s->nvml.memory(s->gpus[i], &memory) != NVML_SUCCESS)
            return;
        used += (double)memory.used;
        total += (double)memory.total;
    }
    dr__sense(out, DR_SENSOR_GPU_MEMORY, used, total);
}

static void sense_power(struct state *s, dr_snapshot *out)
{
    double power = 0, limit = 0;
    for (unsigned i = 0; i < s->n_gpus; i++) {
        unsigned mw, limit_mw;
        if (s->nvml.power_mw(s->gpus[i], &mw) != NVML_SUCCESS ||
            s->nvml.power_limit_mw(s->gpus[i], &limit_mw) != NVML_SUCCESS)
            return;
        power += mw * 1e-3;
        limit += limit_mw * 1e-3;
    }
    dr__sense(out, DR_SENSOR_GPU_POWER, power, limit);
}

static void tick(void *state, dr__host *host, uint64_t now_ns, uint64_t elapsed_ns, dr_snapshot *out)
{
    (void)host, (void)elapsed_ns;
    struct state *s = state;
    if (!s->n_gpus)
        return;
    if (now_ns >= s->next_ns) {
        s->next_ns = now_ns + every_ns;
        s->last.present = 0;
        sense_use(s, &s->last);
        sense_memory(s, &s->last);
        sense_power(s, &s->last);
    }
    for (int i = DR_SENSOR_GPU_BUSY; i <= DR_SENSOR_GPU_POWER; i++)
        if (dr__is_present(&s->last, i)) {
            out->value[i] = s->last.value[i];
            out->level[i] = s->last.level[i];
        }
    out->present |= s->last.present;
}

static void close_library(void *state)
{
    struct state *s = state;
    if (!s->library)
        return;
    s->nvml.shutdown();
    dlclose(s->library);
}

const dr__probe_def dr__probe_gpu = {
    .name = "gpu",
    .summary = "use, memory and power of NVIDIA GPUs",
    .state_size = sizeof(struct state),
    .open = open_library,
    .read = tick,
    .close = close_library,
};
