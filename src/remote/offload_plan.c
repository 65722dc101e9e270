/* offload_plan.c: the policies.
 *
 * `sums` are the loads of the four resources for the cuts chosen so far; moving one sample from cut to cut changes them
 * by the difference of two points.  A policy fills plan->cuts, and dr__offload_plan_make adds up what that means.
 *
 * sophon+ differs from sophon in this.  A sample may stop at every cut on the lower convex hull of its points, so
 * that a cheap op that saves most of the bytes goes before a dear one that saves a little more.  CPU seconds that the
 * client is relieved of may count beside the bytes.  And what turns out not to shorten the epoch is taken back.  It is
 * never worse than another policy, because their plans are among its candidates.  Samples as they are stored are sent
 * in segments where these are known: no plan is the worse for that, so that all of the above starts from there.
 */
#include "remote/offload_plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"

#define FASTFLOW_BOTTLENECK 1.3 /* the trainer must be this many times faster than the client */
#define FASTFLOW_ROUNDING 0.1   /* of a server's worker that is not worth having */
#define POLISH_LEAST 1e-6       /* of the epoch */

enum { POLISH_MOST = 64 }; /* samples */

/* Moving a sample from the cut before it in its row of steps to this one. */
typedef struct step {
    float gain; /* per CPU second of the server; in the order in which steps are taken, the largest first */
    uint8_t from, to;
    uint64_t sample;
} step;

typedef struct steps {
    step *at;
    uint64_t n;
} steps;

/* --- what a choice of cuts costs --- */

static double over(double amount, double rate, double without)
{
    return amount <= 0 ? 0 : rate > 0 ? amount / rate : without;
}

static void settle(const dr__offload_rates *r, dr__offload_times *t, double client_s, double server_s)
{
    t->net_s = over(t->bytes, r->link_bytes_s, 0);
    t->client_s = over(client_s, r->client_cpus, INFINITY);
    t->server_s = over(server_s, r->server_cpus, INFINITY);
    t->trainer_s = r->trainer_s;
    t->epoch_s = fmax(fmax(t->net_s, t->client_s), fmax(t->server_s, t->trainer_s));
}

/* Loads as sums over samples. */
typedef struct sums {
    double bytes, client_s, server_s;
} sums;

static sums moved(sums s, const dr__offload_point *from, const dr__offload_point *to)
{
    return (sums){ s.bytes + to->bytes - from->bytes, s.client_s + to->client_s - from->client_s,
                   s.server_s + to->server_s - from->server_s };
}

static dr__offload_times times_of(const dr__offload_rates *r, const sums *s)
{
    dr__offload_times t = { .bytes = s->bytes };
    settle(r, &t, s->client_s, s->server_s);
    return t;
}

/* cuts: NULL: all 0. */
static sums add_up(const dr__offload_work *w, const uint8_t *cuts)
{
    dr__offload_point p[DR__OFFLOAD_CUTS];
    sums s = { 0 };
    for (uint64_t i = 0; i < w->n; i++) {
        w->points(w->user, i, p);
        const dr__offload_point *at = &p[cuts ? cuts[i] : 0];
        s.bytes += at->bytes;
        s.client_s += at->client_s;
        s.server_s += at->server_s;
    }
    return s;
}

const char *dr__offload_bound(const dr__offload_times *t)
{
    return t->trainer_s >= t->epoch_s  ? "trainer"
           : t->net_s >= t->epoch_s    ? "network"
           : t->client_s >= t->epoch_s ? "client CPU"
                                       : "server CPU";
}

/* --- policies that look at no numbers --- */

static dr_status plan_no_off(const dr__offload_work *w, const dr__offload_rates *r, dr__offload_plan *out,
                             dr_error *err)
{
    (void)r;
    (void)err;
    memset(out->cuts, 0, w->n);
    snprintf(out->why, sizeof out->why, "asked for");
    return DR_OK;
}

/* The last cut up to `most` at which a sample may be cut. */
static int last_cut(const dr__offload_point *p, int most)
{
    while (most > 0 && isinf(p[most].bytes))
        most--;
    return most;
}

