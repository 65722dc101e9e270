/* made_sample.c: from a sample of a data set to members of a shard. */
#include "pack/made_sample.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "codec/file_types.h"
#include "codec/image/image.h"
#include "codec/image/seek_store.h"
#include "data/desc.h"
#include "format/npy_array.h"
#include "format/tar_index.h"
#include "format/tar_write.h"
#include "pack/pack_keys.h"

enum { KEEP = 16 << 20 }; /* a larger run gives its memory back */

void dr__made_free(dr__made *m)
{
    dr__free(m->run.text);
    dr__free(m->names.text);
    dr__free(m->key.text);
    dr__free(m->value.text);
    dr__free(m->frame.text);
    dr__free(m->parts);
    *m = (dr__made){ 0 };
}

static void clear(dr__text *t)
{
    if (t->cap > KEEP) {
        dr__free(t->text);
        *t = (dr__text){ 0 };
    }
    t->n = 0;
    t->failed = false;
    dr__text_add(t, "", 0);
}

/* Begins a member `stem.ext`; its bytes follow at the end of the run. */
static dr__made_part *begin_part(dr__made *m, const char *stem, const char *ext)
{
    dr__made_part *parts = dr__grow(m->parts, &m->parts_cap, m->n_parts + 1, sizeof *parts);
    if (!parts)
        return NULL;
    m->parts = parts;
    dr__made_part *part = &parts[m->n_parts++];
    *part = (dr__made_part){ .name = m->names.n, .header = m->run.n, .label = DR__LABEL_NONE };
    dr__text_say(&m->names, stem);
    dr__text_say(&m->names, ".");
    dr__text_say(&m->names, ext);
    dr__text_add(&m->names, "", 1);
    return part;
}

static bool add_part(dr__made *m, const char *stem, const char *ext, const void *data, size_t size)
{
    dr__made_part *part = begin_part(m, stem, ext);
    if (!part || m->names.failed)
        return false;
    dr__tar_put_header(&m->run, m->names.text + part->name, size);
    part->offset = m->run.n;
    part->size = size;
    part->sum = XXH3_64bits(data, size);
    dr__text_add(&m->run, data, size);
    dr__tar_put_padding(&m->run, size);
    return !m->run.failed;
}

static bool is_bad_sample(dr_status status)
{
    return status == DR_ERR_IO || status == DR_ERR_NOT_FOUND || status == DR_ERR_FORMAT || status == DR_ERR_UNSUPPORTED;
}

/* --- members --- */

/* One sample while it is made. */
struct making {
    dr__made *made;
    const dr__recipe *recipe;
    dr__workbench *bench;
    uint64_t id;
    char stem[DR__KEY_BYTES];
};

static dr_status no_memory(dr_error *err)
{
    return dr__fail(err, DR_ERR_NOMEM, "pack: out of memory for a sample");
}

/* Adds a member, compressed as the tools do it where that makes it smaller. */
static dr_status put_compressed(struct making *k, int field, const char *ext, const void *data, size_t size,
                                dr_error *err)
{
    const dr__set_field *f = &k->recipe->manifest->fields[field];
    char packed_ext[DR__FIELD_NAME + 24];
    uint8_t *made = NULL;
    size_t n;
    if (!f->codec[0] || !size)
        return add_part(k->made, k->stem, ext, data, size) ? DR_OK : no_memory(err);
    DR_TRY(dr_codec_compress(k->recipe->codecs[field], data, size, &made, &n, err));
    const bool smaller = n < size;
    snprintf(packed_ext, sizeof packed_ext, "%s%s", ext, f->packed);
    const bool good =
        smaller ? add_part(k->made, k->stem, packed_ext, made, n) : add_part(k->made, k->stem, ext, data, size);
    dr_codec_free(made);
    if (good && smaller)
        k->made->parts[k->made->n_parts - 1].raw = (uint32_t)size;
    if (size > UINT32_MAX)
        return dr__fail(err, DR_ERR_LIMIT, "its field \"%s\" must have less than 4 GiB, has %zu bytes", f->field.name,
                        size);
    return good ? DR_OK : no_memory(err);
}

