/* limits.c: cgroup v1 and v2 quotas along the path of our group, affinity, memory.
 *
 * The tightest limit on the way from our group to the root of the hierarchy counts.  Inside a container the path in
 * /proc/self/cgroup often does not exist below the mount; then the mount's root is ours.
 */
#include "base/limits.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH = 1024 };

static int read_text(const char *root, const char *path, char *out, size_t size)
{
    char full[PATH];
    snprintf(full, sizeof full, "%s%s", root, path);
    FILE *f = fopen(full, "re");
    if (!f)
        return 0;
    size_t n = fread(out, 1, size - 1, f);
    fclose(f);
    out[n] = 0;
    return n > 0;
}

static void take_quota(dr__limits *l, double cpus)
{
    if (cpus > 0 && (l->quota_cpus == 0 || cpus < l->quota_cpus))
        l->quota_cpus = cpus;
}

static void take_memory(dr__limits *l, const char *text)
{
    char *end;
    unsigned long long v = strtoull(text, &end, 10); /* "max" reads as no number */
    if (end != text && v > 0 && v < l->memory_limit)
        l->memory_limit = v;
}

static void read_v2(const char *root, const char *dir, dr__limits *l)
{
    char path[PATH], text[128];
    double quota, period;
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", dir);
    if (read_text(root, path, text, sizeof text) && sscanf(text, "%lf %lf", &quota, &period) == 2 && period > 0)
        take_quota(l, quota / period);
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", dir);
    if (read_text(root, path, text, sizeof text))
        take_memory(l, text);
}

static void read_v1(const char *root, const char *controller, const char *dir, dr__limits *l)
{
    char path[PATH], quota[64], period[64];
    snprintf(path, sizeof path, "/sys/fs/cgroup/%s%s/cpu.cfs_quota_us", controller, dir);
    if (read_text(root, path, quota, sizeof quota) && atof(quota) > 0) {
        snprintf(path, sizeof path, "/sys/fs/cgroup/%s%s/cpu.cfs_period_us", controller, dir);
        if (read_text(root, path, period, sizeof period) && atof(period) > 0)
            take_quota(l, atof(quota) / atof(period));
    }
    snprintf(path, sizeof path, "/sys/fs/cgroup/%s%s/memory.limit_in_bytes", controller, dir);
    if (read_text(root, path, quota, sizeof quota))
        take_memory(l, quota);
}

/* One group and each above it, up to the root. */
static void walk_up(const char *root, const char *controllers, const char *group, dr__limits *l)
{
    char dir[PATH / 2];
    snprintf(dir, sizeof dir, "%s", strcmp(group, "/") ? group : "");
    for (;;) {
        if (*controllers)
            read_v1(root, controllers, dir, l);
        else
            read_v2(root, dir, l);
        char *slash = strrchr(dir, '/');
        if (!slash)
            return;
        *slash = 0;
    }
}

static void read_groups(const char *root, dr__limits *l)
{
    char text[8192];
    if (!read_text(root, "/proc/self/cgroup", text, sizeof text))
        return;
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = 0;
        controllers++;
        if (!*controllers || strstr(controllers, "cpu") == controllers || strstr(controllers, "memory"))
            walk_up(root, controllers, group, l);
        if (strstr(controllers, "cpu,cpuacct")) /* often mounted under the short name only */
            walk_up(root, "cpu", group, l);
    }
}

/* A line of /proc/meminfo, in bytes; 0: it is not there. */
static uint64_t meminfo(const char *root, const char *name)
{
    char text[4096];
    unsigned long long kb = 0;
    if (read_text(root, "/proc/meminfo", text, sizeof text)) {
        const char *at = strstr(text, name);
        if (at)
            sscanf(at + strlen(name), " %llu", &kb);
    }
    return (uint64_t)kb * 1024;
}

static uint64_t machine_memory(const char *root)
{
    const uint64_t bytes = meminfo(root, "MemTotal:");
    return bytes ? bytes : (uint64_t)1 << 30;
}

void dr__limits_read(const char *root, dr__limits *out)
{
    *out = (dr__limits){ .affinity_cpus = 1 };
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        out->affinity_cpus = CPU_COUNT(&set);
    out->memory_total = out->memory_limit = machine_memory(root);
    read_groups(root, out);
    out->cpus = out->affinity_cpus;
    if (out->quota_cpus > 0 && out->quota_cpus < out->cpus)
        out->cpus = out->quota_cpus;
    const char *world = getenv("LOCAL_WORLD_SIZE");
    out->local_world = world && atoi(world) > 0 ? atoi(world) : 1;
}

uint64_t dr__limits_memory(const dr__limits *l)
{
    return l->memory_limit / 4 / (uint64_t)l->local_world;
}

uint64_t dr__limits_page_cache(const char *root, const dr__limits *l)
{
    const uint64_t available = meminfo(root, "MemAvailable:");
    return available < l->memory_limit ? available : l->memory_limit;
}

int dr__limits_workers(const dr__limits *l)
{
    /* Half a CPU over is worth a thread: 2.5 CPUs run 3. */
    int n = (int)(l->cpus / l->local_world + 0.5);
    return n < 1 ? 1 : n;
}
