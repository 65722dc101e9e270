/* offload_learn.c: rates of link, client and consumer, costs of cuts, and plans that follow from both. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "exec/offload_parts.h"
#include "trace/event.h"

enum {
    PROBES = 6,       /* samples that are cut at each place before the first plan */
    LARGE_PROBES = 2, /* the same where what is sent is larger than the samples, or of a size that depends on them */
    MEASURE_SAMPLES = 64, /* in the first stage; or a quarter of the set */
};

#define MEASURE_NS 200000000ull /* of the first stage, at least */
#define CHECK_NS 2000000000ull  /* between two looks at the rates */
#define PROBE_NS 10000000000ull /* after which probes are not waited for: their samples may be bad */
#define PAUSE_TIMES 100         /* planning takes 1 % of the time at most */
#define CHANGED 0.1             /* of a rate, for another plan */
#define BOUND 1.05              /* the link must be this many times slower than the rest */
#define SHED 0.05               /* of the samples asked for: the server has less CPU than it said */
#define NOTED 0.33              /* of a sample that was never read whole: a cut must send less for it to be cut */
#define BUSY 0.8                /* of the server's CPUs: then it limits what arrives, not the link */

/* --- rates --- */

static dr__offload_totals read_totals(dr__exec *e)
{
    dr__offload *o = e->offload;
    dr__remote_counts c;
    double flow[DR_N_FLOWS] = { 0 };
    dr__remote_client_counts(o->client, &c);
    dr__exec_flow(e, flow);
    dr__pool_lock();
    const int workers = e->knobs.workers;
    dr__pool_unlock();
    const uint64_t delivered = atomic_load(&e->stats.delivered), held = e->o.batch_size;
    return (dr__offload_totals){ .now_ns = dr__now_ns(),
                                 .link_bytes = c.bytes,
                                 .link_ns = c.busy_ns,
                                 .server_ns = atomic_load(&o->server_ns),
                                 .asked = atomic_load(&o->samples) + atomic_load(&o->shed),
                                 .shed = atomic_load(&o->shed),
                                 .step_ns = (uint64_t)(flow[DR_FLOW_STEP] * 1e9),
                                 .used = delivered - DR_MIN(held, delivered),
                                 .workers = DR_MAX(workers, 1) };
}

/* lock: the rates of a window.  What a window cannot tell stays as it was. */
static void learn_rates(dr__exec *e, const dr__offload_totals *t)
{
    dr__offload *o = e->offload;
    const dr__offload_totals *b = &o->since;
    const double wall = (double)(t->now_ns - b->now_ns) * 1e-9, link = (double)(t->link_ns - b->link_ns) * 1e-9;
    const double used = wall > 0 ? (double)(t->server_ns - b->server_ns) * 1e-9 / wall : 0;
    const double told = o->told_cpus > 0 ? o->told_cpus : 1, asked = (double)(t->asked - b->asked);
    const bool shed = asked > 0 && (double)(t->shed - b->shed) > SHED * asked;
    if (!(o->rates.server_cpus > 0))
        o->rates.server_cpus = told;
    const bool server_limits = used > BUSY * o->rates.server_cpus;
    if (link > 0 && t->link_bytes > b->link_bytes && !(server_limits && o->rates.link_bytes_s > 0))
        o->rates.link_bytes_s = (double)(t->link_bytes - b->link_bytes) / link;
    o->rates.server_cpus = shed ? fmax(used, 0.01) : fmin(fmax(o->rates.server_cpus * 1.2, told / 100), told);
    if (t->used > b->used)
        o->step_s = (double)(t->step_ns - b->step_ns) * 1e-9 / (double)(t->used - b->used);
    o->rates.client_cpus = t->workers;
    o->rates.trainer_s = o->step_s * (double)e->set->n_places;
    o->since = *t;
}

/* The share of this rank: all ranks go through the set together, over as many links. */
static dr__offload_rates of_all_ranks(const dr__exec *e, dr__offload_rates r)
{
    const double ranks = (double)e->o.world_size;
    r.link_bytes_s *= ranks;
    r.client_cpus *= ranks;
    r.trainer_s /= ranks;
    return r;
}

static bool differ(double a, double b)
{
    return fabs(a - b) > CHANGED * fmax(fabs(a), fabs(b));
}

static bool rates_differ(const dr__offload_rates *a, const dr__offload_rates *b)
{
    return differ(a->link_bytes_s, b->link_bytes_s) || differ(a->trainer_s, b->trainer_s) ||
           differ(a->client_cpus, b->client_cpus) || differ(a->server_cpus, b->server_cpus);
}

/* --- planning --- */

struct work {
    const dr__exec *e;
    const dr__offload_model *model;
};

static uint64_t id_at(const dr__exec *e, uint64_t place)
{
    return dr__dataset_place(e->set, e->o.seed, e->order.epoch, place).id;
}

static void points_at(const void *user, uint64_t place, dr__offload_point *points)
{
    const struct work *w = user;
    dr__offload_model_points(w->model, id_at(w->e, place), points);
}