/* Adds a member that is a frame of drapps/codec.h. */
static dr_status put_frame(struct making *k, int field, const char *ext, const dr_desc *desc, const void *data,
                           dr_error *err)
{
    const dr__recipe *r = k->recipe;
    dr__text *frame = &k->made->frame;
    char packed_ext[DR__FIELD_NAME + 24];
    size_t bound, n, raw;
    clear(frame);
    DR_TRY(dr_codec_bound(r->codecs[field], desc, &bound, err));
    char *grown = frame->failed ? NULL : dr__grow(frame->text, &frame->cap, bound + 1, 1);
    if (!grown)
        return no_memory(err);
    frame->text = grown;
    DR_TRY(dr_codec_encode(r->codecs[field], desc, data, grown, bound, &n, err));
    if (!dr__desc_bytes_dense(desc, &raw) || raw > UINT32_MAX)
        return dr__fail(err, DR_ERR_LIMIT, "its field \"%s\" has more than 4 GB",
                        r->manifest->fields[field].field.name);
    snprintf(packed_ext, sizeof packed_ext, "%s.drz", ext);
    if (!add_part(k->made, k->stem, packed_ext, grown, n))
        return no_memory(err);
    k->made->parts[k->made->n_parts - 1].raw = (uint32_t)raw;
    return DR_OK;
}

static bool is_frame(const dr__set_field *f)
{
    return !strcmp(f->packed, ".drz");
}

/* The distance of a volume's voxels, which .npy has no place for. */
static dr_status put_spacing(struct making *k, const dr__set_field *f, const dr_desc *desc, dr_error *err)
{
    char ext[DR__FIELD_NAME + 16], text[100];
    const double *s = desc->spacing;
    if (!s[0] && !s[1] && !s[2])
        return DR_OK;
    const int n = snprintf(text, sizeof text, "%.17g %.17g %.17g", s[0], s[1], s[2]);
    snprintf(ext, sizeof ext, "%s" DR__SPACING_END, f->member);
    return add_part(k->made, k->stem, ext, text, (size_t)n) ? DR_OK : no_memory(err);
}

static dr_status put_array(struct making *k, int field, const dr_view *view, dr_error *err)
{
    const dr__set_field *f = &k->recipe->manifest->fields[field];
    char ext[DR__FIELD_NAME + 8];
    size_t bytes;
    dr__text *value = &k->made->value;
    clear(value);
    dr__npy_put_header(value, &view->desc);
    const size_t head = value->n;
    if (!dr__desc_bytes_dense(&view->desc, &bytes))
        return dr__fail(err, DR_ERR_LIMIT, "field \"%s\" is too large", f->field.name);
    char *grown = value->failed ? NULL : dr__grow(value->text, &value->cap, head + bytes + 1, 1);
    if (!grown)
        return no_memory(err);
    value->text = grown;
    value->n = head + bytes;
    dr_view out = dr__view_dense(&view->desc, value->text + head);
    if (bytes)
        dr__view_copy(&out, view);
    if (is_frame(f))
        return put_frame(k, field, f->member, &view->desc, out.data, err);
    snprintf(ext, sizeof ext, "%s.npy", f->member);
    DR_TRY(put_compressed(k, field, ext, value->text, value->n, err));
    return put_spacing(k, f, &view->desc, err);
}

static dr_status put_label(struct making *k, const dr_view *view, dr_error *err)
{
    char text[24];
    int64_t label;
    memcpy(&label, view->data, sizeof label);
    if (label <= DR__LABEL_BAD)
        return dr__fail(err, DR_ERR_LIMIT, "label %" PRId64 " cannot be stored", label);
    const int n = snprintf(text, sizeof text, "%" PRId64, label);
    if (!add_part(k->made, k->stem, "cls", text, (size_t)n))
        return no_memory(err);
    k->made->parts[k->made->n_parts - 1].label = label;
    return DR_OK;
}

static dr_status put_file(struct making *k, int field, const dr_view *view, dr_error *err)
{
    const dr__recipe *r = k->recipe;
    const size_t size = (size_t)view->desc.dims[0];
    char ext[DR__KEY_EXT];
    DR_TRY(dr__pack_ext(r, k->id, field, view->data, size, ext, err));
    if (!size && !dr__pack_has_file(r, k->id, field)) /* what is absent is read as no bytes */
        return DR_OK;
    if (size && is_frame(&r->manifest->fields[field]))
        return put_frame(k, field, ext, &view->desc, view->data, err);
    return put_compressed(k, field, ext, view->data, size, err);
}

