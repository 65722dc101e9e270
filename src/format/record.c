/* record.c: the reusable memory of one sample as it is read.
 *
 * The block is one aligned piece of memory; values are handed out from its front, each starting on 64 bytes and
 * followed by 64 zero bytes, so that decoders may look a little too far.  It grows and shrinks only while it is empty.
 */
#include <assert.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/grow.h"
#include "data/desc.h"
#include "format/dataset_internal.h"
#include "source/source.h"

enum { ALIGN = DR__RECORD_ALIGN, TAIL = DR__RECORD_TAIL, SLACK = (ALIGN + TAIL) * DR__RECORD_VALUES };

/* No sample is larger; a file that claims more is refused before memory is asked for. */
static size_t most_bytes(const dr__record *record)
{
    const size_t most = (size_t)1 << 32;
    return record->max_bytes ? DR_MIN(record->max_bytes, most) : most;
}

void dr__record_init(dr__record *record)
{
    *record = (dr__record){ 0 };
}

void dr__record_swap(dr__record *a, dr__record *b)
{
    const dr__record hold = *a;
    *a = *b;
    *b = hold;
}

void dr__record_free(dr__record *record)
{
    dr__free_aligned(record->block);
    dr__free(record->fields);
    dr__free(record->reordered);
    dr__free_aligned(record->part.bytes);
    *record = (dr__record){ 0 };
}

bool dr__record_reserve_fields(dr__record *record, int n)
{
    dr_view *fields = dr__grow(record->fields, &record->fields_cap, (size_t)n, sizeof *fields);
    if (!fields)
        return false;
    record->fields = fields;
    return true;
}

/* Room for `total` bytes of values, keeping the first `keep` bytes of the block. */
static dr_status reserve(dr__record *record, size_t total, size_t keep, dr_error *err)
{
    if (total > most_bytes(record))
        return dr__fail(err, DR_ERR_LIMIT, "a sample of %zu encoded bytes; the memory limit allows %zu", total,
                        most_bytes(record));
    size_t need = total + SLACK;
    bool shrink = !keep && dr__should_shrink(&record->n_small, record->block_cap, need);
    if (record->block && need <= record->block_cap && !shrink)
        return DR_OK;
    need += need / 4; /* samples differ in size: a little more now saves the next moves */
    uint8_t *block = dr__alloc_aligned(need);
    if (!block)
        return dr__fail(err, DR_ERR_NOMEM, "out of memory for a sample of %zu bytes", total);
    if (keep)
        memcpy(block, record->block, keep);
    dr__free_aligned(record->block);
    record->block = block;
    record->block_cap = need;
    return DR_OK;
}

dr_status dr__record_reset(dr__record *record, size_t total, dr_error *err)
{
    record->n_fields = 0;
    record->block_used = 0;
    return reserve(record, total, 0, err);
}

void *dr__record_take(dr__record *record, size_t size)
{
    size_t start = (record->block_used + ALIGN - 1) / ALIGN * ALIGN;
    if (start > record->block_cap || record->block_cap - start < TAIL || size > record->block_cap - start - TAIL)
        return NULL;
    uint8_t *p = record->block + start;
    memset(p + size, 0, TAIL);
    record->block_used = start + size + TAIL;
    return p;
}

/* A file that is read into the block from `start` on. */
struct target {
    dr__source_target head;
    dr__record *record;
    size_t start, extra;
};

static uint8_t *reserve_file(dr__source_target *target, size_t size, size_t keep, dr_status *status, dr_error *err)
{
    const struct target *t = (const struct target *)target;
    *status = reserve(t->record, t->start + size + t->extra, t->start + keep, err);
    return *status == DR_OK ? t->record->block + t->start : NULL;
}

/* --- with a ranger --- */

const uint8_t *dr__record_stand_in(dr__record *record, uint64_t name, size_t *size)
{
    const uint8_t *bytes = record->ranger ? record->ranger->stand_in(record->ranger, name, size) : NULL;
    record->ranged = (dr__ranged){ .name = name, .stood_in = bytes != NULL };
    return bytes;
}

void dr__record_ranged(dr__record *record, const dr_dataset *set, uint64_t id, const void *data)
{
    record->ranged.set = record->ranger ? set : NULL;
    record->ranged.id = id;
    record->ranged.data = data;
}

uint8_t *dr__record_part_memory(dr__record *record, size_t size)
{
    dr__record_part *p = &record->part;
    if (size <= p->bytes_cap && p->bytes && p->bytes_cap <= 8 * size + 65536)
        return p->bytes;
    dr__free_aligned(p->bytes);
    p->bytes_cap = 0;
    p->bytes = dr__alloc_aligned(size + size / 4);
    if (p->bytes)
        p->bytes_cap = size + size / 4;
    return p->bytes;
}

