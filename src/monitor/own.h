/* own.h: CPU time of this process and of the processes it watches, by their CPU clocks: exact, and without files. */
#ifndef DR_MONITOR_OWN_H
#define DR_MONITOR_OWN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum { DR__MAX_WATCHED = 256 };

typedef struct dr__own {
    pthread_mutex_t lock;
    struct dr__watched {
        int pid;
        clockid_t clock;
        uint64_t seen_ns;
    } watched[DR__MAX_WATCHED];
    int n_watched;
    uint64_t past_ns; /* of watched processes, since each was added */
} dr__own;

typedef enum dr__watch_result { DR__WATCHED, DR__WATCH_FULL, DR__WATCH_GONE } dr__watch_result;

void dr__own_init(dr__own *own);
void dr__own_destroy(dr__own *own);
dr__watch_result dr__own_add(dr__own *own, int pid);
void dr__own_remove(dr__own *own, int pid);

/* CPU time so far; grows only. */
uint64_t dr__own_cpu_ns(dr__own *own);

#endif