static dr_status put_field(struct making *k, int field, const dr_view *view, dr_error *err)
{
    const dr__set_field *f = &k->recipe->manifest->fields[field];
    switch (f->stored) {
    case DR__STORED_KEY: {
        const size_t size = (size_t)view->desc.dims[0];
        if (size == k->made->key.n && !memcmp(view->data, k->made->key.text, size))
            return DR_OK;
        return dr__fail(err, DR_ERR_UNSUPPORTED, "its field \"%s\" is not its key", f->field.name);
    }
    case DR__STORED_CLS:
        return put_label(k, view, err);
    case DR__STORED_FILE:
        return put_file(k, field, view, err);
    case DR__STORED_NPY:
        return put_array(k, field, view, err);
    }
    return DR_OK;
}

/* The key of the sample and the files that its fields came from; `bad`: why it could not be made. */
static dr_status put_origin(struct making *k, const char *bad, dr_error *err)
{
    const dr__recipe *r = k->recipe;
    char path[DR__KEY_BYTES];
    json_t *files = json_object(), *o = json_object();
    for (int f = 0; f < r->set->n_fields; f++)
        if (dr__dataset_file(r->set, k->id, f, path, sizeof path, NULL) == DR_OK)
            json_object_set_new(files, r->set->fields[f].name, json_string(path));
    json_object_set_new(o, "key", json_string(k->made->key.text));
    if (json_object_size(files))
        json_object_set(o, "files", files);
    if (bad)
        json_object_set_new(o, "bad", json_string(bad));
    char *text = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS);
    const bool good = text && add_part(k->made, k->stem, DR__ORIGIN_EXT, text, strlen(text));
    free(text); /* jansson's */
    json_decref(files);
    json_decref(o);
    return good ? DR_OK : no_memory(err);
}

/* --- a sample --- */

/* Ignores what it is handed: rows are decoded for the seek points alone. */
static void begin_rows(dr__bands *bands)
{
    (void)bands;
}

static void take_rows(dr__bands *bands, const uint8_t *rows, ptrdiff_t stride, int n)
{
    (void)bands;
    (void)rows;
    (void)stride;
    (void)n;
}

/* The set knows its images by their checksums, so that they are read in ranges from the first epoch on. */
static void put_note(dr__seek_store *store, const dr__seek_key *key, const uint8_t *data, size_t size)
{
    const uint64_t name = dr__jpeg_note_name(key);
    dr__jpeg_note note;
    if (dr__seek_store_find_note(store, name, &note))
        return;
    note = (dr__jpeg_note){ .content = *key };
    if (dr__jpeg_head_make(data, size, &note.head))
        dr__seek_store_put_note(store, name, &note);
}

/* Decodes an image for nothing but its errors and its seek points. */
static dr_status decode_image(const struct making *k, const dr_image_codec *codec, const dr_view *view,
                              const dr__decode_options *o, const dr__image_info *info, dr_error *err)
{
    const dr_rect all = { 0, 0, info->width, info->height };
    const size_t size = (size_t)view->desc.dims[0];
    dr__bands bands = { begin_rows, take_rows };
    if (codec->stream)
        return codec->stream(k->bench->codecs, view->data, size, o, &all, &bands, err);
    dr_view out = { .window = all,
                    .desc = { .kind = DR_KIND_IMAGE,
                              .dtype = info->dtype,
                              .layout = DR_LAYOUT_HWC,
                              .n_dims = 3,
                              .dims = { info->height, info->width, info->channels } } };
    size_t bytes;
    if (!dr__desc_bytes_dense(&out.desc, &bytes))
        return dr__fail(err, DR_ERR_LIMIT, "the image is too large");
    DR_TRY(dr__record_reset(&k->bench->spare, bytes, err));
    void *place = dr__record_take(&k->bench->spare, bytes);
    if (!place)
        return no_memory(err);
    out = dr__view_dense(&out.desc, place);
    out.window = all;
    return codec->decode(k->bench->codecs, view->data, size, o, &all, &out, err);
}

