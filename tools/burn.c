/* burn.c: loads the machine on purpose, in a way that can be repeated, and stops by itself.
 *
 *     burn cpu --level 1 --seconds 60 --pattern step --period 20
 *
 * Each thread works for its level's share of every 10 ms and sleeps for the rest, by the wall clock: on a machine that
 * others keep busy it gets less done, as any tenant would.  At the end one line of JSON says what was used and moved.
 */
#include "burn.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SLOT_NS = 10000000, MAX_THREADS = 1024, MAX_SECONDS = 86400, BAD_USE = 2 };

static const char usage[] =
    "usage: drapps burn cpu|memory|io|net --seconds S [--level 0..1] [--threads N]\n"
    "                   [--pattern steady|step|periodic|random] [--period S] [--seed N] | [--trace FILE]\n"
    "                   [--size MB] [--path FOLDER] [--show]\n"
    "  step: on for a period, off for a period; periodic: a sine; random: a new level each period\n"
    "  --trace: lines \"seconds level\"; --show: print the level every 0.1 s and load nothing\n";

struct job {
    const struct burn_kind *kind;
    struct burn_pattern pattern;
    struct burn_load load;
    double seconds;
    int threads;
    bool show;
    uint64_t begin_ns, end_ns;
};

static atomic_bool stop;

static void on_signal(int signal)
{
    (void)signal;
    atomic_store(&stop, true);
}