/* The stamps of files call the same path the same name. */
static uint64_t name_of_file(const dr__source_dir *dir, const char *path)
{
    return XXH3_64bits_withSeed(path, strlen(path), XXH3_64bits(dir->name, strlen(dir->name)));
}

/* The image of a sample: what stands for it, or the whole file with its version. */
static dr_status read_image(struct target *target, dr__source_dir *dir, const char *path, size_t *size, dr_error *err)
{
    dr__record *record = target->record;
    dr_status status = DR_OK;
    const uint8_t *bytes = dr__record_stand_in(record, name_of_file(dir, path), size);
    if (bytes) {
        uint8_t *place = reserve_file(&target->head, *size, 0, &status, err);
        if (place)
            memcpy(place, bytes, *size);
    } else {
        status = dr__source_dir_get_versioned(dir, path, &target->head, size, &record->ranged.version, err);
        record->ranged.known = record->ranged.version != 0;
    }
    record->ranged.remote = dir->def->remote;
    return status;
}

/* Reads the next file behind what the block holds. */
static dr_status read_file(dr__record *record, dr__source_dir *dir, const char *path, size_t extra, bool image,
                           size_t *start, size_t *size, dr_error *err)
{
    struct target target = { .head = { reserve_file }, .record = record, .extra = extra };
    *start = target.start = (record->block_used + ALIGN - 1) / ALIGN * ALIGN;
    if (image && record->ranger)
        DR_TRY(read_image(&target, dir, path, size, err));
    else
        DR_TRY(dr__source_dir_get(dir, path, &target.head, size, err));
    dr__record_take(record, *size);
    return DR_OK;
}

dr_status dr__record_read_files(dr__record *record, dr__source_dir *dir, const char *const *paths, int n, size_t extra,
                                void **data, size_t *sizes, dr_error *err)
{
    size_t starts[DR__RECORD_FILES];
    assert(n <= DR__RECORD_FILES);
    record->n_fields = 0;
    record->block_used = 0;
    for (int i = 0; i < n; i++)
        DR_TRY(read_file(record, dir, paths[i], extra, i == 0, &starts[i], &sizes[i], err));
    for (int i = 0; i < n; i++) /* a file may have moved those before it */
        data[i] = record->block + starts[i];
    return DR_OK;
}

dr_status dr__record_read_file(dr__record *record, dr__source_dir *dir, const char *path, size_t extra, void **data,
                               size_t *size, dr_error *err)
{
    return dr__record_read_files(record, dir, &path, 1, extra, data, size, err);
}

dr_status dr__stamp_file(dr__source_dir *dir, const char *path, uint64_t *out, dr_error *err)
{
    dr__source_facts facts;
    DR_TRY(dr__source_dir_stat(dir, path, &facts, err));
    if (!facts.version)
        return dr__fail(err, DR_ERR_UNSUPPORTED, "%s/%s: its version is not known", dir->name, path);
    *out = XXH3_64bits_withSeed(&facts.version, sizeof facts.version, name_of_file(dir, path));
    return DR_OK;
}

dr_status dr__record_view(dr__record *record, const dr_view *view, dr_error *err)
{
    if (!dr__record_reserve_fields(record, record->n_fields + 1))
        return dr__fail(err, DR_ERR_NOMEM, "out of memory for the fields of a sample");
    record->fields[record->n_fields++] = *view;
    return DR_OK;
}

dr_status dr__record_bytes(dr__record *record, dr_kind kind, const void *data, size_t size, dr_error *err)
{
    const dr_desc desc = { .kind = kind, .dtype = DR_U8, .n_dims = 1, .dims = { (int64_t)size } };
    return dr__record_view(record, &(dr_view){ .data = (uint8_t *)data, .desc = desc }, err);
}

static dr_status copy_in(dr__record *record, const dr_desc *desc, const void *value, size_t size, dr_error *err)
{
    void *p = dr__record_take(record, size);
    if (!p)
        return dr__fail(err, DR_ERR_NOMEM, "no room for %zu more bytes in a sample", size);
    if (size)
        memcpy(p, value, size);
    return dr__record_view(record, &(dr_view){ .data = p, .desc = *desc }, err);
}

dr_status dr__record_text(dr__record *record, const char *text, size_t size, dr_error *err)
{
    dr_desc desc = dr__desc_text((int64_t)size);
    return copy_in(record, &desc, text, size, err);
}

dr_status dr__record_i64(dr__record *record, int64_t value, dr_error *err)
{
    dr_desc desc = dr__desc_scalar(DR_I64);
    return copy_in(record, &desc, &value, sizeof value, err);
}