static dr__offload_work work_of(const struct work *w)
{
    const dr__offload *o = w->e->offload;
    return (dr__offload_work){
        .n = w->e->set->n_places, .n_cuts = o->n_cuts, .resize_cut = o->resize_cut, .points = points_at, .user = w
    };
}

static void trace_plan(dr__exec *e, const dr__offload_plan *p)
{
    if (e->trace)
        dr__trace_event(e->trace, "offload",
                        "\"policy\":\"%s\",\"samples\":%" PRIu64 ",\"segments\":%" PRIu64 ",\"of\":%" PRIu64
                        ",\"bytes\":%.0f,\"bytes_before\":%.0f,\"epoch_s\":%.4g,\"epoch_s_before\":%.4g,\"why\":\"%s\"",
                        e->offload->policy->name, p->n_offloaded, p->n_segments, p->n, p->after.bytes, p->before.bytes,
                        p->after.epoch_s, p->before.epoch_s, p->why);
}

/* planning: looks at what is drawn in the running epoch, once; at most for one hundredth of the time. */
static void draw_epoch(dr__exec *e, uint64_t now_ns)
{
    dr__offload *o = e->offload;
    const uint64_t epoch = e->order.epoch;
    dr__offload_drawn *drawn = NULL;
    if (!o->segments.on || (o->drew && o->drawn == epoch) || now_ns < o->next_draw_ns)
        return;
    const dr_status status = dr__segments_draw(e, &o->segments, &drawn, NULL);
    pthread_mutex_lock(&o->lock);
    dr__offload_model_draw(&o->model, drawn);
    pthread_mutex_unlock(&o->lock);
    o->drew = status == DR_OK;
    o->drawn = epoch;
    o->next_draw_ns = now_ns + PAUSE_TIMES * (dr__now_ns() - now_ns);
}

/* lock: a sample that was never read whole here has no segments yet.  It is read whole once unless the cut saves so
 * much that its segments would hardly ever be less. */
static int to_be_noted(const dr__offload *o, uint64_t id, int cut)
{
    const dr__offload_cut_sums *c = &o->model.cuts[cut];
    if (!o->segments.on || !o->policy->plus || o->model.seconds[id] > 0 ||
        dr__offload_model_segments(&o->model, id) > 0)
        return cut;
    return c->bytes > NOTED * c->n * dr__offload_model_bytes(&o->model, id) ? 0 : cut;
}

/* planning: makes a plan and puts it into effect.  The model may be added to meanwhile by nobody: `lock` is held while
 * points are read; other threads wait for their sums, which is a fraction of a second for a million samples. */
static void make_plan(dr__exec *e)
{
    dr__offload *o = e->offload;
    const struct work w = { e, &o->model };
    const dr__offload_work work = work_of(&w);
    dr__offload_plan plan;
    pthread_mutex_lock(&o->lock);
    const uint64_t start = dr__now_ns();
    const dr__offload_rates rates = of_all_ranks(e, o->rates);
    const dr_status status = dr__offload_plan_make(o->policy, &work, &rates, &plan, NULL);
    if (status == DR_OK) {
        o->planned_with = o->rates;
        o->epoch = e->order.epoch;
        o->before = plan.before;
        o->after = plan.after;
        memcpy(o->per_cut, plan.per_cut, sizeof o->per_cut);
        o->n_segments = plan.n_segments;
        o->n_plans++;
        snprintf(o->why, sizeof o->why, "%s", plan.why);
        for (uint64_t i = 0; i < plan.n; i++) {
            const uint64_t id = id_at(e, i);
            const int at = to_be_noted(o, id, plan.cuts[i]);
            o->per_cut[plan.cuts[i]]--;
            o->per_cut[at]++;
            atomic_store_explicit(&o->plan[id], (uint8_t)at, memory_order_relaxed);
        }
    }
    o->plan_ns = dr__now_ns() - start;
    o->next_plan_ns = start + PAUSE_TIMES * o->plan_ns;
    pthread_mutex_unlock(&o->lock);
    if (status == DR_OK)
        trace_plan(e, &plan);
    dr__offload_plan_free(&plan);
}

/* lock: whether the link is what an epoch waits for, while the server runs nothing; and the text that says so. */
static bool is_link_bound(dr__exec *e)
{
    dr__offload *o = e->offload;
    const dr__offload_rates r = of_all_ranks(e, o->rates);
    double bytes = 0, seconds = 0;
    for (uint64_t i = 0; i < e->set->n_places; i++) {
        const uint64_t id = id_at(e, i);
        const double segments = dr__offload_model_segments(&o->model, id);
        bytes += segments > 0 ? segments : dr__offload_model_bytes(&o->model, id);
        seconds += dr__offload_model_seconds(&o->model, id);
    }
    const double net = r.link_bytes_s > 0 ? bytes / r.link_bytes_s : 0, client = seconds / r.client_cpus;
    const bool bound = net > BOUND * fmax(client, r.trainer_s);
    snprintf(o->why, sizeof o->why, "%sthe network takes %.3g s an epoch, the client's CPU %.3g s, the consumer %.3g s",
             bound ? "" : "not I/O-bound: ", net, client, r.trainer_s);
    return bound;
}

