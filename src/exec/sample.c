/* sample.c: takes one sample from its bytes to its slot, and handles bad samples. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "exec/cache_stage.h"
#include "exec/exec.h"
#include "exec/offload_stage.h"

/* Whether a sample that failed was read in ranges: it may still be good as a whole. */
static bool may_read_whole(const dr__workbench *bench, dr_status status)
{
    return bench->record.part.on && status != DR_OK && status != DR_ERR_NOMEM;
}

static dr_status read_whole(dr__exec *e, dr__workbench *bench, dr__job *j, dr_error *err)
{
    dr_status status = DR_OK;
    return dr__offload_read_whole(e, bench, j, &status, err) ? status : dr__ranges_read_whole(e, bench, j, err);
}

/* Plans the sample whose bytes are in the bench's record: draws, shapes, memory and cost. */
static dr_status plan(dr__exec *e, dr__workbench *bench, dr__job *j, dr_error *err)
{
    dr__rng_name name = { e->o.seed, e->order.epoch, j->ref.id, j->ref.occurrence };
    dr_status status = dr__sample_plan(j->program, bench, &name, err);
    if (may_read_whole(bench, status)) {
        DR_TRY(read_whole(e, bench, j, err));
        status = dr__sample_plan(j->program, bench, &name, err);
    }
    if (status == DR_OK || !dr__cache_must_fill(e, j))
        return status;
    j->program = e->program; /* so that the error is the same as without a cache */
    return dr__sample_plan(j->program, bench, &name, err);
}

/* After a cache miss: runs the first part of the program, stores its results, and plans the second part. */
static dr_status run_cached_head(dr__exec *e, dr__workbench *bench, dr__job *j, dr_error *err)
{
    if (!dr__cache_must_fill(e, j))
        return DR_OK;
    const double cost = bench->cost;
    dr__cache_run_head(e, bench, j);
    DR_TRY(plan(e, bench, j, err));
    bench->cost += cost;
    return DR_OK;
}

/* Published for dr_loader_running.  The id is stored before the time: a stale id may be out of range for this data
 * set. */
static void publish_running(dr__workbench *bench, uint64_t id, uint64_t now_ns)
{
    atomic_store_explicit(&bench->running_id, id, memory_order_relaxed);
    atomic_store_explicit(&bench->running_since_ns, now_ns, memory_order_release);
}

static void clear_running(dr__workbench *bench)
{
    atomic_store_explicit(&bench->running_since_ns, 0,
                          memory_order_relaxed); /* the pool lock is taken before the next loader */
}

/* Work on a sample begins, or continues in another thread.  The thread's CPU clock costs a system call, so it is read
 * only for a trace. */
static void begin_work(const dr__exec *e, dr__job *j)
{
    j->since_ns = dr__now_ns();
    j->since_cpu_ns = e->trace ? dr__thread_cpu_ns() : 0;
}

/* The job's sample from wherever it lies, and job->program. */
static dr_status fetch_sample(dr__exec *e, dr__workbench *bench, dr__job *j, dr_error *err)
{
    dr_status status = DR_OK;
    if (!dr__cache_lookup(e, bench, j) && !dr__offload_read(e, bench, j, &status, err))
        status = e->ranges.on ? dr__ranges_read(e, bench, j, err) : dr__sample_read(bench, e->set, j->ref.id, err);
    return status;
}

static dr_status read_sample(dr__exec *e, dr__workbench *bench, dr__job *j, dr_error *err)
{
    const uint64_t start = dr__now_ns();
    /* Relaxed: only read to see whether the sample has run for long. */
    atomic_store_explicit(&bench->started_ns, start, memory_order_relaxed);
    publish_running(bench, j->ref.id, start);
    dr__ranges_forget(bench);
    DR_TRY(fetch_sample(e, bench, j, err));
    begin_work(e, j);
    j->read_ns = j->since_ns - start;
    j->read_at_ns = start;
    j->reader = bench->worker;
    return DR_OK;
}

static dr_status keep_draws(dr__workbench *bench, dr__job *j, dr_error *err)
{
    json_t *draws = dr__sample_draws(j->program, bench->pars);
    char **text = &j->batch->draws[j->slot];
    dr__free(*text);
    *text = draws ? dr__canonical(draws) : NULL;
    json_decref(draws);
    return *text ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "out of memory");
}

