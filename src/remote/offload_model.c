/* offload_model.c: sums, and a line of seconds over bytes. */
#include "remote/offload_model.h"

#include <math.h>

#include "base/alloc.h"
#include "base/compiler.h"

#define MOST_RATIO 20.0 /* between two draws of a sample: crops take 8 % to all of an image */

dr_status dr__offload_model_make(dr__offload_model *m, uint64_t n, int n_cuts, dr_error *err)
{
    *m = (dr__offload_model){ .n = n, .n_cuts = n_cuts };
    m->bytes = dr__alloc_zero(n ? n : 1, sizeof *m->bytes);
    m->seconds = dr__alloc_zero(n ? n : 1, sizeof *m->seconds);
    m->cost = dr__alloc_zero(n ? n : 1, sizeof *m->cost);
    if (m->bytes && m->seconds && m->cost)
        return DR_OK;
    dr__offload_model_free(m);
    return dr__fail(err, DR_ERR_NOMEM, "offload: out of memory for %llu samples", (unsigned long long)n);
}

void dr__offload_model_free(dr__offload_model *m)
{
    dr__free(m->bytes);
    dr__free(m->seconds);
    dr__free(m->cost);
    dr__free(m->drawn);
    *m = (dr__offload_model){ 0 };
}

void dr__offload_model_run(dr__offload_model *m, uint64_t id, double bytes, double seconds, double cost)
{
    m->bytes[id] = (float)bytes;
    m->seconds[id] = (float)seconds;
    m->cost[id] = (float)cost;
    m->n_run++;
    m->sum_bytes += bytes;
    m->sum_s += seconds;
    m->sum_bytes2 += bytes * bytes;
    m->sum_bytes_s += bytes * seconds;
}

void dr__offload_model_draw(dr__offload_model *m, dr__offload_drawn *drawn)
{
    dr__free(m->drawn);
    m->drawn = drawn;
}

double dr__offload_model_segments(const dr__offload_model *m, uint64_t id)
{
    return m->drawn ? (double)m->drawn[id].bytes : 0;
}

double dr__offload_model_bytes(const dr__offload_model *m, uint64_t id)
{
    if (m->bytes[id] > 0)
        return (double)m->bytes[id];
    return m->n_run > 0 ? m->sum_bytes / m->n_run : 0;
}

/* The least squares line, as long as it rises and its value lies near what was seen. */
static double expected_seconds(const dr__offload_model *m, double bytes)
{
    if (!(m->n_run > 0))
        return 0;
    const double mean_b = m->sum_bytes / m->n_run, mean_s = m->sum_s / m->n_run;
    const double spread = m->sum_bytes2 / m->n_run - mean_b * mean_b;
    const double slope = spread > 0 ? (m->sum_bytes_s / m->n_run - mean_b * mean_s) / spread : 0;
    return fmax(mean_s + fmax(slope, 0) * (bytes - mean_b), mean_s / 10);
}

/* How much more, or less, the draw of this epoch costs than the one whose time is known. */
static double cost_ratio(const dr__offload_model *m, uint64_t id)
{
    if (!m->drawn || !(m->drawn[id].cost > 0) || !(m->cost[id] > 0))
        return 1;
    return fmin(fmax((double)m->drawn[id].cost / (double)m->cost[id], 1.0 / MOST_RATIO), MOST_RATIO);
}

double dr__offload_model_seconds(const dr__offload_model *m, uint64_t id)
{
    if (m->seconds[id] > 0)
        return (double)m->seconds[id] * cost_ratio(m, id);
    return expected_seconds(m, dr__offload_model_bytes(m, id));
}

void dr__offload_model_cut(dr__offload_model *m, uint64_t id, int cut, double bytes, double server_s, double client_s)
{
    dr__offload_cut_sums *c = &m->cuts[cut];
    c->n++;
    c->bytes += bytes;
    c->server_s += server_s;
    c->client_s += client_s;
    c->whole_s += dr__offload_model_seconds(m, id);
}

void dr__offload_model_points(const dr__offload_model *m, uint64_t id, dr__offload_point *points)
{
    const double whole = dr__offload_model_seconds(m, id);
    points[0] = (dr__offload_point){ .bytes = (float)dr__offload_model_bytes(m, id),
                                     .client_s = (float)whole,
                                     .segments = (float)dr__offload_model_segments(m, id) };
    for (int k = 1; k < m->n_cuts; k++) {
        const dr__offload_cut_sums *c = &m->cuts[k];
        points[k] = (dr__offload_point){ .bytes = INFINITY };
        if (!(c->n > 0))
            continue;
        const double share = c->whole_s > 0 ? whole / c->whole_s : 1 / c->n;
        points[k].bytes = (float)(c->bytes / c->n);
        points[k].server_s = (float)(c->server_s * share);
        points[k].client_s = (float)fmin(c->client_s * share, whole);
    }
}