/* Bytes that are sent behind a cut where all shapes are known; else INFINITY. */
static double known_bytes(const dr__offload_cut *c)
{
    double bytes = 0;
    for (int i = 0; i < c->parts.head->n_outputs; i++) {
        const dr_desc *d = &c->parts.head->outputs[i].desc;
        size_t n;
        if (d->kind == DR_KIND_TEXT)
            continue; /* a key */
        if (!dr__desc_bytes_dense(d, &n))
            return INFINITY;
        bytes += (double)n;
    }
    return bytes;
}

static unsigned count_probes(const dr__offload *o)
{
    unsigned n = 0;
    for (int k = 1; k < o->n_cuts; k++)
        n += o->cuts[k].probes;
    return n;
}

/* lock: what is large is tried less often: it holds up the link that is short. */
static void set_probes(dr__offload *o)
{
    const double stored = o->model.n_run > 0 ? o->model.sum_bytes / o->model.n_run : 0;
    for (int k = 1; k < o->n_cuts; k++)
        o->cuts[k].probes = known_bytes(&o->cuts[o->cuts[k].plain]) > 2 * stored ? LARGE_PROBES : PROBES;
}

/* planning: what is due. */
static void advance(dr__exec *e)
{
    dr__offload *o = e->offload;
    const dr__offload_totals t = read_totals(e);
    bool plan = false;
    draw_epoch(e, t.now_ns);
    pthread_mutex_lock(&o->lock);
    switch (atomic_load(&o->phase)) {
    case DR__OFFLOAD_MEASURING:
        if (!t.used) { /* the consumer's rate is not known */
            atomic_store(&o->next_check_ns, t.now_ns + MEASURE_NS);
            break;
        }
        learn_rates(e, &t);
        if (!is_link_bound(e))
            break;
        set_probes(o);
        o->probes_left = count_probes(o);
        o->probe_end_ns = t.now_ns + PROBE_NS;
        atomic_store(&o->phase, DR__OFFLOAD_PROBING);
        break;
    case DR__OFFLOAD_PROBING:
        if (o->probes_left && t.now_ns < o->probe_end_ns)
            break;
        atomic_store(&o->phase, DR__OFFLOAD_PLANNED);
        o->since = t; /* probes say little of the link */
        plan = true;
        break;
    case DR__OFFLOAD_PLANNED:
        if (t.now_ns - o->since.now_ns >= CHECK_NS / 2)
            learn_rates(e, &t);
        plan = t.now_ns >= o->next_plan_ns && (o->epoch != e->order.epoch || rates_differ(&o->rates, &o->planned_with));
        break;
    default:
        break;
    }
    pthread_mutex_unlock(&o->lock);
    if (plan)
        make_plan(e);
}

/* lock: adds a finished sample to the model; returns whether something may be due. */
static bool add_sample(dr__exec *e, const dr__job *job, double cost, int now)
{
    dr__offload *o = e->offload;
    const double run_s = (double)job->run_ns * 1e-9;
    if (!job->cut) {
        dr__offload_model_run(&o->model, job->ref.id, (double)job->stored_bytes, run_s, cost);
        o->began_ns = o->began_ns ? o->began_ns : job->since_ns;
        o->n_plain++;
    } else {
        dr__offload_model_cut(&o->model, job->ref.id, job->cut, (double)job->wire_bytes, (double)job->server_ns * 1e-9,
                              run_s + (double)job->unpack_ns * 1e-9);
    }
    if (now == DR__OFFLOAD_PROBING && job->asked_cut) {
        o->probes_left -= o->probes_left > 0;
    }
    if (now == DR__OFFLOAD_PROBING)
        return o->probes_left == 0 || dr__now_ns() > o->probe_end_ns;
    const uint64_t enough = DR_MIN(MEASURE_SAMPLES, DR_MAX(e->set->n_places / 4, 1));
    return now != DR__OFFLOAD_MEASURING || (o->n_plain >= enough && dr__now_ns() - o->began_ns >= MEASURE_NS);
}

void dr__offload_learn(dr__exec *e, const dr__job *job, double cost)
{
    dr__offload *o = e->offload;
    const int now = o ? atomic_load(&o->phase) : DR__OFFLOAD_FIXED;
    if (now == DR__OFFLOAD_FIXED || !job->wire_bytes || job->program == NULL)
        return;
    pthread_mutex_lock(&o->lock);
    const bool due = add_sample(e, job, cost, now);
    const uint64_t time = dr__now_ns();
    const bool early = now == DR__OFFLOAD_PROBING ||
                       (now == DR__OFFLOAD_PLANNED && o->epoch != e->order.epoch && time >= o->next_plan_ns);
    pthread_mutex_unlock(&o->lock);
    if (!due || (!early && time < atomic_load(&o->next_check_ns)) || atomic_flag_test_and_set(&o->planning))
        return;
    atomic_store(&o->next_check_ns, time + CHECK_NS);
    advance(e);
    atomic_flag_clear(&o->planning);
}
