/* own.h: CPU time of this process and of the processes it watches, by their CPU clocks: exact, and without any file. */
#ifndef DR_MONITOR_OWN_H
#define DR_MONITOR_OWN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum { DR__MAX_WATCHED = 256 };

typedef struct dr__own_cpu {
    pthread_mutex_t lock;
    struct dr__watched {
        int pid;
        clockid_t clock;
        uint64_t seen_ns; /* its CPU time at the last reading */
    } watched[DR__MAX_WATCHED];
    int n_watched;
    uint64_t past_ns; /* CPU time of watched processes since each was added, ended ones included */
} dr__own_cpu;

typedef enum dr__watch_result { DR__WATCHED, DR__WATCH_FULL, DR__WATCH_GONE } dr__watch_result;

void dr__own_cpu_init(dr__own_cpu *own);
void dr__own_cpu_destroy(dr__own_cpu *own);
dr__watch_result dr__own_cpu_watch(dr__own_cpu *own, int pid);
void dr__own_cpu_unwatch(dr__own_cpu *own, int pid);

/* The CPU time so far; never decreases. */
uint64_t dr__own_cpu_ns(dr__own_cpu *own);

#endif
