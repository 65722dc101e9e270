/* cache_stage.c: reads samples from a store, makes and stores those that are missing, and measures whether that pays.
 */
#include "exec/cache_stage.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "exec/next_use.h"
#include "store/data_file.h"
#include "store/codec_manager.h"
#include "store/store_parts.h"

enum {
    MAX_TRIALS = 64,    /* samples measured before the verdict, half of them with the cache, half without */
    MIN_TRIALS = 8,     /* lower bound for small data sets */
    WARM_SHARE = 8,     /* if an earlier run stored 1/8 of the data set, nothing is measured */
    MIN_SPEEDUP = 2,    /* the cache must be this many times faster */
    LAYOUT_VERSION = 1, /* of stored samples; part of the store's identity */
    TELL_BYTES = 20,    /* what making takes is told to the store for each 2^n bytes */
};

typedef enum verdict { MEASURING, KEEP, REFUSE } verdict;

struct dr__cache {
    dr__prefix prefix;
    dr_store *store;  /* NULL: nothing can be kept */
    char folder[512]; /* "": nothing on disk */
    int workers;
    uint64_t local_world;
    bool order_is_known;
    atomic_uint_fast64_t made_ns, made_bytes; /* of what was put */
    atomic_uint_fast64_t epoch_tick[2]; /* ticks of the tier in memory when this epoch began, and the one before */
    atomic_uint_fast64_t epoch_of_tick;
    unsigned n_trials;
    atomic_int verdict;
    atomic_uint turn; /* while measuring: odd samples go without the cache */

    pthread_mutex_t lock; /* all below */
    uint64_t n_plain, plain_ns, n_rest, rest_ns;
    char why[200];
};

/* --- opening --- */

static char *identity_of(const dr__exec *e, const dr__prefix *p)
{
    json_t *fields = json_array();
    for (int i = 0; i < p->head->n_outputs; i++)
        json_array_append_new(fields, json_string(p->head->outputs[i].name));
    char data[32];
    snprintf(data, sizeof data, "%016" PRIx64, dr__dataset_content(e->set));
    json_t *o = json_pack("{s:i, s:s, s:o, s:o}", "version", LAYOUT_VERSION, "data", data, "fields", fields, "ops",
                          json_loads(p->json, 0, NULL));
    char *text = o ? dr__canonical(o) : NULL;
    json_decref(o);
    return text;
}

static bool has_memory(const dr__cache *c)
{
    return c->store && c->store->memory;
}

/* Which tiers work: while it is measured whether the disk pays, memory would spoil the measurement. */
static void set_verdict(dr__cache *c, int verdict)
{
    if (c->store)
        dr__store_use_tiers(c->store, c->folder[0] && verdict != REFUSE, verdict != MEASURING);
    atomic_store(&c->verdict, verdict);
}

/* Each choice of a codec with its terms, in the trace. */
static void trace_choice(void *user, const char *tier, const dr__packed *packed, const char *text)
{
    dr__exec *e = user;
    const dr__codec_terms *t = &packed->choice.terms[packed->choice.which];
    const double terms[] = { packed->codec, t->v, t->rho, t->compat, isfinite(t->utility) ? t->utility : 0 };
    for (size_t i = 0; i < DR_COUNT(terms); i++)
        atomic_store(&e->stats.codec[i], terms[i]);
    if (e->trace)
        dr__trace_event(e->trace, "codec", "\"tier\":\"%s\",\"stored\":%zu,%s", tier, packed->bytes, text);
}

static uint64_t samples_per_epoch(const dr_dataset *set)
{
    return DR_MIN(set->n_samples, set->n_places);
}

/* What the codecs are weighed with. */
static void tell_facts(dr__exec *e, int workers)
{
    dr__cache *c = e->cache;
    const uint64_t bytes = atomic_load(&c->made_bytes);
    const dr__store_facts facts = {
        .cores = e->knobs.ceiling.cpus > 0 ? DR_MIN(workers, e->knobs.ceiling.cpus) : workers,
        .n_samples = samples_per_epoch(e->set),
        .make_s = bytes ? (double)atomic_load(&c->made_ns) * 1e-9 / (double)bytes : 0,
    };
    dr__store_tell(c->store, &facts);
}

