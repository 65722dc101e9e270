/* source_marks.c: comparing a packed set with the data that it was made of.
 *
 * Threads claim blocks of samples: over a network, the facts of many files are asked for at once.  A sample whose size
 * and time are as they were is taken to be the same; another one is read, and compared by its hash.
 */
#include "pack/source_marks.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/thread.h"
#include "graph/workbench.h"
#include "pack/atomic_file.h"

enum { SOURCE_MARKS = 1, THREADS = 16, BLOCK = 64, MARK_BYTES = 16, MAX_PATH = 8192, KEY = 256 };

dr__source_mark dr__source_mark_of(const dr_dataset *set, uint64_t id)
{
    dr__stamp stamp;
    const bool known = dr__dataset_stamp(set, id, &stamp, NULL) == DR_OK;
    return (dr__source_mark){ .modified = known ? stamp.modified : 0 };
}

void dr__marks_add(dr__section *marks, const dr__source_mark *mark)
{
    dr__put_u64(marks, mark->modified);
    dr__put_u64(marks, mark->content);
}

dr_status dr__marks_save(const char *folder, const char *shard, const dr__section *marks, dr_error *err)
{
    char name[300];
    dr__section bytes;
    const dr__section section = {
        .id = SOURCE_MARKS, .data = marks->data, .size = marks->size, .cap = marks->cap, .failed = marks->failed
    };
    snprintf(name, sizeof name, "%s" DR__SHARD_MARKS, shard);
    dr__index_encode(&section, 1, &bytes);
    dr_status status = bytes.failed ? dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", name)
                                    : dr__atomic_save(folder, name, bytes.data, bytes.size, err);
    dr__free(bytes.data);
    return status;
}

/* --- reading --- */

static dr_status read_all(const char *path, uint8_t **data, size_t *got, dr_error *err)
{
    dr__source *source;
    uint64_t size;
    DR_TRY(dr__source_open(path, NULL, &source, err));
    dr_status status = dr__source_size(source, &size, err);
    if (status == DR_OK && !(*data = dr__alloc(size + 1)))
        status = dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", path);
    if (status == DR_OK)
        status = dr__source_read_at(source, *data, size, 0, got, err);
    dr__source_close(&source);
    return status;
}

/* The marks of a shard, owned by the caller (dr__free). */
static dr_status load(const char *folder, const char *shard, uint64_t n, dr__source_mark **out, dr_error *err)
{
    char path[MAX_PATH];
    uint8_t *data = NULL;
    size_t size;
    dr_cursor c;
    *out = NULL;
    if (snprintf(path, sizeof path, "%s/%s" DR__SHARD_MARKS, folder, shard) >= (int)sizeof path)
        return dr__fail(err, DR_ERR_LIMIT, "%.200s...: path too long", folder);
    dr_status status = read_all(path, &data, &size, err);
    if (status == DR_OK && (dr__index_section(data, size, SOURCE_MARKS, &c, NULL) != DR_OK ||
                            dr__cursor_left(&c) / MARK_BYTES != n || dr__cursor_left(&c) % MARK_BYTES))
        status = dr__fail(err, DR_ERR_FORMAT, "%s: is damaged", path);
    if (status == DR_OK && !(*out = dr__alloc_zero(n ? n : 1, sizeof **out)))
        status = dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", path);
    for (uint64_t i = 0; status == DR_OK && i < n; i++) {
        dr__cursor_u64(&c, &(*out)[i].modified, NULL);
        dr__cursor_u64(&c, &(*out)[i].content, NULL);
    }
    dr__free(data);
    return status;
}

dr_status dr__marks_check(const char *folder, const char *shard, uint64_t n_samples, dr_error *err)
{
    dr__source_mark *marks;
    dr_error why = { 0 };
    dr_status status = load(folder, shard, n_samples, &marks, &why);
    dr__free(marks);
    if (status == DR_OK || status == DR_ERR_NOT_FOUND)
        return DR_OK;
    return dr__fail(err, status, "%s", why.text);
}

/* --- comparing --- */

enum verdict { SAME, TOUCHED, CHANGED };

struct comparing {
    const dr_dataset *source;
    uint64_t first, n;
    dr__source_mark *marks;
    uint8_t *verdicts;
    atomic_uint_fast64_t next;
    atomic_bool no_memory;
};