static dr_status store(dr__exec *e, dr__workbench *bench, dr__job *j, dr_error *err)
{
    for (int i = 0; i < e->program->n_outputs; i++) {
        dr_desc desc = dr__sample_desc(j->program, bench, i);
        const dr__output *out = &e->program->outputs[i];
        if (out->collate == DR_COLLATE_STACK && !dr__desc_equal(&desc, &out->desc))
            return dr__fail(err, DR_ERR_ARG, "field \"%s\" does not have the shape that was planned", out->name);
        void *place = dr__batch_slot_memory(j->batch, i, j->slot, &desc);
        if (!place)
            return dr__fail(err, DR_ERR_NOMEM, "out of memory");
        DR_TRY(dr__sample_store(j->program, bench, i, place, err));
    }
    if (e->o.keep_draws)
        DR_TRY(keep_draws(bench, j, err));
    j->batch->ids[j->slot] = j->ref.id;
    j->batch->positions[j->slot] = j->position;
    return DR_OK;
}

/* An unordered loader takes the slot as late as possible, so that a slow sample delays no batch.  Nothing is decoded
 * into the slot then: dr__program_options.late_store. */
static dr_status run_and_store_once(dr__exec *e, dr__workbench *bench, dr__job *j, dr_error *err)
{
    DR_TRY(run_cached_head(e, bench, j, err));
    DR_TRY(dr__sample_run(j->program, bench, err));
    if (!j->batch)
        DR_TRY(dr__unordered_take_slot(e, &j->batch, &j->slot, err));
    DR_TRY(store(e, bench, j, err));
    j->run_ns = dr__now_ns() - j->since_ns;
    j->cpu_ns = e->trace ? dr__thread_cpu_ns() - j->since_cpu_ns : 0;
    return DR_OK;
}

static dr_status run_and_store(dr__exec *e, dr__workbench *bench, dr__job *j, dr_error *err)
{
    dr_status status = run_and_store_once(e, bench, j, err);
    if (may_read_whole(bench, status)) {
        DR_TRY(read_whole(e, bench, j, err));
        DR_TRY(plan(e, bench, j, err));
        status = run_and_store_once(e, bench, j, err);
    }
    if (status == DR_OK && e->ranges.on)
        dr__ranges_note(e, bench);
    return status;
}

static dr_status try_sample(dr__exec *e, dr__workbench *bench, dr__job *j, dr_error *err)
{
    DR_TRY(read_sample(e, bench, j, err));
    DR_TRY(plan(e, bench, j, err));
    return run_and_store(e, bench, j, err);
}

/* Bytes that were read of a sample's encoded fields. */
static uint64_t bytes_read(const dr__record *record)
{
    uint64_t bytes = 0;
    for (int i = 0; i < record->n_fields; i++)
        if (record->fields[i].desc.kind == DR_KIND_BYTES && !(record->part.on && record->part.field == i))
            bytes += (uint64_t)record->fields[i].desc.dims[0];
    for (int i = 0; record->part.on && i < record->part.n; i++)
        bytes += record->part.pieces[i].size;
    return bytes;
}

static void book_sample(dr__exec *e, dr__workbench *bench, const dr__job *j)
{
    const uint64_t bytes = bytes_read(&bench->record);
    dr__cache_record_times(e, j);
    dr__offload_learn(e, j, bench->cost);
    atomic_fetch_add(&e->stats.samples, 1);
    atomic_fetch_add(&e->stats.bytes_read, bytes);
    atomic_fetch_add(&e->stats.read_ns, j->read_ns);
    atomic_fetch_add(&e->stats.work_ns, j->run_ns);
    if (j->slow)
        atomic_fetch_add(&e->stats.slow_ns, j->run_ns);
    dr__predict_learn(&e->lanes.predict, j->local, bench->cost, j->run_ns, dr__ledger_ns(e->ledger, j->ref.id));
    if (e->ledger && e->o.lanes)
        dr_ledger_add(e->ledger, j->ref.id, j->run_ns);
    dr__spans_sample(e, bench, j, bytes);
}

/* --- bad samples --- */

static bool is_sample_fault(dr_status status)
{
    return status == DR_ERR_IO || status == DR_ERR_FORMAT || status == DR_ERR_LIMIT || status == DR_ERR_UNSUPPORTED ||
           status == DR_ERR_NOT_FOUND || status == DR_ERR_ARG;
}

