/* state.c: saves and restores the cursor of the consumer.
 *
 * In order, everything before one position was delivered, so the position is the whole cursor.  An unordered loader
 * also lists the samples that were delivered, as ranges of rank-local indices.  `held` is a batch that the consumer has
 * and that counts as not delivered, or NULL.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "loader/loader_internal.h"

enum { STATE_VERSION = 1 };

/* Canonical JSON has numbers that a double holds exactly; larger ones are written as text. */
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

/* pool lock: sets or clears DR__DONE_DELIVERED of the samples of a batch. */
static void mark_delivered(const dr__exec *e, const dr_batch *held, bool delivered)
{
    for (uint64_t i = 0; held && e->unordered.marks && i < held->n_accounted; i++) {
        uint8_t *marks = &e->unordered.marks[dr__unordered_local(e, held->positions[i])];
        *marks = (uint8_t)(delivered ? *marks | DR__DONE_DELIVERED : *marks & ~DR__DONE_DELIVERED);
    }
}

/* pool lock, unordered: whether the samples of a batch were delivered in this run. */
static bool were_delivered(const dr__exec *e, const dr_batch *held)
{
    for (uint64_t i = 0; i < held->n_samples; i++) {
        if (held->positions[i] < e->order.base + e->o.rank)
            return false;
        const uint64_t local = dr__unordered_local(e, held->positions[i]);
        if (local >= e->order.n_local || !(e->unordered.marks[local] & DR__DONE_DELIVERED))
            return false;
    }
    return true;
}

/* pool lock: whether a batch was delivered in this run.  It may be of another epoch, or of an earlier run of this one.
 */
static bool is_of_this_run(const dr__exec *e, const dr_batch *held)
{
    if (held->epoch != e->order.epoch || held->number < e->order.first_batch || !e->progress.delivered)
        return false;
    return e->unordered.marks ? were_delivered(e, held) : held->number - e->order.first_batch < e->progress.delivered;
}

