/* loader.c: opening and closing a loader, epochs, batches and pushed order. */
#include "loader/loader_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <drapps/metrics.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "exec/cache_stage.h"
#include "exec/offload_stage.h"
#include "exec/range_stage.h"
#include "index/index_file.h"
#include "sched/prefetch_rule.h"
#include "source/source.h"

enum {
    MOST_RANKS = 1 << 24,
    REMOTE_READERS = 16,         /* of a far set, at first: the policy has yet to see what a request takes */
    MOST_SEEK_BYTES = 512 << 20, /* about half a million images that no index file has yet */
};

void dr_loader_defaults(dr_loader_options *o)
{
    *o = (dr_loader_options){
        .size = sizeof *o,
        .batch_size = 1,
        .in_order = true,
        .workers = -1,
        .max_bad = 1000,
        .world_size = 1,
        .seek_index = "auto",
        .ranges = "auto",
        .lanes = true,
        .adaptive_compression = true,
    };
}

static dr_status check_options(const dr_loader_options *o, const dr_dataset *set, dr_error *err)
{
    if (o->size != sizeof *o)
        return dr__fail(err, DR_ERR_ARG, "dr_loader_options.size must be %zu, got %zu: call dr_loader_defaults first",
                        sizeof *o, o->size);
    if (o->batch_size < 1 || o->batch_size > (1u << 24))
        return dr__fail(err, DR_ERR_ARG, "batch_size must be 1 to 16777216, got %llu",
                        (unsigned long long)o->batch_size);
    if (o->workers < -1 || o->workers > DR__MAX_WORKERS)
        return dr__fail(err, DR_ERR_ARG, "workers must be -1 to %d, got %d", DR__MAX_WORKERS, o->workers);
    if (o->prefetch < 0 || o->prefetch > DR__PREFETCH_MOST)
        return dr__fail(err, DR_ERR_ARG, "prefetch must be 0 to %d, got %d", DR__PREFETCH_MOST, o->prefetch);
    if (o->world_size < 1 || o->world_size > MOST_RANKS)
        return dr__fail(err, DR_ERR_ARG, "world_size must be 1 to %d, got %llu", MOST_RANKS,
                        (unsigned long long)o->world_size);
    if (o->rank >= o->world_size)
        return dr__fail(err, DR_ERR_ARG, "rank must be below world_size = %llu, got %llu",
                        (unsigned long long)o->world_size, (unsigned long long)o->rank);
    if ((unsigned)o->last > DR_LAST_PAD)
        return dr__fail(err, DR_ERR_ARG, "last must be 0 to %d, got %d", DR_LAST_PAD, (int)o->last);
    if ((unsigned)o->on_bad_sample > DR_BAD_REPLACE)
        return dr__fail(err, DR_ERR_ARG, "on_bad_sample must be 0 to %d, got %d", DR_BAD_REPLACE,
                        (int)o->on_bad_sample);
    if (o->seek_index && !dr__seek_mode_is_known(o->seek_index))
        return dr__fail(err, DR_ERR_ARG, "seek_index must be \"auto\", \"memory\" or \"off\", got \"%s\"",
                        o->seek_index);
    if (o->ranges && !dr__ranges_mode_is_known(o->ranges))
        return dr__fail(err, DR_ERR_ARG, "ranges must be \"auto\", \"on\" or \"off\", got \"%s\"", o->ranges);
    if (o->pushed_order && (o->shuffle || o->world_size > 1 || o->last != DR_LAST_PARTIAL))
        return dr__fail(err, DR_ERR_ARG, "shuffle, world_size and last must keep their defaults with pushed_order");
    if (o->keep_batches && !o->pushed_order)
        return dr__fail(err, DR_ERR_ARG, "keep_batches must be false without pushed_order");
    if (set->n_places == 0)
        return dr__fail(err, DR_ERR_ARG, "%s: has no samples", set->name);
    if (!o->in_order && o->last == DR_LAST_PAD && o->world_size > 1)
        return dr__fail(err, DR_ERR_ARG, "world_size must be 1 for last = pad with in_order = false, got %llu",
                        (unsigned long long)o->world_size);
    return DR_OK;
}

uint64_t dr__loader_memory(const dr_loader *l, const dr__limits *limits)
{
    const uint64_t limit = l->exec.o.memory_limit;
    return limit ? limit : dr__limits_memory(limits);
}

/* Half of the memory is for batches in flight.  The encoded bytes of one sample, and its intermediate results, may take
 * 1/4 each, whatever the number of workers: which samples are too large must not depend on it. */
