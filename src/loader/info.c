/* info.c: versions of this build, and limits of this machine. */
#include <drapps/info.h>

#include <jansson.h>

#include "base/limits.h"
#include "graph/graph_internal.h"
#include "kernel/cpu.h"

#ifndef DR_VERSION
#define DR_VERSION "unknown"
#endif

int dr_api_version(void)
{
    return DR_API_VERSION;
}

const char *dr_version(void)
{
    return DR_VERSION;
}

dr_status dr_info(char **text, dr_error *err)
{
    dr__limits l;
    dr__limits_read("", &l);
    json_t *o = json_pack("{s:s, s:i, s:s, s:{s:f, s:i, s:f, s:I, s:I, s:i, s:i}}", "version", dr_version(),
                          "api_version", dr_api_version(), "kernels", dr__cpu_name(dr__cpu_use()), "limits", "cpus",
                          l.cpus, "affinity_cpus", l.affinity_cpus, "quota_cpus", l.quota_cpus, "memory_bytes",
                          (json_int_t)l.memory_limit, "machine_memory_bytes", (json_int_t)l.memory_total, "local_world",
                          l.local_world, "workers", dr__limits_workers(&l));
    if (!o)
        return dr__fail(err, DR_ERR_NOMEM, "info: out of memory");
    json_object_set_new(o, "codecs", json_loads(dr_codecs_json(), 0, NULL));
    json_object_set_new(o, "formats", json_loads(dr_formats_json(), 0, NULL));

    json_object_set_new(o, "devices", json_pack("[s]", "cpu"));
    *text = dr__canonical(o);
    json_decref(o);
    return *text ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "info: out of memory");
}
