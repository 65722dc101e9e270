/* sample.c: one sample from its bytes to its slot, and what happens when it is bad. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "exec/cached.h"
#include "exec/exec.h"

/* The op ids of the engine's own draws stand above those of any graph. */
enum { REPLACE_OP = 0x7F000000 };

/* A sample under way. */
typedef struct job {
    uint64_t local, position;
    bool left_out;
    dr__sample_ref ref;
    const dr__program *program; /* what runs: all, or what follows on stored results */
    dr_batch *batch;            /* NULL until a slot is known */
    uint64_t slot;
    uint64_t read_ns, run_ns;
} job;

static dr_status read_and_run(dr__exec *e, dr__workbench *bench, job *j, dr_error *err)
{
    uint64_t start = dr__now_ns();
    if (!dr__cache_fetch(e, bench, j->ref.id, &j->program))
        DR_TRY(e->set->def->read(e->set, j->ref.id, &bench->record, err));
    uint64_t read = dr__now_ns();
    dr__rng_name name = { e->o.seed, e->epoch, j->ref.id, j->ref.occurrence };
    dr_status status = dr__sample_plan(j->program, bench, &name, err);
    if (status == DR_OK)
        status = dr__sample_run(j->program, bench, err);
    j->read_ns = read - start;
    j->run_ns = dr__now_ns() - read;
    return status;
}

static dr_status keep_draws(dr__workbench *bench, job *j, dr_error *err)
{
    json_t *draws = dr__sample_draws(j->program, bench->pars);
    char **text = &j->batch->draws[j->slot];
    dr__free(*text);
    *text = draws ? dr__canonical(draws) : NULL;
    json_decref(draws);
    return *text ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "out of memory");
}

static dr_status store(dr__exec *e, dr__workbench *bench, job *j, dr_error *err)
{
    uint64_t start = dr__now_ns();
    for (int i = 0; i < e->program->n_outputs; i++) {
        dr_desc desc = dr__sample_desc(j->program, bench, i);
        const dr__output *out = &e->program->outputs[i];
        if (out->collate == DR_COLLATE_STACK && !dr__desc_equal(&desc, &out->desc))
            return dr__fail(err, DR_ERR_ARG, "field \"%s\" has another shape than planned", out->name);
        void *place = dr__batch_place(j->batch, i, j->slot, &desc);
        if (!place)
            return dr__fail(err, DR_ERR_NOMEM, "out of memory");
        DR_TRY(dr__sample_store(j->program, bench, i, place, err));
    }
    if (e->o.keep_draws)
        DR_TRY(keep_draws(bench, j, err));
    j->batch->ids[j->slot] = j->ref.id;
    j->batch->positions[j->slot] = j->position;
    j->run_ns += dr__now_ns() - start;
    return DR_OK;
}

/* Reads, runs and stores; out of order the slot is taken as late as possible, so that a slow sample holds up none (and
 * so that nothing is decoded into it: dr__program_options.late_store). */
static dr_status try_sample(dr__exec *e, dr__workbench *bench, job *j, dr_error *err)
{
    DR_TRY(read_and_run(e, bench, j, err));
    if (!j->batch)
        DR_TRY(dr__any_take_slot(e, &j->batch, &j->slot, err));
    return store(e, bench, j, err);
}

static void book_sample(dr__exec *e, dr__workbench *bench, const job *j)
{
    uint64_t bytes = 0;
    dr__cache_note(e, j->program, j->read_ns, j->run_ns);
    for (int i = 0; i < bench->record.n_fields; i++)
        if (bench->record.fields[i].desc.kind == DR_KIND_BYTES)
            bytes += (uint64_t)bench->record.fields[i].desc.dims[0];
    atomic_fetch_add(&e->stats.samples, 1);
    atomic_fetch_add(&e->stats.bytes_read, bytes);
    atomic_fetch_add(&e->stats.read_ns, j->read_ns);
    atomic_fetch_add(&e->stats.work_ns, j->run_ns);
    dr__trace_event(e->trace, "sample",
                    "\"epoch\":%llu,\"position\":%llu,\"id\":%llu,\"worker\":%d,\"batch\":%llu,\"slot\":%llu,"
                    "\"read_ns\":%llu,\"work_ns\":%llu,\"cost\":%.0f,\"bytes\":%llu",
                    (unsigned long long)e->epoch, (unsigned long long)j->position, (unsigned long long)j->ref.id,
                    bench->worker, (unsigned long long)j->batch->number, (unsigned long long)j->slot,
                    (unsigned long long)j->read_ns, (unsigned long long)j->run_ns, bench->cost,
                    (unsigned long long)bytes);
}

/* --- bad samples --- */

static bool is_sample_fault(dr_status status)
{
    return status == DR_ERR_IO || status == DR_ERR_FORMAT || status == DR_ERR_LIMIT || status == DR_ERR_UNSUPPORTED ||
           status == DR_ERR_NOT_FOUND || status == DR_ERR_ARG;
}

static void name_sample(const dr__exec *e, const job *j, dr_error *err)
{
    char key[512];
    e->set->def->key(e->set, j->ref.id, key, sizeof key);
    dr__error_prefix(err, "%s: sample \"%s\" (position %llu of epoch %llu)", e->set->name, key,
                     (unsigned long long)j->position, (unsigned long long)e->epoch);
}