static dr_status set_budget(dr__exec *e, uint64_t limit, dr_error *err)
{
    e->budget.batch_bytes = (size_t)(limit / 2);
    e->budget.bench_bytes = (size_t)(limit / DR__BENCH_PART);
    for (int i = 0; i < e->program->n_outputs; i++) {
        size_t bytes, total;
        const dr__output *o = &e->program->outputs[i];
        if (o->collate != DR_COLLATE_STACK)
            continue;
        if (!dr__desc_bytes_dense(&o->desc, &bytes) ||
            !dr__add_size(e->budget.sample_bytes, bytes, &e->budget.sample_bytes) ||
            !dr__mul_size(e->budget.sample_bytes, e->o.batch_size, &total))
            return dr__fail(err, DR_ERR_LIMIT, "a batch of %llu samples is too large",
                            (unsigned long long)e->o.batch_size);
        e->budget.largest_field_bytes = DR_MAX(e->budget.largest_field_bytes, bytes);
    }
    const size_t batch_bytes = e->budget.sample_bytes * e->o.batch_size;
    if (batch_bytes > e->budget.batch_bytes)
        return dr__fail(err, DR_ERR_LIMIT,
                        "a batch needs %zu bytes; the memory limit of %llu leaves %zu for batches "
                        "(smaller batch_size, or larger memory_limit)",
                        batch_bytes, (unsigned long long)limit, e->budget.batch_bytes);
    return DR_OK;
}

static bool decodes(const dr__program *p)
{
    for (int s = 0; s < p->n_steps; s++)
        if (p->graph->nodes[p->steps[s].node].op.def->flags & DR_OP_DECODE)
            return true;
    return false;
}

/* Opens the store of seek points.  DRAPPS_SEEK_INDEX overrides the option.  New seek points may use 1/32 of the memory.
 */
static dr_status open_seek(dr_loader *l, dr_error *err)
{
    dr__exec *e = &l->exec;
    const char *set = getenv("DRAPPS_SEEK_INDEX"), *mode = e->o.seek_index ? e->o.seek_index : "auto";
    if (set && *set)
        mode = set;
    if (!dr__seek_mode_is_known(mode))
        return dr__fail(err, DR_ERR_ARG, "DRAPPS_SEEK_INDEX must be \"auto\", \"memory\" or \"off\", got \"%s\"", mode);
    if (!strcmp(mode, "off") || e->o.reference || !decodes(e->program))
        return DR_OK;
    DR_TRY(
        dr__seek_share_open(e->set, mode, DR_MIN(e->budget.batch_bytes / 16, (size_t)MOST_SEEK_BYTES), &l->seek, err));
    e->seek = dr__seek_share_store(l->seek);
    return DR_OK;
}

/* Opens the ledger of sample costs of this data set and graph, in the user's cache folder.  As for Python data sets,
 * only with lanes and unless DRAPPS_LEDGER is "off".  A loader works without one, too, so errors are ignored. */
static void open_ledger(dr_loader *l)
{
    dr__exec *e = &l->exec;
    const char *mode = getenv("DRAPPS_LEDGER"), *identity = e->set->keep_identity;
    char path[4096];
    if (!e->o.lanes || e->o.reference || !identity || (mode && !strcmp(mode, "off")) || !dr__cache_folder(path, 4000))
        return;
    const uint64_t name = XXH3_64bits_withSeed(identity, strlen(identity), l->graph_hash);
    snprintf(path + strlen(path), 64, "/ledgers/native-%016llx.ledger", (unsigned long long)name);
    dr_ledger_open(path, e->set->n_samples, &e->ledger, NULL);
}

static dr_status open_cache(dr__exec *e, const dr__limits *limits, const dr__program_options *po, dr_error *err)
{
    const dr__cache_options o = { e->o.cache && *e->o.cache ? e->o.cache : NULL, e->o.cache_limit, e->o.cache_memory,
                                  e->o.cache_at && *e->o.cache_at ? e->o.cache_at : NULL, limits->local_world };
    e->knobs.codec = -1;
    e->knobs.offload = 1;
    if (!o.folder && !o.memory)
        return o.at ? dr__fail(err, DR_ERR_ARG, "cache_at needs cache or cache_memory") : DR_OK;
    return e->o.reference ? DR_OK : dr__cache_open(e, &o, po, err);
}

