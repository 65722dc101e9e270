/* tar_index_file.c: the index of a shard as a file.
 *
 *   section 1  text: what the index is of; in the cache folder also the shard's real path
 *   section 2  u64 tar size, u64 tar version, u64 n_samples, u64 n_members, u32 flags, u32 n_exts, the extensions
 *   section 3  the keys
 *   section 4  for each sample: u64 header, u64 label, u32 number of members
 *   section 5  for each member: u32 offset, u32 size, u8 extension
 *   section 6  in packed sets, for each member: u64 xxh3 of its bytes
 *   section 8  in packed sets, for each member: u32 size once it is decompressed, 0 where it is not compressed
 *   section 7  in packed sets: the keys that the samples had where they came from
 *
 * Texts end with a zero byte.  The index holds while the shard has its size and version (dr__source_facts).
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "index/index_file.h"
#include "format/tar_index.h"

enum { WHAT = 1, FACTS = 2, KEYS = 3, SAMPLES = 4, MEMBERS = 5, SUMS = 6, ORIGINS = 7, RAW_SIZES = 8, N_SECTIONS = 8 };
enum { HAS_LABELS = 1 }; /* flag 2 was two_images, which follows from the members */

static const char beside_what[] = "tar";

static dr_status wrong(dr_error *err)
{
    return dr__fail(err, DR_ERR_FORMAT, "index: does not fit the shard");
}

static dr_status take_names(dr_cursor *c, uint64_t n, dr__names *out, dr_error *err)
{
    const char *text;
    size_t len;
    for (uint64_t i = 0; i < n; i++) {
        DR_TRY(dr__cursor_text(c, &text, &len, err));
        if (!dr__names_add(out, text, len))
            return dr__fail(err, DR_ERR_NOMEM, "index: out of memory");
    }
    return dr__cursor_left(c) ? wrong(err) : DR_OK;
}

static dr_status take_samples(dr_cursor *c, dr__tar_index *x, dr_error *err)
{
    uint64_t label, first = 0;
    uint32_t n;
    for (size_t i = 0; i < x->keys.n; i++) {
        dr__tar_sample *s = &x->samples[i];
        DR_TRY(dr__cursor_u64(c, &s->header, err));
        DR_TRY(dr__cursor_u64(c, &label, err));
        DR_TRY(dr__cursor_u32(c, &n, err));
        s->label = (int64_t)label;
        s->first = (uint32_t)first;
        first += n;
        if (first > x->n_parts || s->header > x->tar_size)
            return wrong(err);
    }
    return first == x->n_parts && !dr__cursor_left(c) ? DR_OK : wrong(err);
}

static dr_status take_members(dr_cursor *c, dr__tar_index *x, dr_error *err)
{
    for (size_t s = 0; s < x->keys.n; s++) {
        size_t end = s + 1 < x->keys.n ? x->samples[s + 1].first : x->n_parts;
        uint64_t room = x->tar_size - x->samples[s].header;
        int n_images = 0;
        for (size_t i = x->samples[s].first; i < end; i++) {
            DR_TRY(dr__cursor_u32(c, &x->parts[i].offset, err));
            DR_TRY(dr__cursor_u32(c, &x->parts[i].size, err));
            DR_TRY(dr__cursor_u8(c, &x->part_ext[i], err));
            if ((uint64_t)x->parts[i].offset + x->parts[i].size > room || x->part_ext[i] >= x->exts.n)
                return wrong(err);
            n_images += x->image_ext[x->part_ext[i]];
        }
        x->two_images = x->two_images || n_images > 1;
    }
    return dr__cursor_left(c) ? wrong(err) : DR_OK;
}

static dr_status take_facts(dr_cursor *c, uint64_t *n_samples, uint64_t *n_parts, dr__tar_index *x, dr_error *err)
{
    uint64_t size, version;
    uint32_t flags, n_exts;
    DR_TRY(dr__cursor_u64(c, &size, err));
    DR_TRY(dr__cursor_u64(c, &version, err));
    DR_TRY(dr__cursor_u64(c, n_samples, err));
    DR_TRY(dr__cursor_u64(c, n_parts, err));
    DR_TRY(dr__cursor_u32(c, &flags, err));
    DR_TRY(dr__cursor_u32(c, &n_exts, err));
    if (size != x->tar_size || version != x->tar_version || n_exts > DR__TAR_MAX_EXTS)
        return wrong(err);
    x->has_labels = flags & HAS_LABELS;
    DR_TRY(take_names(c, n_exts, &x->exts, err));
    for (size_t i = 0; i < x->exts.n; i++)
        x->image_ext[i] = dr__tar_is_image(dr__names_get(&x->exts, i));
    return DR_OK;
}