static dr_status open_store(dr__exec *e, dr__cache *c, const dr__cache_options *o, dr_error *err)
{
    char *identity = identity_of(e, &c->prefix);
    if (!identity)
        return dr__fail(err, DR_ERR_NOMEM, "cache: out of memory");
    const bool automatic = o->folder && !strcmp(o->folder, "auto");
    dr_status status = dr_store_open_tiers(o->folder, identity, o->limit, o->memory, &c->store, err);
    if (status != DR_OK && automatic && o->memory) { /* the folder was not asked for by name */
        c->folder[0] = 0;
        status = dr_store_open_tiers(NULL, identity, 0, o->memory, &c->store, err);
    }
    dr__free(identity);
    if (status != DR_OK && automatic && !o->memory) { /* work goes on without */
        snprintf(c->why, sizeof c->why, "%.190s", err ? err->text : "the cache folder cannot be used");
        return DR_OK;
    }
    DR_TRY(status);
    c->store->on_choice = trace_choice;
    c->store->on_choice_user = e;
    dr_store_adapt(c->store, e->o.adaptive_compression);
    tell_facts(e, c->workers);
    dr_store_stats stats;
    dr_store_get_stats(c->store, &stats);
    bool seen = stats.records && stats.records >= samples_per_epoch(e->set) / WARM_SHARE;
    set_verdict(c, automatic && c->folder[0] && !seen ? MEASURING : KEEP);
    snprintf(c->why, sizeof c->why, "%s", !automatic ? "asked for" : seen ? "kept by an earlier run" : "measuring");
    return DR_OK;
}

dr_status dr__cache_open(dr__exec *e, const dr__cache_options *o, const dr__program_options *options, dr_error *err)
{
    dr__cache *c = e->cache = dr__alloc_zero(1, sizeof *c);
    if (!c)
        return dr__fail(err, DR_ERR_NOMEM, "cache: out of memory");
    pthread_mutex_init(&c->lock, NULL);
    if (o->folder)
        snprintf(c->folder, sizeof c->folder, "%s", strcmp(o->folder, "auto") ? o->folder : "the user's cache folder");
    c->workers = DR_MAX(e->knobs.workers, 1);
    c->local_world = (uint64_t)DR_MAX(o->local_world, 1);
    c->order_is_known = dr__next_use_is_known(e);
    c->n_trials = (unsigned)DR_MIN(DR_MAX(samples_per_epoch(e->set) / 4, MIN_TRIALS), MAX_TRIALS);
    atomic_init(&c->verdict, REFUSE);
    atomic_init(&c->epoch_of_tick, UINT64_MAX);
    DR_TRY(dr__prefix_split(e->program, e->set->fields, e->set->n_fields, options, o->at, &c->prefix, err));
    if (c->prefix.head)
        return open_store(e, c, o, err);
    snprintf(c->why, sizeof c->why, "%s", c->prefix.why);
    return DR_OK;
}

bool dr__cache_has_codec(int wire_id)
{
    return wire_id == DR__CODEC_AUTO || (wire_id >= 0 && dr__byte_codec_find((unsigned)wire_id));
}

void dr__cache_set_codec(dr__exec *e, int wire_id)
{
    if (e->cache && e->cache->store && !dr__store_force_codec(e->cache->store, wire_id))
        assert(!"checked by the caller");
}

void dr__cache_close(dr__exec *e)
{
    dr__cache *c = e->cache;
    e->cache = NULL;
    if (!c)
        return;
    dr_store_close(&c->store);
    dr__prefix_free(&c->prefix);
    pthread_mutex_destroy(&c->lock);
    dr__free(c);
}

/* --- fetching --- */

static uint64_t hash_fields(const dr__record *record)
{
    uint64_t h = 0;
    for (int i = 0; i < record->n_fields; i++) {
        const dr_view *v = &record->fields[i];
        size_t bytes = 0;
        dr__desc_bytes_dense(&v->desc, &bytes);
        h = XXH3_64bits_withSeed(v->desc.dims, (size_t)v->desc.n_dims * sizeof v->desc.dims[0], h + v->desc.dtype);
        h = XXH3_64bits_withSeed(v->data, bytes, h);
    }
    return h;
}

/* The key is made of the sample's id and stamp.  Data sets without stamps use a hash of the sample's bytes, which are
 * then read into the bench; *read says so. */