/* Decodes a JPEG for its seek points, unless they are known; false: nothing was decoded. */
static bool learn_points(const struct making *k, const dr_view *view, dr__decode_options *o, const dr__image_info *info,
                         dr_status *status, dr_error *err)
{
    const size_t size = (size_t)view->desc.dims[0];
    const dr__seek_key key = dr__seek_key_of(view->data, size);
    o->seek = dr__codec_seek_points(k->bench->codecs);
    const bool known = dr__seek_store_find(k->recipe->seek, &key, o->seek);
    if (!known) {
        *status = decode_image(k, &dr__codec_jpeg, view, o, info, err);
        if (*status == DR_OK && o->seek->n)
            dr__seek_store_put(k->recipe->seek, &key, o->seek);
    }
    if (known || (*status == DR_OK && o->seek->n))
        put_note(k->recipe->seek, &key, view->data, size);
    o->seek = NULL;
    return !known;
}

static bool has_codec(const char *name)
{
    for (int i = 0; dr__image_codecs[i]; i++)
        if (!strcmp(dr__image_codecs[i]->name, name))
            return true;
    return false;
}

/* Are the bytes of this field to be an image that this build can decode? */
static bool is_image_file(const struct making *k, int field)
{
    const dr__set_field *f = &k->recipe->manifest->fields[field];
    char path[DR__KEY_BYTES];
    if (f->stored != DR__STORED_FILE || f->field.desc.kind != DR_KIND_BYTES)
        return false;
    if (dr__dataset_file(k->recipe->set, k->id, field, path, sizeof path, NULL) != DR_OK)
        return !strcmp(f->field.name, "image");
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    const dr__file_type *type = dot ? dr__file_type_find(dot) : NULL;
    return type && type->kind == DR__FILE_IMAGE && has_codec(type->codec);
}

/* Looks at a file of an image: can it be decoded, and where do its rows begin? */
static dr_status look_at_image(const struct making *k, int field, const dr_view *view, dr_error *err)
{
    const bool learn = k->recipe->seek && field == k->recipe->first_field, check = k->recipe->check_images;
    const dr_image_codec *codec;
    dr__decode_options o;
    dr__image_info info = { 0 };
    dr_status status = DR_OK;
    if (!view->desc.dims[0])
        return check ? dr__fail(err, DR_ERR_FORMAT, "the file is empty") : DR_OK;
    DR_TRY(dr__image_probe(view->data, (size_t)view->desc.dims[0], &codec, err));
    dr__decode_defaults(&o);
    DR_TRY(codec->header(k->bench->codecs, view->data, (size_t)view->desc.dims[0], &o, &info, err));
    if (learn && info.seekable && learn_points(k, view, &o, &info, &status, err))
        return status;
    return check ? decode_image(k, codec, view, &o, &info, err) : DR_OK;
}

/* The images among the files of a sample.  An image that is too large for a decoder's limits is not a damaged one. */
static dr_status look_at_files(const struct making *k, const dr__record *record, dr_error *err)
{
    const dr__recipe *r = k->recipe;
    for (int f = 0; !r->program && f < r->manifest->n_fields; f++) {
        const dr_view *view = dr__made_value(r, record, f);
        dr_error why = { 0 };
        if ((!r->check_images && (!r->seek || f != r->first_field)) || !is_image_file(k, f))
            continue;
        if (!view->desc.dims[0] && !dr__pack_has_file(r, k->id, f))
            continue;
        const dr_status status = look_at_image(k, f, view, &why);
        if (status == DR_ERR_NOMEM || (r->check_images && is_bad_sample(status)))
            return dr__fail(err, status, "field \"%s\": %s", r->manifest->fields[f].field.name, why.text);
    }
    return DR_OK;
}