/* Counts are checked against the lengths of their sections before memory is allocated. */
static dr_status make_room(dr__tar_index *x, uint64_t n_samples, uint64_t n_parts, const dr_cursor *samples,
                           const dr_cursor *members, dr_error *err)
{
    if (n_samples != dr__cursor_left(samples) / 20 || n_parts != dr__cursor_left(members) / 9 || n_parts > UINT32_MAX)
        return wrong(err);
    x->samples_cap = (size_t)n_samples;
    x->n_parts = x->parts_cap = x->part_ext_cap = (size_t)n_parts;
    x->samples = dr__alloc_zero(x->samples_cap, sizeof *x->samples);
    x->parts = dr__alloc_zero(x->parts_cap, sizeof *x->parts);
    x->part_ext = dr__alloc_zero(x->part_ext_cap, 1);
    return x->samples && x->parts && x->part_ext ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "index: out of memory");
}

static dr_status take_raw_sizes(const void *data, size_t size, dr__tar_index *x, dr_error *err)
{
    dr_cursor c;
    DR_TRY(dr__index_section(data, size, RAW_SIZES, &c, err));
    if (x->n_parts != dr__cursor_left(&c) / 4 || dr__cursor_left(&c) % 4)
        return wrong(err);
    x->raw_cap = x->n_parts;
    x->raw_sizes = dr__alloc_zero(x->n_parts ? x->n_parts : 1, sizeof *x->raw_sizes);
    if (!x->raw_sizes)
        return dr__fail(err, DR_ERR_NOMEM, "index: out of memory");
    for (size_t i = 0; i < x->n_parts; i++)
        DR_TRY(dr__cursor_u32(&c, &x->raw_sizes[i], err));
    return DR_OK;
}

/* The sections of packed sets, where they are. */
static dr_status take_packed(const void *data, size_t size, dr__tar_index *x, dr_error *err)
{
    dr_cursor c;
    if (dr__index_section(data, size, SUMS, &c, NULL) != DR_OK)
        return DR_OK;
    if (x->n_parts != dr__cursor_left(&c) / 8 || dr__cursor_left(&c) % 8)
        return wrong(err);
    x->sums_cap = x->n_parts;
    x->sums = dr__alloc_zero(x->n_parts ? x->n_parts : 1, sizeof *x->sums);
    if (!x->sums)
        return dr__fail(err, DR_ERR_NOMEM, "index: out of memory");
    for (size_t i = 0; i < x->n_parts; i++)
        DR_TRY(dr__cursor_u64(&c, &x->sums[i], err));
    DR_TRY(take_raw_sizes(data, size, x, err));
    DR_TRY(dr__index_section(data, size, ORIGINS, &c, err));
    return take_names(&c, x->keys.n, &x->origins, err);
}

static dr_status decode(const void *data, size_t size, const char *what, dr__tar_index *x, dr_error *err)
{
    dr_cursor c, samples, members;
    const char *text;
    size_t len;
    uint64_t n_samples, n_parts;
    DR_TRY(dr__index_section(data, size, WHAT, &c, err));
    DR_TRY(dr__cursor_text(&c, &text, &len, err));
    if (strcmp(text, what))
        return dr__fail(err, DR_ERR_FORMAT, "index: of something else");
    DR_TRY(dr__index_section(data, size, FACTS, &c, err));
    DR_TRY(take_facts(&c, &n_samples, &n_parts, x, err));
    DR_TRY(dr__index_section(data, size, SAMPLES, &samples, err));
    DR_TRY(dr__index_section(data, size, MEMBERS, &members, err));
    DR_TRY(make_room(x, n_samples, n_parts, &samples, &members, err));
    DR_TRY(dr__index_section(data, size, KEYS, &c, err));
    DR_TRY(take_names(&c, n_samples, &x->keys, err));
    DR_TRY(take_samples(&samples, x, err));
    DR_TRY(take_members(&members, x, err));
    return take_packed(data, size, x, err);
}

dr_status dr__tar_index_decode(const void *data, size_t size, const char *what, uint64_t tar_size, uint64_t tar_version,
                               dr__tar_index *out, dr_error *err)
{
    *out = (dr__tar_index){ .tar_size = tar_size, .tar_version = tar_version };
    dr_status status = decode(data, size, what, out, err);
    if (status != DR_OK)
        dr__tar_index_free(out);
    return status;
}

