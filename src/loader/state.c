/* state.c: where the consumer is, saved and restored.
 *
 * In order, everything before one position was delivered, and that position says all.  Out of order, the samples
 * around it that were delivered already are listed as ranges of the rank's own count.  `held` is a batch that the
 * consumer has and that does not count, or NULL.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "loader/loader.h"

enum { STATE_VERSION = 1 };

/* Canonical JSON has numbers that a double holds: others are written as text. */
static json_t *whole(uint64_t v)
{
    if (v <= (uint64_t)1 << 53)
        return json_integer((json_int_t)v);
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, v);
    return json_string(text);
}

static json_t *hex(uint64_t v)
{
    char text[20];
    snprintf(text, sizeof text, "%016" PRIx64, v);
    return json_string(text);
}

/* Set bits of `mask` as [first, n, first, n, ...]. */
static json_t *done_ranges(const uint8_t *done, uint64_t n, uint8_t mask)
{
    json_t *list = json_array();
    for (uint64_t i = 0; i < n;) {
        uint64_t start = i;
        while (i < n && done[i] & mask)
            i++;
        if (i > start) {
            json_array_append_new(list, json_integer((json_int_t)start));
            json_array_append_new(list, json_integer((json_int_t)(i - start)));
        }
        while (i < n && !(done[i] & mask))
            i++;
    }
    return list;
}

static void write_position(json_t *o, uint64_t epoch, uint64_t position, uint64_t batch)
{
    json_object_set_new(o, "epoch", json_integer((json_int_t)epoch));
    json_object_set_new(o, "position", json_integer((json_int_t)position));
    json_object_set_new(o, "batch", json_integer((json_int_t)batch));
}

/* pool lock: delivered samples of a batch that does not count are marked as such, or not. */
static void mark(const dr__exec *e, const dr_batch *held, bool delivered)
{
    for (uint64_t i = 0; held && e->done && i < held->n_booked; i++) {
        uint8_t *marks = &e->done[dr__any_local(e, held->positions[i])];
        *marks = (uint8_t)(delivered ? *marks | DR__DONE_DELIVERED : *marks & ~DR__DONE_DELIVERED);
    }
}

/* pool lock: out of order: were these samples delivered in this run? */
static bool were_delivered(const dr__exec *e, const dr_batch *held)
{
    for (uint64_t i = 0; i < held->n_samples; i++) {
        if (held->positions[i] < e->base + e->o.rank)
            return false;
        const uint64_t local = dr__any_local(e, held->positions[i]);
        if (local >= e->n_local || !(e->done[local] & DR__DONE_DELIVERED))
            return false;
    }
    return true;
}

/* pool lock: was it delivered in this run?  It may be of another epoch, or of an earlier run of this one. */
static bool is_of_this_run(const dr__exec *e, const dr_batch *held)
{
    if (held->epoch != e->epoch || held->number < e->first_batch || !e->delivered)
        return false;
    return e->done ? were_delivered(e, held) : held->number - e->first_batch < e->delivered;
}

/* pool lock: of the epoch that runs. */
static void running_position(const dr__exec *e, const dr_batch *held, json_t *o)
{
    if (held && !is_of_this_run(e, held))
        held = NULL;
    if (!held && dr__exec_is_over(e)) { /* the next epoch, from its start */
        write_position(o, e->epoch + 1, 0, 0);
        return;
    }
    uint64_t batches = e->delivered;
    if (held)
        batches = e->o.in_order ? held->number - e->first_batch : batches - 1;
    uint64_t ahead = e->o.in_order ? batches * e->o.batch_size * e->o.world : 0;
    write_position(o, e->epoch, e->base + ahead, e->first_batch + batches);
    mark(e, held, false);
    if (e->done)
        json_object_set_new(o, "done", done_ranges(e->done, e->n_local, DR__DONE_DELIVERED | DR__DONE_BEFORE));
    mark(e, held, true);
}

/* lock */
static void position_of(const dr_loader *l, const dr_batch *held, json_t *o)
{
    if (l->begun) {
        dr__pool_lock();
        running_position(&l->exec, held, o);
        dr__pool_unlock();
        return;
    }
    uint64_t n_local, n_batches;
    dr__order_count(&l->exec, l->position, &n_local, &n_batches);
    write_position(o, l->epoch, l->position, l->batch);
    if (l->done)
        json_object_set_new(o, "done", done_ranges(l->done, n_local, 1));
}

static dr_status check_own_order(const dr_loader *l, dr_error *err)
{
    if (l->exec.o.given_order)
        return dr__fail(err, DR_ERR_STATE, "given_order: the order is the caller's, and so is its state");
    return DR_OK;
}

dr_status dr_loader_state(dr_loader *l, char **text, dr_error *err)
{
    return dr_loader_state_without(l, NULL, text, err);
}

dr_status dr_loader_state_without(dr_loader *l, const dr_batch *held, char **text, dr_error *err)
{
    DR_TRY(dr__loader_check(l, err));
    DR_TRY(check_own_order(l, err));
    const dr__exec *e = &l->exec;
    json_t *o = json_pack("{s:i, s:o, s:b, s:b, s:I, s:I, s:I}", "drapps_state", STATE_VERSION, "seed",
                          whole(e->o.seed), "shuffle", e->o.shuffle, "in_order", e->o.in_order, "batch_size",
                          (json_int_t)e->o.batch_size, "world", (json_int_t)e->o.world, "rank", (json_int_t)e->o.rank);
    if (!o)
        return dr__fail(err, DR_ERR_NOMEM, "state: out of memory");
    json_object_set_new(o, "graph", hex(l->graph_hash));
    json_object_set_new(o, "data", hex(e->set->fingerprint));
    pthread_mutex_lock(&l->lock);
    position_of(l, held, o);
    pthread_mutex_unlock(&l->lock);
    *text = dr__canonical(o);
    json_decref(o);
    return *text ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "state: out of memory");
}

