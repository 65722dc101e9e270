/* sample_jobs.h: makes the samples that clients ask a server for, on threads, fairly.
 *
 * A job is one request.  Its entries are of two classes: those that run ops, and those that only read.  Each class has
 * threads of its own, so that reads never wait for ops; those of ops have a lower priority.  The threads of a class
 * take an entry of the tenant that got least so far.  Ops run while their tenant's account has CPU time (cpu_budget.h).
 * An entry whose turn comes without is handed to the readers, which send the sample as it is stored, unless the
 * tenant's connections are busy anyway: then it waits for CPU time.
 *
 * What is made waits in the job until its consumer takes it.  A job that has much waiting gets no turn, so a slow
 * client costs a bounded amount of memory.
 */
#ifndef DR_SERVE_SAMPLE_JOBS_H
#define DR_SERVE_SAMPLE_JOBS_H

#include "format/remote_request.h"
#include "serve/catalogue.h"

typedef struct dr__jobs dr__jobs;
typedef struct dr__job dr__job;

typedef struct dr__jobs_options {
    double cpus;               /* for ops; 0: none runs */
    int n_readers;             /* threads that read */
    int ops_threads_per_cpu;   /* more than one where reading mostly waits; 0: one */
    const atomic_bool *cancel; /* while it is true, reads from beyond a network end at once; NULL: never */
    uint64_t memory;           /* bytes that one sample may need while it is made */
    uint64_t most_pixels;      /* of an image or volume that is decoded or made */
    double most_seconds;       /* of a job: what it has not begun by then is sent as it is stored */
    double most_sample_s;      /* predicted CPU time of one sample: above it, the sample is sent as it is stored */
    int most_jobs;             /* of one tenant at a time */
} dr__jobs_options;

/* X(name, doc).  What became of the entries of all jobs. */
#define DR__JOB_OUTCOMES(X)                                                                                            \
    X(offloaded, "samples whose ops ran here")                                                                         \
    X(stored, "samples sent as they are stored, because no op was asked for")                                          \
    X(shed, "samples sent as they are stored, because there was no CPU time for their ops")                            \
    X(refused, "samples sent as they are stored, because their ops cannot run here")                                   \
    X(ranges, "samples of which ranges were sent")                                                                     \
    X(failed, "samples that could not be read")

typedef struct dr__jobs_stats {
#define DR__JOB_MEMBER(name, doc) uint64_t name;
    DR__JOB_OUTCOMES(DR__JOB_MEMBER)
#undef DR__JOB_MEMBER
    uint64_t cpu_ns;        /* of ops */
    uint64_t jobs;          /* at the moment */
    uint64_t entries;       /* at the moment: not made yet */
    uint64_t waiting_bytes; /* made, and not taken yet */
} dr__jobs_stats;

dr_status dr__jobs_new(const dr__jobs_options *options, dr__jobs **out, dr_error *err);

/* Ends the threads.  All jobs were ended before. */
void dr__jobs_free(dr__jobs **jobs);

void dr__jobs_get_stats(dr__jobs *jobs, dr__jobs_stats *out);

/* Calls `see` for each tenant with its CPU time. */
void dr__jobs_tenants(dr__jobs *jobs, void (*see)(void *user, const char *tenant, uint64_t cpu_ns), void *user);

/* How a job and its consumer wait for each other. */
typedef struct dr__job_calls {
    void (*wait)(void *user);  /* dr__job_take is about to return DR__TAKE_WAIT; NULL: nothing is to be done */
    void (*ready)(void *user); /* the waiting is over */
    void *user;
} dr__job_calls;

/* Begins a job.
 *
 * @param tenant   who asks: the name of a token or an address.
 * @param set      of `catalogue`, to which the job takes a reference of its own.
 * @param request  taken, if the call succeeds.
 * @param when_all  `ready` is called once, when all is made; else whenever there is something to take, and when all is
 *                  made, after dr__job_take said DR__TAKE_WAIT.
 * @param calls    called under a lock: they must not call anything of this header.  `ready` may come from any thread.
 * @return DR_OK; DR_ERR_LIMIT: the tenant has too many jobs; DR_ERR_NOMEM. */
dr_status dr__job_begin(dr__jobs *jobs, const char *tenant, dr__catalogue *catalogue, dr__served_set *set,
                        dr__remote_request *request, bool when_all, const dr__job_calls *calls, dr__job **out,
                        dr_error *err);

/* DR__TAKE_BROKEN: memory was short, and not all could be made. */
typedef enum dr__take { DR__TAKE_BYTES, DR__TAKE_WAIT, DR__TAKE_END, DR__TAKE_BROKEN } dr__take;

/* Takes up to `room` bytes of what was made.  One thread at a time.
 *
 * @param n  receives their number, with DR__TAKE_BYTES. */
dr__take dr__job_take(dr__job *job, void *out, size_t room, size_t *n);

/* The bytes made so far, all taken at once, owned by the caller (dr__free); for jobs begun with when_all.  *prefix:
 * the ops of the first frame. */
char *dr__job_take_all(dr__job *job, size_t *n, unsigned *prefix);

/* No `ready` is called any more, once this has returned.  What is being made is dropped.  The caller's pointer is gone.
 */
void dr__job_end(dr__job **job);

#endif