/* pool lock: writes the cursor in the running epoch. */
static void running_position(const dr__exec *e, const dr_batch *held, json_t *o)
{
    if (held && !is_of_this_run(e, held))
        held = NULL;
    if (!held && dr__exec_is_finished(e)) { /* the next epoch, from its start */
        write_position(o, e->order.epoch + 1, 0, 0);
        return;
    }
    uint64_t batches = e->progress.delivered;
    if (held)
        batches = e->o.in_order ? held->number - e->order.first_batch : batches - 1;
    uint64_t ahead = e->o.in_order ? batches * e->o.batch_size * e->o.world_size : 0;
    write_position(o, e->order.epoch, e->order.base + ahead, e->order.first_batch + batches);
    mark_delivered(e, held, false);
    if (e->unordered.marks)
        json_object_set_new(o, "done",
                            done_ranges(e->unordered.marks, e->order.n_local, DR__DONE_DELIVERED | DR__DONE_BEFORE));
    mark_delivered(e, held, true);
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
    if (l->exec.o.pushed_order)
        return dr__fail(err, DR_ERR_STATE, "pushed_order: the caller gives the order and must save its own state");
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
    json_t *o =
        json_pack("{s:i, s:o, s:b, s:b, s:I, s:I, s:I}", "drapps_state", STATE_VERSION, "seed", whole(e->o.seed),
                  "shuffle", e->o.shuffle, "in_order", e->o.in_order, "batch_size", (json_int_t)e->o.batch_size,
                  "world", (json_int_t)e->o.world_size, "rank", (json_int_t)e->o.rank);
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

/* What a difference of a field that is only a number to the user means. */
static const char *meaning_of(const char *name)
{
    if (!strcmp(name, "graph"))
        return " (another pipeline: its ops or their arguments differ)";
    return !strcmp(name, "data") ? " (another data set: its files or their order differ)" : "";
}

static dr_status check_equal(const json_t *o, const char *name, const json_t *mine, dr_error *err)
{
    const json_t *saved = json_object_get(o, name);
    dr_status status = DR_OK;
    if (!saved || !json_equal(saved, mine)) {
        char *a = saved ? json_dumps(saved, JSON_ENCODE_ANY) : NULL, *b = json_dumps(mine, JSON_ENCODE_ANY);
        status = dr__fail(err, DR_ERR_ARG, "the state was saved with %s = %s, this loader has %s%s", name,
                          a ? a : "none", b ? b : "?", meaning_of(name));
        free(a);
        free(b);
    }
    json_decref((json_t *)mine);
    return status;
}

static dr_status check_same(const dr_loader *l, const json_t *o, dr_error *err)
{
    const dr__exec *e = &l->exec;
    DR_TRY(check_equal(o, "seed", whole(e->o.seed), err));
    DR_TRY(check_equal(o, "shuffle", json_boolean(e->o.shuffle), err));
    DR_TRY(check_equal(o, "in_order", json_boolean(e->o.in_order), err));
    DR_TRY(check_equal(o, "batch_size", json_integer((json_int_t)e->o.batch_size), err));
    DR_TRY(check_equal(o, "graph", hex(l->graph_hash), err));
    DR_TRY(check_equal(o, "data", hex(e->set->fingerprint), err));
    if (!e->o.in_order) { /* a rank knows only what it has delivered itself */
        DR_TRY(check_equal(o, "world", json_integer((json_int_t)e->o.world_size), err));
        DR_TRY(check_equal(o, "rank", json_integer((json_int_t)e->o.rank), err));
    }
    return DR_OK;
}

/* --- restoring: types are checked strictly, since a number misread as 0 would repeat or drop an epoch --- */

static dr_status fail_value(const char *name, const char *must, const json_t *got, dr_error *err)
{
    char *text = got ? json_dumps(got, JSON_ENCODE_ANY) : NULL;
    const dr_status status =
        dr__fail(err, DR_ERR_FORMAT, "state: %s must be %s, got %.100s", name, must, text ? text : "nothing");
    free(text);
    return status;
}

static bool is_count(const json_t *v, uint64_t most)
{
    return json_is_integer(v) && json_integer_value(v) >= 0 && (uint64_t)json_integer_value(v) <= most;
}

static dr_status read_count(const json_t *o, const char *name, uint64_t most, uint64_t *out, dr_error *err)
{
    const json_t *v = json_object_get(o, name);
    char must[64];
    snprintf(must, sizeof must, "an int from 0 to %" PRIu64, most);
    if (!is_count(v, most))
        return fail_value(name, must, v, err);
    *out = (uint64_t)json_integer_value(v);
    return DR_OK;
}

/* Marks the samples of [first, n, first, n, ...]; false: not ascending, or not within n_local. */
static bool mark_ranges(const json_t *ranges, uint64_t n_local, uint8_t *done)
{
    uint64_t at = 0;
    if (!json_is_array(ranges) || json_array_size(ranges) % 2)
        return false;
    for (size_t i = 0; i < json_array_size(ranges); i += 2) {
        const json_t *first = json_array_get(ranges, i), *n = json_array_get(ranges, i + 1);
        if (!is_count(first, n_local) || !is_count(n, n_local - (uint64_t)json_integer_value(first)))
            return false;
        const uint64_t start = (uint64_t)json_integer_value(first), count = (uint64_t)json_integer_value(n);
        if (start < at || !count)
            return false;
        memset(done + start, 1, (size_t)count);
        at = start + count;
    }
    return true;
}

/* The ranges as one byte per sample of this rank.  NULL: none, which is valid only if nothing was delivered. */
static dr_status read_done(const dr_loader *l, const json_t *o, uint64_t position, uint64_t batch, uint8_t **out,
                           dr_error *err)
{
    const json_t *ranges = json_object_get(o, "done");
    uint64_t n_local, n_batches;
    char must[100];
    *out = NULL;
    if (!ranges && (l->exec.o.in_order || !batch))
        return DR_OK;
    dr__order_count(&l->exec, position, &n_local, &n_batches);
    *out = dr__alloc_zero(n_local, 1);
    if (!*out)
        return dr__fail(err, DR_ERR_NOMEM, "state: out of memory");
    if (mark_ranges(ranges, n_local, *out))
        return DR_OK;
    dr__free(*out);
    *out = NULL;
    snprintf(must, sizeof must, "pairs of ints [first, n, ...], ascending and within %" PRIu64 " samples", n_local);
    return fail_value("done", must, ranges, err);
}

struct restored {
    uint64_t epoch, position, batch;
    uint8_t *done;
};

/* Reads and checks a state; does not change the loader. */
static dr_status read_state(const dr_loader *l, const json_t *o, struct restored *to, dr_error *err)
{
    const json_t *version = json_object_get(o, "drapps_state");
    uint64_t world, rank; /* only checked */
    *to = (struct restored){ 0 };
    if (!json_is_integer(version) || json_integer_value(version) != STATE_VERSION)
        return fail_value("drapps_state", "version 1", version, err);
    DR_TRY(check_same(l, o, err));
    DR_TRY(read_count(o, "world", UINT32_MAX, &world, err));
    DR_TRY(read_count(o, "rank", world ? world - 1 : 0, &rank, err));
    DR_TRY(read_count(o, "epoch", UINT64_C(1) << 53, &to->epoch, err));
    DR_TRY(read_count(o, "position", l->exec.set->n_places, &to->position, err));
    /* Every batch took at least one place. */
    DR_TRY(read_count(o, "batch", l->exec.o.in_order ? to->position : l->exec.set->n_places, &to->batch, err));
    return read_done(l, o, to->position, to->batch, &to->done, err);
}

static dr_status parse_state(const dr_loader *l, const char *text, struct restored *to, dr_error *err)
{
    json_error_t where;
    DR_TRY(dr__loader_check(l, err));
    DR_TRY(check_own_order(l, err));
    json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    if (!o)
        return dr__fail(err, DR_ERR_FORMAT, "state: %s (column %d)", where.text, where.column);
    const dr_status status = read_state(l, o, to, err);
    json_decref(o);
    return status;
}

dr_status dr_loader_check_state(dr_loader *l, const char *text, dr_error *err)
{
    struct restored to;
    const dr_status status = parse_state(l, text, &to, err);
    if (status == DR_OK)
        dr__free(to.done);
    return status;
}

dr_status dr_loader_restore(dr_loader *l, const char *text, dr_error *err)
{
    struct restored to;
    DR_TRY(parse_state(l, text, &to, err));
    pthread_mutex_lock(&l->lock);
    dr__exec_stop(&l->exec);
    l->begun = false;
    l->epoch = to.epoch;
    l->position = to.position;
    l->batch = to.batch;
    dr__free(l->done);
    l->done = to.done;
    pthread_mutex_unlock(&l->lock);
    return DR_OK;
}