static void encode(dr__section *s, const char *what, const dr__tar_index *x)
{
    dr__put_bytes(&s[0], what, strlen(what) + 1);
    dr__put_u64(&s[1], x->tar_size);
    dr__put_u64(&s[1], x->tar_version);
    dr__put_u64(&s[1], x->keys.n);
    dr__put_u64(&s[1], x->n_parts);
    dr__put_u32(&s[1], x->has_labels ? HAS_LABELS : 0u);
    dr__put_u32(&s[1], (uint32_t)x->exts.n);
    dr__put_bytes(&s[1], x->exts.block, x->exts.used);
    dr__put_bytes(&s[2], x->keys.block, x->keys.used);
    for (size_t i = 0; i < x->keys.n; i++) {
        size_t end = i + 1 < x->keys.n ? x->samples[i + 1].first : x->n_parts;
        dr__put_u64(&s[3], x->samples[i].header);
        dr__put_u64(&s[3], (uint64_t)x->samples[i].label);
        dr__put_u32(&s[3], (uint32_t)(end - x->samples[i].first));
    }
    for (size_t i = 0; i < x->n_parts; i++) {
        dr__put_u32(&s[4], x->parts[i].offset);
        dr__put_u32(&s[4], x->parts[i].size);
        dr__put_u8(&s[4], x->part_ext[i]);
    }
}

static int encode_all(dr__section s[N_SECTIONS], const char *what, const dr__tar_index *x)
{
    static const uint32_t ids[N_SECTIONS] = { WHAT, FACTS, KEYS, SAMPLES, MEMBERS, SUMS, ORIGINS, RAW_SIZES };
    for (int i = 0; i < N_SECTIONS; i++)
        s[i] = (dr__section){ .id = ids[i] };
    encode(s, what, x);
    if (!x->sums)
        return SUMS - 1;
    for (size_t i = 0; i < x->n_parts; i++)
        dr__put_u64(&s[SUMS - 1], x->sums[i]);
    dr__put_bytes(&s[ORIGINS - 1], x->origins.block, x->origins.used);
    for (size_t i = 0; i < x->n_parts; i++)
        dr__put_u32(&s[RAW_SIZES - 1], x->raw_sizes ? x->raw_sizes[i] : 0);
    return N_SECTIONS;
}

void dr__tar_index_encode(const dr__tar_index *x, const char *what, dr__section *out)
{
    dr__section sections[N_SECTIONS];
    const int n = encode_all(sections, what, x);
    dr__index_encode(sections, n, out);
    dr__sections_free(sections, n);
}

static bool save(const char *path, bool beside, const char *what, const dr__tar_index *x)
{
    dr__section sections[N_SECTIONS];
    if (!path)
        return false;
    const int n = encode_all(sections, what, x);
    bool good = dr__index_save(path, beside, sections, n);
    dr__sections_free(sections, n);
    return good;
}

static bool load(const char *path, const char *what, dr__source *source, uint64_t tar_size, dr__tar_index *out)
{
    size_t size;
    uint8_t *data = dr__index_load(path, &size);
    bool good = data && dr__tar_index_decode(data, size, what, tar_size, source->facts.version, out, NULL) == DR_OK;
    dr__free(data);
    return good;
}

static dr_status load_or_build(dr__source *source, dr__tar_index *out, dr_error *err)
{
    char real[PATH_MAX], beside[PATH_MAX + 32], what[PATH_MAX + 8];
    dr__index_paths place;
    uint64_t size;
    DR_TRY(dr__source_size(source, &size, err));
    if (!source->facts.version || !dr__source_real_name(source->name, real, sizeof real)) /* nothing to know it by */
        return dr__tar_index_build(source, out, err);
    snprintf(what, sizeof what, "tar %s", real);
    snprintf(beside, sizeof beside, "%s.drapps-index", real);
    dr__index_paths_make(&place, source->def->remote ? NULL : beside, what);
    dr_status status = DR_OK;
    if (!load(place.beside, beside_what, source, size, out) && !load(place.cached, what, source, size, out)) {
        status = dr__tar_index_build(source, out, err);
        if (status == DR_OK && !save(place.beside, true, beside_what, out))
            save(place.cached, false, what, out);
    }
    dr__index_paths_free(&place);
    return status;
}

dr_status dr__tar_index_open(const char *path, const dr__source_options *options, bool use_index, dr__tar_index *out,
                             dr_error *err)
{
    dr__source *source;
    *out = (dr__tar_index){ 0 };
    DR_TRY(dr__source_open(path, options, &source, err));
    dr_status status = use_index ? load_or_build(source, out, err) : dr__tar_index_build(source, out, err);
    dr__source_close(&source);
    if (status == DR_OK) {
        dr__names_shrink(&out->keys);
        dr__names_shrink(&out->exts);
    }
    return status;
}
