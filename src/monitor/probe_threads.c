/* probe_threads.c: on how many threads at a time this process computes, beside drapps' own threads.
 *
 * Of the CPU times t of the threads between two readings it is (sum t)^2 / sum t^2: n threads that use the same are n,
 * and those that use little hardly count.  Without one that computes the sensor is absent.
 *
 * A file for each thread is read: once a second or less, and at most 0.1 % of a CPU.
 */
#include "monitor/probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

enum { MAX_THREADS = 1024, PAUSE_PER_NS = 1000, MIN_PAUSE_NS = 1000000000 };
static const double LEAST = 0.01; /* of a CPU: a process that uses less does not compute */

struct thread {
    int tid;
    uint64_t cpu_ns;
};

struct state {
    DIR *tasks; /* NULL: not there */
    struct thread before[MAX_THREADS], now[MAX_THREADS];
    int n_before;
    uint64_t at_ns, next_ns; /* of the last reading; of the next */
    double threads;          /* 0: not known */
};

static void open_tasks(void *state, dr__host *host)
{
    struct state *s = state;
    s->tasks = host->redirected ? NULL : opendir("/proc/self/task"); /* of another machine, it is another process */
}

/* Reads a file of a thread, which may have ended; false: it has. */
static bool read_text(const struct state *s, int tid, const char *name, char *text, size_t cap)
{
    char path[48];
    snprintf(path, sizeof path, "%d/%s", tid, name);
    const int fd = openat(dirfd(s->tasks), path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, cap - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static bool is_drapps_thread(const struct state *s, int tid)
{
    char name[32];
    return !read_text(s, tid, "comm", name, sizeof name) || !strncmp(name, "drapps", 6);
}

static uint64_t cpu_before(const struct state *s, int tid, int guess)
{
    if (guess < s->n_before && s->before[guess].tid == tid) /* the kernel lists them in the same order */
        return s->before[guess].cpu_ns;
    for (int i = 0; i < s->n_before; i++)
        if (s->before[i].tid == tid)
            return s->before[i].cpu_ns;
    return 0;
}

/* Lists the threads with their CPU times; returns how many. */
static int list_threads(struct state *s)
{
    int n = 0;
    rewinddir(s->tasks);
    for (struct dirent *entry; n < MAX_THREADS && (entry = readdir(s->tasks));) {
        char text[96], *end;
        const int tid = atoi(entry->d_name);
        if (tid <= 0 || !read_text(s, tid, "schedstat", text, sizeof text))
            continue;
        const uint64_t ns = strtoull(text, &end, 10);
        if (end != text)
            s->now[n++] = (struct thread){ tid, ns };
    }
    return n;
}

static void measure(struct state *s, uint64_t now_ns)
{
    const int n = list_threads(s);
    const double span = (double)(now_ns - s->at_ns);
    double sum = 0, squares = 0;
    for (int i = 0; i < n && s->at_ns; i++) {
        const double t = (double)dr__counter_delta(cpu_before(s, s->now[i].tid, i), s->now[i].cpu_ns) / span;
        if (t < LEAST / MAX_THREADS || is_drapps_thread(s, s->now[i].tid))
            continue;
        sum += t;
        squares += t * t;
    }
    s->threads = sum >= LEAST ? sum * sum / squares : 0;
    memcpy(s->before, s->now, (size_t)n * sizeof s->now[0]);
    s->n_before = n;
    s->at_ns = now_ns;
}

static void tick(void *state, dr__host *host, uint64_t now_ns, uint64_t elapsed_ns, dr_snapshot *out)
{
    (void)elapsed_ns;
    struct state *s = state;
    if (!s->tasks)
        return;
    if (now_ns >= s->next_ns) {
        const uint64_t begin_ns = dr__thread_cpu_ns();
        measure(s, now_ns);
        s->next_ns = now_ns + DR_MAX((dr__thread_cpu_ns() - begin_ns) * PAUSE_PER_NS, MIN_PAUSE_NS);
    }
    if (s->threads > 0)
        dr__sense(out, DR_SENSOR_OWN_THREADS, s->threads, DR_MAX(host->n_cpus, 1));
}

static void close_tasks(void *state)
{
    struct state *s = state;
    if (s->tasks)
        closedir(s->tasks);
}

const dr__probe_def dr__probe_threads = {
    .name = "threads",
    .summary = "threads of this process that compute",
    .state_size = sizeof(struct state),
    .open = open_tasks,
    .read = tick,
    .close = close_tasks,
};