static void cut_all_at(const dr__offload_work *w, int most, dr__offload_plan *out)
{
    dr__offload_point p[DR__OFFLOAD_CUTS];
    for (uint64_t i = 0; i < w->n; i++) {
        w->points(w->user, i, p);
        out->cuts[i] = (uint8_t)last_cut(p, most);
    }
    snprintf(out->why, sizeof out->why, "asked for");
}

static dr_status plan_all_off(const dr__offload_work *w, const dr__offload_rates *r, dr__offload_plan *out,
                              dr_error *err)
{
    (void)r;
    (void)err;
    cut_all_at(w, w->n_cuts - 1, out);
    return DR_OK;
}

static dr_status plan_resize_off(const dr__offload_work *w, const dr__offload_rates *r, dr__offload_plan *out,
                                 dr_error *err)
{
    (void)r;
    (void)err;
    cut_all_at(w, w->resize_cut, out);
    if (!w->resize_cut)
        snprintf(out->why, sizeof out->why, "no op makes images of one size");
    return DR_OK;
}

/* --- FastFlow: the ops as one unit, samples all alike --- */

/* Which share of the samples stays with the client: local, accelerator and remote rates of samples, n remote workers,
 * and what receiving costs the client relative to making (the published formula). */
static double share_kept(double local, double accelerator, double remote, double n, double receive)
{
    const double far = remote * n, declined = (accelerator - local) * (1 + receive);
    const double off = local > far ? (far + declined) / 2 : fmax(far, declined);
    return local + far < accelerator ? local / (local + far) : fmax(0, (accelerator - off) / accelerator);
}

static dr_status plan_fastflow(const dr__offload_work *w, const dr__offload_rates *r, dr__offload_plan *out,
                               dr_error *err)
{
    (void)err;
    const sums none = add_up(w, NULL);
    cut_all_at(w, w->n_cuts - 1, out);
    const sums all = add_up(w, out->cuts);
    const dr__offload_times near = times_of(r, &none), far = times_of(r, &all);
    const double n = (double)w->n;
    const double local = n / fmax(near.client_s, near.net_s), accelerator = over(n, near.trainer_s, INFINITY);
    const double one = fmin(r->server_cpus, 1), remote = n / fmax(over(all.server_s, one, INFINITY), far.net_s);
    const double wanted = ceil((accelerator - local) / remote - FASTFLOW_ROUNDING);
    const double workers = fmin(fmax(wanted, 1), fmax(1, floor(r->server_cpus)));
    if (!(accelerator / local > FASTFLOW_BOTTLENECK) || far.epoch_s >= near.epoch_s) {
        memset(out->cuts, 0, w->n);
        snprintf(out->why, sizeof out->why, "%s",
                 far.epoch_s >= near.epoch_s ? "all ops of all samples would not shorten the epoch"
                                             : "preparing samples is not what limits the trainer");
        return DR_OK;
    }
    const double receive = none.client_s > 0 ? all.client_s / none.client_s : 0;
    const double kept = isinf(accelerator) ? local / (local + remote * workers)
                                           : share_kept(local, accelerator, remote, workers, receive);
    for (uint64_t i = 0; i < w->n; i++) /* spread evenly */
        if (floor((double)(i + 1) * kept) > floor((double)i * kept))
            out->cuts[i] = 0;
    snprintf(out->why, sizeof out->why, "%.0f %% of the samples stay with the client", kept * 100);
    return DR_OK;
}

/* --- steps in the order of their gain --- */