static bool key_of(const dr__exec *e, dr__workbench *bench, uint64_t id, dr_store_key *key, bool *read)
{
    uint64_t name[2] = { id, 0 };
    dr_error err = { 0 };
    dr_status status = DR_ERR_UNSUPPORTED;
    if (e->set->def->stamp)
        status = e->set->def->stamp(e->set, id, &name[1], &err);
    if (status == DR_ERR_UNSUPPORTED) {
        status = dr__sample_read(bench, e->set, id, &err);
        *read = status == DR_OK;
        name[1] = status == DR_OK ? hash_fields(&bench->record) : 0;
    }
    *key = dr_store_key_of(e->cache->store, name, sizeof name);
    return status == DR_OK;
}

/* Reserves memory for a stored sample in a record and makes the record's fields views of it.  NULL: larger than limit,
 * or out of memory. */
static uint8_t *reserve_sample(dr__record *record, const dr_stored *s, size_t limit)
{
    if (s->bytes > limit || dr__record_reset(record, s->bytes, NULL) != DR_OK ||
        !dr__record_reserve_fields(record, s->n_fields))
        return NULL;
    uint8_t *memory = dr__record_take(record, s->bytes);
    for (int i = 0; memory && i < s->n_fields; i++)
        record->fields[i] = dr__view_dense(&s->fields[i], memory + s->at[i]);
    record->n_fields = s->n_fields;
    return memory;
}

/* Whether a stored sample has the fields that the second part of the program expects.  false means a wrong key. */
static bool fits(const dr__program *p, const dr_stored *s)
{
    if (s->n_fields != p->n_inputs)
        return false;
    for (int i = 0; i < s->n_fields; i++) {
        const dr_desc *have = &s->fields[i], *want = &p->values[i];
        if (have->kind != want->kind || have->dtype != want->dtype || have->layout != want->layout ||
            have->n_dims != want->n_dims)
            return false;
        for (int k = 0; k < want->n_dims; k++)
            if (want->dims[k] != DR_UNKNOWN && have->dims[k] != want->dims[k])
                return false;
    }
    return true;
}

/* When this sample is used next.  Where the order is not known, samples that were used in this epoch or the one before
 * do not give way: in epochs that use each sample once, nothing would be left when its time comes (docs/cache.md). */
static dr__use next_use_of(dr__exec *e, const dr__job *job)
{
    dr__cache *c = e->cache;
    if (!has_memory(c))
        return (dr__use){ 0 };
    if (c->order_is_known)
        return (dr__use){ .next = dr__next_use(e, job->position, c->local_world) };
    const uint64_t epoch = e->order.epoch;
    if (atomic_exchange(&c->epoch_of_tick, epoch) != epoch) {
        const uint64_t tick = dr__memory_tick(c->store->memory);
        atomic_store(&c->epoch_tick[1], atomic_exchange(&c->epoch_tick[0], tick));
    }
    return (dr__use){ .since = DR_MAX(atomic_load(&c->epoch_tick[1]), 1) };
}

/* *used: the record was overwritten, whether or not the sample could be read. */
static bool load(dr__cache *c, dr__workbench *bench, dr__record *record, const dr_store_key *key, const dr__use *use,
                 bool *used)
{
    dr_stored found;
    *used = dr_store_find(c->store, key, &found) && fits(c->prefix.rest, &found);
    uint8_t *memory = *used ? reserve_sample(record, &found, bench->memory_limit) : NULL;
    return memory && dr__store_read(c->store, &found, memory, use);
}

static void count_bytes_read(dr__exec *e, const dr__record *record)
{
    for (int i = 0; i < record->n_fields; i++)
        if (record->fields[i].desc.kind == DR_KIND_BYTES)
            atomic_fetch_add(&e->stats.bytes_read, (uint64_t)record->fields[i].desc.dims[0]);
}

bool dr__cache_lookup(dr__exec *e, dr__workbench *bench, dr__job *job)
{
    dr__cache *c = e->cache;
    bool read = false, used = false;
    job->program = e->program;
    job->head_ns = 0;
    int now = c ? atomic_load(&c->verdict) : REFUSE;
    if ((now == REFUSE && !(c && has_memory(c))) || (now == MEASURING && atomic_fetch_add(&c->turn, 1) % 2))
        return false;
    if (!key_of(e, bench, job->ref.id, &job->key, &read))
        return false;
    const dr__use use = next_use_of(e, job);
    bool found = load(c, bench, &bench->record, &job->key, &use, &used);
    atomic_fetch_add(found ? &e->stats.cache_hits : &e->stats.cache_misses, 1);
    job->program = found ? c->prefix.rest : c->prefix.head;
    return found || (read && !used);
}

