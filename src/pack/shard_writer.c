/* shard_writer.c: writing a shard and its index. */
#include "pack/shard_writer.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "format/tar_write.h"

void dr__shard_writer_init(dr__shard_writer *w)
{
    *w = (dr__shard_writer){ .file = { .fd = -1 } };
}

void dr__shard_drop(dr__shard_writer *w)
{
    dr__atomic_drop(&w->file);
    dr__tar_index_free(&w->index);
    XXH3_freeState(w->sum);
    w->sum = NULL;
    dr__free(w->marks.data);
    w->marks = (dr__section){ 0 };
}

static dr_status write_bytes(dr__shard_writer *w, const void *data, size_t size, dr_error *err)
{
    DR_TRY(dr__atomic_write(&w->file, data, size, err));
    XXH3_64bits_update(w->sum, data, size);
    w->facts.size += size;
    return DR_OK;
}

dr_status dr__shard_begin(dr__shard_writer *w, const char *folder, const char *name, dr__key_form keys, dr_error *err)
{
    w->facts = (dr__set_shard){ .keys = keys };
    snprintf(w->facts.name, sizeof w->facts.name, "%s", name);
    w->sum = XXH3_createState();
    if (!w->sum)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", name);
    XXH3_64bits_reset(w->sum);
    w->name.name = w->facts.name;
    return dr__atomic_begin(&w->file, folder, name, err);
}

static dr_status index_part(dr__shard_writer *w, const dr__made *made, const dr__made_part *part, dr_error *err)
{
    dr__tar_index *x = &w->index;
    const char *name = made->names.text + part->name;
    const size_t n_parts = x->n_parts;
    dr__tar_member m = { .name_len = strlen(name),
                         .header = w->facts.size + part->header,
                         .offset = w->facts.size + part->offset,
                         .size = part->size };
    if (m.name_len >= sizeof m.name)
        return dr__fail(err, DR_ERR_LIMIT, "%s: a member's name has %zu bytes", w->facts.name, m.name_len);
    memcpy(m.name, name, m.name_len + 1);
    DR_TRY(dr__tar_index_add(x, &w->name, &m, part->label, err));
    if (x->n_parts == n_parts)
        return DR_OK;
    uint64_t *sums = dr__grow(x->sums, &x->sums_cap, x->n_parts, sizeof *sums);
    if (!sums)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", w->facts.name);
    x->sums = sums;
    sums[n_parts] = part->sum;
    uint32_t *raw = dr__grow(x->raw_sizes, &x->raw_cap, x->n_parts, sizeof *raw);
    if (!raw)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", w->facts.name);
    x->raw_sizes = raw;
    raw[n_parts] = part->raw;
    return DR_OK;
}

dr_status dr__shard_add(dr__shard_writer *w, const dr__made *made, dr_error *err)
{
    for (size_t i = 0; i < made->n_parts; i++)
        DR_TRY(index_part(w, made, &made->parts[i], err));
    if (w->index.keys.n != w->facts.samples + 1)
        return dr__fail(err, DR_ERR_STATE, "%s: sample \"%s\" has the name of the one before", w->facts.name,
                        made->key.text);
    if (!dr__names_add(&w->index.origins, made->key.text, made->key.n))
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", w->facts.name);
    dr__marks_add(&w->marks, &made->mark);
    w->facts.samples++;
    return write_bytes(w, made->run.text, made->run.n, err);
}

static dr_status save_index(dr__shard_writer *w, const char *folder, dr_error *err)
{
    char name[300];
    dr__section bytes = { 0 };
    snprintf(name, sizeof name, "%s" DR__SHARD_INDEX, w->facts.name);
    w->index.tar_size = w->facts.size;
    if (!w->index.sums) /* a shard of labels alone still is a packed one */
        w->index.sums = dr__alloc_zero(1, sizeof *w->index.sums);
    dr__tar_index_encode(&w->index, DR__PACKED_WHAT, &bytes);
    dr_status status = bytes.failed || !w->index.sums ? dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", name)
                                                      : dr__atomic_save(folder, name, bytes.data, bytes.size, err);
    w->facts.index_size = bytes.size;
    w->facts.index_sum = XXH3_64bits(bytes.data, bytes.size);
    dr__free(bytes.data);
    return status;
}

dr_status dr__shard_commit(dr__shard_writer *w, const char *folder, dr_error *err)
{
    static const char end[DR__TAR_END];
    DR_TRY(write_bytes(w, end, sizeof end, err));
    w->facts.sum = XXH3_64bits_digest(w->sum);
    DR_TRY(dr__atomic_commit(&w->file, err));
    DR_TRY(save_index(w, folder, err));
    DR_TRY(dr__marks_save(folder, w->facts.name, &w->marks, err));
    dr__shard_drop(w);
    return DR_OK;
}