static int by_gain(const void *a, const void *b)
{
    const step *x = a, *y = b;
    if (x->gain != y->gain)
        return x->gain > y->gain ? -1 : 1;
    if (x->sample != y->sample)
        return x->sample < y->sample ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

static float gain_of(double saved, double server_s)
{
    return server_s > 0 ? (float)(saved / server_s) : INFINITY;
}

static bool add_step(steps *s, size_t *cap, const step *one)
{
    if (s->n == *cap) {
        const size_t room = *cap ? *cap * 2 : 256;
        step *p = dr__realloc(s->at, room, sizeof *p);
        if (!p)
            return false;
        s->at = p;
        *cap = room;
    }
    s->at[s->n++] = *one;
    return true;
}

/* --- SOPHON --- */

static int smallest(const dr__offload_point *p, int n_cuts)
{
    int least = 0;
    for (int k = 1; k < n_cuts; k++)
        if (p[k].bytes < p[least].bytes)
            least = k;
    return least;
}

/* Each sample that shrinks, at the cut where it is smallest. */
static bool find_shrinking(const dr__offload_work *w, steps *s)
{
    dr__offload_point p[DR__OFFLOAD_CUTS];
    size_t cap = 0;
    for (uint64_t i = 0; i < w->n; i++) {
        w->points(w->user, i, p);
        const int k = smallest(p, w->n_cuts);
        const step one = { gain_of((double)p[0].bytes - p[k].bytes, p[k].server_s), 0, (uint8_t)k, i };
        if (k && !add_step(s, &cap, &one))
            return false;
    }
    if (s->n)
        qsort(s->at, s->n, sizeof *s->at, by_gain);
    return true;
}

static bool network_is_slowest(const dr__offload_times *t)
{
    return t->net_s > fmax(t->trainer_s, fmax(t->client_s, t->server_s));
}

static dr_status plan_sophon(const dr__offload_work *w, const dr__offload_rates *r, dr__offload_plan *out,
                             dr_error *err)
{
    dr__offload_point p[DR__OFFLOAD_CUTS];
    steps s = { 0 };
    memset(out->cuts, 0, w->n);
    sums at = add_up(w, NULL);
    dr__offload_times t = times_of(r, &at);
    if (!network_is_slowest(&t)) {
        snprintf(out->why, sizeof out->why, "the %s is slower than the network", dr__offload_bound(&t));
        return DR_OK;
    }
    if (!find_shrinking(w, &s)) {
        dr__free(s.at);
        return dr__fail(err, DR_ERR_NOMEM, "offload: out of memory");
    }
    uint64_t i = 0;
    for (; i < s.n && network_is_slowest(&t); i++) {
        w->points(w->user, s.at[i].sample, p);
        const sums then = moved(at, &p[0], &p[s.at[i].to]);
        const dr__offload_times next = times_of(r, &then);
        if (next.server_s > t.net_s) /* this one sample would make the server what takes longest */
            continue;
        out->cuts[s.at[i].sample] = s.at[i].to;
        at = then;
        t = next;
    }
    snprintf(out->why, sizeof out->why, "%s",
             network_is_slowest(&t) ? "no further sample shrinks" : "the network is not the slowest any more");
    dr__free(s.at);
    return DR_OK;
}

/* --- SOPHON+ --- */

/* What a sample costs with a cut, the server aside: seconds of the link, and of the client at a weight. */
static double cost_of(const dr__offload_rates *r, double weight, const dr__offload_point *p)
{
    return over(p->bytes, r->link_bytes_s, 0) + (weight > 0 ? weight * over(p->client_s, r->client_cpus, INFINITY) : 0);
}

/* The steps of one sample along the lower convex hull of (CPU seconds of the server, cost): from where it is stored,
 * always the step with the largest gain. */
static bool add_hull(const dr__offload_rates *r, double weight, const dr__offload_point *p, int n_cuts, uint64_t sample,
                     steps *s, size_t *cap)
{
    for (int from = 0, to = 0;; from = to) {
        float best = 0;
        double most = 0; /* saved: of two steps with the same gain the longer one, so that gains in a row fall */
        for (int k = 1; k < n_cuts; k++) {
            const double saved = isinf(p[k].bytes) ? 0 : cost_of(r, weight, &p[from]) - cost_of(r, weight, &p[k]);
            const float gain = saved > 0 ? gain_of(saved, (double)p[k].server_s - p[from].server_s) : 0;
            if (p[k].server_s >= p[from].server_s && (gain > best || (gain == best && saved > most))) {
                best = gain;
                most = saved;
                to = k;
            }
        }
        if (to == from)
            return true;
        const step one = { best, (uint8_t)from, (uint8_t)to, sample };
        if (!add_step(s, cap, &one))
            return false;
    }
}

/* Takes steps in the order of their gain as long as the epoch gets shorter at some point after them, and notes the cuts
 * if the epoch is shorter than *best_s. */
static bool follow_hulls(const dr__offload_work *w, const dr__offload_rates *r, double weight, uint8_t *cuts,
                         double *best_s)
{
    dr__offload_point p[DR__OFFLOAD_CUTS];
    steps s = { 0 };
    size_t cap = 0;
    bool done = true;
    for (uint64_t i = 0; i < w->n && done; i++) {
        w->points(w->user, i, p);
        done = add_hull(r, weight, p, w->n_cuts, i, &s, &cap);
    }
    if (done && s.n) {
        qsort(s.at, s.n, sizeof *s.at, by_gain);
        sums at = add_up(w, NULL);
        uint64_t best = 0;
        double least = *best_s;
        for (uint64_t i = 0; i < s.n; i++) {
            w->points(w->user, s.at[i].sample, p);
            at = moved(at, &p[s.at[i].from], &p[s.at[i].to]);
            const dr__offload_times t = times_of(r, &at);
            if (t.epoch_s < least) {
                least = t.epoch_s;
                best = i + 1;
            }
            if (t.server_s > least)
                break;
        }
        if (best) {
            memset(cuts, 0, w->n);
            for (uint64_t i = 0; i < best; i++)
                cuts[s.at[i].sample] = s.at[i].to;
            *best_s = least;
        }
    }
    dr__free(s.at);
    return done;
}

static void keep_if_better(const dr__offload_work *w, const dr__offload_rates *r, const uint8_t *cuts, uint8_t *best,
                           double *best_s)
{
    const sums s = add_up(w, cuts);
    const dr__offload_times t = times_of(r, &s);
    if (!(t.epoch_s < *best_s))
        return;
    memcpy(best, cuts, w->n);
    *best_s = t.epoch_s;
}

/* Takes back what does not make the epoch longer when it is missing, least gain first.  What was kept once would mostly
 * be kept again, as the link and the client have only got more to do; but for the link they have less to do where what
 * was taken back were more bytes than the sample has, so that the others are looked at once more. */
static bool take_back(const dr__offload_work *w, const dr__offload_rates *r, uint8_t *cuts)
{
    dr__offload_point p[DR__OFFLOAD_CUTS];
    steps s = { 0 };
    size_t cap = 0;
    bool done = true;
    sums at = { 0 };
    for (uint64_t i = 0; i < w->n && done; i++) {
        w->points(w->user, i, p);
        const int k = cuts[i];
        at = moved(at, &(dr__offload_point){ 0 }, &p[k]);
        const step one = { gain_of((double)p[0].bytes - p[k].bytes, p[k].server_s), 0, (uint8_t)k, i };
        done = !k || add_step(&s, &cap, &one);
    }
    const double most = times_of(r, &at).epoch_s;
    if (done && s.n)
        qsort(s.at, s.n, sizeof *s.at, by_gain);
    for (bool again = done; again;) {
        again = false;
        for (uint64_t i = s.n; i-- > 0;) {
            if (!cuts[s.at[i].sample])
                continue;
            w->points(w->user, s.at[i].sample, p);
            const sums then = moved(at, &p[s.at[i].to], &p[0]);
            if (times_of(r, &then).epoch_s > most)
                continue;
            cuts[s.at[i].sample] = 0;
            again = again || p[s.at[i].to].bytes > p[0].bytes;
            at = then;
        }
    }
    dr__free(s.at);
    return done;
}

/* Moves single samples, and pairs at once, as long as that shortens the epoch.  In a large set one sample weighs
 * nothing; in a small one the greedy choice leaves what one sample weighs. */
static void polish(const dr__offload_work *w, const dr__offload_rates *r, uint8_t *cuts, double *best_s)
{
    dr__offload_point p[DR__OFFLOAD_CUTS], q[DR__OFFLOAD_CUTS];
    sums at = add_up(w, cuts);
    for (bool better = w->n <= POLISH_MOST; better;) {
        better = false;
        for (uint64_t i = 0; i < w->n; i++) {
            w->points(w->user, i, p);
            for (uint64_t j = i; j < w->n; j++) { /* j = i: this one alone */
                w->points(w->user, j, q);
                for (int a = 0; a < w->n_cuts; a++)
                    for (int b = 0; b < (j > i ? w->n_cuts : 1); b++) {
                        if (isinf(p[a].bytes) || (j > i && isinf(q[b].bytes)))
                            continue;
                        sums then = moved(at, &p[cuts[i]], &p[a]);
                        then = j > i ? moved(then, &q[cuts[j]], &q[b]) : then;
                        const double s = times_of(r, &then).epoch_s;
                        if (!(s < *best_s * (1 - POLISH_LEAST)))
                            continue;
                        cuts[i] = (uint8_t)a;
                        cuts[j] = j > i ? (uint8_t)b : cuts[j];
                        at = then;
                        *best_s = s;
                        better = true;
                    }
            }
        }
    }
}

/* Points with segments in place of whole samples. */
static void points_in_segments(const void *user, uint64_t sample, dr__offload_point *p)
{
    const dr__offload_work *w = user;
    w->points(w->user, sample, p);
    if (p[0].segments > 0 && p[0].segments < p[0].bytes)
        p[0].bytes = p[0].segments;
}

/* The same samples, whole. */
static const dr__offload_work *work_in_whole(const dr__offload_work *w)
{
    return w->points == points_in_segments ? w->user : w;
}

/* What the other policies make of these samples, whole or in segments; weighed as sophon+ sends them. */
static dr_status try_others(const dr__offload_work *seen, const dr__offload_work *w, const dr__offload_rates *r,
                            dr__offload_plan *out, dr__offload_plan *other, double *best_s, dr_error *err)
{
    for (int i = 0; i < dr__n_offload_policies; i++) {
        if (dr__offload_policies[i].plus)
            continue;
        DR_TRY(dr__offload_policies[i].plan(seen, r, other, err));
        keep_if_better(w, r, other->cuts, out->cuts, best_s);
    }
    return DR_OK;
}

/* The best of the other policies, and of the steps along the hulls. */
static dr_status find_best(const dr__offload_work *w, const dr__offload_rates *r, dr__offload_plan *out,
                           dr__offload_plan *other, double *best_s, dr_error *err)
{
    static const double weights[] = { 0, 1 }; /* of the client: the link alone, and both alike */
    for (size_t i = 0; i < DR_COUNT(weights); i++)
        if (!follow_hulls(w, r, weights[i], out->cuts, best_s))
            return dr__fail(err, DR_ERR_NOMEM, "offload: out of memory");
    const dr__offload_work *whole = work_in_whole(w);
    DR_TRY(try_others(w, w, r, out, other, best_s, err));
    if (whole != w)
        DR_TRY(try_others(whole, w, r, out, other, best_s, err));
    polish(w, r, out->cuts, best_s);
    return take_back(w, r, out->cuts) ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "offload: out of memory");
}

