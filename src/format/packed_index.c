/* packed_index.c: the index of a shard of a packed set, from its file or, where that is damaged, from the shard. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "base/parse.h"
#include "format/packed.h"

enum { BLOCK = 1 << 20, MAX_PATH = 8192, MAX_ORIGIN = 1 << 20 };

dr_status dr__packed_sum(const char *path, const dr__source_options *options, uint64_t *sum, uint64_t *size,
                         dr_error *err)
{
    dr__source *source;
    size_t got = 1;
    *size = 0;
    DR_TRY(dr__source_open(path, options, &source, err));
    XXH3_state_t *state = XXH3_createState();
    uint8_t *block = dr__alloc(BLOCK);
    dr_status status = state && block ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", path);
    if (status == DR_OK)
        XXH3_64bits_reset(state);
    while (status == DR_OK && got) {
        status = dr__source_read_at(source, block, BLOCK, *size, &got, err);
        if (status == DR_OK)
            XXH3_64bits_update(state, block, got);
        *size += status == DR_OK ? got : 0;
    }
    *sum = status == DR_OK ? XXH3_64bits_digest(state) : 0;
    XXH3_freeState(state);
    dr__free(block);
    dr__source_close(&source);
    return status;
}

char *dr__origin_get(const void *data, size_t size, const char *field)
{
    json_t *o = json_loadb(data, size, 0, NULL);
    const json_t *files = json_object_get(o, "files");
    const char *text = json_string_value(field ? json_object_get(files, field) : json_object_get(o, "key"));
    char *copy = text ? dr__strdup(text) : NULL;
    json_decref(o);
    return copy;
}

/* --- from the file --- */

static dr_status read_file(const char *path, const dr__source_options *options, uint64_t size, uint8_t **data,
                           dr_error *err)
{
    dr__source *source;
    size_t got = 0;
    DR_TRY(dr__source_open(path, options, &source, err));
    *data = size < SIZE_MAX / 2 ? dr__alloc(size + 1) : NULL;
    dr_status status = *data ? dr__source_read_at(source, *data, size + 1, 0, &got, err)
                             : dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", path);
    if (status == DR_OK && got != size)
        status = dr__fail(err, DR_ERR_FORMAT, "%s: is not the index of its shard", path);
    dr__source_close(&source);
    return status;
}

static dr_status from_file(const dr__set_shard *shard, const char *path, const dr__source_options *options,
                           dr__tar_index *out, dr_error *err)
{
    char name[MAX_PATH];
    uint8_t *data = NULL;
    snprintf(name, sizeof name, "%s" DR__SHARD_INDEX, path);
    dr_status status = read_file(name, options, shard->index_size, &data, err);
    if (status == DR_OK && XXH3_64bits(data, shard->index_size) != shard->index_sum)
        status = dr__fail(err, DR_ERR_FORMAT, "%s: is damaged: its checksum is wrong", name);
    if (status == DR_OK)
        status = dr__tar_index_decode(data, shard->index_size, DR__PACKED_WHAT, shard->size, 0, out, err);
    if (status == DR_OK && (out->keys.n != shard->samples || !out->sums)) {
        dr__tar_index_free(out);
        status = dr__fail(err, DR_ERR_FORMAT, "%s: has %zu samples, the manifest says %" PRIu64, name, out->keys.n,
                          shard->samples);
    }
    dr__free(data);
    return status;
}

/* --- from the shard --- */

struct scan {
    dr__tar_reader reader;
    dr__source *source;
    dr__tar_index *index;
    const dr__manifest *manifest;
    dr__key_form keys;
    uint8_t *data; /* of a member */
    size_t data_cap;
};

static dr_status no_memory(const struct scan *s, dr_error *err)
{
    return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory for its index", s->source->name);
}

static dr_status read_member(struct scan *s, const dr__tar_member *m, dr_error *err)
{
    size_t got;
    uint8_t *data = dr__grow(s->data, &s->data_cap, m->size ? m->size : 1, 1);
    if (!data)
        return no_memory(s, err);
    s->data = data;
    DR_TRY(dr__source_read_at(s->source, data, m->size, m->offset, &got, err));
    return got == m->size ? DR_OK : dr__fail(err, DR_ERR_FORMAT, "%s: truncated", s->source->name);
}

/* The key that a sample had, by its first member. */
static dr_status add_origin(struct scan *s, const dr__tar_member *m, dr_error *err)
{
    const char *stem = dr__names_get(&s->index->keys, s->index->keys.n - 1);
    const size_t stem_len = strlen(stem);
    bool good;
    if (!strcmp(m->name + stem_len, "." DR__ORIGIN_EXT)) {
        char *key = m->size <= MAX_ORIGIN ? dr__origin_get(s->data, m->size, NULL) : NULL;
        good = dr__names_add(&s->index->origins, key ? key : stem, strlen(key ? key : stem));
        dr__free(key);
    } else if (s->keys == DR__KEY_PATH) {
        good = dr__names_add(&s->index->origins, m->name, m->name_len);
    } else {
        good = dr__names_add(&s->index->origins, stem, stem_len);
    }
    return good ? DR_OK : no_memory(s, err);
}