bool dr__cache_must_fill(const dr__exec *e, const dr__job *job)
{
    return e->cache && job->program == e->cache->prefix.head;
}

/* Runs the planned first part of the program; the results go to bench->spare. */
static bool run_head(const dr__program *p, dr__workbench *bench, dr_error *err)
{
    dr_stored s = { .n_fields = p->n_outputs };
    if (dr__sample_run(p, bench, err) != DR_OK)
        return false;
    for (int i = 0; i < p->n_outputs; i++)
        s.fields[i] = dr__sample_desc(p, bench, i);
    uint8_t *memory = dr__data_layout(&s) ? reserve_sample(&bench->spare, &s, bench->memory_limit) : NULL;
    for (int i = 0; memory && i < p->n_outputs; i++)
        if (dr__sample_store(p, bench, i, memory + s.at[i], err) != DR_OK)
            return false;
    return memory != NULL;
}

/* The time without the cache of what is in bench->spare. */
static void note_made(dr__exec *e, const dr__workbench *bench, uint64_t ns)
{
    dr__cache *c = e->cache;
    uint64_t bytes = 0;
    for (int i = 0; i < bench->spare.n_fields; i++) {
        size_t size = 0;
        dr__desc_bytes_dense(&bench->spare.fields[i].desc, &size);
        bytes += size;
    }
    atomic_fetch_add(&c->made_ns, ns);
    if (atomic_fetch_add(&c->made_bytes, bytes) >> TELL_BYTES != atomic_load(&c->made_bytes) >> TELL_BYTES)
        tell_facts(e, c->workers);
}

void dr__cache_run_head(dr__exec *e, dr__workbench *bench, dr__job *job)
{
    dr__cache *c = e->cache;
    dr_error err = { 0 };
    uint64_t start = dr__now_ns();
    bool used;
    job->program = e->program;
    if (!run_head(c->prefix.head, bench, &err))
        return;
    count_bytes_read(e, &bench->record);
    note_made(e, bench, job->read_ns + dr__now_ns() - start);
    const dr__use use = next_use_of(e, job);
    dr__store_put(c->store, &job->key, bench->spare.fields, bench->spare.n_fields, &use);
    if (atomic_load(&c->verdict) == MEASURING)
        load(c, bench, &bench->record, &job->key, &use, &used); /* only to measure the read */
    dr__record swap = bench->record;
    bench->record = bench->spare;
    bench->spare = swap;
    job->program = c->prefix.rest;
    job->head_ns = dr__now_ns() - start;
}

/* --- the verdict --- */

double dr__cache_disk_us(uint64_t bytes, int workers)
{
    return (double)dr__disk_ns(bytes) * workers / 1e3;
}

bool dr__cache_pays(const dr__cache_costs *c)
{
    return MIN_SPEEDUP * (c->rest_us + c->unpack_us + c->disk_us) <= c->plain_us;
}

/* lock: */
static void decide(dr__cache *c)
{
    dr_store_stats s;
    dr_store_get_stats(c->store, &s);
    const uint64_t n = DR_MAX(s.hits, 1);
    const dr__cache_costs k = {
        .plain_us = (double)c->plain_ns / 1e3 / (double)c->n_plain,
        .rest_us = (double)c->rest_ns / 1e3 / (double)c->n_rest,
        .unpack_us = (double)s.unpack_ns / 1e3 / (double)n,
        .disk_us = dr__cache_disk_us(s.read_bytes / n, c->workers),
    };
    bool pays = s.hits && dr__cache_pays(&k);
    snprintf(c->why, sizeof c->why,
             "%s: a sample takes %.0f us without, %.0f us with it (reading %.0f, unpacking %.0f, the rest %.0f)",
             pays ? "pays" : "does not pay", k.plain_us, k.rest_us + k.unpack_us + k.disk_us, k.disk_us, k.unpack_us,
             k.rest_us);
    if (!pays)
        dr_store_discard(c->store, "does not pay");
    set_verdict(c, pays ? KEEP : REFUSE);
}

void dr__cache_record_times(dr__exec *e, const dr__job *job)
{
    dr__cache *c = e->cache;
    if (!c || atomic_load(&c->verdict) != MEASURING)
        return;
    pthread_mutex_lock(&c->lock);
    if (job->program == e->program) {
        c->n_plain++;
        c->plain_ns += job->read_ns + job->run_ns;
    } else {
        c->n_rest++;
        c->rest_ns += job->run_ns - job->head_ns;
    }
    if (atomic_load(&c->verdict) == MEASURING && c->n_plain >= c->n_trials / 2 && c->n_rest >= c->n_trials / 2)
        decide(c);
    pthread_mutex_unlock(&c->lock);
}

