/* cache_stage.c: fetching samples from a store, making those that are not there, and finding out whether that pays. */
#include "exec/cache_stage.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "store/data_file.h"
#include "store/compress_policy.h"
#include "store/store_parts.h"

enum {
    TRIALS = 64,    /* samples that decide, half of them each way; fewer where the data set is small */
    FEWEST = 8,     /* at least so many */
    SEEN_SHARE = 8, /* an eighth of the data set was kept by an earlier run: no trial */
    WORTH = 2,      /* how many times faster it must be */
    VERSION = 1,    /* of the way that samples are stored */
};

typedef enum verdict { MEASURING, KEEP, REFUSE } verdict;

struct dr__cache {
    dr__prefix prefix;
    dr_store *store; /* NULL: nothing can be kept */
    char folder[512];
    int workers;
    unsigned n_trials;
    atomic_int verdict;
    atomic_uint turn; /* while measuring: which way the next sample goes */

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
    json_t *o = json_pack("{s:i, s:s, s:o, s:o}", "version", VERSION, "data", data, "fields", fields, "ops",
                          json_loads(p->json, 0, NULL));
    char *text = o ? dr__canonical(o) : NULL;
    json_decref(o);
    return text;
}

/* Those of an epoch, at most. */
static uint64_t used_samples(const dr_dataset *set)
{
    return DR_MIN(set->n_samples, set->n_places);
}

static dr_status open_store(dr__exec *e, dr__cache *c, const char *folder, uint64_t limit, dr_error *err)
{
    char *identity = identity_of(e, &c->prefix);
    if (!identity)
        return dr__fail(err, DR_ERR_NOMEM, "cache: out of memory");
    bool automatic = !strcmp(folder, "auto");
    dr_status status = dr_store_open(folder, identity, limit, &c->store, err);
    dr__free(identity);
    if (status != DR_OK && automatic) { /* it was not asked for by name: work goes on without */
        snprintf(c->why, sizeof c->why, "%.190s", err ? err->text : "the cache folder cannot be used");
        return DR_OK;
    }
    DR_TRY(status);
    dr_store_adapt(c->store, e->o.adaptive_compression);
    dr_store_stats stats;
    dr_store_get_stats(c->store, &stats);
    bool seen = stats.records && stats.records >= used_samples(e->set) / SEEN_SHARE;
    atomic_store(&c->verdict, automatic && !seen ? MEASURING : KEEP);
    snprintf(c->why, sizeof c->why, "%s", !automatic ? "asked for" : seen ? "kept by an earlier run" : "measuring");
    return DR_OK;
}

