/* tar.c: tar shards in WebDataset form as one data set.
 *
 * Fields are the extensions that occur in any shard: those of image files (codec/file_types.h) are the field "image",
 * .cls is "label", .txt and .json are texts, the rest bytes.  Where samples have images in two encodings (picture.jpg,
 * depth.png), only the extension that comes first in file_types.h is "image", and the others keep their names.
 *
 * A folder with a manifest (set_manifest.h) is a packed set, which packed.c reads.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "codec/file_types.h"
#include "data/desc.h"
#include "format/braces.h"
#include "format/dataset_internal.h"
#include "format/packed.h"
#include "format/shard_source.h"
#include "format/tar_index.h"

enum { LOOK_AT = 256 };

struct shard {
    dr__tar_index index;
    uint64_t first; /* number of its first sample */
    dr__shard_source source;
    uint8_t field_of[DR__TAR_MAX_EXTS]; /* field of each of its extensions */
};

struct tar {
    dr_dataset head;
    dr__source_options options; /* credentials: owned */
    dr__names paths;
    struct shard *shards;
    size_t n_shards;
    int label_field, key_field; /* label: -1 for none */
    const char *image_ext;      /* with two encodings in a sample: which is the image; NULL: all are */
};

static size_t shard_of(const struct tar *t, uint64_t id)
{
    size_t lo = 0, hi = t->n_shards;
    while (hi - lo > 1) { /* shards without samples share the start of the next */
        size_t mid = lo + (hi - lo) / 2;
        if (t->shards[mid].first <= id)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static dr_status read_part(dr__source *source, uint64_t header, const dr__tar_part *part, void *data, dr_error *err)
{
    size_t got;
    DR_TRY(dr__source_read_at(source, data, part->size, header + part->offset, &got, err));
    if (got == part->size)
        return DR_OK;
    return dr__fail(err, DR_ERR_FORMAT, "%s: truncated: %u bytes wanted at %" PRIu64 ", %zu there", source->name,
                    part->size, header + part->offset, got);
}

static size_t parts_end(const dr__tar_index *x, size_t k)
{
    return k + 1 < x->keys.n ? x->samples[k + 1].first : x->n_parts;
}

/* What the sample has no member for: nothing, but an image or a label must be there. */
static dr_status absent(const struct tar *t, const struct shard *s, size_t k, int field, dr__record *record,
                        dr_error *err)
{
    const dr__field *f = &t->head.fields[field];
    if (field == t->label_field || !strcmp(f->name, "image"))
        return dr__fail(err, DR_ERR_FORMAT, "%s: sample \"%s\" has no %s",
                        dr__names_get(&t->paths, (size_t)(s - t->shards)), dr__names_get(&s->index.keys, k),
                        field == t->label_field ? ".cls member" : "image");
    return dr__record_bytes(record, f->desc.kind, "", 0, err);
}

static bool is_image(const struct tar *t, int field)
{
    return !strcmp(t->head.fields[field].name, "image");
}

/* The member that is the image, in this version of the shard. */
static uint64_t name_of_part(const struct tar *t, const struct shard *s, size_t k, size_t part)
{
    const dr__tar_index *x = &s->index;
    const char *path = dr__names_get(&t->paths, (size_t)(s - t->shards));
    const uint64_t facts[] = { x->tar_size, x->tar_version, x->samples[k].header + x->parts[part].offset,
                               x->parts[part].size };
    return XXH3_64bits_withSeed(facts, sizeof facts, XXH3_64bits(path, strlen(path)));
}

/* One image of a sample that is read with a ranger. */
static dr_status read_image(const struct tar *t, const struct shard *s, size_t k, size_t part, int field,
                            dr__source *source, dr__record *record, dr_error *err)
{
    const dr__tar_index *x = &s->index;
    size_t size;
    const uint8_t *bytes = dr__record_stand_in(record, name_of_part(t, s, k, part), &size);
    if (!bytes)
        size = x->parts[part].size;
    void *data = dr__record_take(record, size);
    if (!data)
        return dr__fail(err, DR_ERR_NOMEM, "%s: no room for a sample", source->name);
    if (bytes)
        memcpy(data, bytes, size);
    else
        DR_TRY(read_part(source, x->samples[k].header, &x->parts[part], data, err));
    dr__record_ranged(record, &t->head, s->first + k, data);
    record->ranged.known = true;
    record->ranged.remote = source->def->remote;
    return dr__record_bytes(record, t->head.fields[field].desc.kind, data, size, err);
}

static dr_status read_field(const struct tar *t, const struct shard *s, size_t k, int field, dr__source *source,
                            dr__record *record, dr_error *err)
{
    const dr__tar_index *x = &s->index;
    const dr__tar_sample *sample = &x->samples[k];
    if (field == t->key_field)
        return dr__record_text(record, dr__names_get(&x->keys, k), dr__names_len(&x->keys, k), err);
    if (field == t->label_field && sample->label > DR__LABEL_BAD)
        return dr__record_i64(record, sample->label, err);
    if (field == t->label_field && sample->label == DR__LABEL_BAD)
        return dr__fail(err, DR_ERR_FORMAT, "%s: sample \"%s\": its .cls member is not a whole number", source->name,
                        dr__names_get(&x->keys, k));
    for (size_t i = sample->first; i < parts_end(x, k); i++) {
        if (s->field_of[x->part_ext[i]] != field)
            continue;
        if (record->ranger && x->tar_version && is_image(t, field))
            return read_image(t, s, k, i, field, source, record, err);
        void *data = dr__record_take(record, x->parts[i].size);
        if (!data)
            return dr__fail(err, DR_ERR_NOMEM, "%s: no room for a sample", source->name);
        DR_TRY(read_part(source, sample->header, &x->parts[i], data, err));
        return dr__record_bytes(record, t->head.fields[field].desc.kind, data, x->parts[i].size, err);
    }
    return absent(t, s, k, field, record, err);
}

static size_t sample_bytes(const dr__tar_index *x, size_t k)
{
    size_t sum = 0;
    for (size_t i = x->samples[k].first; i < parts_end(x, k); i++)
        sum += x->parts[i].size;
    return sum;
}

static dr_status read_sample(const dr_dataset *set, uint64_t id, dr__record *record, dr_error *err)
{
    const struct tar *t = (const struct tar *)set;
    size_t i = shard_of(t, id), k = (size_t)(id - t->shards[i].first);
    const dr__tar_index *x = &t->shards[i].index;
    dr__source *source;
    bool own;
    const size_t overhead = dr__record_overhead((size_t)set->n_fields);
    const size_t head = record->ranger ? DR__JPEG_HEAD_MOST : 0;
    DR_TRY(dr__record_reset(record, sample_bytes(x, k) + head + dr__names_len(&x->keys, k) + 8 + overhead, err));
    DR_TRY(dr__shard_source_get(&t->shards[i].source, i, dr__names_get(&t->paths, i), &t->options, &source, &own, err));
    dr_status status = DR_OK;
    for (int f = 0; f < set->n_fields && status == DR_OK; f++)
        status = read_field(t, &t->shards[i], k, f, source, record, err);
    if (own)
        dr__source_close(&source);
    return status;
}

static dr_status read_ranges(const dr_dataset *set, uint64_t id, uint64_t version, const dr__byte_ranges *ranges,
                             uint8_t *to, dr_error *err)
{
    const struct tar *t = (const struct tar *)set;
    const size_t i = shard_of(t, id), k = (size_t)(id - t->shards[i].first);
    const struct shard *s = &t->shards[i];
    const dr__tar_index *x = &s->index;
    size_t part = x->samples[k].first;
    dr__source *source;
    bool own;
    (void)version; /* the name has that of the shard */
    while (part < parts_end(x, k) && !is_image(t, s->field_of[x->part_ext[part]]))
        part++;
    if (part == parts_end(x, k))
        return dr__fail(err, DR_ERR_FORMAT, "%s: sample \"%s\" has no image", dr__names_get(&t->paths, i),
                        dr__names_get(&x->keys, k));
    DR_TRY(dr__shard_source_get(&t->shards[i].source, i, dr__names_get(&t->paths, i), &t->options, &source, &own, err));
    dr_status status = source->facts.version == x->tar_version
                           ? dr__shard_source_ranges(source, x->samples[k].header + x->parts[part].offset,
                                                     x->parts[part].size, ranges, to, err)
                           : dr__fail(err, DR_ERR_STATE, "%s: was changed while the data set is open", source->name);
    if (own)
        dr__source_close(&source);
    return status;
}

static void key(const dr_dataset *set, uint64_t id, char *text, size_t size)
{
    const struct tar *t = (const struct tar *)set;
    const struct shard *s = &t->shards[shard_of(t, id)];
    snprintf(text, size, "%s", dr__names_get(&s->index.keys, (size_t)(id - s->first)));
}

static dr_status file(const dr_dataset *set, uint64_t id, int field, char *text, size_t size, dr_error *err)
{
    const struct tar *t = (const struct tar *)set;
    const struct shard *s = &t->shards[shard_of(t, id)];
    const dr__tar_index *x = &s->index;
    const size_t k = (size_t)(id - s->first);
    for (size_t i = x->samples[k].first; i < parts_end(x, k); i++) {
        if (s->field_of[x->part_ext[i]] != field)
            continue;
        const int n =
            snprintf(text, size, "%s.%s", dr__names_get(&x->keys, k), dr__names_get(&x->exts, x->part_ext[i]));
        return n < (int)size ? DR_OK : dr__fail(err, DR_ERR_LIMIT, "%.200s...: path too long", text);
    }
    return dr__dataset_no_file(set, field, err);
}

static void where(const dr_dataset *set, uint64_t id, int field, dr__where *out)
{
    const struct tar *t = (const struct tar *)set;
    const size_t shard = shard_of(t, id), k = (size_t)(id - t->shards[shard].first);
    const struct shard *s = &t->shards[shard];
    const dr__tar_index *x = &s->index;
    if (field == t->key_field) {
        out->form = DR__WHERE_KEY;
        return;
    }
    if (field == t->label_field) {
        out->form = x->samples[k].label > DR__LABEL_BAD ? DR__WHERE_NUMBER : DR__WHERE_UNKNOWN;
        out->number = x->samples[k].label;
        return;
    }
    for (size_t i = x->samples[k].first; i < parts_end(x, k); i++) {
        if (s->field_of[x->part_ext[i]] != field)
            continue;
        const int n = snprintf(out->path, sizeof out->path, "%s", dr__names_get(&t->paths, shard));
        out->form = n < (int)sizeof out->path ? DR__WHERE_RANGE : DR__WHERE_UNKNOWN;
        out->offset = x->samples[k].header + x->parts[i].offset;
        out->size = x->parts[i].size;
        return;
    }
}

static dr_status stamp(const dr_dataset *set, uint64_t id, dr__stamp *out, dr_error *err)
{
    const struct tar *t = (const struct tar *)set;
    size_t i = shard_of(t, id);
    const dr__tar_index *x = &t->shards[i].index;
    const char *path = dr__names_get(&t->paths, i);
    if (!x->tar_version)
        return dr__fail(err, DR_ERR_UNSUPPORTED, "%s: its version is not known", path);
    uint64_t facts[] = { x->tar_size, x->tar_version, x->samples[id - t->shards[i].first].header };
    out->version = XXH3_64bits_withSeed(facts, sizeof facts, XXH3_64bits(path, strlen(path)));
    out->modified = XXH3_64bits(facts, sizeof facts); /* the index has no time, only the version */
    return DR_OK;
}

static void close_tar(dr_dataset *set)
{
    struct tar *t = (struct tar *)set;
    for (size_t i = 0; i < t->n_shards; i++) {
        dr__shard_source_close(&t->shards[i].source);
        dr__tar_index_free(&t->shards[i].index);
    }
    dr__free(t->shards);
    dr__free((char *)t->options.credentials);
    dr__names_free(&t->paths);
}

static const dr_dataset_def tar_def = {
    .read = read_sample,
    .key = key,
    .stamp = stamp,
    .read_ranges = read_ranges,
    .file = file,
    .where = where,
    .close = close_tar,
};

static bool has_ext(const struct tar *t, const char *ext)
{
    for (size_t i = 0; i < t->n_shards; i++)
        for (size_t e = 0; e < t->shards[i].index.exts.n; e++)
            if (!strcmp(dr__names_get(&t->shards[i].index.exts, e), ext))
                return true;
    return false;
}

static void choose_image(struct tar *t)
{
    bool two = false;
    for (size_t i = 0; i < t->n_shards; i++)
        two = two || t->shards[i].index.two_images;
    for (const dr__file_type *type = dr__file_types; two && type->extension && !t->image_ext; type++)
        if (type->kind == DR__FILE_IMAGE && has_ext(t, type->extension + 1))
            t->image_ext = type->extension + 1;
}

static const char *field_name(const struct tar *t, const char *ext)
{
    bool image = t->image_ext ? !strcmp(ext, t->image_ext) : dr__tar_is_image(ext);
    return image ? "image" : ext;
}

/* Adds the field of an extension where it is new; "key", "label" and "image" as extensions would be taken for ours. */
static dr_status map_ext(struct tar *t, const char *ext, uint8_t *field, dr_error *err)
{
    const char *name = field_name(t, ext);
    bool text = !strcmp(ext, "txt") || !strcmp(ext, "json");
    dr_desc desc = text ? dr__desc_text(DR_UNKNOWN) : dr__desc_bytes(DR_UNKNOWN);
    int f = dr__dataset_find_field(&t->head, name);
    if (f >= 0 && (f == t->label_field || f == t->key_field))
        return dr__fail(err, DR_ERR_FORMAT, "%s: members .%s: the name is taken by the field of the label or key",
                        t->head.name, ext);
    if (f < 0) {
        DR_TRY(dr__dataset_add_field(&t->head, name, &desc, err));
        f = t->head.n_fields - 1;
    }
    *field = (uint8_t)f;
    return DR_OK;
}

static dr_status map_exts(struct tar *t, bool images, dr_error *err)
{
    for (size_t i = 0; i < t->n_shards; i++) {
        struct shard *s = &t->shards[i];
        for (size_t e = 0; e < s->index.exts.n; e++) {
            const char *ext = dr__names_get(&s->index.exts, e);
            if (!strcmp(field_name(t, ext), "image") == images)
                DR_TRY(map_ext(t, ext, &s->field_of[e], err));
        }
    }
    return DR_OK;
}

/* Image, label, key, then the rest in the order they were met. */
static dr_status add_fields(struct tar *t, dr_error *err)
{
    dr_desc label = dr__desc_scalar(DR_I64), text = dr__desc_text(DR_UNKNOWN);
    bool has_labels = false;
    choose_image(t);
    DR_TRY(map_exts(t, true, err));
    for (size_t i = 0; i < t->n_shards; i++)
        has_labels = has_labels || t->shards[i].index.has_labels;
    if (has_labels) {
        t->label_field = t->head.n_fields;
        DR_TRY(dr__dataset_add_field(&t->head, "label", &label, err));
    }
    t->key_field = t->head.n_fields;
    DR_TRY(dr__dataset_add_field(&t->head, "key", &text, err));
    return map_exts(t, false, err);
}

static uint64_t hash_shard(const dr__tar_index *x, uint64_t h)
{
    h = XXH3_64bits_withSeed(x->keys.block, x->keys.used, h);
    h = XXH3_64bits_withSeed(x->parts, x->n_parts * sizeof *x->parts, h);
    for (size_t i = 0; i < x->keys.n; i++)
        h = h * 31 + (uint64_t)x->samples[i].label;
    return h;
}

static dr_status open_shards(struct tar *t, bool use_index, dr_error *err)
{
    t->shards = dr__alloc_zero(t->paths.n, sizeof *t->shards);
    if (!t->shards)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory for %zu shards", t->head.name, t->paths.n);
    for (size_t i = 0; i < t->paths.n; i++) {
        struct shard *s = &t->shards[i];
        DR_TRY(dr__tar_index_open(dr__names_get(&t->paths, i), &t->options, use_index, &s->index, err));
        t->n_shards++;
        s->first = t->head.n_samples;
        t->head.n_samples += s->index.keys.n;
        t->head.fingerprint = hash_shard(&s->index, t->head.fingerprint);
    }
    return DR_OK;
}

static bool is_tar_name(const char *name)
{
    static const char *const endings[] = { ".tar", NULL };
    return dr__has_extension(name, strlen(name), endings);
}

static bool is_folder(const char *path)
{
    dr__source_facts facts;
    return dr__source_stat(path, &facts, NULL) == DR_OK && facts.kind == DR__SOURCE_DIR;
}

static dr_status take_options(struct tar *t, const dr_read_options *options, dr_error *err)
{
    t->options = dr__source_options_of(options);
    if (!options->credentials)
        return DR_OK;
    t->options.credentials = dr__strdup(options->credentials);
    return t->options.credentials ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", t->head.name);
}

/* Web servers and stores that list nothing still have the manifest of a packed set. */
static bool is_packed(const char *path)
{
    return (is_folder(path) || (dr__source_is_remote(path) && !is_tar_name(path))) && dr__packed_is(path);
}

/* A folder means the archives in it. */
static dr_status find_shards(const char *path, dr__names *out, dr_error *err)
{
    char pattern[4096];
    if (!is_folder(path))
        return dr__expand_paths(path, out, err);
    if (snprintf(pattern, sizeof pattern, "%s/*.tar", path) >= (int)sizeof pattern)
        return dr__fail(err, DR_ERR_LIMIT, "%.200s...: path too long", path);
    return dr__expand_paths(pattern, out, err);
}

static dr_status fill(struct tar *t, const char *path, const dr_read_options *options, dr_error *err)
{
    t->label_field = t->key_field = -1;
    DR_TRY(take_options(t, options, err));
    DR_TRY(find_shards(path, &t->paths, err));
    DR_TRY(open_shards(t, options->use_index, err));
    if (!t->head.n_samples)
        return dr__fail(err, DR_ERR_NOT_FOUND, "%s: no sample in it: no member is called key.extension", path);
    t->head.n_places = t->head.n_samples;
    if (options->use_index)
        dr__dataset_keep(&t->head, dr__names_get(&t->paths, 0), ".drapps-seek");
    return add_fields(t, err);
}

static dr_status open_tar(const char *path, const dr_read_options *options, dr_dataset **out, dr_error *err)
{
    dr_dataset *set;
    if (is_packed(path))
        return dr__packed_open(path, options, out, err);
    DR_TRY(dr__dataset_new(sizeof(struct tar), &tar_def, "tar", path, &set, err));
    dr_status status = fill((struct tar *)set, path, options, err);
    if (status != DR_OK) {
        dr_dataset_unref(&set);
        return status;
    }
    *out = set;
    return DR_OK;
}

/* A folder of shards holds little else: a look at a few names will do, and a million images are not all read. */
struct look {
    dr__source_lister lister;
    int n;
    bool found;
};

static dr_status look_at(dr__source_lister *lister, const dr__source_entry *entry, dr_error *err)
{
    struct look *l = (struct look *)lister;
    (void)err;
    l->found = is_tar_name(entry->name);
    return l->found || ++l->n == LOOK_AT ? DR_END : DR_OK;
}

static bool holds_tars(const char *path)
{
    struct look l = { .lister = { .take = look_at } };
    dr__source_dir *dir;
    if (dr__source_dir_open(path, NULL, &dir, NULL) == DR_OK)
        dr__source_dir_list(dir, "", &l.lister, NULL);
    dr__source_dir_close(&dir);
    return l.found;
}

static int probe(const char *path)
{
    if (is_packed(path))
        return 100;
    if (is_folder(path))
        return holds_tars(path) ? 20 : 0;
    return is_tar_name(path) && dr__source_def_of(path) ? 100 : 0;
}

const dr_format_def dr__format_tar = {
    .name = "tar",
    .summary = "tar shards in WebDataset form",
    .uses = "a .tar file, a pattern or range of them (train-{000..099}.tar), or a folder of them",
    .probe = probe,
    .open = open_tar,
};
