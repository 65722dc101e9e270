/* pack.c: threads that make samples, and the caller who writes them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/grow.h"
#include "base/limits.h"
#include "codec/image/seek_store.h"
#include "pack/pack_internal.h"

static const uint64_t most_held = UINT64_C(256) << 20; /* of made samples that wait to be written */

void dr_pack_defaults(dr_pack_options *options)
{
    *options = (dr_pack_options){ .size = sizeof *options,
                                  .name = "shard",
                                  .shard_bytes = UINT64_C(512) << 20,
                                  .n_nodes = -1,
                                  .codec = "none",
                                  .seek_points = true,
                                  .check_space = true,
                                  .check_images = true };
}

/* --- workers --- */

/* lock: may the next sample be begun? */
static bool may_claim(const dr_pack *p)
{
    if (p->next >= p->set->n_samples)
        return false;
    return p->next == p->written || (p->next < p->written + (uint64_t)p->ring_size && p->held_bytes < most_held);
}

/* lock: */
static void work_off(dr_pack *p, dr__workbench *bench)
{
    const uint64_t id = p->next++;
    struct dr__pack_slot *slot = &p->ring[id % (uint64_t)p->ring_size];
    pthread_mutex_unlock(&p->lock);
    dr_status status = DR_ERR_NOMEM;
    slot->error = (dr_error){ 0 };
    if (bench)
        status = dr__made_fill(&slot->made, &p->recipe, bench, id, &slot->error);
    else
        dr__fail(&slot->error, status, "pack: out of memory for a thread");
    pthread_mutex_lock(&p->lock);
    slot->is_ready = true;
    p->held_bytes += slot->made.run.n;
    dr__cond_signal(&p->ready);
}

static void *work(void *arg)
{
    dr_pack *p = arg;
    dr__workbench *bench = dr__workbench_new();
    pthread_mutex_lock(&p->lock);
    while (!p->stop && p->next < p->set->n_samples) {
        if (may_claim(p))
            work_off(p, bench);
        else
            dr__cond_wait(&p->work, &p->lock, UINT64_MAX);
    }
    pthread_mutex_unlock(&p->lock);
    dr__workbench_free(&bench);
    return NULL;
}

static void stop_workers(dr_pack *p)
{
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    dr__cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->n_workers; i++)
        pthread_join(p->workers[i], NULL);
    p->n_workers = 0;
}

static dr_status start_workers(dr_pack *p, dr_error *err)
{
    dr__limits limits;
    dr__limits_read("", &limits);
    const int wanted = p->o.workers ? p->o.workers : dr__limits_workers(&limits);
    const int n = DR_MIN(wanted, (int)DR__PACK_WORKERS);
    p->ring_size = DR_MAX(4 * n, 8);
    while (p->n_workers < n && dr__thread_start(&p->workers[p->n_workers], "drapps-pack", work, p))
        p->n_workers++;
    return p->n_workers ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "pack: no thread can be started");
}

/* --- writing --- */

static dr_status finish_shard(dr_pack *p, dr_error *err)
{
    DR_TRY(dr__shard_commit(&p->writer, p->folder, err));
    if (!dr__manifest_add_shard(&p->m, &p->writer.facts))
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", p->folder);
    if (p->recipe.seek)
        dr__seek_store_save(p->recipe.seek, false);
    return dr__pack_save_journal(p, err);
}

/* Does the shard at hand end before this sample? */
static bool is_full(const dr_pack *p, const dr__made *made)
{
    const dr__set_shard *s = &p->writer.facts;
    if (!dr__shard_is_open(&p->writer) || !s->samples)
        return false;
    return s->size + made->run.n + 1024 > p->o.shard_bytes || (p->o.shard_samples && s->samples >= p->o.shard_samples);
}