dr_status dr__cache_open(dr__exec *e, const char *folder, uint64_t limit, const dr__program_options *options,
                         dr_error *err)
{
    dr__cache *c = e->cache = dr__alloc_zero(1, sizeof *c);
    if (!c)
        return dr__fail(err, DR_ERR_NOMEM, "cache: out of memory");
    pthread_mutex_init(&c->lock, NULL);
    snprintf(c->folder, sizeof c->folder, "%s", strcmp(folder, "auto") ? folder : "the user's cache folder");
    c->workers = DR_MAX(e->knobs.workers, 1);
    c->n_trials = (unsigned)DR_MIN(DR_MAX(used_samples(e->set) / 4, FEWEST), TRIALS);
    atomic_init(&c->verdict, REFUSE);
    DR_TRY(dr__prefix_split(e->program, e->set->fields, e->set->n_fields, options, &c->prefix, err));
    if (c->prefix.head)
        return open_store(e, c, folder, limit, err);
    snprintf(c->why, sizeof c->why, "%s", c->prefix.why);
    return DR_OK;
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

/* What tells the sample: its number and its stamp, or, where a data set has none, its bytes; *read: they were read. */
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

/* Room for a whole sample in a record, whose fields it becomes; NULL: too large, or out of memory. */
static uint8_t *make_room(dr__record *record, const dr_stored *s, size_t limit)
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

/* Is it what the second part of the program was made for?  Anything else would be a mistake in the keys. */
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

/* *used: the record was, whatever came of it. */
static bool load(dr__cache *c, dr__workbench *bench, dr__record *record, const dr_store_key *key, bool *used)
{
    dr_stored found;
    *used = dr_store_find(c->store, key, &found) && fits(c->prefix.rest, &found);
    uint8_t *memory = *used ? make_room(record, &found, bench->memory_limit) : NULL;
    return memory && dr_store_read(c->store, &found, memory);
}

static void book_read(dr__exec *e, const dr__record *record)
{
    for (int i = 0; i < record->n_fields; i++)
        if (record->fields[i].desc.kind == DR_KIND_BYTES)
            atomic_fetch_add(&e->stats.bytes_read, (uint64_t)record->fields[i].desc.dims[0]);
}

bool dr__cache_look(dr__exec *e, dr__workbench *bench, dr__job *job)
{
    dr__cache *c = e->cache;
    bool read = false, used = false;
    job->program = e->program;
    job->made_ns = 0;
    int now = c ? atomic_load(&c->verdict) : REFUSE;
    if (now == REFUSE || (now == MEASURING && atomic_fetch_add(&c->turn, 1) % 2))
        return false;
    if (!key_of(e, bench, job->ref.id, &job->key, &read))
        return false;
    bool found = load(c, bench, &bench->record, &job->key, &used);
    atomic_fetch_add(found ? &e->stats.cache_hits : &e->stats.cache_misses, 1);
    job->program = found ? c->prefix.rest : c->prefix.head;
    return found || (read && !used);
}

bool dr__cache_makes(const dr__exec *e, const dr__job *job)
{
    return e->cache && job->program == e->cache->prefix.head;
}

/* Runs the first part, which was planned; the results are in bench->spare. */
static bool run_head(const dr__program *p, dr__workbench *bench, dr_error *err)
{
    dr_stored s = { .n_fields = p->n_outputs };
    if (dr__sample_run(p, bench, err) != DR_OK)
        return false;
    for (int i = 0; i < p->n_outputs; i++)
        s.fields[i] = dr__sample_desc(p, bench, i);
    uint8_t *memory = dr__data_layout(&s) ? make_room(&bench->spare, &s, bench->memory_limit) : NULL;
    for (int i = 0; memory && i < p->n_outputs; i++)
        if (dr__sample_store(p, bench, i, memory + s.at[i], err) != DR_OK)
            return false;
    return memory != NULL;
}

void dr__cache_make(dr__exec *e, dr__workbench *bench, dr__job *job)
{
    dr__cache *c = e->cache;
    dr_error err = { 0 };
    uint64_t start = dr__now_ns();
    bool used;
    job->program = e->program;
    if (!run_head(c->prefix.head, bench, &err))
        return;
    book_read(e, &bench->record);
    dr_store_put(c->store, &job->key, bench->spare.fields, bench->spare.n_fields);
    if (atomic_load(&c->verdict) == MEASURING)
        load(c, bench, &bench->record, &job->key, &used); /* for the time that it takes */
    dr__record swap = bench->record;
    bench->record = bench->spare;
    bench->spare = swap;
    job->program = c->prefix.rest;
    job->made_ns = dr__now_ns() - start;
}

/* --- does it pay? --- */

double dr__cache_disk_us(uint64_t bytes, int workers)
{
    return (double)dr__disk_ns(bytes) * workers / 1e3;
}

bool dr__cache_pays(const dr__cache_costs *c)
{
    return WORTH * (c->rest_us + c->unpack_us + c->disk_us) <= c->plain_us;
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
    atomic_store(&c->verdict, pays ? KEEP : REFUSE);
}

void dr__cache_note(dr__exec *e, const dr__job *job)
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
        c->rest_ns += job->run_ns - job->made_ns;
    }
    if (atomic_load(&c->verdict) == MEASURING && c->n_plain >= c->n_trials / 2 && c->n_rest >= c->n_trials / 2)
        decide(c);
    pthread_mutex_unlock(&c->lock);
}

/* --- telling --- */

static void set_count(json_t *o, const char *name, uint64_t value)
{
    json_object_set_new(o, name, json_integer((json_int_t)value));
}

double dr__cache_fill(const dr__exec *e)
{
    return e->cache && e->cache->store ? dr__store_fill(e->cache->store) : 0;
}

void dr__cache_stats(dr__exec *e, json_t *o)
{
    dr__cache *c = e->cache;
    dr_store_stats s = { 0 };
    if (c && c->store)
        dr_store_get_stats(c->store, &s);
    set_count(o, "cache_hits", s.hits);
    set_count(o, "cache_misses", s.misses);
    set_count(o, "cache_damaged", s.damaged);
    set_count(o, "cache_records", s.records);
    set_count(o, "cache_written", s.written);
    set_count(o, "cache_written_bytes", s.written_bytes);
    set_count(o, "cache_raw_bytes", s.raw_bytes);
    set_count(o, "cache_read_bytes", s.read_bytes);
    set_count(o, "cache_read_ns", s.read_ns);
    set_count(o, "cache_disk_bytes", s.disk_bytes);
    set_count(o, "cache_limit_bytes", s.limit_bytes);
    json_object_set_new(o, "cache_codec", json_string(s.codec));
    json_object_set_new(o, "cache_stopped", json_string(s.stopped));
    if (c)
        pthread_mutex_lock(&c->lock);
    json_object_set_new(o, "cache_why", json_string(c ? c->why : ""));
    if (c)
        pthread_mutex_unlock(&c->lock);
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
    if (c->store && atomic_load(&c->verdict) != REFUSE) {
        dr__prefix_explain(&c->prefix, what, sizeof what);
        snprintf(where, sizeof where, " in %s", c->folder);
    }
    pthread_mutex_lock(&c->lock);
    snprintf(text, size, "cache: keeps %s%s (%s)%s%s%s%s\n", what, where, c->why, where[0] ? "; " : "",
             where[0] ? s.codec : "", where[0] && s.stopped[0] ? "; stopped: " : "", where[0] ? s.stopped : "");
    pthread_mutex_unlock(&c->lock);
}
