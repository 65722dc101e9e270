/* packed.c: a packed set as a data set.
 *
 * Fields, classes and the order of samples are those of the manifest.  Every member is compared with its checksum when
 * it is read, so that a damaged sample is a bad sample and never a wrong one.  A shard that is truncated, missing or
 * damaged costs the samples that it no longer has.
 */
#include "format/packed.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/parse.h"
#include "data/desc.h"
#include "format/npy_array.h"
#include "format/shard_source.h"

enum { NO_FIELD = 0xFFFF, FORMS = 4, MAX_PATH = 8192 };

struct shard {
    dr__tar_index index;
    uint64_t first; /* number of its first sample */
    dr__shard_source source;
    uint16_t use_of[DR__TAR_MAX_EXTS]; /* of each extension: field * FORMS + form (dr__member_form), or NO_FIELD */
    int origin_ext;                    /* number of the extension origin.json; -1: none */
    char *lost;                        /* why nothing of it can be read; NULL: it can */
};

struct packed {
    dr_dataset head;
    dr__source_options options; /* credentials: owned */
    dr__manifest manifest;
    char *folder;
    struct shard *shards;
    size_t n_shards;
};

static const dr_dataset_def packed_def;

bool dr__packed_is(const char *folder)
{
    return dr__manifest_exists(folder, DR__SET_MANIFEST) || dr__manifest_exists(folder, DR__SET_JOURNAL);
}

const dr__manifest *dr__packed_manifest(const dr_dataset *set)
{
    return set->def == &packed_def ? &((const struct packed *)set)->manifest : NULL;
}

const char *dr__packed_folder(const dr_dataset *set)
{
    return ((const struct packed *)set)->folder;
}