/* DRAPPS_RANGES overrides the option. */
static dr_status open_ranges(dr__exec *e, dr_error *err)
{
    const char *set = getenv("DRAPPS_RANGES"), *mode = e->o.ranges ? e->o.ranges : "auto";
    if (set && *set)
        mode = set;
    if (!dr__ranges_mode_is_known(mode))
        return dr__fail(err, DR_ERR_ARG, "DRAPPS_RANGES must be \"auto\", \"on\" or \"off\", got \"%s\"", mode);
    dr__ranges_open(e, mode);
    return DR_OK;
}

static dr_status hash_graph(dr_loader *l, dr_graph *graph, dr_error *err)
{
    const char *text;
    DR_TRY(dr_graph_json(graph, &text, err));
    char *identity = dr__graph_identity(l->exec.program->graph);
    l->graph_text = dr__strdup(text);
    l->graph_hash = identity ? XXH3_64bits(identity, strlen(identity)) : 0;
    dr__free(identity);
    return identity && l->graph_text ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "loader: out of memory");
}

static dr_status open_exec(dr_loader *l, dr_dataset *set, dr_graph *graph, dr_error *err)
{
    dr__exec *e = &l->exec;
    dr__limits limits;
    dr__limits_read(e->o.resource_monitor ? dr__monitor_root(e->o.resource_monitor) : "", &limits);
    const char *reference = getenv("DRAPPS_REFERENCE");
    e->o.reference |= reference && *reference && strcmp(reference, "0");
    e->unordered.on = !e->o.in_order && !e->o.keep_batches;
    e->o.equal_batches = e->o.on_bad_sample == DR_BAD_SKIP && (e->o.equal_batches || e->o.world_size > 1);
    e->budget.batch_slots = e->o.batch_size;
    dr__predict_init(&e->lanes.predict);
    e->pushed.tail = &e->pushed.head;
    dr__program_options po = { e->o.outputs, e->o.collate, e->o.layout, e->o.reference, e->unordered.on };
    e->generation = dr__fork_generation();
    dr__cond_init(&e->changed);
    dr__cond_init(&l->caller_left);
    pthread_mutex_init(&l->lock, NULL);
    pthread_mutex_init(&l->adapt.knobs_lock, NULL);
    e->set = dr_dataset_ref(set);
    DR_TRY(dr__program_compile(graph, set->fields, set->n_fields, &po, &e->program, err));
    DR_TRY(dr__adapt_open(l, &limits, err));
    e->knobs.workers = e->o.workers < 0 ? dr__adapt_workers(l, &limits) : e->o.workers;
    if (e->o.reference)
        e->knobs.workers = 0;
    DR_TRY(set_budget(e, dr__loader_memory(l, &limits), err));
    e->knobs.prefetch = e->o.prefetch ? e->o.prefetch : dr__prefetch_first(e);
    if (e->unordered.on) /* the prefetch window also bounds how far samples overtake a slow one */
        l->adapt.least_prefetch = e->knobs.prefetch;
    e->buffers = dr__bufpool_new((e->knobs.prefetch + 2) * e->program->n_outputs);
    if (!e->buffers)
        return dr__fail(err, DR_ERR_NOMEM, "loader: out of memory");
    DR_TRY(open_seek(l, err));
    DR_TRY(open_cache(e, &limits, &po, err));
    DR_TRY(open_ranges(e, err));
    DR_TRY(dr__offload_open(e, e->o.offload, &po, err));
    e->far = e->offload || dr__source_is_remote(e->set->name);
    if (e->far && e->knobs.workers > 0)
        e->knobs.readers = REMOTE_READERS;
    DR_TRY(hash_graph(l, graph, err));
    open_ledger(l);
    DR_TRY(dr__loader_trace(l, err));
    /* These pointed to the caller's memory. */
    e->o.outputs = e->o.collate = e->o.layout = e->o.trace = e->o.seek_index = e->o.ranges = e->o.cache =
        e->o.cache_at = NULL;
    e->o.policy = e->o.weights = e->o.offload = NULL;
    e->o.resource_monitor = NULL;
    return DR_OK;
}

dr_status dr_loader_open(dr_dataset *set, dr_graph *graph, const dr_loader_options *options, dr_loader **out,
                         dr_error *err)
{
    *out = NULL;
    DR_TRY(check_options(options, set, err));
    dr_loader *l = dr__alloc_zero(1, sizeof *l);
    if (!l)
        return dr__fail(err, DR_ERR_NOMEM, "loader: out of memory");
    l->exec.o = *options;
    dr_metrics_from_environment(NULL); /* a loader works without its endpoint, too */
    dr_status status = open_exec(l, set, graph, err);
    if (status != DR_OK)
        dr_loader_close(&l);
    *out = l;
    return status;
}

