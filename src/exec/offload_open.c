/* offload_open.c: modes of an offload, and the places where a program can be cut. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drapps/codec.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "exec/offload_parts.h"
#include "format/remote_set.h"
#include "op/op.h"

enum {
    MOST_PLACES = 24,            /* to cut at; later ones of a longer graph are left out */
    MOST_CUTS = 2 * MOST_PLACES, /* each as it is, and compressed */
    INFO_MOST = 1 << 16,
};

/* What images of bytes are compressed with. */
static const char pixels_codec[] = "delta+bitshuffle+zstd:1";

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
static bool makes_one_size(const dr__offload_cut *c)
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
    dr__offload_cut *c = &o->cuts[o->n_cuts];
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
static bool has_pixels(const dr__offload_cut *c)
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
        dr__offload_cut *c = &o->cuts[o->n_cuts++];
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
    atomic_store(&o->phase, measured ? DR__OFFLOAD_MEASURING : DR__OFFLOAD_FIXED);
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