static dr_status plan_sophon_plus(const dr__offload_work *w, const dr__offload_rates *r, dr__offload_plan *out,
                                  dr_error *err)
{
    const sums none = add_up(w, NULL);
    const dr__offload_times t = times_of(r, &none);
    double best_s = t.epoch_s;
    memset(out->cuts, 0, w->n);
    snprintf(out->why, sizeof out->why, "the %s limits the epoch, and no cut shortens it", dr__offload_bound(&t));
    if (t.epoch_s <= t.trainer_s)
        return DR_OK;
    dr__offload_plan other = { .n = w->n, .cuts = dr__alloc(w->n ? w->n : 1) };
    if (!other.cuts)
        return dr__fail(err, DR_ERR_NOMEM, "offload: out of memory");
    const dr_status status = find_best(w, r, out, &other, &best_s, err);
    dr__free(other.cuts);
    if (best_s < t.epoch_s)
        snprintf(out->why, sizeof out->why, "less of the %s", dr__offload_bound(&t));
    return status;
}

/* --- the table --- */

const dr__offload_policy dr__offload_policies[] = {
    { "no-off", "every sample as it is stored", false, plan_no_off },
    { "all-off", "all ops of all samples that a server may run", false, plan_all_off },
    { "resize-off", "of all samples the ops up to the one that makes images of one size", false, plan_resize_off },
    { "fastflow", "all ops of a share of the samples, if all ops of all samples shorten the epoch", false,
      plan_fastflow },
    { "sophon", "samples that shrink, by bytes saved per CPU second, until the network is not the slowest any more",
      false, plan_sophon },
    { "sophon+",
      "as sophon; segments of samples as they are stored, each sample at the cut that pays, the client's CPU counted, "
      "nothing that does not shorten the epoch",
      true, plan_sophon_plus },
};
const int dr__n_offload_policies = DR_COUNT(dr__offload_policies);