/* Stops the epoch, so that threads in dr_loader_next return DR_ERR_CANCELLED, and waits for them. */
static void wait_for_callers(dr_loader *l)
{
    pthread_mutex_lock(&l->lock);
    l->begun = true;
    dr__exec_stop(&l->exec);
    while (l->callers > 0)
        dr__cond_wait(&l->caller_left, &l->lock, UINT64_MAX);
    pthread_mutex_unlock(&l->lock);
}

void dr_loader_close(dr_loader **loader)
{
    if (!loader || !*loader)
        return;
    dr_loader *l = *loader;
    dr__exec *e = &l->exec;
    *loader = NULL;
    if (e->generation != dr__fork_generation())
        return; /* it is the parent's: its threads do not exist here, and its locks may be held */
    wait_for_callers(l);
    dr__adapt_close(l);
    dr__pool_remove(e);
    dr__loader_trace_ops(l);
    dr__ranges_trace(e);
    dr__offload_trace(e);
    dr_trace_close(&e->trace);
    dr__workbench_free(&e->caller.bench);
    dr__offload_close(e);
    dr__cache_close(e);
    dr__seek_share_close(&l->seek);
    if (e->ledger)
        dr_ledger_save(e->ledger);
    dr_ledger_close(&e->ledger);
    dr__bufpool_close(&e->buffers);
    dr__program_free(&e->program);
    dr_dataset_unref(&e->set);
    json_decref(e->bad.unreported);
    dr__occurrences_free(&e->pushed.times);
    dr__free(e->replacements.ids);
    dr__free(e->unordered.marks);
    dr__cond_destroy(&e->changed);
    dr__cond_destroy(&l->caller_left);
    pthread_mutex_destroy(&l->adapt.knobs_lock);
    pthread_mutex_destroy(&l->lock);
    dr__free(l->done);
    dr__free(l->graph_text);
    dr__free(l);
}

dr_status dr__loader_check(const dr_loader *l, dr_error *err)
{
    if (l->exec.generation != dr__fork_generation())
        return dr__fail(err, DR_ERR_FORKED, "this loader belongs to the parent process; open a new one after the fork");
    return DR_OK;
}

/* lock: starts the epoch at l->epoch, l->position and l->batch, unless one runs.  After a failure these are unchanged,
 * so that the next call tries again. */
static dr_status begin(dr_loader *l, dr_error *err)
{
    if (!l->begun)
        DR_TRY(dr__exec_start(&l->exec, l->epoch, l->position, l->batch, l->done, err));
    l->begun = true;
    dr__adapt_start_if_due(l);
    return DR_OK;
}

dr_status dr_loader_start(dr_loader *l, uint64_t epoch, dr_error *err)
{
    DR_TRY(dr__loader_check(l, err));
    pthread_mutex_lock(&l->lock);
    if (l->seek && l->begun) /* an epoch ended or is abandoned */
        dr__seek_share_save(l->seek);
    l->begun = false;
    l->epoch = epoch;
    l->position = l->batch = 0;
    dr__free(l->done);
    l->done = NULL;
    dr_status status = begin(l, err);
    pthread_mutex_unlock(&l->lock);
    return status;
}

dr_status dr_loader_next(dr_loader *l, int timeout_ms, dr_batch **out, dr_error *err)
{
    *out = NULL;
    DR_TRY(dr__loader_check(l, err));
    pthread_mutex_lock(&l->lock);
    l->callers++;
    dr_status status = begin(l, err);
    pthread_mutex_unlock(&l->lock);
    if (status == DR_OK)
        status = dr__exec_next(&l->exec, timeout_ms, out, err);
    if (status == DR_END && l->exec.ledger)
        dr_ledger_save(l->exec.ledger);
    pthread_mutex_lock(&l->lock);
    if (l->seek && (status == DR_END || (status == DR_OK && dr__seek_store_is_full(l->exec.seek))))
        dr__seek_share_save(l->seek);
    if (--l->callers == 0)
        dr__cond_broadcast(&l->caller_left);
    pthread_mutex_unlock(&l->lock);
    return status;
}

/* lock */
static dr_status check_pushed(const dr_loader *l, dr_error *err)
{
    if (!l->exec.o.pushed_order)
        return dr__fail(err, DR_ERR_STATE, "pushed_order must be true to push batches, got false");
    return l->begun ? DR_OK : dr__fail(err, DR_ERR_STATE, "dr_loader_start must come before batches are pushed");
}