static dr_status write_sample(dr_pack *p, const dr__made *made, dr_error *err)
{
    if (is_full(p, made))
        DR_TRY(finish_shard(p, err));
    if (!dr__shard_is_open(&p->writer)) {
        char name[200];
        snprintf(name, sizeof name, "%s-%06zu.tar", p->name, p->m.n_shards);
        DR_TRY(dr__shard_begin(&p->writer, p->folder, name, p->recipe.keys, err));
    }
    return dr__shard_add(&p->writer, made, err);
}

/* lock: waits for the next sample in order.  DR_AGAIN: the time is over. */
static dr_status wait_slot(dr_pack *p, uint64_t deadline, struct dr__pack_slot **out)
{
    *out = &p->ring[p->written % (uint64_t)p->ring_size];
    while (!(*out)->is_ready)
        if (!dr__cond_wait(&p->ready, &p->lock, deadline) && !(*out)->is_ready)
            return DR_AGAIN;
    return DR_OK;
}

/* lock: a list that memory is short for is shorter. */
static void note_bad(dr_pack *p, const dr__made *made)
{
    p->bad++;
    if (p->n_bad_list >= DR__PACK_BAD_NAMED)
        return;
    struct dr__pack_bad *list = dr__grow(p->bad_list, &p->bad_list_cap, p->n_bad_list + 1, sizeof *list);
    if (!list)
        return;
    p->bad_list = list;
    const struct dr__pack_bad bad = { dr__strdup(made->key.text), dr__strdup(made->why.text) };
    if (bad.key && bad.why) {
        list[p->n_bad_list++] = bad;
        return;
    }
    dr__free(bad.key);
    dr__free(bad.why);
}

static dr_status write_next(dr_pack *p, uint64_t deadline, dr_error *err)
{
    struct dr__pack_slot *slot;
    pthread_mutex_lock(&p->lock);
    dr_status status = wait_slot(p, deadline, &slot);
    pthread_mutex_unlock(&p->lock);
    if (status != DR_OK)
        return status;
    if (slot->error.status != DR_OK) {
        if (err)
            *err = slot->error;
        return slot->error.status;
    }
    const size_t bytes = slot->made.run.n;
    DR_TRY(write_sample(p, &slot->made, err));
    pthread_mutex_lock(&p->lock);
    slot->is_ready = false;
    p->held_bytes -= bytes;
    p->bytes += bytes;
    if (slot->made.bad)
        note_bad(p, &slot->made);
    p->written++;
    dr__cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    return DR_OK;
}

static dr_status finish(dr_pack *p, dr_error *err)
{
    stop_workers(p);
    if (dr__shard_is_open(&p->writer))
        DR_TRY(finish_shard(p, err));
    if (p->recipe.seek)
        dr__seek_store_save(p->recipe.seek, true);
    DR_TRY(dr__pack_save_manifest(p, err));
    p->finished = true;
    return DR_OK;
}

static dr_status run(dr_pack *p, uint64_t deadline, dr_error *err)
{
    if (!p->n_workers && p->written < p->set->n_samples)
        DR_TRY(start_workers(p, err));
    while (p->written < p->set->n_samples) {
        DR_TRY(write_next(p, deadline, err));
        if (dr__now_ns() >= deadline)
            return DR_AGAIN;
    }
    return finish(p, err);
}

dr_status dr_pack_run(dr_pack *p, int timeout_ms, dr_error *err)
{
    const uint64_t deadline = timeout_ms < 0 ? UINT64_MAX : dr__now_ns() + (uint64_t)timeout_ms * 1000000u;
    dr_error why = { 0 };
    if (p->generation != dr__fork_generation())
        return dr__fail(err, DR_ERR_FORKED, "pack: this packing belongs to the parent process");
    if (p->finished)
        return DR_OK;
    if (!p->error.status) {
        dr_status status = run(p, deadline, &why);
        if (status >= DR_OK)
            return status;
        p->error = why;
        p->error.status = status;
        stop_workers(p);
        dr__shard_drop(&p->writer);
    }
    if (err)
        *err = p->error;
    return p->error.status;
}