/* Runs the ops; the results are in bench->spare. */
static dr_status run_program(const dr__program *p, dr__workbench *bench, uint64_t id, dr_error *err)
{
    const dr__rng_name name = { .sample = id };
    size_t total = 0, bytes;
    DR_TRY(dr__sample_plan(p, bench, &name, err));
    DR_TRY(dr__sample_run(p, bench, err));
    for (int i = 0; i < p->n_outputs; i++) {
        const dr_desc desc = dr__sample_desc(p, bench, i);
        if (!dr__desc_bytes_dense(&desc, &bytes) || !dr__add_size(total, bytes, &total))
            return dr__fail(err, DR_ERR_LIMIT, "its field \"%s\" is too large", p->outputs[i].name);
    }
    DR_TRY(dr__record_reset(&bench->spare, total + dr__record_overhead((size_t)p->n_outputs), err));
    for (int i = 0; i < p->n_outputs; i++) {
        const dr_desc desc = dr__sample_desc(p, bench, i);
        dr__desc_bytes_dense(&desc, &bytes);
        void *place = dr__record_take(&bench->spare, bytes);
        if (!place)
            return no_memory(err);
        DR_TRY(dr__sample_store(p, bench, i, place, err));
        const dr_view view = dr__view_dense(&desc, place);
        DR_TRY(dr__record_view(&bench->spare, &view, err));
    }
    return DR_OK;
}

dr_status dr__made_read(const dr__recipe *r, dr__workbench *bench, uint64_t id, const dr__record **out,
                        uint64_t *content, dr_error *err)
{
    if (content)
        *content = 0;
    DR_TRY(dr__sample_read(bench, r->set, id, err));
    if (content)
        *content = dr__record_hash(&bench->record);
    *out = &bench->record;
    if (!r->program)
        return DR_OK;
    *out = &bench->spare;
    return run_program(r->program, bench, id, err);
}

const dr_view *dr__made_value(const dr__recipe *r, const dr__record *record, int field)
{
    return &record->fields[r->program ? r->output_of[field] : field];
}

static dr_status put_members(struct making *k, const dr__record *record, dr_error *err)
{
    const dr__recipe *r = k->recipe;
    if (r->keys == DR__KEY_NUMBER)
        DR_TRY(put_origin(k, NULL, err));
    if (r->first_field >= 0)
        DR_TRY(put_field(k, r->first_field, dr__made_value(r, record, r->first_field), err));
    for (int f = 0; f < r->manifest->n_fields; f++)
        if (f != r->first_field)
            DR_TRY(put_field(k, f, dr__made_value(r, record, f), err));
    return k->made->n_parts ? DR_OK : put_origin(k, NULL, err); /* a sample of nothing still has its place */
}

static void restart(dr__made *m)
{
    clear(&m->run);
    clear(&m->names);
    m->n_parts = 0;
    m->bad = false;
    m->why = (dr_error){ 0 };
}

dr_status dr__made_fill(dr__made *m, const dr__recipe *r, dr__workbench *bench, uint64_t id, dr_error *err)
{
    struct making k = { .made = m, .recipe = r, .bench = bench, .id = id };
    char key[DR__KEY_BYTES];
    dr_error why = { 0 };
    const dr__record *record;
    restart(m);
    clear(&m->key);
    r->set->def->key(r->set, id, key, sizeof key);
    dr__text_say(&m->key, key);
    if (m->key.failed)
        return no_memory(err);
    DR_TRY(dr__pack_stem(r, id, key, k.stem, err));
    m->mark = dr__source_mark_of(r->set, id);
    dr_status status = dr__made_read(r, bench, id, &record, &m->mark.content, &why);
    if (status == DR_OK)
        status = put_members(&k, record, &why);
    if (status == DR_OK)
        status = look_at_files(&k, record, &m->why);
    if (m->why.status)
        why = m->why;
    if (m->why.status && r->keep_bad && is_bad_sample(status)) { /* its files are there: they are stored as they are */
        m->bad = true;
        status = DR_OK;
    }
    if (r->keep_bad && is_bad_sample(status)) {
        restart(m);
        m->bad = true;
        m->why = why;
        return put_origin(&k, why.text, err);
    }
    if (is_bad_sample(status))
        return dr__fail(err, status,
                        "%s: sample \"%s\": %s; with keep_bad (on_bad_sample=\"keep\", --keep-bad) packing goes on",
                        r->set->name, key, why.text);
    if (status != DR_OK)
        return dr__fail(err, status, "%s: sample \"%s\": %s", r->set->name, key, why.text);
    if (m->run.failed || m->names.failed || m->key.failed)
        return no_memory(err);
    return m->run.n <= UINT32_MAX ? DR_OK
                                  : dr__fail(err, DR_ERR_LIMIT, "%s: sample \"%s\": %zu bytes; a sample may have 4 GB",
                                             r->set->name, key, m->run.n);
}