dr_status dr_loader_push_occurrences(dr_loader *l, const uint64_t *ids, const uint64_t *times, uint64_t n,
                                     dr_error *err)
{
    DR_TRY(dr__loader_check(l, err));
    pthread_mutex_lock(&l->lock);
    dr_status status = check_pushed(l, err);
    if (status == DR_OK)
        status = dr__pushed_push(&l->exec, ids, times, n, err);
    pthread_mutex_unlock(&l->lock);
    return status;
}

dr_status dr_loader_push(dr_loader *l, const uint64_t *ids, uint64_t n, dr_error *err)
{
    return dr_loader_push_occurrences(l, ids, NULL, n, err);
}

dr_status dr_loader_push_past(dr_loader *l, const uint64_t *ids, uint64_t n, uint64_t batches, dr_error *err)
{
    DR_TRY(dr__loader_check(l, err));
    pthread_mutex_lock(&l->lock);
    dr_status status = check_pushed(l, err);
    if (status == DR_OK)
        status = dr__pushed_skip(&l->exec, ids, n, batches, err);
    pthread_mutex_unlock(&l->lock);
    return status;
}

dr_status dr_loader_push_end(dr_loader *l, dr_error *err)
{
    DR_TRY(dr__loader_check(l, err));
    pthread_mutex_lock(&l->lock);
    dr_status status = check_pushed(l, err);
    if (status == DR_OK)
        status = dr__pushed_end(&l->exec, err);
    pthread_mutex_unlock(&l->lock);
    return status;
}

static dr_status check_replacements(const dr_loader *l, const uint64_t *ids, uint64_t n, dr_error *err)
{
    const dr_dataset *set = l->exec.set;
    if (n < 1)
        return dr__fail(err, DR_ERR_ARG, "replacements must be at least 1 id, got 0");
    for (uint64_t i = 0; i < n; i++)
        if (ids[i] >= set->n_samples)
            return dr__fail(err, DR_ERR_ARG, "%s: replacements must be ids from 0 to %llu, got %llu", set->name,
                            (unsigned long long)(set->n_samples - 1), (unsigned long long)ids[i]);
    return DR_OK;
}

dr_status dr_loader_set_replacements(dr_loader *l, const uint64_t *ids, uint64_t n, dr_error *err)
{
    dr__exec *e = &l->exec;
    DR_TRY(dr__loader_check(l, err));
    DR_TRY(check_replacements(l, ids, n, err));
    uint64_t *copy = dr__alloc_zero(n, sizeof *copy);
    if (!copy)
        return dr__fail(err, DR_ERR_NOMEM, "out of memory for replacements");
    memcpy(copy, ids, n * sizeof *copy);
    pthread_mutex_lock(&l->lock);
    const bool too_late = l->begun || e->replacements.ids; /* workers read them without a lock */
    if (!too_late) {
        e->replacements.ids = copy;
        e->replacements.n = n;
    }
    pthread_mutex_unlock(&l->lock);
    if (!too_late)
        return DR_OK;
    dr__free(copy);
    return dr__fail(err, DR_ERR_STATE, "replacements must be set once, before the first epoch");
}

uint64_t dr_loader_batches(const dr_loader *l)
{
    const dr__exec *e = &l->exec;
    uint64_t n_local, n_batches;
    dr__order_count(e, 0, &n_local, &n_batches);
    if (!e->o.pushed_order)
        return n_batches;
    dr__pool_lock();
    n_batches = e->unordered.on ? (e->order.n_local + e->o.batch_size - 1) / e->o.batch_size : e->order.n_batches;
    dr__pool_unlock();
    return n_batches;
}

uint64_t dr_loader_prefetch_window(dr_loader *l, uint64_t wanted)
{
    if (dr__loader_check(l, NULL) != DR_OK)
        return wanted;
    pthread_mutex_lock(&l->adapt.knobs_lock);
    const bool by_user = l->adapt.pinned >> DR_KNOB_PREFETCH & 1;
    dr__pool_lock();
    const uint64_t window = dr__prefetch_to_push(&l->exec, wanted, by_user);
    dr__pool_unlock();
    pthread_mutex_unlock(&l->adapt.knobs_lock);
    return window;
}

void dr_loader_cancel(dr_loader *l)
{
    if (dr__loader_check(l, NULL) != DR_OK)
        return;
    atomic_store(&l->exec.run.abandoned, true);
    dr__pool_lock();
    l->exec.run.cancelled = true;
    dr__cond_broadcast(&l->exec.changed);
    dr__pool_unlock();
}