static void name_sample(const dr__exec *e, const dr__job *j, dr_error *err)
{
    char key[512];
    e->set->def->key(e->set, j->ref.id, key, sizeof key);
    if (e->o.pushed_order) /* the epoch is only a key for draws, chosen by the caller */
        dr__error_prefix(err, "%s: sample \"%s\" (position %llu)", e->set->name, key, (unsigned long long)j->position);
    else
        dr__error_prefix(err, "%s: sample \"%s\" (position %llu of epoch %llu)", e->set->name, key,
                         (unsigned long long)j->position, (unsigned long long)e->order.epoch);
}

/* Records a bad sample; beyond max_bad this is an error. */
static dr_status note_bad(dr__exec *e, const dr__job *j, const char *action, dr_error *err)
{
    char key[512];
    e->set->def->key(e->set, j->ref.id, key, sizeof key);
    json_t *row = json_pack("{s:I, s:I, s:s%, s:s, s:s}", "position", (json_int_t)j->position, "id",
                            (json_int_t)j->ref.id, "key", key, strlen(key), "error", err->text, "action", action);
    if (!row) /* a key that is not UTF-8 */
        row = json_pack("{s:I, s:I, s:s, s:s}", "position", (json_int_t)j->position, "id", (json_int_t)j->ref.id,
                        "error", dr_status_text(err->status), "action", action);
    atomic_fetch_add(&e->stats.bad_samples, 1);
    dr__spans_bad(e, row);
    dr__pool_lock();
    json_t **list = j->batch ? &j->batch->bad : &e->bad.unreported;
    if (!*list)
        *list = json_array();
    json_array_append_new(*list, row);
    bool too_many = ++e->bad.n > e->o.max_bad;
    dr__pool_unlock();
    if (!too_many)
        return DR_OK;
    return dr__error_prefix((err->status = DR_ERR_BAD_SAMPLES, err), "more than max_bad = %llu bad samples; the last",
                            (unsigned long long)e->o.max_bad);
}

/* Chosen among all samples, or among those of dr_loader_set_replacements. */
static dr__sample_ref draw_replacement(const dr__exec *e, const dr__rng_name *bad, uint32_t attempt)
{
    dr__sample_ref ref = dr__replacement_sample(e->set, bad, attempt);
    if (e->replacements.ids)
        ref.id = e->replacements.ids[dr__replacement(bad, attempt, e->replacements.n)];
    return ref;
}

/* Makes another sample, chosen by the seed, in the slot of a bad one.  Replacements that are bad are recorded, too. */
static dr_status replace(dr__exec *e, dr__workbench *bench, dr__job *j, dr_error *err)
{
    dr__rng_name name = { e->o.seed, e->order.epoch, j->ref.id, j->ref.occurrence };
    for (uint32_t i = 0; i < DR__MAX_REPLACE; i++) {
        j->ref = draw_replacement(e, &name, i);
        dr_status status = try_sample(e, bench, j, err);
        if (status == DR_OK)
            book_sample(e, bench, j);
        if (!is_sample_fault(status))
            return status;
        name_sample(e, j, err);
        DR_TRY(note_bad(e, j, "replaced", err));
    }
    return dr__error_prefix((err->status = DR_ERR_BAD_SAMPLES, err), "%d replacements in a row were bad; the last",
                            DR__MAX_REPLACE);
}

static dr_status book_and_replace(dr__exec *e, dr__workbench *bench, dr__job *j, dr_error *err)
{
    DR_TRY(note_bad(e, j, "replaced", err));
    return replace(e, bench, j, err);
}

/* Skips a bad sample: its batch is shorter.  With equal_batches it takes up a slot in an unordered loader, too. */
static dr_status leave_out(dr__exec *e, dr__job *j, dr_error *err)
{
    if (e->o.equal_batches && !j->batch)
        DR_TRY(dr__unordered_take_slot(e, &j->batch, &j->slot, err));
    DR_TRY(note_bad(e, j, "skipped", err));
    j->left_out = !e->o.equal_batches;
    if (j->batch) {
        j->batch->missing[j->slot] = 1;
        j->batch->ids[j->slot] = j->ref.id;
        j->batch->positions[j->slot] = j->position;
    }
    return DR_OK;
}

bool dr__exec_survives(const dr__exec *e, dr_status status)
{
    return e->o.pushed_order && is_sample_fault(status);
}