/* Books a bad sample; the limit turns the policy into an error. */
static dr_status note_bad(dr__exec *e, const job *j, const char *action, dr_error *err)
{
    char key[512];
    e->set->def->key(e->set, j->ref.id, key, sizeof key);
    json_t *row = json_pack("{s:I, s:I, s:s%, s:s, s:s}", "position", (json_int_t)j->position, "id",
                            (json_int_t)j->ref.id, "key", key, strlen(key), "error", err->text, "action", action);
    if (!row) /* a key that is not UTF-8 */
        row = json_pack("{s:I, s:I, s:s, s:s}", "position", (json_int_t)j->position, "id", (json_int_t)j->ref.id,
                        "error", dr_status_text(err->status), "action", action);
    atomic_fetch_add(&e->stats.bad_samples, 1);
    dr__trace_event(e->trace, "bad", "\"epoch\":%llu,\"position\":%llu,\"id\":%llu,\"action\":\"%s\"",
                    (unsigned long long)e->epoch, (unsigned long long)j->position, (unsigned long long)j->ref.id,
                    action);
    dr__pool_lock();
    json_t **list = j->batch ? &j->batch->bad : &e->loose_bad;
    if (!*list)
        *list = json_array();
    json_array_append_new(*list, row);
    bool too_many = ++e->n_bad > e->o.max_bad;
    dr__pool_unlock();
    if (!too_many)
        return DR_OK;
    return dr__error_prefix((err->status = DR_ERR_BAD_SAMPLES, err), "more than max_bad = %llu bad samples; the last",
                            (unsigned long long)e->o.max_bad);
}

/* Another sample in its place, chosen by the seed; bad ones on the way are booked too. */
static dr_status replace(dr__exec *e, dr__workbench *bench, job *j, dr_error *err)
{
    dr__rng_name name = { e->o.seed, e->epoch, j->ref.id, j->ref.occurrence };
    for (uint32_t i = 0; i < DR__MAX_REPLACE; i++) {
        DR_TRY(note_bad(e, j, "replace", err));
        dr_rng rng = dr__rng_open(&name, REPLACE_OP + i);
        j->ref.id = dr__rng_below(&rng, e->set->n_samples);
        j->ref.occurrence = 0x80000000u | i; /* not the draws of its own place in the epoch */
        dr_status status = try_sample(e, bench, j, err);
        if (status == DR_OK || !is_sample_fault(status))
            return status;
        name_sample(e, j, err);
    }
    return dr__error_prefix((err->status = DR_ERR_BAD_SAMPLES, err), "%d replacements in a row were bad; the last",
                            DR__MAX_REPLACE);
}

static void leave_out(job *j)
{
    if (j->batch)
        j->batch->missing[j->slot] = 1;
    j->left_out = true;
}

/* Turns a failed sample into what the policy says; an error that remains fails its batch. */
static void handle_failure(dr__exec *e, dr__workbench *bench, job *j, dr_error *err)
{
    dr_status status = err->status;
    name_sample(e, j, err);
    if (!is_sample_fault(status) || e->o.on_bad == DR_BAD_RAISE) {
        status = err->status;
    } else if (e->o.on_bad == DR_BAD_SKIP) {
        status = note_bad(e, j, "skip", err);
        if (status == DR_OK)
            leave_out(j);
    } else {
        status = replace(e, bench, j, err);
        if (status == DR_OK)
            book_sample(e, bench, j);
    }
    if (status == DR_OK)
        return;
    err->status = status;
    dr__pool_lock();
    if (j->batch && !j->batch->error.status)
        j->batch->error = *err;
    if (e->fills_any) /* else it counts when the consumer comes to this batch */
        dr__exec_fail(e, err);
    dr__pool_unlock();
}

static bool given_up(dr__exec *e)
{
    dr__pool_lock();
    bool over = !e->running || e->failed || e->cancelled;
    dr__pool_unlock();
    return over;
}

/* Which sample stands at the job's place. */
static void locate(const dr__exec *e, const dr__claim *claim, job *j)
{
    bool padding;
    if (claim->push) {
        const uint64_t i = j->local - claim->push->first;
        j->position = claim->push->position + i;
        j->ref = claim->push->samples[i];
        return;
    }
    j->position = dr__order_position(e, j->local, &padding);
    j->ref = dr__order_sample(e->set, e->o.seed, e->epoch, e->o.shuffle, j->position);
}

void dr__claim_work(dr__exec *e, const dr__claim *claim, dr__workbench *bench)
{
    bench->memory_limit = e->bench_budget;
    bench->seek = e->seek;
    for (uint64_t i = 0; i < claim->n; i++) {
        dr__stall();
        job j = { .local = claim->first + i, .batch = claim->batch, .slot = claim->slot + i };
        dr_error err = { 0 };
        if (claim->n > 1 && i % 16 == 15 && given_up(e))
            return;
        if (!dr__any_passed(e, j.local)) {
            locate(e, claim, &j);
            if (try_sample(e, bench, &j, &err) == DR_OK)
                book_sample(e, bench, &j);
            else
                handle_failure(e, bench, &j, &err);
        }
        if (j.batch)
            dr__slots_done(e, j.batch, 1);
        if (e->fills_any)
            dr__any_worked(e, j.local, j.left_out);
    }
}