const dr__offload_policy *dr__offload_policy_find(const char *name)
{
    for (int i = 0; i < dr__n_offload_policies; i++)
        if (!strcmp(dr__offload_policies[i].name, name))
            return &dr__offload_policies[i];
    return NULL;
}

/* --- making a plan --- */

static void describe(const dr__offload_work *w, const dr__offload_rates *r, bool segments, dr__offload_plan *out)
{
    dr__offload_point p[DR__OFFLOAD_CUTS];
    sums none = { 0 }, planned = { 0 };
    out->theta = INFINITY;
    for (uint64_t i = 0; i < w->n; i++) {
        w->points(w->user, i, p);
        const int k = out->cuts[i];
        none = moved(none, &(dr__offload_point){ 0 }, &p[0]);
        if (segments && p[0].segments > 0 && p[0].segments < p[0].bytes) {
            p[0].bytes = p[0].segments;
            out->n_segments += k == 0;
        }
        planned = moved(planned, &(dr__offload_point){ 0 }, &p[k]);
        out->per_cut[k]++;
        out->n_offloaded += k > 0;
        if (k)
            out->theta = fmin(out->theta, gain_of((double)p[0].bytes - p[k].bytes, p[k].server_s));
    }
    out->theta = isinf(out->theta) ? 0 : out->theta;
    out->before = times_of(r, &none);
    out->after = times_of(r, &planned);
}