/* Fails the batch of a bad sample.  In an unordered loader the sample takes a slot of the batch being filled. */
static dr_status lose_batch(dr__exec *e, dr__job *j, dr_error *err)
{
    dr_error why = *err;
    if (!j->batch)
        DR_TRY(dr__unordered_take_slot(e, &j->batch, &j->slot, err));
    j->batch->ids[j->slot] = j->ref.id;
    j->batch->positions[j->slot] = j->position;
    dr__pool_lock();
    if (!j->batch->error.status)
        j->batch->error = why;
    dr__pool_unlock();
    return DR_OK;
}

static void end_epoch(dr__exec *e, dr__job *j, const dr_error *err)
{
    dr__pool_lock();
    if (j->batch && !j->batch->error.status)
        j->batch->error = *err;
    if (e->unordered.on) /* in order, the epoch ends when the consumer reaches this batch */
        dr__exec_fail(e, err);
    dr__pool_unlock();
}

/* A sample of which a server ran the first ops is made by the client alone, so that it fails as local data does, or
 * not at all. */
static dr_status try_as_stored(dr__exec *e, dr__workbench *bench, dr__job *j, dr_error *err)
{
    if (!j->cut || !is_sample_fault(err->status))
        return err->status;
    j->as_stored = true;
    const dr_status status = try_sample(e, bench, j, err);
    j->as_stored = false;
    if (status == DR_OK)
        book_sample(e, bench, j);
    return status;
}

/* Handles a failed sample as on_bad_sample says; a remaining error fails its batch or ends the epoch. */
static void handle_failure(dr__exec *e, dr__workbench *bench, dr__job *j, dr_error *err)
{
    dr_status status = try_as_stored(e, bench, j, err);
    if (status == DR_OK)
        return;
    name_sample(e, j, err);
    if (!is_sample_fault(status) || e->o.on_bad_sample == DR_BAD_RAISE)
        status = err->status;
    else
        status = e->o.on_bad_sample == DR_BAD_SKIP ? leave_out(e, j, err) : book_and_replace(e, bench, j, err);
    if (status == DR_OK)
        return;
    err->status = status;
    if (!dr__exec_survives(e, status) || lose_batch(e, j, err) != DR_OK)
        end_epoch(e, j, err);
}

static bool is_stopping(dr__exec *e)
{
    dr__pool_lock();
    bool over = !e->run.running || e->run.failed || e->run.cancelled;
    dr__pool_unlock();
    return over;
}

/* Whether all samples of a batch were skipped. */
static bool is_empty(const dr_batch *b)
{
    return !memchr(b->missing, 0, b->n_slots);
}

/* The skipped samples are recorded already.  The first of them keys the choice, so that it is the same in every run.
 * This is rare, so the workbench is made on demand. */
dr_status dr__batch_replace_empty(dr__exec *e, dr_batch *b, int by, dr_error *err)
{
    if (!e->o.equal_batches || !is_empty(b) || is_stopping(e))
        return DR_OK;
    dr__workbench *bench = dr__workbench_new();
    if (!bench)
        return dr__fail(err, DR_ERR_NOMEM, "out of memory for a worker");
    bench->memory_limit = e->budget.bench_bytes;
    bench->seek = e->seek;
    bench->worker = DR_MAX(by, 0);
    dr__job j = { .position = b->positions[0], .ref = { .id = b->ids[0] }, .batch = b };
    const dr_status status = replace(e, bench, &j, err);
    b->missing[0] = status != DR_OK;
    dr__workbench_free(&bench);
    if (status == DR_OK)
        *err = (dr_error){ 0 }; /* of replacements that were bad */
    return status;
}

/* Finds the job's position and sample. */
static void locate(const dr__exec *e, const dr__claim *claim, dr__job *j)
{
    bool padding;
    if (claim->push) {
        const uint64_t i = j->local - claim->push->first;
        j->position = claim->push->position + i;
        j->ref = claim->push->samples[i];
        return;
    }
    j->position = dr__order_position(e, j->local, &padding);
    j->ref = dr__order_sample(e->set, e->o.seed, e->order.epoch, e->o.shuffle, j->position);
}

/* Records the result of a job. */
static void finish_job(dr__exec *e, dr__workbench *bench, dr__job *j, dr_status status, dr_error *err)
{
    if (status == DR_OK)
        book_sample(e, bench, j);
    else
        handle_failure(e, bench, j, err);
}

