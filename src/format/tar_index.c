/* tar_index.c: building the index of a shard from its headers. */
#include "format/tar_index.h"

#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/grow.h"
#include "base/parse.h"
#include "codec/file_types.h"
#include "format/tar_reader.h"

enum { MAX_EXT = 63, MAX_LABEL_TEXT = 64 };

static dr_status no_memory(const dr__source *source, dr_error *err)
{
    return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory for its index", source->name);
}

void dr__tar_index_free(dr__tar_index *x)
{
    dr__names_free(&x->keys);
    dr__names_free(&x->exts);
    dr__free(x->samples);
    dr__free(x->parts);
    dr__free(x->part_ext);
    dr__free(x->sums);
    dr__free(x->raw_sizes);
    dr__names_free(&x->origins);
    *x = (dr__tar_index){ 0 };
}

bool dr__tar_is_image(const char *ext)
{
    char dotted[MAX_EXT + 2] = ".";
    const size_t len = strlen(ext);
    if (len > MAX_EXT)
        return false;
    memcpy(dotted + 1, ext, len + 1);
    const dr__file_type *type = dr__file_type_find(dotted);
    return type && type->kind == DR__FILE_IMAGE;
}

/* Splits "a/b.seg.png" into key "a/b" and "seg.png"; false for names without a dot or with nothing before it. */
static bool split(const dr__tar_member *m, size_t *key_len, char ext[MAX_EXT + 1], size_t *ext_len)
{
    const char *slash = strrchr(m->name, '/'), *base = slash ? slash + 1 : m->name, *dot = strchr(base, '.');
    if (!dot || dot == base)
        return false;
    *key_len = (size_t)(dot - m->name);
    *ext_len = m->name_len - *key_len - 1;
    for (size_t i = 0; i < DR_MIN(*ext_len, (size_t)MAX_EXT) + 1; i++) { /* with the end */
        char c = dot[1 + i];
        ext[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    return true;
}

static int find_ext(const dr__names *exts, const char *ext)
{
    for (size_t i = 0; i < exts->n; i++)
        if (!strcmp(dr__names_get(exts, i), ext))
            return (int)i;
    return -1;
}

static bool start_sample(dr__tar_index *x, const dr__tar_member *m, size_t key_len)
{
    dr__tar_sample *samples = dr__grow(x->samples, &x->samples_cap, x->keys.n + 1, sizeof *samples);
    if (!samples || x->n_parts > UINT32_MAX)
        return false;
    x->samples = samples;
    samples[x->keys.n] =
        (dr__tar_sample){ .header = m->header, .label = DR__LABEL_NONE, .first = (uint32_t)x->n_parts };
    return dr__names_add(&x->keys, m->name, key_len);
}

static dr_status add_ext(dr__tar_index *x, dr__source *source, const char *ext, size_t len, int *number, dr_error *err)
{
    *number = find_ext(&x->exts, ext);
    if (*number >= 0)
        return DR_OK;
    if (x->exts.n == DR__TAR_MAX_EXTS)
        return dr__fail(err, DR_ERR_LIMIT, "%s: more than %d kinds of members; a key ends at the first dot of the name",
                        source->name, DR__TAR_MAX_EXTS);
    *number = (int)x->exts.n;
    x->image_ext[*number] = dr__tar_is_image(ext);
    return dr__names_add(&x->exts, ext, len) ? DR_OK : no_memory(source, err);
}

static dr_status check_twice(dr__tar_index *x, dr__source *source, int number, dr_error *err)
{
    size_t s = x->keys.n - 1;
    for (size_t i = x->samples[s].first; i < x->n_parts; i++) {
        if (x->part_ext[i] == number)
            return dr__fail(err, DR_ERR_FORMAT, "%s: sample \"%.200s\" has two members .%s", source->name,
                            dr__names_get(&x->keys, s), dr__names_get(&x->exts, (size_t)number));
        x->two_images = x->two_images || (x->image_ext[number] && x->image_ext[x->part_ext[i]]);
    }
    return DR_OK;
}

static dr_status add_part(dr__tar_index *x, dr__source *source, const dr__tar_member *m, const char *ext, size_t len,
                          dr_error *err)
{
    int number;
    uint64_t offset = m->offset - x->samples[x->keys.n - 1].header;
    if (len > MAX_EXT)
        return dr__fail(err, DR_ERR_LIMIT, "%s: member %.200s: what follows the first dot is longer than %d bytes",
                        source->name, m->name, MAX_EXT);
    if (offset > UINT32_MAX || m->size > UINT32_MAX)
        return dr__fail(err, DR_ERR_LIMIT, "%s: member %.200s: a sample may have 4 GB", source->name, m->name);
    DR_TRY(add_ext(x, source, ext, len, &number, err));
    DR_TRY(check_twice(x, source, number, err));
    dr__tar_part *parts = dr__grow(x->parts, &x->parts_cap, x->n_parts + 1, sizeof *parts);
    if (!parts)
        return no_memory(source, err);
    x->parts = parts;
    uint8_t *part_ext = dr__grow(x->part_ext, &x->part_ext_cap, x->n_parts + 1, 1);
    if (!part_ext)
        return no_memory(source, err);
    x->part_ext = part_ext;
    parts[x->n_parts] = (dr__tar_part){ (uint32_t)offset, (uint32_t)m->size };
    part_ext[x->n_parts++] = (uint8_t)number;
    return DR_OK;
}

static dr_status add_label(dr__tar_index *x, dr__source *source, int64_t label, dr_error *err)
{
    dr__tar_sample *s = &x->samples[x->keys.n - 1];
    if (s->label != DR__LABEL_NONE)
        return dr__fail(err, DR_ERR_FORMAT, "%s: sample \"%.200s\" has two members .cls", source->name,
                        dr__names_get(&x->keys, x->keys.n - 1));
    x->has_labels = true;
    s->label = label;
    return DR_OK;
}

dr_status dr__tar_index_add(dr__tar_index *x, dr__source *source, const dr__tar_member *m, int64_t label, dr_error *err)
{
    char ext[MAX_EXT + 1] = "";
    size_t key_len, ext_len, last = x->keys.n - 1;
    if (!split(m, &key_len, ext, &ext_len))
        return DR_OK;
    bool same = x->keys.n && dr__names_len(&x->keys, last) == key_len &&
                !memcmp(dr__names_get(&x->keys, last), m->name, key_len);
    if (!same && !start_sample(x, m, key_len))
        return no_memory(source, err);
    if (ext_len == 3 && !memcmp(ext, "cls", 3))
        return add_label(x, source, label, err);
    return add_part(x, source, m, ext, ext_len, err);
}

/* The number in a .cls member. */
static dr_status read_label(dr__tar_reader *r, const dr__tar_member *m, int64_t *label, dr_error *err)
{
    char ext[MAX_EXT + 1] = "";
    size_t key_len, ext_len;
    const uint8_t *text;
    int64_t value;
    *label = DR__LABEL_BAD;
    if (!split(m, &key_len, ext, &ext_len) || strcmp(ext, "cls") || m->size > MAX_LABEL_TEXT)
        return DR_OK;
    DR_TRY(dr__tar_peek(r, m->offset, (size_t)m->size, &text, err));
    if (dr__parse_i64((const char *)text, (size_t)m->size, &value) && value > DR__LABEL_BAD)
        *label = value;
    return DR_OK;
}

static dr_status add_member(dr__tar_index *x, dr__tar_reader *r, const dr__tar_member *m, dr_error *err)
{
    int64_t label;
    DR_TRY(read_label(r, m, &label, err));
    return dr__tar_index_add(x, r->source, m, label, err);
}

dr_status dr__tar_index_build(dr__source *source, dr__tar_index *out, dr_error *err)
{
    dr__tar_member member;
    dr__tar_reader reader;
    *out = (dr__tar_index){ .tar_version = source->facts.version };
    dr_status status = dr__tar_open(&reader, source, err);
    out->tar_size = reader.size;
    while (status == DR_OK) {
        status = dr__tar_next(&reader, &member, err);
        if (status == DR_OK)
            status = add_member(out, &reader, &member, err);
    }
    if (status == DR_END)
        return DR_OK;
    dr__tar_index_free(out);
    return status;
}