static bool has_segments(const dr__offload_work *w)
{
    dr__offload_point p[DR__OFFLOAD_CUTS];
    for (uint64_t i = 0; i < w->n; i++) {
        w->points(w->user, i, p);
        if (p[0].segments > 0 && p[0].segments < p[0].bytes)
            return true;
    }
    return false;
}

dr_status dr__offload_plan_make(const dr__offload_policy *policy, const dr__offload_work *w, const dr__offload_rates *r,
                                dr__offload_plan *out, dr_error *err)
{
    *out = (dr__offload_plan){ .n = w->n, .cuts = dr__alloc_zero(w->n ? w->n : 1, 1) };
    if (!out->cuts)
        return dr__fail(err, DR_ERR_NOMEM, "offload: out of memory for %llu samples", (unsigned long long)w->n);
    const dr__offload_work in_segments = {
        .n = w->n, .n_cuts = w->n_cuts, .resize_cut = w->resize_cut, .points = points_in_segments, .user = w
    };
    if (r->server_cpus > 0)
        DR_TRY(policy->plan(policy->plus && has_segments(w) ? &in_segments : w, r, out, err));
    else
        snprintf(out->why, sizeof out->why, "the server has no CPU to give");
    describe(w, r, policy->plus, out);
    return DR_OK;
}

void dr__offload_plan_free(dr__offload_plan *plan)
{
    dr__free(plan->cuts);
    *plan = (dr__offload_plan){ 0 };
}