/* by: worker 1, 2, ...; reader -1, -2, ... */
static void release_slot(dr__exec *e, int by, dr__job *j)
{
    if (j->slow)
        dr__lane_end_slow(e);
    if (j->batch)
        dr__slots_done(e, j->batch, 1, by);
    if (e->unordered.on)
        dr__unordered_sample_done(e, j->local, j->left_out, by);
}

/* Runs a sample of the slow lane.  Its plan stayed with the bench that parked it, so it is planned again. */
static void work_parked(dr__exec *e, dr__parked *parked, dr__workbench *bench)
{
    dr__job j = parked->job;
    dr_error err = { 0 };
    dr__lane_unpark(e, parked, bench);
    begin_work(e, &j);
    publish_running(bench, j.ref.id, j.since_ns);
    dr_status status = plan(e, bench, &j, &err);
    if (status == DR_OK)
        status = run_and_store(e, bench, &j, &err);
    finish_job(e, bench, &j, status, &err);
    release_slot(e, bench->worker, &j);
}

/* Runs or parks a sample.  status: the result of reading it. */
static void run_or_park(dr__exec *e, dr__workbench *bench, dr__job *j, bool more, dr_status status, dr_error *err)
{
    if (status == DR_OK)
        status = plan(e, bench, j, err);
    if (status == DR_OK)
        j->cost = dr__predict_cost(&e->lanes.predict, bench->cost, dr__ledger_ns(e->ledger, j->ref.id));
    j->slow = status == DR_OK && e->o.lanes && dr__predict_is_slow(&e->lanes.predict, j->cost);
    if (j->slow && dr__lane_park(e, bench, j, more))
        return;
    if (!j->slow && status == DR_OK)
        dr__lane_note_fast(&e->lanes, j->cost);
    if (status == DR_OK)
        status = run_and_store(e, bench, j, err);
    finish_job(e, bench, j, status, err);
    release_slot(e, bench->worker, j);
}

static void work_sample(dr__exec *e, const dr__claim *claim, uint64_t i, dr__workbench *bench)
{
    dr__job j = { .local = claim->first + i, .batch = claim->batch, .slot = claim->slot + i };
    dr_error err = { 0 };
    if (dr__unordered_was_delivered(e, j.local)) {
        release_slot(e, bench->worker, &j);
        return;
    }
    locate(e, claim, &j);
    const dr_status status = read_sample(e, bench, &j, &err);
    run_or_park(e, bench, &j, i + 1 < claim->n, status, &err);
}

bool dr__claim_read(dr__exec *e, const dr__claim *claim, dr__workbench *bench, dr__job *j)
{
    dr_error err = { 0 };
    *j = (dr__job){ .local = claim->first, .batch = claim->batch, .slot = claim->slot };
    bench->memory_limit = e->budget.bench_bytes;
    if (dr__unordered_was_delivered(e, j->local)) {
        release_slot(e, -bench->worker, j);
        return false;
    }
    locate(e, claim, j);
    j->read_failed = read_sample(e, bench, j, &err) != DR_OK;
    clear_running(bench);
    return true;
}

static void work_fetched(dr__exec *e, dr__parked *fetched, dr__workbench *bench)
{
    dr__job j = fetched->job;
    dr_error err = { 0 };
    dr_status status = DR_OK;
    dr__lane_unpark(e, fetched, bench);
    begin_work(e, &j);
    publish_running(bench, j.ref.id, j.since_ns);
    atomic_store_explicit(&bench->started_ns, j.since_ns, memory_order_relaxed); /* as in read_sample */
    if (j.read_failed)
        status = read_sample(e, bench, &j, &err);
    j.read_failed = false; /* its bytes are on the bench now and can be parked */
    run_or_park(e, bench, &j, false, status, &err);
}

void dr__claim_work(dr__exec *e, const dr__claim *claim, dr__workbench *bench)
{
    bench->memory_limit = e->budget.bench_bytes;
    bench->seek = e->seek;
    if (claim->slow)
        work_parked(e, claim->slow, bench);
    if (claim->read_ahead)
        work_fetched(e, claim->read_ahead, bench);
    for (uint64_t i = 0; i < claim->n; i++) {
        dr__stall();
        if (claim->n > 1 && i % 16 == 15 && is_stopping(e))
            break;
        work_sample(e, claim, i, bench);
    }
    atomic_store_explicit(&bench->started_ns, 0, memory_order_relaxed); /* as in read_sample */
    clear_running(bench);
}
