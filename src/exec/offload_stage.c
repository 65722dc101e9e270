/* offload_stage.c: asks for samples with a prefix of their ops, measures, and plans.
 *
 * `plan[id]` is the cut of a sample, read by any thread and replaced byte by byte when there is a new plan: whichever
 * value a thread finds, the sample is the same.  Everything that is learnt lies under `lock`, which is held for some
 * sums; planning itself is done by one thread, under `planning`, with a copy of the rates.
 */
#include "exec/offload_stage.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drapps/codec.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "exec/segment_stage.h"
#include "format/remote_set.h"
#include "graph/prefix.h"
#include "op/op.h"
#include "remote/offload_model.h"
#include "trace/event.h"

enum {
    MOST_PLACES = 24, /* to cut at; later ones of a longer graph are left out */
    MOST_CUTS = 2 * MOST_PLACES, /* each as it is, and compressed */
    PROBES = 6,       /* samples that are cut at each place before the first plan */
    LARGE_PROBES = 2, /* the same where what is sent is larger than the samples, or of a size that depends on them */
    MEASURE_SAMPLES = 64, /* in the first stage; or a quarter of the set */
    INFO_MOST = 1 << 16,
};

#define MEASURE_NS 200000000ull /* of the first stage, at least */
#define CHECK_NS 2000000000ull  /* between two looks at the rates */
#define PROBE_NS 10000000000ull /* after which probes are not waited for: their samples may be bad */
#define PAUSE_TIMES 100         /* planning takes 1 % of the time at most */
#define CHANGED 0.1             /* of a rate, for another plan */
#define BOUND 1.05              /* the link must be this many times slower than the rest */
#define SHED 0.05               /* of the samples asked for: the server has less CPU than it said */
#define NOTED 0.33              /* of a sample: what a cut must save for a sample to be cut that was never read whole */
#define BUSY 0.8                /* of the server's CPUs: then it limits what arrives, not the link */

typedef enum phase { FIXED, MEASURING, PROBING, PLANNED } phase;

/* What images of bytes are compressed with. */
static const char pixels_codec[] = "delta+bitshuffle+zstd:1";

typedef struct cut {
    int prefix;        /* ops before it */
    const char *codec; /* NULL: none */
    int plain;         /* the number of this cut, or of the same without a codec, which has the parts */
    unsigned probes;
    char name[64];
    dr__prefix parts;
} cut;

/* Since the stage was opened; differences of two make a window. */
typedef struct totals {
    uint64_t now_ns, link_bytes, link_ns, server_ns, asked, shed, step_ns, delivered;
    int workers; /* now */
} totals;

struct dr__offload {
    const dr_dataset *root; /* the set on the server; borrowed from e->set */
    dr__remote_client *client;
    const dr__offload_policy *policy;
    char mode[24];
    char *graph, *outputs; /* of requests; owned */
    uint64_t ops;
    dr__segments segments;
    cut *cuts; /* owned; [0]: as stored */
    int n_cuts, resize_cut;
    double told_cpus;      /* of the server; 0: it did not say */
    _Atomic uint8_t *plan; /* of each id; owned */
    _Atomic double share;
    atomic_int phase;
    atomic_bool refused; /* the server takes no requests for samples */
    atomic_bool no_ops;  /* it takes them, but runs no ops for this client */
    atomic_uint probe;   /* probes sent */
    atomic_uint_fast64_t next_check_ns;
    atomic_flag planning;

    atomic_uint_fast64_t packed; /* of `samples`: compressed */
    atomic_uint_fast64_t samples, plain, shed, failed, server_ns, saved_bytes; /* for the statistics */

    pthread_mutex_t lock; /* all below */
    dr__offload_model model;
    unsigned probes_left;
    uint64_t probe_end_ns;
    uint64_t began_ns, n_plain;
    uint64_t epoch;                 /* that the last plan was made in */
    uint64_t plan_ns, next_plan_ns; /* what it took; when the next one may be made */
    bool drew;                      /* model.drawn is of the epoch `drawn` */
    uint64_t drawn, next_draw_ns;   /* when the draws of another epoch may be looked at */
    totals since;                   /* where the window of rates began */
    dr__offload_rates rates, planned_with;
    double step_s; /* of the consumer, for a sample */
    dr__offload_times before, after;
    uint64_t per_cut[DR__OFFLOAD_CUTS], n_segments, n_plans;
    char why[200];
};