static dr_status want_same(const json_t *o, const char *name, const json_t *mine, dr_error *err)
{
    const json_t *saved = json_object_get(o, name);
    dr_status status = DR_OK;
    if (!saved || !json_equal(saved, mine)) {
        char *a = saved ? json_dumps(saved, JSON_ENCODE_ANY) : NULL, *b = json_dumps(mine, JSON_ENCODE_ANY);
        status = dr__fail(err, DR_ERR_ARG, "the state was saved with %s = %s, this loader has %s", name, a ? a : "none",
                          b ? b : "?");
        free(a);
        free(b);
    }
    json_decref((json_t *)mine);
    return status;
}

static dr_status check_same(const dr_loader *l, const json_t *o, dr_error *err)
{
    const dr__exec *e = &l->exec;
    DR_TRY(want_same(o, "seed", whole(e->o.seed), err));
    DR_TRY(want_same(o, "shuffle", json_boolean(e->o.shuffle), err));
    DR_TRY(want_same(o, "in_order", json_boolean(e->o.in_order), err));
    DR_TRY(want_same(o, "batch_size", json_integer((json_int_t)e->o.batch_size), err));
    DR_TRY(want_same(o, "graph", hex(l->graph_hash), err));
    DR_TRY(want_same(o, "data", hex(e->set->fingerprint), err));
    if (!e->o.in_order) { /* each rank knows only what itself delivered */
        DR_TRY(want_same(o, "world", json_integer((json_int_t)e->o.world), err));
        DR_TRY(want_same(o, "rank", json_integer((json_int_t)e->o.rank), err));
    }
    return DR_OK;
}

/* The ranges as one byte a sample of this rank; NULL without ranges. */
static dr_status read_done(const dr_loader *l, const json_t *ranges, uint64_t position, uint8_t **out, dr_error *err)
{
    uint64_t n_local, n_batches;
    dr__order_count(&l->exec, position, &n_local, &n_batches);
    *out = ranges ? dr__alloc_zero(n_local, 1) : NULL;
    if (ranges && !*out)
        return dr__fail(err, DR_ERR_NOMEM, "state: out of memory");
    for (size_t i = 0; i + 1 < json_array_size(ranges); i += 2) {
        json_int_t first = json_integer_value(json_array_get(ranges, i));
        json_int_t n = json_integer_value(json_array_get(ranges, i + 1));
        if (first < 0 || n < 0 || (uint64_t)first > n_local || (uint64_t)n > n_local - (uint64_t)first) {
            dr__free(*out);
            *out = NULL;
            return dr__fail(err, DR_ERR_FORMAT, "state: %lld samples from %lld on do not exist", (long long)n,
                            (long long)first);
        }
        memset(*out + first, 1, (size_t)n);
    }
    return DR_OK;
}

/* Checks everything before it changes anything: a state that does not fit leaves the loader as it was. */
static dr_status restore(dr_loader *l, const json_t *o, dr_error *err)
{
    json_int_t version = json_integer_value(json_object_get(o, "drapps_state"));
    if (version != STATE_VERSION)
        return dr__fail(err, DR_ERR_FORMAT, "state: version is %lld, this library reads %d", (long long)version,
                        STATE_VERSION);
    DR_TRY(check_same(l, o, err));
    json_int_t epoch = json_integer_value(json_object_get(o, "epoch"));
    json_int_t position = json_integer_value(json_object_get(o, "position"));
    json_int_t batch = json_integer_value(json_object_get(o, "batch"));
    uint8_t *done;
    if (epoch < 0 || position < 0 || batch < 0 || (uint64_t)position > l->exec.set->n_places)
        return dr__fail(err, DR_ERR_FORMAT, "state: epoch %lld, position %lld, batch %lld do not fit %llu samples",
                        (long long)epoch, (long long)position, (long long)batch,
                        (unsigned long long)l->exec.set->n_places);
    DR_TRY(read_done(l, json_object_get(o, "done"), (uint64_t)position, &done, err));
    pthread_mutex_lock(&l->lock);
    dr__exec_stop(&l->exec);
    l->begun = false;
    l->epoch = (uint64_t)epoch;
    l->position = (uint64_t)position;
    l->batch = (uint64_t)batch;
    dr__free(l->done);
    l->done = done;
    pthread_mutex_unlock(&l->lock);
    return DR_OK;
}

dr_status dr_loader_restore(dr_loader *l, const char *text, dr_error *err)
{
    DR_TRY(dr__loader_check(l, err));
    DR_TRY(check_own_order(l, err));
    json_error_t where;
    json_t *o = json_loads(text, 0, &where);
    if (!o)
        return dr__fail(err, DR_ERR_FORMAT, "state: %s (column %d)", where.text, where.column);
    dr_status status = restore(l, o, err);
    json_decref(o);
    return status;
}