/* --- opening and closing --- */

void dr_pack_get_stats(dr_pack *p, dr_pack_stats *out)
{
    pthread_mutex_lock(&p->lock);
    *out = (dr_pack_stats){ .samples = p->written,
                            .samples_total = p->set->n_samples,
                            .resumed_samples = p->resumed,
                            .bytes = p->bytes,
                            .shards = p->m.n_shards,
                            .bad = p->bad,
                            .estimated_bytes = p->estimated,
                            .workers = p->n_workers };
    pthread_mutex_unlock(&p->lock);
}

dr_status dr_pack_bad_sample(dr_pack *p, size_t i, const char **key, const char **why)
{
    pthread_mutex_lock(&p->lock);
    const bool found = i < p->n_bad_list;
    if (found) {
        *key = p->bad_list[i].key;
        *why = p->bad_list[i].why;
    }
    pthread_mutex_unlock(&p->lock);
    return found ? DR_OK : DR_END;
}

void dr_pack_close(dr_pack **pack)
{
    if (!pack || !*pack)
        return;
    dr_pack *p = *pack;
    *pack = NULL;
    if (p->generation != dr__fork_generation()) /* the parent's threads and files */
        return;
    stop_workers(p);
    dr__shard_drop(&p->writer);
    for (int i = 0; i < DR__PACK_RING; i++)
        dr__made_free(&p->ring[i].made);
    for (size_t i = 0; i < p->n_bad_list; i++) {
        dr__free(p->bad_list[i].key);
        dr__free(p->bad_list[i].why);
    }
    dr__free(p->bad_list);
    dr__seek_store_close(&p->recipe.seek);
    for (int i = 0; p->recipe.codecs && i < p->n_codecs; i++)
        dr_codec_close(&p->recipe.codecs[i]);
    dr__free(p->recipe.codecs);
    dr__prefix_free(&p->prefix);
    dr__manifest_free(&p->m);
    dr_dataset_unref(&p->present);
    dr_dataset_unref(&p->set);
    if (p->lock_fd >= 0) {
        unlinkat(p->folder_fd, DR__SET_LOCK, 0); /* before the lock is given back */
        close(p->lock_fd);
    }
    if (p->folder_fd >= 0)
        close(p->folder_fd);
    pthread_mutex_destroy(&p->lock);
    dr__cond_destroy(&p->work);
    dr__cond_destroy(&p->ready);
    dr__free(p->folder);
    dr__free(p);
}

static dr_status make(const char *folder, dr_pack **out, dr_error *err)
{
    dr_pack *p = dr__alloc_zero(1, sizeof *p);
    char *copy = dr__strdup(folder);
    if (!p || !copy) {
        dr__free(p);
        dr__free(copy);
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", folder);
    }
    p->folder = copy;
    p->folder_fd = p->lock_fd = -1;
    p->generation = dr__fork_generation();
    pthread_mutex_init(&p->lock, NULL);
    dr__cond_init(&p->work);
    dr__cond_init(&p->ready);
    dr__shard_writer_init(&p->writer);
    *out = p;
    return DR_OK;
}

dr_status dr_pack_open(dr_dataset *set, const char *folder, const dr_pack_options *options, dr_pack **out,
                       dr_error *err)
{
    if (!set || !folder || !*folder || !out)
        return dr__fail(err, DR_ERR_ARG, "dr_pack_open: needs a data set, a folder and a place for the result");
    dr_pack_options o;
    dr_pack_defaults(&o);
    if (options) /* a caller built with an older header has a shorter struct */
        memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
    dr_pack *p;
    *out = NULL;
    DR_TRY(make(folder, &p, err));
    p->set = dr_dataset_ref(set);
    dr_status status = dr__pack_plan(p, &o, err);
    if (status != DR_OK) {
        dr_pack_close(&p);
        return status;
    }
    *out = p;
    return DR_OK;
}
