/* offload_plan.h: which ops of which samples a server next to the storage runs.
 *
 * A pure function of sizes, times and rates.  A sample may be cut at n_cuts places: the server runs the ops before the
 * cut and sends what they make, the client runs the rest.  Cut 0 sends the sample as it is stored, or, where these are
 * known, the segments of it that the client needs: they cost the server nothing, so that a policy that uses them takes
 * them before it spends CPU time, and weighs every cut against them.  An epoch takes as
 * long as the slowest of four things that overlap:
 *
 *     net      bytes sent / link
 *     client   CPU seconds of the client / its CPUs
 *     server   CPU seconds of the server / its CPUs
 *     trainer  what the consumer needs by itself
 *
 * Policies are rows of a table.  `sophon` follows the paper of that name (HotStorage '24), `fastflow` the published
 * code of FastFlow (VLDB '23).  Without CPUs of the server, each of them sends every sample as it is stored.
 */
#ifndef DR_REMOTE_OFFLOAD_PLAN_H
#define DR_REMOTE_OFFLOAD_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { DR__OFFLOAD_CUTS = 64 }; /* cuts that a plan can tell apart */

/* One sample, cut at one place. */
typedef struct dr__offload_point {
    float bytes;    /* sent; INFINITY: it cannot be cut here, which cut 0 always can */
    float client_s; /* CPU seconds that are left to the client */
    float server_s; /* CPU seconds of the server */
    float segments; /* of cut 0: bytes of the segments that the client needs; 0: not known, or all */
} dr__offload_point;

typedef struct dr__offload_work {
    uint64_t n;     /* samples of an epoch */
    int n_cuts;     /* 1 .. DR__OFFLOAD_CUTS */
    int resize_cut; /* the cut behind the op that first makes images of one size; 0: there is none */
    void (*points)(const void *user, uint64_t sample, dr__offload_point *points); /* fills in n_cuts points */
    const void *user;
} dr__offload_work;

/* All at least 0. */
typedef struct dr__offload_rates {
    double link_bytes_s; /* 0: unknown, and the link does not count */
    double trainer_s;    /* of an epoch */
    double client_cpus, server_cpus;
} dr__offload_rates;

typedef struct dr__offload_times {
    double net_s, client_s, server_s, trainer_s;
    double epoch_s; /* the largest of them */
    double bytes;   /* sent in an epoch */
} dr__offload_times;

typedef struct dr__offload_plan {
    uint64_t n;
    uint8_t *cuts; /* of each sample; owned */
    uint64_t n_offloaded, per_cut[DR__OFFLOAD_CUTS];
    uint64_t n_segments;             /* at cut 0, not whole */
    dr__offload_times before, after; /* with all samples whole, as they are stored; as planned */
    double theta;  /* the least number of bytes that a CPU second of the server saves; 0: none is spent */
    char why[160]; /* the reason, for people */
} dr__offload_plan;

typedef struct dr__offload_policy {
    const char *name, *doc;
    bool plus; /* beyond the papers: cut 0 sends segments where they are known and smaller; cuts may be compressed */
    dr_status (*plan)(const dr__offload_work *work, const dr__offload_rates *rates, dr__offload_plan *out,
                      dr_error *err);
} dr__offload_policy;

extern const dr__offload_policy dr__offload_policies[];
extern const int dr__n_offload_policies;

/* The policy of that name; NULL: there is none. */
const dr__offload_policy *dr__offload_policy_find(const char *name);

/* Plans an epoch: O(n log n) time; memory for n samples.  The plan is freed by dr__offload_plan_free, in any case. */
dr_status dr__offload_plan_make(const dr__offload_policy *policy, const dr__offload_work *work,
                                const dr__offload_rates *rates, dr__offload_plan *out, dr_error *err);
void dr__offload_plan_free(dr__offload_plan *plan);

/* Which of the four takes longest: "network", "client CPU", "server CPU" or "trainer". */
const char *dr__offload_bound(const dr__offload_times *times);

#endif