static enum verdict compare_one(struct comparing *c, dr__workbench **bench, uint64_t i)
{
    dr__source_mark *old = &c->marks[i], now = dr__source_mark_of(c->source, c->first + i);
    dr_error why;
    if (now.modified && now.modified == old->modified)
        return SAME;
    if (!*bench && !(*bench = dr__workbench_new())) {
        atomic_store(&c->no_memory, true);
        return CHANGED;
    }
    if (dr__sample_read(*bench, c->source, c->first + i, &why) == DR_OK)
        now.content = dr__record_hash(&(*bench)->record);
    if (now.content != old->content)
        return CHANGED;
    const bool touched = now.modified != old->modified;
    *old = now;
    return touched ? TOUCHED : SAME;
}

static void *compare_blocks(void *arg)
{
    struct comparing *c = arg;
    dr__workbench *bench = NULL;
    for (uint64_t at; (at = atomic_fetch_add(&c->next, BLOCK)) < c->n && !atomic_load(&c->no_memory);)
        for (uint64_t i = at; i < DR_MIN(at + BLOCK, c->n); i++)
            c->verdicts[i] = (uint8_t)compare_one(c, &bench, i);
    dr__workbench_free(&bench);
    return NULL;
}

static void compare_all(struct comparing *c)
{
    pthread_t threads[THREADS];
    int n = 0;
    while (n < THREADS && (uint64_t)(n + 1) * BLOCK < c->n &&
           dr__thread_start(&threads[n], "drapps-compare", compare_blocks, c))
        n++;
    compare_blocks(c);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

/* The names of the first few that have changed. */
static void add_name(const struct comparing *c, uint64_t i, dr_pack_changes *out)
{
    char key[KEY];
    const size_t used = strlen(out->names);
    c->source->def->key(c->source, c->first + i, key, sizeof key);
    if (used + strlen(key) + 3 < sizeof out->names)
        snprintf(out->names + used, sizeof out->names - used, "%s%s", used ? ", " : "", key);
}

static uint64_t count(const struct comparing *c, dr_pack_changes *out)
{
    enum { NAMED = 3 };
    uint64_t touched = 0;
    for (uint64_t i = 0; i < c->n; i++) {
        touched += c->verdicts[i] == TOUCHED;
        if (c->verdicts[i] == CHANGED && out->changed++ < NAMED)
            add_name(c, i, out);
    }
    out->samples += c->n;
    out->touched += touched;
    return touched;
}

/* Samples that were touched need not be read again next time.  A set that cannot be written to stays as it is. */
static void save_touched(const char *folder, const char *shard, const struct comparing *c)
{
    char name[300], part[MAX_PATH], path[MAX_PATH];
    dr__section marks = { 0 };
    for (uint64_t i = 0; i < c->n; i++)
        dr__marks_add(&marks, &c->marks[i]);
    snprintf(name, sizeof name, "%s.%ld", shard, (long)getpid()); /* others may do the same at this moment */
    snprintf(part, sizeof part, "%s/%s" DR__SHARD_MARKS, folder, name);
    snprintf(path, sizeof path, "%s/%s" DR__SHARD_MARKS, folder, shard);
    if (dr__marks_save(folder, name, &marks, NULL) == DR_OK && rename(part, path))
        unlink(part);
    dr__free(marks.data);
}

dr_status dr__marks_compare(const char *folder, const char *shard, uint64_t n, const dr_dataset *source, uint64_t first,
                            dr_pack_changes *out, dr_error *err)
{
    struct comparing c = { .source = source, .first = first, .n = n };
    if (first > source->n_samples || n > source->n_samples - first)
        return dr__fail(err, DR_ERR_ARG, "%s: has no samples %" PRIu64 " to %" PRIu64, source->name, first, first + n);
    DR_TRY(load(folder, shard, n, &c.marks, err));
    c.verdicts = dr__alloc_zero(n ? n : 1, 1);
    if (c.verdicts)
        compare_all(&c);
    const bool good = c.verdicts && !atomic_load(&c.no_memory);
    if (good && count(&c, out))
        save_touched(folder, shard, &c);
    dr__free(c.verdicts);
    dr__free(c.marks);
    return good ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", folder);
}