/* What a compressed member decompresses to: by its own words, or by doing it. */
static dr_status raw_size(struct scan *s, const dr__tar_member *m, const char *ext, uint32_t *out, dr_error *err)
{
    dr__member_form form;
    dr_codec_frame frame;
    uint64_t raw = 0;
    *out = 0;
    if (dr__manifest_member_of(s->manifest, ext, &form) < 0 || form < DR__MEMBER_TOOL)
        return DR_OK;
    if (form == DR__MEMBER_FRAME) {
        DR_TRY(dr_codec_peek(s->data, m->size, &frame, err));
        raw = frame.raw_bytes;
    } else {
        uint8_t *made;
        size_t n;
        DR_TRY(dr_codec_decompress(s->data, m->size, NULL, UINT32_MAX, &made, &n, err));
        dr_codec_free(made);
        raw = n;
    }
    *out = (uint32_t)raw;
    return raw <= UINT32_MAX ? DR_OK : dr__fail(err, DR_ERR_LIMIT, "%s: a sample may have 4 GB", s->source->name);
}

static dr_status add_raw_size(struct scan *s, const dr__tar_member *m, dr_error *err)
{
    dr__tar_index *x = s->index;
    uint32_t *raw = dr__grow(x->raw_sizes, &x->raw_cap, x->n_parts, sizeof *raw);
    if (!raw)
        return no_memory(s, err);
    x->raw_sizes = raw;
    return raw_size(s, m, dr__names_get(&x->exts, x->part_ext[x->n_parts - 1]), &raw[x->n_parts - 1], err);
}

static dr_status take_member(struct scan *s, const dr__tar_member *m, dr_error *err)
{
    dr__tar_index *x = s->index;
    const size_t n_samples = x->keys.n, n_parts = x->n_parts;
    int64_t label = DR__LABEL_BAD, value;
    DR_TRY(read_member(s, m, err));
    if (m->size < 64 && dr__parse_i64((const char *)s->data, m->size, &value))
        label = value;
    DR_TRY(dr__tar_index_add(x, s->source, m, label, err));
    if (x->keys.n > n_samples)
        DR_TRY(add_origin(s, m, err));
    if (x->n_parts == n_parts)
        return DR_OK;
    uint64_t *sums = dr__grow(x->sums, &x->sums_cap, x->n_parts, sizeof *sums);
    if (!sums)
        return no_memory(s, err);
    x->sums = sums;
    sums[n_parts] = XXH3_64bits(s->data, m->size);
    return add_raw_size(s, m, err);
}

static dr_status scan(struct scan *s, dr_error *err)
{
    dr__tar_member member;
    dr_status status = dr__tar_open(&s->reader, s->source, err);
    s->index->tar_size = s->reader.size;
    while (status == DR_OK) {
        status = dr__tar_next(&s->reader, &member, err);
        if (status == DR_OK)
            status = take_member(s, &member, err);
    }
    return status == DR_END ? DR_OK : status;
}

static dr_status from_shard(const dr__manifest *manifest, const dr__set_shard *shard, const char *path,
                            const dr__source_options *options, dr__tar_index *out, dr_error *err)
{
    uint64_t sum, size;
    struct scan s = { .index = out, .manifest = manifest, .keys = shard->keys };
    DR_TRY(dr__packed_sum(path, options, &sum, &size, err));
    if (size != shard->size || sum != shard->sum)
        return dr__fail(err, DR_ERR_FORMAT, "%s: both the shard and its index are damaged", path);
    *out = (dr__tar_index){ 0 };
    DR_TRY(dr__source_open(path, options, &s.source, err));
    dr_status status = scan(&s, err);
    if (status == DR_OK && out->keys.n != shard->samples)
        status = dr__fail(err, DR_ERR_FORMAT, "%s: has %zu samples, the manifest says %" PRIu64, path, out->keys.n,
                          shard->samples);
    dr__free(s.data);
    dr__source_close(&s.source);
    if (status != DR_OK)
        dr__tar_index_free(out);
    return status;
}

dr_status dr__packed_index(const dr__manifest *manifest, const dr__set_shard *shard, const char *path,
                           const dr__source_options *options, dr__tar_index *out, dr_error *err)
{
    dr_status status = from_file(shard, path, options, out, NULL);
    if (status != DR_OK)
        status = from_shard(manifest, shard, path, options, out, err);
    if (status == DR_OK) {
        dr__names_free(&out->keys); /* samples are known by the keys that they had */
        dr__names_shrink(&out->origins);
    }
    return status;
}