static size_t shard_of(const struct packed *p, uint64_t id)
{
    size_t lo = 0, hi = p->n_shards;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (p->shards[mid].first <= id)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static void path_of(const struct packed *p, size_t i, char path[MAX_PATH])
{
    snprintf(path, MAX_PATH, "%s/%s", p->folder, p->manifest.shards[i].name);
}

/* --- reading --- */

/* One sample as it is read. */
struct reading {
    const struct packed *p;
    const struct shard *shard;
    size_t k; /* number in the shard */
    dr__source *source;
    dr__record *record;
};

static const char *origin(const struct shard *s, size_t k)
{
    return dr__names_get(&s->index.origins, k);
}

static size_t parts_end(const dr__tar_index *x, size_t k)
{
    return k + 1 < x->origins.n ? x->samples[k + 1].first : x->n_parts;
}

static dr_status check_part(const struct reading *r, size_t part, const void *data, size_t got, dr_error *err)
{
    const dr__tar_index *x = &r->shard->index;
    const char *ext = dr__names_get(&x->exts, x->part_ext[part]), *key = origin(r->shard, r->k);
    if (got != x->parts[part].size)
        return dr__fail(err, DR_ERR_FORMAT, "%s: truncated: sample \"%s\" lacks bytes of its member .%s",
                        r->source->name, key, ext);
    if (XXH3_64bits(data, got) != x->sums[part])
        return dr__fail(err, DR_ERR_FORMAT, "%s: sample \"%s\": its member .%s is damaged: the checksum is wrong",
                        r->source->name, key, ext);
    return DR_OK;
}

static dr_status read_part(const struct reading *r, size_t part, const uint8_t **out, dr_error *err)
{
    const dr__tar_index *x = &r->shard->index;
    size_t got;
    void *data = dr__record_take(r->record, x->parts[part].size);
    if (!data)
        return dr__fail(err, DR_ERR_NOMEM, "%s: no room for a sample", r->source->name);
    DR_TRY(dr__source_read_at(r->source, data, x->parts[part].size, x->samples[r->k].header + x->parts[part].offset,
                              &got, err));
    *out = data;
    return check_part(r, part, data, got, err);
}

/* An image that is read with a ranger: its checksum is its name. */
static dr_status read_image(const struct reading *r, size_t part, int field, dr_error *err)
{
    const dr__tar_index *x = &r->shard->index;
    const dr__seek_key content = { x->sums[part], x->parts[part].size };
    size_t size;
    const uint8_t *bytes = dr__record_stand_in(r->record, dr__jpeg_note_name(&content), &size), *data;
    if (bytes) {
        uint8_t *place = dr__record_take(r->record, size);
        if (!place)
            return dr__fail(err, DR_ERR_NOMEM, "%s: no room for a sample", r->source->name);
        memcpy(place, bytes, size);
        data = place;
    } else {
        size = x->parts[part].size;
        DR_TRY(read_part(r, part, &data, err));
    }
    dr__record_ranged(r->record, &r->p->head, r->shard->first + r->k, data);
    r->record->ranged.known = r->record->ranged.by_content = true;
    r->record->ranged.content = content;
    r->record->ranged.remote = r->source->def->remote;
    return dr__record_bytes(r->record, r->p->manifest.fields[field].field.desc.kind, data, size, err);
}

static bool is_use(unsigned use, int field, bool spacing)
{
    return use != NO_FIELD && (int)(use / FORMS) == field && (use % FORMS == DR__MEMBER_SPACING) == spacing;
}

/* The number of the sample's member for a field, or for its spacing; SIZE_MAX: it has none. */
static size_t find_part(const struct shard *s, size_t k, int field, bool spacing)
{
    for (size_t i = s->index.samples[k].first; i < parts_end(&s->index, k); i++)
        if (is_use(s->use_of[s->index.part_ext[i]], field, spacing))
            return i;
    return SIZE_MAX;
}

static dr_status absent(const struct reading *r, int field, dr_error *err)
{
    const dr__set_field *f = &r->p->manifest.fields[field];
    if (f->stored == DR__STORED_FILE && strcmp(f->field.name, "image") != 0)
        return dr__record_bytes(r->record, f->field.desc.kind, "", 0, err);
    return dr__fail(err, DR_ERR_FORMAT, "%s: sample \"%s\" has no %s", r->source->name, origin(r->shard, r->k),
                    f->field.name);
}

static dr_status read_label(const struct reading *r, int field, dr_error *err)
{
    const int64_t label = r->shard->index.samples[r->k].label;
    return label > DR__LABEL_BAD ? dr__record_i64(r->record, label, err) : absent(r, field, err);
}

static dr_status read_spacing(const struct reading *r, int field, dr_view *view, dr_error *err)
{
    const size_t part = find_part(r->shard, r->k, field, true);
    const uint8_t *data;
    char text[101];
    if (part == SIZE_MAX)
        return DR_OK;
    DR_TRY(read_part(r, part, &data, err));
    const int size = (int)DR_MIN(r->shard->index.parts[part].size, (uint32_t)sizeof text - 1);
    snprintf(text, sizeof text, "%.*s", size, (const char *)data);
    char *at = text, *end;
    for (int i = 0; i < 3; i++, at = end) {
        end = at + strspn(at, " ");
        const size_t n = strcspn(end, " ");
        if (!dr__parse_f64(end, n, &view->desc.spacing[i]))
            return dr__fail(err, DR_ERR_FORMAT, "%s: sample \"%s\": the spacing \"%s\" is not three numbers",
                            r->source->name, origin(r->shard, r->k), text);
        end += n;
    }
    return DR_OK;
}

/* From a member's bytes to those that were compressed, in the record.  *desc: of a frame, what it says of them. */
static dr_status decompress(const struct reading *r, size_t part, dr__member_form form, const uint8_t **data,
                            size_t *size, dr_desc *desc, dr_error *err)
{
    const size_t raw = r->shard->index.raw_sizes[part];
    uint8_t *made = NULL, *place = dr__record_take(r->record, raw);
    size_t n = 0;
    if (!place)
        return dr__fail(err, DR_ERR_NOMEM, "no room for a sample");
    if (form == DR__MEMBER_FRAME) {
        dr_codec_frame frame;
        DR_TRY(dr_codec_peek(*data, *size, &frame, err));
        if (frame.raw_bytes != raw)
            return dr__fail(err, DR_ERR_FORMAT, "a frame of %" PRIu64 " bytes, the index says %zu", frame.raw_bytes,
                            raw);
        DR_TRY(dr_codec_decode(*data, *size, NULL, place, raw, err));
        *desc = frame.desc;
    } else {
        DR_TRY(dr_codec_decompress(*data, *size, NULL, raw, &made, &n, err));
        if (n == raw && raw)
            memcpy(place, made, raw);
        dr_codec_free(made);
        if (n != raw)
            return dr__fail(err, DR_ERR_FORMAT, "%zu bytes decompressed, the index says %zu", n, raw);
    }
    *data = place;
    *size = raw;
    return DR_OK;
}

/* An array out of a frame: it has to be what the manifest says. */
static dr_status take_frame(const struct reading *r, const dr__set_field *f, const dr_desc *desc, void *data,
                            dr_error *err)
{
    const dr_desc *want = &f->field.desc;
    char have[128], wanted[128];
    bool fits = desc->dtype == want->dtype && desc->n_dims == want->n_dims;
    for (int i = 0; fits && i < want->n_dims; i++)
        fits = want->dims[i] == DR_UNKNOWN || want->dims[i] == desc->dims[i];
    if (!fits)
        return dr__fail(err, DR_ERR_FORMAT, "%s: sample \"%s\": %s holds %s; expected is %s", r->source->name,
                        origin(r->shard, r->k), f->field.name, dr__desc_text_of(desc, have, sizeof have),
                        dr__desc_text_of(want, wanted, sizeof wanted));
    dr_desc made = *want;
    memcpy(made.dims, desc->dims, sizeof made.dims);
    memcpy(made.spacing, desc->spacing, sizeof made.spacing);
    const dr_view view = dr__view_dense(&made, data);
    return dr__record_view(r->record, &view, err);
}

/* A file as it was, not compressed again. */
static bool is_image(const dr__set_field *f, dr__member_form form)
{
    return f->stored == DR__STORED_FILE && form == DR__MEMBER_PLAIN && !strcmp(f->field.name, "image");
}

static dr_status read_field(const struct reading *r, int field, dr_error *err)
{
    const dr__set_field *f = &r->p->manifest.fields[field];
    const uint8_t *data;
    dr_view view;
    dr_error why = { 0 };
    dr_status status;
    if (f->stored == DR__STORED_KEY)
        return dr__record_text(r->record, origin(r->shard, r->k), strlen(origin(r->shard, r->k)), err);
    if (f->stored == DR__STORED_CLS)
        return read_label(r, field, err);
    const size_t part = find_part(r->shard, r->k, field, false);
    if (part == SIZE_MAX)
        return absent(r, field, err);
    const dr__member_form form = (dr__member_form)(r->shard->use_of[r->shard->index.part_ext[part]] % FORMS);
    if (r->record->ranger && is_image(f, form))
        return read_image(r, part, field, err);
    DR_TRY(read_part(r, part, &data, err));
    size_t size = r->shard->index.parts[part].size;
    if (form != DR__MEMBER_PLAIN) {
        status = decompress(r, part, form, &data, &size, &view.desc, &why);
        if (status != DR_OK)
            return dr__fail(err, status, "%s: sample \"%s\": %s", r->source->name, origin(r->shard, r->k), why.text);
    }
    if (f->stored == DR__STORED_NPY && form == DR__MEMBER_FRAME)
        return take_frame(r, f, &view.desc, (void *)data, err);
    if (f->stored == DR__STORED_FILE)
        return dr__record_bytes(r->record, f->field.desc.kind, data, size, err);
    if (dr__npy_read(data, size, &f->field.desc, &view, err) != DR_OK)
        return err ? dr__error_prefix(err, "%s: sample \"%s\"", r->source->name, origin(r->shard, r->k))
                   : DR_ERR_FORMAT;
    if (dr__is_volume(&view.desc))
        DR_TRY(read_spacing(r, field, &view, err));
    return dr__record_view(r->record, &view, err);
}

static size_t sample_bytes(const dr__tar_index *x, size_t k)
{
    size_t sum = 0;
    for (size_t i = x->samples[k].first; i < parts_end(x, k); i++)
        sum += (size_t)x->parts[i].size + x->raw_sizes[i];
    return sum;
}

/* Opens the shard of a sample.  *own: the caller closes r->source. */
static dr_status begin(const struct packed *p, uint64_t id, dr__record *record, struct reading *r, bool *own,
                       dr_error *err)
{
    char path[MAX_PATH];
    const size_t i = shard_of(p, id);
    struct shard *s = &p->shards[i];
    *r = (struct reading){ .p = p, .shard = s, .k = (size_t)(id - s->first), .record = record };
    if (s->lost)
        return dr__fail(err, DR_ERR_FORMAT, "%s", s->lost);
    const size_t overhead =
        dr__record_overhead(3 * (size_t)p->head.n_fields) + (record->ranger ? DR__JPEG_HEAD_MOST : 0);
    DR_TRY(dr__record_reset(record, sample_bytes(&s->index, r->k) + strlen(origin(s, r->k)) + 8 + overhead, err));
    path_of(p, i, path);
    return dr__shard_source_get(&s->source, i, path, &p->options, &r->source, own, err);
}

static dr_status read_sample(const dr_dataset *set, uint64_t id, dr__record *record, dr_error *err)
{
    struct reading r;
    bool own = false;
    DR_TRY(begin((const struct packed *)set, id, record, &r, &own, err));
    dr_status status = DR_OK;
    for (int f = 0; f < set->n_fields && status == DR_OK; f++)
        status = read_field(&r, f, err);
    if (own)
        dr__source_close(&r.source);
    return status;
}

/* No checksum says anything of a part of a member: what the decoder finds unsound is read whole, and then checked. */
static dr_status read_ranges(const dr_dataset *set, uint64_t id, uint64_t version, const dr__byte_ranges *ranges,
                             uint8_t *to, dr_error *err)
{
    const struct packed *p = (const struct packed *)set;
    const size_t i = shard_of(p, id), k = (size_t)(id - p->shards[i].first);
    struct shard *s = &p->shards[i];
    const dr__tar_index *x = &s->index;
    const int field = dr__dataset_find_field(set, "image");
    const size_t part = field < 0 || s->lost ? SIZE_MAX : find_part(s, k, field, false);
    char path[MAX_PATH];
    dr__source *source;
    bool own;
    (void)version; /* the name is the content's */
    if (part == SIZE_MAX)
        return dr__fail(err, DR_ERR_FORMAT, "%s: sample %" PRIu64 " has no image", set->name, id);
    path_of(p, i, path);
    DR_TRY(dr__shard_source_get(&s->source, i, path, &p->options, &source, &own, err));
    dr_status status = dr__shard_source_ranges(source, x->samples[k].header + x->parts[part].offset,
                                               x->parts[part].size, ranges, to, err);
    if (own)
        dr__source_close(&source);
    return status;
}

static void key(const dr_dataset *set, uint64_t id, char *text, size_t size)
{
    const struct packed *p = (const struct packed *)set;
    const size_t i = shard_of(p, id);
    const struct shard *s = &p->shards[i];
    if (s->lost)
        snprintf(text, size, "%s#%" PRIu64, p->manifest.shards[i].name, id - s->first);
    else
        snprintf(text, size, "%s", origin(s, (size_t)(id - s->first)));
}

static dr_status stamp(const dr_dataset *set, uint64_t id, dr__stamp *out, dr_error *err)
{
    const struct packed *p = (const struct packed *)set;
    const size_t i = shard_of(p, id);
    const uint64_t facts[] = { p->manifest.shards[i].sum, id - p->shards[i].first };
    (void)err;
    out->version = out->modified = XXH3_64bits(facts, sizeof facts);
    return DR_OK;
}

/* --- where the bytes of a field came from --- */

static dr_status origin_file(const struct packed *p, uint64_t id, int field, char *text, size_t size, dr_error *err)
{
    struct reading r;
    bool own = false;
    const uint8_t *data;
    dr__record record;
    char *name = NULL;
    dr__record_init(&record);
    dr_status status = begin(p, id, &record, &r, &own, err);
    if (status == DR_OK) {
        const size_t part = r.shard->index.samples[r.k].first; /* origin.json is the first member */
        status = read_part(&r, part, &data, err);
        name = status == DR_OK
                   ? dr__origin_get(data, r.shard->index.parts[part].size, p->manifest.fields[field].field.name)
                   : NULL;
        if (own)
            dr__source_close(&r.source);
    }
    if (status == DR_OK && !name)
        status = dr__dataset_no_file(&p->head, field, err);
    if (status == DR_OK && snprintf(text, size, "%s", name) >= (int)size)
        status = dr__fail(err, DR_ERR_LIMIT, "%.200s...: path too long", name);
    dr__free(name);
    dr__record_free(&record);
    return status;
}

/* Of what the index has.  Members are read by read_sample alone, which checks them. */
static void where(const dr_dataset *set, uint64_t id, int field, dr__where *out)
{
    const struct packed *p = (const struct packed *)set;
    const struct shard *s = &p->shards[shard_of(p, id)];
    const dr__set_field *f = &p->manifest.fields[field];
    if (s->lost)
        return;
    if (f->stored == DR__STORED_KEY)
        out->form = DR__WHERE_KEY;
    if (f->stored == DR__STORED_CLS && s->index.samples[id - s->first].label > DR__LABEL_BAD) {
        out->form = DR__WHERE_NUMBER;
        out->number = s->index.samples[id - s->first].label;
    }
}

static dr_status file(const dr_dataset *set, uint64_t id, int field, char *text, size_t size, dr_error *err)
{
    const struct packed *p = (const struct packed *)set;
    const size_t i = shard_of(p, id), k = (size_t)(id - p->shards[i].first);
    const struct shard *s = &p->shards[i];
    if (s->lost)
        return dr__fail(err, DR_ERR_FORMAT, "%s", s->lost);
    if (p->manifest.fields[field].stored != DR__STORED_FILE)
        return dr__dataset_no_file(&p->head, field, err);
    const size_t first = s->index.samples[k].first;
    if (first < parts_end(&s->index, k) && s->index.part_ext[first] == s->origin_ext)
        return origin_file(p, id, field, text, size, err);
    const size_t part = find_part(s, k, field, false);
    if (part == SIZE_MAX)
        return dr__dataset_no_file(&p->head, field, err);
    const char *ext = dr__names_get(&s->index.exts, s->index.part_ext[part]), *name = origin(s, k);
    const int n = p->manifest.shards[i].keys == DR__KEY_PATH ? snprintf(text, size, "%s", name)
                                                             : snprintf(text, size, "%s.%s", name, ext);
    return n < (int)size ? DR_OK : dr__fail(err, DR_ERR_LIMIT, "%.200s...: path too long", name);
}

/* --- opening --- */

static void close_packed(dr_dataset *set)
{
    struct packed *p = (struct packed *)set;
    for (size_t i = 0; i < p->n_shards; i++) {
        dr__shard_source_close(&p->shards[i].source);
        dr__tar_index_free(&p->shards[i].index);
        dr__free(p->shards[i].lost);
    }
    dr__free(p->shards);
    dr__free(p->folder);
    dr__free((char *)p->options.credentials);
    dr__manifest_free(&p->manifest);
}

static const dr_dataset_def packed_def = {
    .read = read_sample,
    .key = key,
    .stamp = stamp,
    .read_ranges = read_ranges,
    .file = file,
    .where = where,
    .close = close_packed,
};

static void map_exts(const struct packed *p, struct shard *s)
{
    s->origin_ext = -1;
    for (size_t e = 0; e < s->index.exts.n; e++) {
        const char *ext = dr__names_get(&s->index.exts, e);
        dr__member_form form;
        const int field = dr__manifest_member_of(&p->manifest, ext, &form);
        s->use_of[e] = field < 0 ? NO_FIELD : (uint16_t)(field * FORMS + (int)form);
        if (!strcmp(ext, DR__ORIGIN_EXT))
            s->origin_ext = (int)e;
    }
}

/* A shard that cannot be used costs its samples; memory that is short is an error. */
static dr_status open_shard(struct packed *p, size_t i, dr_error *err)
{
    struct shard *s = &p->shards[i];
    char path[MAX_PATH];
    dr_error why = { 0 };
    s->first = p->head.n_samples;
    path_of(p, i, path);
    dr_status status = dr__packed_index(&p->manifest, &p->manifest.shards[i], path, &p->options, &s->index, &why);
    p->n_shards++;
    p->head.n_samples += p->manifest.shards[i].samples;
    if (status == DR_OK)
        map_exts(p, s);
    else if (status == DR_ERR_NOMEM || !(s->lost = dr__strdup(why.text)))
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", path);
    return DR_OK;
}

static dr_status add_fields(struct packed *p, dr_error *err)
{
    const dr__manifest *m = &p->manifest;
    for (int i = 0; i < m->n_fields; i++)
        DR_TRY(dr__dataset_add_field(&p->head, m->fields[i].field.name, &m->fields[i].field.desc, err));
    if (!m->n_classes)
        return DR_OK;
    return dr__dataset_set_classes(&p->head, (const char *const *)m->classes, m->n_classes, err);
}

static dr_status take_options(struct packed *p, const char *folder, const dr_read_options *options, dr_error *err)
{
    p->options = dr__source_options_of(options);
    p->options.credentials = options->credentials ? dr__strdup(options->credentials) : NULL;
    p->folder = dr__strdup(folder);
    if (!p->folder || (options->credentials && !p->options.credentials))
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", folder);
    if (strlen(folder) + 300 > MAX_PATH)
        return dr__fail(err, DR_ERR_LIMIT, "%.200s...: path too long", folder);
    return DR_OK;
}

static dr_status fill(struct packed *p, const char *folder, const dr_read_options *options, dr_error *err)
{
    char path[MAX_PATH];
    DR_TRY(take_options(p, folder, options, err));
    if (!dr__manifest_exists(folder, DR__SET_MANIFEST))
        return dr__fail(err, DR_ERR_STATE, "%s: packing it was not finished; run it again to finish it", folder);
    DR_TRY(dr__manifest_read(folder, DR__SET_MANIFEST, &p->options, &p->manifest, err));
    const size_t n = p->manifest.n_shards;
    p->shards = dr__alloc_zero(n ? n : 1, sizeof *p->shards);
    if (!p->shards)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory for %zu shards", folder, n);
    for (size_t i = 0; i < n; i++)
        DR_TRY(open_shard(p, i, err));
    if (!p->head.n_samples)
        return dr__fail(err, DR_ERR_NOT_FOUND, "%s: no sample in it", folder);
    p->head.n_places = p->head.n_samples;
    p->head.fingerprint = dr__manifest_fingerprint(&p->manifest);
    path_of(p, 0, path);
    if (options->use_index)
        dr__dataset_keep(&p->head, path, ".drapps-seek");
    return add_fields(p, err);
}

dr_status dr__packed_open(const char *folder, const dr_read_options *options, dr_dataset **out, dr_error *err)
{
    dr_dataset *set;
    DR_TRY(dr__dataset_new(sizeof(struct packed), &packed_def, "tar", folder, &set, err));
    dr_status status = fill((struct packed *)set, folder, options, err);
    if (status != DR_OK) {
        dr_dataset_unref(&set);
        return status;
    }
    *out = set;
    return DR_OK;
}
