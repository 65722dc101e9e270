/* limits.h: what this process may use: CPUs and memory, as the container and the affinity mask say. */
#ifndef DR_BASE_LIMITS_H
#define DR_BASE_LIMITS_H

#include <stdint.h>

typedef struct dr__limits {
    double cpus;           /* what may be used: the smaller of affinity and quota; may be a fraction */
    int affinity_cpus;     /* CPUs of the affinity mask (cpuset) */
    double quota_cpus;     /* cgroup quota; 0: none */
    uint64_t memory_total; /* of the machine */
    uint64_t memory_limit; /* cgroup limit, or memory_total without one */
    int local_world;       /* processes that share this (LOCAL_WORLD_SIZE); 1 without */
} dr__limits;

/* Reads /proc and /sys/fs/cgroup (v1 and v2) below `root` ("" for this machine). */
void dr__limits_read(const char *root, dr__limits *out);

/* Bytes that this process should use for samples: a quarter of its share of the memory. */
uint64_t dr__limits_memory(const dr__limits *limits);

/* Bytes that the system could still use to keep files in memory: what is free or can be freed, within the limit. */
uint64_t dr__limits_page_cache(const char *root, const dr__limits *limits);

/* Threads this process should run: its share of the CPUs, at least 1. */
int dr__limits_workers(const dr__limits *limits);

#endif