static uint64_t clock_now(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* --- arguments --- */

static int misuse(const char *what, const char *value)
{
    fprintf(stderr, "burn: %s \"%s\"\n%s", what, value, usage);
    return BAD_USE;
}

static int out_of_range(const char *name, const char *value, double min, double max)
{
    fprintf(stderr, "burn: --%s must be %.10g to %.10g, got \"%s\"\n%s", name, min, max, value, usage);
    return BAD_USE;
}

static bool to_number(const char *text, double min, double max, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && !*end && *out >= min && *out <= max;
}

static int take_option(struct job *job, const char *name, const char *value)
{
    const double least = !strcmp(name, "seed") ? 0 : 1, most = !strcmp(name, "threads") ? MAX_THREADS : 1e6;
    double number = 0;
    if (!strcmp(name, "show"))
        job->show = true;
    else if (!strcmp(name, "path"))
        job->load.path = value;
    else if (!strcmp(name, "trace"))
        return burn_trace_read(value, &job->pattern) ? 0 : BAD_USE;
    else if (!strcmp(name, "pattern"))
        return burn_shape_parse(value, &job->pattern.shape) ? 0 : misuse("no pattern is called", value);
    else if (!strcmp(name, "level"))
        return to_number(value, 0, 1, &job->pattern.level) ? 0 : out_of_range(name, value, 0, 1);
    else if (!strcmp(name, "seconds"))
        return to_number(value, 0.001, MAX_SECONDS, &job->seconds) ? 0 : out_of_range(name, value, 0.001, MAX_SECONDS);
    else if (!strcmp(name, "period"))
        return to_number(value, 0.001, MAX_SECONDS, &job->pattern.period_s)
                   ? 0
                   : out_of_range(name, value, 0.001, MAX_SECONDS);
    else if (!to_number(value, least, most, &number))
        return out_of_range(name, value, least, most);
    else if (!strcmp(name, "seed"))
        job->pattern.seed = (uint64_t)number;
    else if (!strcmp(name, "threads"))
        job->threads = (int)number;
    else
        job->load.size_bytes = (size_t)number << 20;
    return 0;
}

static int read_arguments(int argc, char **argv, struct job *job)
{
    static const struct option options[] = {
        { "seconds", required_argument, NULL, 0 }, { "level", required_argument, NULL, 0 },
        { "threads", required_argument, NULL, 0 }, { "pattern", required_argument, NULL, 0 },
        { "period", required_argument, NULL, 0 },  { "seed", required_argument, NULL, 0 },
        { "trace", required_argument, NULL, 0 },   { "size", required_argument, NULL, 0 },
        { "path", required_argument, NULL, 0 },    { "show", no_argument, NULL, 0 },
        { "help", no_argument, NULL, 'h' },        { 0 },
    };
    int which, code;
    while ((code = getopt_long(argc, argv, "", options, &which)) == 0)
        if ((code = take_option(job, options[which].name, optarg)) != 0)
            return code;
    if (code == 'h') {
        fputs(usage, stdout);
        exit(0);
    }
    if (code != -1)
        return misuse("wrong option in front of", optind < argc ? argv[optind] : "");
    job->kind = optind + 1 == argc ? burn_kind_find(argv[optind]) : NULL;
    if (!job->kind)
        return misuse("one kind of load is needed, not", optind < argc ? argv[argc - 1] : "");
    return job->seconds > 0 ? 0 : misuse("missing option", "--seconds");
}

/* --- loading --- */

static void sleep_until(uint64_t at_ns)
{
    struct timespec t = { .tv_sec = (time_t)(at_ns / 1000000000u), .tv_nsec = (long)(at_ns % 1000000000u) };
    while (!atomic_load(&stop) && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

static void *run_thread(void *arg)
{
    struct job *job = arg;
    void *state = job->kind->begin(&job->load);
    if (!state) {
        atomic_store(&stop, true);
        return job; /* not NULL: failed */
    }
    for (uint64_t slot_ns = job->begin_ns; slot_ns < job->end_ns && !atomic_load(&stop); slot_ns += SLOT_NS) {
        double level = burn_level(&job->pattern, (double)(slot_ns - job->begin_ns) * 1e-9);
        uint64_t until_ns = slot_ns + (uint64_t)(level * SLOT_NS);
        while (clock_now(CLOCK_MONOTONIC) < until_ns && !atomic_load(&stop))
            job->kind->work(&job->load, state);
        sleep_until(slot_ns + SLOT_NS);
    }
    job->kind->end(&job->load, state);
    return NULL;
}

static void report(struct job *job)
{
    printf("{\"kind\": \"%s\", \"seconds\": %.3f, \"threads\": %d, \"cpu_seconds\": %.3f, \"bytes\": %llu}\n",
           job->kind->name, (double)(clock_now(CLOCK_MONOTONIC) - job->begin_ns) * 1e-9, job->threads,
           (double)clock_now(CLOCK_PROCESS_CPUTIME_ID) * 1e-9, atomic_load(&job->load.moved));
}

static int run_threads(struct job *job)
{
    static pthread_t threads[MAX_THREADS];
    int n = 0, failed = 0;
    while (n < job->threads && pthread_create(&threads[n], NULL, run_thread, job) == 0)
        n++;
    if (n < job->threads) {
        fprintf(stderr, "burn: only %d of %d threads could be started\n", n, job->threads);
        atomic_store(&stop, true);
        failed = 1;
    }
    for (int i = 0; i < n; i++) {
        void *result;
        pthread_join(threads[i], &result);
        failed |= result != NULL;
    }
    return failed;
}

static void show(const struct job *job)
{
    for (int i = 0; i * 0.1 < job->seconds; i++)
        printf("%.1f %.4f\n", i * 0.1, burn_level(&job->pattern, i * 0.1));
}

int main(int argc, char **argv)
{
    struct job job = { .threads = 1,
                       .pattern = { .level = 1, .period_s = 20 },
                       .load = { .size_bytes = (size_t)64 << 20, .path = "." } };
    int code = read_arguments(argc, argv, &job);
    if (code == 0 && job.show)
        show(&job);
    if (code == 0 && !job.show) {
        signal(SIGINT, on_signal);
        signal(SIGTERM, on_signal);
        job.begin_ns = clock_now(CLOCK_MONOTONIC);
        job.end_ns = job.begin_ns + (uint64_t)(job.seconds * 1e9);
        code = run_threads(&job);
        if (code == 0)
            report(&job);
    }
    free(job.pattern.steps);
    return code;
}
