/* offload_model.h: what samples cost at each cut, learnt from those that were read: the numbers of a plan.
 *
 * Samples differ by their stored bytes and by the time that a client takes for all their ops; one that was not run yet
 * is assumed to take what others of its size take.  Where the draws of an epoch are known beforehand, that time is
 * scaled by what the engine predicts for the draw, and the segments of the sample are known, too.  At a cut, the
 * server's and the client's times are shares of that time, learnt from samples that were cut there, so that a server
 * with other CPUs is known by what it reports. A cut that no sample was cut at yet is not for planning.  Not
 * thread-safe.
 */
#ifndef DR_REMOTE_OFFLOAD_MODEL_H
#define DR_REMOTE_OFFLOAD_MODEL_H

#include <stdbool.h>

#include "remote/offload_plan.h"

/* Sums over the samples that were cut at one place. */
typedef struct dr__offload_cut_sums {
    double n, bytes, server_s, client_s;
    double whole_s; /* what these samples would have taken the client */
} dr__offload_cut_sums;

/* What is drawn for a sample in the epoch that is planned; zeros: not known beforehand. */
typedef struct dr__offload_drawn {
    float bytes; /* of the segments that the draw needs */
    float cost;  /* of all ops, in the engine's units */
} dr__offload_drawn;

typedef struct dr__offload_model {
    uint64_t n; /* ids */
    int n_cuts;
    float *bytes;             /* of each sample as it is stored; 0: not known; owned */
    float *seconds;           /* of the client, for all ops; 0: not known; owned */
    float *cost;              /* of the draw that took so many seconds, in the engine's units; 0: not known; owned */
    dr__offload_drawn *drawn; /* NULL: nothing is known of the epoch; owned */
    double n_run, sum_bytes, sum_s, sum_bytes2, sum_bytes_s; /* of samples run whole by the client */
    dr__offload_cut_sums cuts[DR__OFFLOAD_CUTS];             /* [0] is not used */
} dr__offload_model;

dr_status dr__offload_model_make(dr__offload_model *model, uint64_t n, int n_cuts, dr_error *err);
void dr__offload_model_free(dr__offload_model *model);

/* A sample of so many stored bytes, whole or in segments, was run by the client.  cost: what was predicted; 0: nothing.
 */
void dr__offload_model_run(dr__offload_model *model, uint64_t id, double bytes, double seconds, double cost);

/* The draws of another epoch; takes them.  NULL: they are not known. */
void dr__offload_model_draw(dr__offload_model *model, dr__offload_drawn *drawn);

/* A sample was cut: bytes sent, CPU seconds of the server, seconds of the client for the rest. */
void dr__offload_model_cut(dr__offload_model *model, uint64_t id, int cut, double bytes, double server_s,
                           double client_s);

/* Seconds of a client for all ops of a sample, as it is drawn; 0: none was run yet. */
double dr__offload_model_seconds(const dr__offload_model *model, uint64_t id);

/* Bytes of a sample as it is stored; those of the others in the mean where it was not read yet. */
double dr__offload_model_bytes(const dr__offload_model *model, uint64_t id);

/* Bytes of the segments of a sample; 0: not known. */
double dr__offload_model_segments(const dr__offload_model *model, uint64_t id);

/* The points of a sample, for dr__offload_work. */
void dr__offload_model_points(const dr__offload_model *model, uint64_t id, dr__offload_point *points);

#endif