/* --- reporting --- */

static void set_counter(json_t *o, const char *name, uint64_t value)
{
    json_object_set_new(o, name, json_integer((json_int_t)value));
}

double dr__cache_usage(const dr__exec *e)
{
    return e->cache && e->cache->store ? dr__store_fill(e->cache->store) : 0;
}

void dr__cache_stats(dr__exec *e, json_t *o)
{
    dr__cache *c = e->cache;
    dr_store_stats s = { 0 };
    if (c && c->store)
        dr_store_get_stats(c->store, &s);
    set_counter(o, "cache_hits", s.hits);
    set_counter(o, "cache_misses", s.misses);
    set_counter(o, "cache_damaged", s.damaged);
    set_counter(o, "cache_records", s.records);
    set_counter(o, "cache_written", s.written);
    set_counter(o, "cache_written_bytes", s.written_bytes);
    set_counter(o, "cache_raw_bytes", s.raw_bytes);
    set_counter(o, "cache_read_bytes", s.read_bytes);
    set_counter(o, "cache_read_ns", s.read_ns);
    set_counter(o, "cache_memory_hits", s.memory_hits);
    set_counter(o, "cache_memory_records", s.memory_records);
    set_counter(o, "cache_memory_bytes", s.memory_bytes);
    set_counter(o, "cache_memory_limit_bytes", s.memory_limit_bytes);
    set_counter(o, "cache_memory_written", s.memory_written);
    set_counter(o, "cache_memory_raw_bytes", s.memory_raw_bytes);
    set_counter(o, "cache_memory_refused", s.memory_refused);
    set_counter(o, "cache_memory_evicted", s.memory_evicted);
    json_object_set_new(o, "cache_memory_codec", json_string(s.memory_codec));
    set_counter(o, "cache_disk_bytes", s.disk_bytes);
    set_counter(o, "cache_limit_bytes", s.limit_bytes);
    json_object_set_new(o, "cache_codec", json_string(s.codec));
    json_object_set_new(o, "cache_stopped", json_string(s.stopped));
    if (c)
        pthread_mutex_lock(&c->lock);
    json_object_set_new(o, "cache_why", json_string(c ? c->why : ""));
    if (c)
        pthread_mutex_unlock(&c->lock);
}

/* The tier in memory, and by which rule samples leave it. */
static void explain_memory(const dr__cache *c, const dr_store_stats *s, char *text, size_t size)
{
    dr__memory_stats m;
    dr__memory_get_stats(c->store->memory, &m);
    snprintf(text, size, "cache in memory: %" PRIu64 " samples, %.1f of %.1f MB, %s%s; evicts %s; %s\n", m.records,
             (double)m.bytes * 1e-6, (double)m.limit * 1e-6,
             m.shared ? "for all processes of this machine" : "for this process alone",
             m.short_of ? " (the machine has no more)" : "",
             c->order_is_known ? "what is needed again last" : "what was not used for an epoch", s->memory_codec);
}

void dr__cache_explain(dr__exec *e, char *text, size_t size)
{
    dr__cache *c = e->cache;
    char what[512] = "nothing", where[560] = "";
    dr_store_stats s = { 0 };
    text[0] = 0;
    if (!c)
        return;
    if (c->store)
        dr_store_get_stats(c->store, &s);
    const bool on_disk = c->store && c->folder[0] && atomic_load(&c->verdict) != REFUSE;
    if (on_disk || has_memory(c))
        dr__prefix_explain(&c->prefix, what, sizeof what);
    if (on_disk)
        snprintf(where, sizeof where, " in %s", c->folder);
    pthread_mutex_lock(&c->lock);
    int n = snprintf(text, size, "cache: keeps %s%s (%s)%s%s%s%s\n", what, where, c->why, where[0] ? "; " : "",
                     where[0] ? s.codec : "", where[0] && s.stopped[0] ? "; stopped: " : "", where[0] ? s.stopped : "");
    pthread_mutex_unlock(&c->lock);
    if (has_memory(c) && n > 0 && (size_t)n < size)
        explain_memory(c, &s, text + n, size - (size_t)n);
}