/* --- modes --- */

static const struct {
    const char *mode, *policy;
} modes[] = {
    { "auto", "sophon+" },
    { "off", "no-off" },
    { "all", "all-off" },
    { "resize", "resize-off" },
};

/* The policy of a mode; for a number of ops *n_ops, else -1.  NULL: there is none. */
static const dr__offload_policy *find_mode(const char *mode, long *n_ops)
{
    char *end;
    *n_ops = *mode >= '0' && *mode <= '9' ? strtol(mode, &end, 10) : -1;
    if (*n_ops >= 0)
        return *end ? NULL : dr__offload_policy_find("all-off");
    for (size_t i = 0; i < DR_COUNT(modes); i++)
        if (!strcmp(modes[i].mode, mode))
            return dr__offload_policy_find(modes[i].policy);
    return dr__offload_policy_find(mode);
}

dr_status dr__offload_check(const char *mode, dr_error *err)
{
    long n_ops;
    char all[200] = "";
    if (!mode || find_mode(mode, &n_ops))
        return DR_OK;
    for (size_t i = 0; i < DR_COUNT(modes); i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s, ", modes[i].mode);
    for (int i = 0; i < dr__n_offload_policies; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s, ", dr__offload_policies[i].name);
    return dr__fail(err, DR_ERR_ARG, "offload must be %sor a number of ops, got \"%s\"", all, mode);
}

static bool is_measured(const dr__offload_policy *p)
{
    return !strncmp(p->name, "sophon", 6) || !strcmp(p->name, "fastflow");
}

/* --- opening --- */

/* The first op whose result has the same shape for all samples, which those before it have not. */
static bool makes_one_size(const cut *c)
{
    for (int i = 0; i < c->parts.head->n_outputs; i++) {
        const dr_desc *d = &c->parts.head->outputs[i].desc;
        if (dr__is_image(d) && !dr__desc_known(d))
            return false;
    }
    for (int i = 0; i < c->parts.head->n_outputs; i++)
        if (dr__is_image(&c->parts.head->outputs[i].desc))
            return true;
    return false;
}

static dr_status add_cut(dr__exec *e, dr__offload *o, int n_ops, const dr__program_options *options, dr_error *err)
{
    cut *c = &o->cuts[o->n_cuts];
    dr_error why = { 0 };
    const dr_status status =
        dr__prefix_offload(e->program, e->set->fields, e->set->n_fields, n_ops, options, &c->parts, &why);
    if (status == DR_ERR_UNSUPPORTED || (status == DR_OK && !c->parts.head))
        return DR_OK;
    if (status != DR_OK)
        return dr__fail(err, status, "%s", why.text);
    c->prefix = n_ops;
    c->plain = o->n_cuts;
    snprintf(c->name, sizeof c->name, "%s", e->program->graph->nodes[n_ops - 1].op.def->name);
    if (!o->resize_cut && makes_one_size(c))
        o->resize_cut = o->n_cuts;
    o->n_cuts++;
    return DR_OK;
}

static dr_status find_cuts(dr__exec *e, dr__offload *o, const dr__program_options *options, dr_error *err)
{
    const int most = dr__prefix_offload_most(e->program);
    o->cuts = dr__alloc_zero(MOST_CUTS, sizeof *o->cuts);
    if (!o->cuts)
        return dr__fail(err, DR_ERR_NOMEM, "offload: out of memory");
    o->n_cuts = 1;
    for (int n = 1; n <= most && o->n_cuts < MOST_PLACES; n++)
        DR_TRY(add_cut(e, o, n, options, err));
    return DR_OK;
}

/* Whether images of bytes, and of one size, cross a cut. */
static bool has_pixels(const cut *c)
{
    bool found = false;
    for (int i = 0; i < c->parts.head->n_outputs; i++) {
        const dr_desc *d = &c->parts.head->outputs[i].desc;
        if (dr__is_image(d) && (d->dtype != DR_U8 || !dr__desc_known(d)))
            return false;
        found = found || dr__is_image(d);
    }
    return found;
}

/* Whether this build has the codec, and the server all of its stages (a list of their names; NULL: it has none). */
static bool both_have(const char *spec, const json_t *stages)
{
    dr_codec *codec;
    size_t i;
    json_t *stage;
    if (!stages || dr_codec_open(spec, NULL, &codec, NULL) != DR_OK)
        return false;
    dr_codec_close(&codec);
    for (const char *at = spec; *at; at += strcspn(at, "+"), at += *at == '+') {
        const size_t n = strcspn(at, ":+");
        bool found = false;
        json_array_foreach(stages, i, stage) found =
            found || (json_string_length(stage) == n && !memcmp(json_string_value(stage), at, n));
        if (!found)
            return false;
    }
    return true;
}

/* Each cut with images of bytes once more, compressed. */
static void add_packed_cuts(dr__offload *o, const json_t *stages)
{
    const int n = o->n_cuts;
    if (n == 1 || !o->policy->plus || !both_have(pixels_codec, stages))
        return;
    for (int k = 1; k < n; k++) {
        if (!has_pixels(&o->cuts[k]))
            continue;
        cut *c = &o->cuts[o->n_cuts++];
        c->prefix = o->cuts[k].prefix;
        c->codec = pixels_codec;
        c->plain = k;
        memcpy(c->name, o->cuts[k].name, sizeof c->name);
    }
}

struct info {
    dr__source_target head;
    char text[INFO_MOST];
    size_t n;
};

static uint8_t *reserve_info(dr__source_target *target, size_t size, size_t keep, dr_status *status, dr_error *err)
{
    struct info *info = (struct info *)target;
    (void)keep;
    if (size < sizeof info->text)
        return (uint8_t *)info->text;
    *status = dr__fail(err, DR_ERR_LIMIT, "an answer of %zu bytes", size);
    return NULL;
}

/* What the server says of its CPUs and codecs.  One that says nothing is planned for as if it had one CPU. */
static void ask_server(dr__offload *o)
{
    struct info *info = dr__alloc_zero(1, sizeof *info);
    dr__transfer_reply reply;
    if (!info)
        return;
    info->head.reserve = reserve_info;
    if (dr__remote_client_get(o->client, "/v1/info", NULL, 0, 0, &info->head, &reply, NULL) == DR_OK) {
        json_t *json = json_loadb(info->text, (size_t)reply.got, 0, NULL);
        o->told_cpus = json_number_value(json_object_get(json, "cpus"));
        add_packed_cuts(o, json_object_get(json, "codecs"));
        json_decref(json);
    }
    dr__free(info);
}

static dr_status copy_texts(dr__exec *e, dr__offload *o, const dr__program_options *options, dr_error *err)
{
    const char *text;
    DR_TRY(dr_graph_json(e->program->graph, &text, err));
    o->graph = dr__strdup(text);
    o->outputs = options->outputs ? dr__strdup(options->outputs) : NULL;
    return o->graph && (o->outputs || !options->outputs) ? DR_OK
                                                         : dr__fail(err, DR_ERR_NOMEM, "offload: out of memory");
}

/* Modes that are the same for all samples. */
static void set_fixed(dr__offload *o, uint64_t n_places, long n_ops)
{
    int at = 0;
    if (!strcmp(o->policy->name, "resize-off"))
        at = o->resize_cut;
    else if (!strcmp(o->policy->name, "all-off"))
        for (int k = 1; k < o->n_cuts && (n_ops < 0 || o->cuts[k].prefix <= n_ops); k++)
            at = k;
    for (uint64_t i = 0; i < o->root->n_samples; i++)
        atomic_store_explicit(&o->plan[i], (uint8_t)at, memory_order_relaxed);
    o->per_cut[0] = 0;
    o->per_cut[at] = n_places;
    snprintf(o->why, sizeof o->why, "%s",
             !at && strcmp(o->policy->name, "no-off") && n_ops != 0 ? "no op of this pipeline can run on a server"
                                                                    : "asked for");
}

static dr_status fill(dr__exec *e, dr__offload *o, const char *mode, const dr__program_options *options, dr_error *err)
{
    long n_ops;
    o->policy = find_mode(mode, &n_ops);
    snprintf(o->mode, sizeof o->mode, "%s", mode);
    o->ops = dr__op_set();
    DR_TRY(find_cuts(e, o, options, err));
    DR_TRY(copy_texts(e, o, options, err));
    DR_TRY(dr__offload_model_make(&o->model, o->root->n_samples, MOST_CUTS, err));
    for (uint64_t i = 0; i < o->root->n_samples; i++)
        o->model.bytes[i] = (float)dr__remote_set_bytes(o->root, i);
    o->plan = dr__alloc_zero(o->root->n_samples, sizeof *o->plan);
    if (!o->plan)
        return dr__fail(err, DR_ERR_NOMEM, "offload: out of memory for %" PRIu64 " samples", o->root->n_samples);
    if (e->o.keep_draws)
        o->n_cuts = 1; /* the server would draw, and the client not know what */
    o->per_cut[0] = e->set->n_places;
    const bool measured = is_measured(o->policy) && o->n_cuts > 1 && !e->cache;
    if (is_measured(o->policy))
        snprintf(o->why, sizeof o->why, "%s",
                 measured          ? "measuring"
                 : e->cache        ? "a cache keeps what the first ops make"
                 : e->o.keep_draws ? "draws are kept, which a server would make"
                                   : "no op of this pipeline can run on a server");
    else
        set_fixed(o, e->set->n_places, n_ops);
    dr__segments_open(e, &o->segments, o->root, o->client, o->policy->plus || e->ranges.always);
    atomic_store(&o->phase, measured ? MEASURING : FIXED);
    if (measured)
        ask_server(o);
    o->model.n_cuts = o->n_cuts;
    return DR_OK;
}

dr_status dr__offload_open(dr__exec *e, const char *mode, const dr__program_options *options, dr_error *err)
{
    const dr_dataset *root = dr__dataset_root(e->set);
    dr__remote_client *client = dr__remote_set_client(root);
    DR_TRY(dr__offload_check(mode, err));
    if (!client || e->o.reference)
        return DR_OK;
    dr__offload *o = dr__alloc_zero(1, sizeof *o);
    if (!o)
        return dr__fail(err, DR_ERR_NOMEM, "offload: out of memory");
    e->offload = o;
    o->root = root;
    o->client = client;
    pthread_mutex_init(&o->lock, NULL);
    atomic_init(&o->share, 1);
    atomic_flag_clear(&o->planning);
    return fill(e, o, mode ? mode : "auto", options, err);
}

void dr__offload_close(dr__exec *e)
{
    dr__offload *o = e->offload;
    e->offload = NULL;
    if (!o)
        return;
    for (int k = 0; o->cuts && k < MOST_CUTS; k++)
        dr__prefix_free(&o->cuts[k].parts);
    dr__free(o->cuts);
    dr__offload_model_free(&o->model);
    pthread_mutex_destroy(&o->lock);
    dr__free((void *)o->plan);
    dr__free(o->graph);
    dr__free(o->outputs);
    dr__free(o);
}

/* --- reading --- */

/* Whether a sample is among the share that the knob allows: always the same ones, spread evenly. */
static bool in_share(const dr__offload *o, uint64_t id)
{
    const double share = atomic_load_explicit(&o->share, memory_order_relaxed);
    return share >= 1 || (double)((id * 0x9E3779B97F4A7C15ull) >> 32) < share * 4294967296.0;
}

/* The cut that probe number n tries, one place after the other; 0: there are no more. */
static int probed_cut(const dr__offload *o, unsigned n)
{
    for (int k = 1; k < o->n_cuts; k++) {
        if (n < o->cuts[k].probes)
            return k;
        n -= o->cuts[k].probes;
    }
    return 0;
}

static unsigned count_probes(const dr__offload *o)
{
    unsigned n = 0;
    for (int k = 1; k < o->n_cuts; k++)
        n += o->cuts[k].probes;
    return n;
}

/* The cut of a sample.  While the server is probed, the next cut that is still to be tried. */
static int choose_cut(dr__offload *o, const dr__exec *e, const dr__job *job)
{
    if (job->program != e->program || atomic_load(&o->no_ops) || !in_share(o, job->ref.id))
        return 0;
    if (atomic_load(&o->phase) == PROBING)
        return probed_cut(o, atomic_fetch_add(&o->probe, 1));
    return atomic_load_explicit(&o->plan[job->ref.id], memory_order_relaxed);
}

/* Where the server stopped: as it was asked to, or earlier. */
static int cut_behind(const dr__offload *o, int asked, int prefix)
{
    if (o->cuts[asked].prefix == prefix)
        return asked;
    for (int k = 0; k < o->n_cuts; k++)
        if (o->cuts[k].prefix == prefix)
            return k;
    return -1;
}

static dr_status ask(dr__exec *e, dr__workbench *bench, dr__job *job, int at, dr__remote_answer *answer, dr_error *err)
{
    dr__offload *o = e->offload;
    const dr__remote_work work = { e->o.seed, e->order.epoch, o->ops, o->graph, o->outputs };
    const dr__remote_wish wish = {
        .id = job->ref.id,
        .occurrence = job->ref.occurrence,
        .prefix = o->cuts[at].prefix,
        .work = at ? &work : NULL,
        .codec = o->cuts[at].codec,
    };
    bench->record.max_bytes = DR_MAX(bench->memory_limit, (size_t)DR__ENCODED_LEAST);
    return dr__remote_client_sample(o->client, &wish, &bench->record, answer, err);
}

/* Whether a record has what the program of a cut begins with; it came from another machine. */
static bool accept_cut(dr__exec *e, dr__workbench *bench, dr__job *job, int at)
{
    dr__offload *o = e->offload;
    const dr__program *p = at > 0 ? o->cuts[o->cuts[at].plain].parts.rest : job->program;
    if (at < 0 || !dr__prefix_fits(at > 0 ? p : e->program, &bench->record))
        return false;
    job->program = p;
    job->cut = at;
    return true;
}

static void note_refusal(dr__offload *o, atomic_bool *flag, const dr_error *why)
{
    pthread_mutex_lock(&o->lock);
    atomic_store(flag, true);
    snprintf(o->why, sizeof o->why, "%.199s", why->text);
    pthread_mutex_unlock(&o->lock);
}

/* A probe that brought nothing to learn is over, too. */
static void lose_probe(dr__offload *o)
{
    pthread_mutex_lock(&o->lock);
    o->probes_left -= o->probes_left > 0;
    pthread_mutex_unlock(&o->lock);
}

/* Asks for the sample with ops.  false: as it is stored, then. */
static bool read_cut(dr__exec *e, dr__workbench *bench, dr__job *job, int at, dr_status *status, dr_error *err)
{
    dr__offload *o = e->offload;
    dr__remote_answer answer;
    dr_error why = { 0 };
    job->asked_cut = at;
    *status = ask(e, bench, job, at, &answer, &why);
    if (*status == DR_OK && accept_cut(e, bench, job, cut_behind(o, at, answer.prefix))) {
        job->wire_bytes = job->stored_bytes = answer.bytes;
        job->server_ns = answer.cpu_ns;
        job->unpack_ns = answer.read_ns;
        if (job->cut && o->cuts[job->cut].codec)
            atomic_fetch_add(&o->packed, 1);
        if (!job->cut)
            dr__segments_whole(e, &o->segments, bench, job->ref.id);
        atomic_fetch_add(job->cut ? &o->samples : &o->shed, 1);
        atomic_fetch_add(&o->server_ns, answer.cpu_ns);
        return true;
    }
    if (*status == DR_ERR_STATE || *status == DR_ERR_CANCELLED || *status == DR_ERR_NOMEM) {
        *err = why;
        return true;
    }
    lose_probe(o);
    job->asked_cut = 0;
    atomic_fetch_add(&o->failed, 1);
    if (answer.refused)
        note_refusal(o, &o->no_ops, &why);
    return false;
}

/* The sample as it is stored.  false: the server takes no requests for samples. */
static bool read_stored(dr__exec *e, dr__workbench *bench, dr__job *job, dr_status *status, dr_error *err)
{
    dr__offload *o = e->offload;
    dr__remote_answer answer;
    dr_error why = { 0 };
    *status = ask(e, bench, job, 0, &answer, &why);
    if (answer.refused) { /* perhaps an older server, which has plain files */
        note_refusal(o, &o->refused, &why);
        return false;
    }
    if (*status == DR_OK && !dr__prefix_fits(e->program, &bench->record))
        *status = dr__fail(&why, DR_ERR_FORMAT, "the server sent other fields than the set has");
    if (*status != DR_OK) {
        *err = why;
        return true;
    }
    job->wire_bytes = job->stored_bytes = answer.bytes;
    dr__segments_whole(e, &o->segments, bench, job->ref.id);
    atomic_fetch_add(&o->plain, 1);
    return true;
}

bool dr__offload_read(dr__exec *e, dr__workbench *bench, dr__job *job, dr_status *status, dr_error *err)
{
    dr__offload *o = e->offload;
    job->cut = job->asked_cut = 0;
    job->wire_bytes = job->server_ns = 0;
    if (!o || atomic_load(&o->refused))
        return false;
    const int at = job->as_stored ? 0 : choose_cut(o, e, job);
    if (at && read_cut(e, bench, job, at, status, err))
        return true;
    if (!at && !job->as_stored && dr__segments_read(e, &o->segments, bench, job, status, err))
        return true;
    return read_stored(e, bench, job, status, err);
}

bool dr__offload_read_whole(dr__exec *e, dr__workbench *bench, dr__job *job, dr_status *status, dr_error *err)
{
    if (!e->offload || job->cut)
        return false;
    if (err)
        *err = (dr_error){ 0 };
    dr__ranges_again(e, bench);
    job->as_stored = true;
    const bool read = dr__offload_read(e, bench, job, status, err);
    job->as_stored = false;
    return read;
}

/* --- rates --- */

static totals read_totals(dr__exec *e)
{
    dr__offload *o = e->offload;
    dr__remote_counts c;
    double flow[DR_N_FLOWS] = { 0 };
    dr__remote_client_counts(o->client, &c);
    dr__exec_flow(e, flow);
    dr__pool_lock();
    const int workers = e->knobs.workers;
    dr__pool_unlock();
    return (totals){ .now_ns = dr__now_ns(),
                     .link_bytes = c.bytes,
                     .link_ns = c.busy_ns,
                     .server_ns = atomic_load(&o->server_ns),
                     .asked = atomic_load(&o->samples) + atomic_load(&o->shed),
                     .shed = atomic_load(&o->shed),
                     .step_ns = (uint64_t)(flow[DR_FLOW_STEP] * 1e9),
                     .delivered = atomic_load(&e->stats.delivered),
                     .workers = DR_MAX(workers, 1) };
}

/* lock: the rates of a window.  What a window cannot tell stays as it was. */
static void learn_rates(dr__exec *e, const totals *t)
{
    dr__offload *o = e->offload;
    const totals *b = &o->since;
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
    if (t->delivered > b->delivered)
        o->step_s = (double)(t->step_ns - b->step_ns) * 1e-9 / (double)(t->delivered - b->delivered);
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

/* lock: a sample that was never read whole here has no segments yet.  It is read whole once unless the cut saves so much
 * that its segments would hardly ever be less. */
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
static double known_bytes(const cut *c)
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
    const totals t = read_totals(e);
    bool plan = false;
    draw_epoch(e, t.now_ns);
    pthread_mutex_lock(&o->lock);
    switch (atomic_load(&o->phase)) {
    case MEASURING:
        learn_rates(e, &t);
        if (!is_link_bound(e))
            break;
        set_probes(o);
        o->probes_left = count_probes(o);
        o->probe_end_ns = t.now_ns + PROBE_NS;
        atomic_store(&o->phase, PROBING);
        break;
    case PROBING:
        if (o->probes_left && t.now_ns < o->probe_end_ns)
            break;
        atomic_store(&o->phase, PLANNED);
        o->since = t; /* probes say little of the link */
        plan = true;
        break;
    case PLANNED:
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
    if (now == PROBING && job->asked_cut) {
        o->probes_left -= o->probes_left > 0;
    }
    if (now == PROBING)
        return o->probes_left == 0 || dr__now_ns() > o->probe_end_ns;
    const uint64_t enough = DR_MIN(MEASURE_SAMPLES, DR_MAX(e->set->n_places / 4, 1));
    return now != MEASURING || (o->n_plain >= enough && dr__now_ns() - o->began_ns >= MEASURE_NS);
}

void dr__offload_learn(dr__exec *e, const dr__job *job, double cost)
{
    dr__offload *o = e->offload;
    const int now = o ? atomic_load(&o->phase) : FIXED;
    if (now == FIXED || !job->wire_bytes || job->program == NULL)
        return;
    pthread_mutex_lock(&o->lock);
    const bool due = add_sample(e, job, cost, now);
    const uint64_t time = dr__now_ns();
    const bool early = now == PROBING || (now == PLANNED && o->epoch != e->order.epoch && time >= o->next_plan_ns);
    pthread_mutex_unlock(&o->lock);
    if (!due || (!early && time < atomic_load(&o->next_check_ns)) || atomic_flag_test_and_set(&o->planning))
        return;
    atomic_store(&o->next_check_ns, time + CHECK_NS);
    advance(e);
    atomic_flag_clear(&o->planning);
}

/* --- knob and reports --- */

void dr__offload_set_share(dr__exec *e, double share)
{
    if (e->offload)
        atomic_store(&e->offload->share, share);
}

static const char *phase_name(const dr__offload *o)
{
    static const char *const names[] = {
        [FIXED] = "fixed", [MEASURING] = "measuring", [PROBING] = "trying cuts", [PLANNED] = "planned"
    };
    return names[atomic_load(&o->phase)];
}

static void set_count(json_t *o, const char *name, uint64_t value)
{
    json_object_set_new(o, name, json_integer((json_int_t)value));
}

void dr__offload_stats(dr__exec *e, json_t *json)
{
    dr__offload *o = e->offload;
    dr__remote_counts c = { 0 };
    if (o)
        dr__remote_client_counts(o->client, &c);
    set_count(json, "remote_requests", c.requests);
    set_count(json, "remote_bytes", c.bytes);
    set_count(json, "remote_busy_ns", c.busy_ns);
    set_count(json, "offload_samples", o ? atomic_load(&o->samples) : 0);
    set_count(json, "offload_plain", o ? atomic_load(&o->plain) : 0);
    set_count(json, "offload_packed", o ? atomic_load(&o->packed) : 0);
    set_count(json, "offload_shed", o ? atomic_load(&o->shed) : 0);
    set_count(json, "offload_failed", o ? atomic_load(&o->failed) : 0);
    set_count(json, "offload_server_ns", o ? atomic_load(&o->server_ns) : 0);
    set_count(json, "segment_samples", o ? atomic_load(&o->segments.samples) : 0);
    set_count(json, "segment_bytes", o ? atomic_load(&o->segments.bytes) : 0);
    set_count(json, "segment_stored", o ? atomic_load(&o->segments.stored) : 0);
    set_count(json, "segment_failed", o ? atomic_load(&o->segments.failed) : 0);
    if (o)
        pthread_mutex_lock(&o->lock);
    set_count(json, "offload_planned", o ? e->set->n_places - DR_MIN(o->per_cut[0], e->set->n_places) : 0);
    json_object_set_new(json, "offload_phase", json_string(o ? phase_name(o) : ""));
    json_object_set_new(json, "offload_policy", json_string(o ? o->policy->name : ""));
    json_object_set_new(json, "offload_why", json_string(o ? o->why : ""));
    if (o)
        pthread_mutex_unlock(&o->lock);
}

/* lock: "decode 12, random_resized_crop 40". */
static void list_cuts(const dr__offload *o, char *text, size_t size)
{
    size_t n = 0;
    text[0] = 0;
    if (o->n_segments)
        n += (size_t)snprintf(text, size, "%" PRIu64 " in segments", o->n_segments);
    for (int k = 1; k < o->n_cuts && n < size; k++)
        if (o->per_cut[k])
            n += (size_t)snprintf(text + n, size - n, "%s%" PRIu64 " behind %s%s", n ? ", " : "", o->per_cut[k],
                                  o->cuts[k].name, o->cuts[k].codec ? " (compressed)" : "");
}

void dr__offload_explain(dr__exec *e, char *text, size_t size)
{
    dr__offload *o = e->offload;
    dr__transfer_stats transfers;
    char cuts[600], trouble[320] = "";
    text[0] = 0;
    if (!o)
        return;
    dr__transfer_get_stats(&transfers);
    if (transfers.waiting && transfers.trouble[0])
        snprintf(trouble, sizeof trouble, "; requests are being repeated: %s", transfers.trouble);
    pthread_mutex_lock(&o->lock);
    list_cuts(o, cuts, sizeof cuts);
    int n = snprintf(text, size, "offload: %s (%s), %s: %s", o->mode, o->policy->name, phase_name(o), o->why);
    if (o->n_plans && n > 0 && (size_t)n < size)
        n += snprintf(text + n, size - (size_t)n,
                      "; plans %s; %.1f of %.1f MB, %.3g of %.3g s an epoch; link %.1f MB/s, server %.2g CPUs",
                      cuts[0] ? cuts : "no sample", o->after.bytes * 1e-6, o->before.bytes * 1e-6, o->after.epoch_s,
                      o->before.epoch_s, o->rates.link_bytes_s * 1e-6, o->rates.server_cpus);
    pthread_mutex_unlock(&o->lock);
    if (n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n,
                 "; so far %" PRIu64 " samples prepared by the server, %" PRIu64 " shed, %" PRIu64 " in segments%s\n",
                 atomic_load(&o->samples), atomic_load(&o->shed), atomic_load(&o->segments.samples), trouble);
}
