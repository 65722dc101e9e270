/* set_manifest.c: reading and writing the manifest of a packed set. */
#include "format/set_manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "base/text.h"
#include "data/desc.h"
#include "format/tar_index.h"

enum { VERSION = 1, MAX_BYTES = 1 << 30, MAX_PATH = 8192 };

static const char *const stored_names[] = { "file", "cls", "key", "npy" };
static const char *const key_forms[] = { "path", "stem", "number" };
static const char *const layout_names[] = { "", "HWC", "CHW" };
static const char *const kind_names[] = { "array",  "image",       "mask",      "boxes",  "bytes", "text",
                                          "volume", "volume_mask", "keypoints", "labels", "masks" };

#define N_NAMES(names) (int)(sizeof(names) / sizeof *(names))

void dr__manifest_free(dr__manifest *m)
{
    for (size_t i = 0; i < m->n_sources; i++)
        dr__free(m->sources[i].name);
    for (size_t i = 0; i < m->n_classes; i++)
        dr__free(m->classes[i]);
    dr__free(m->sources);
    dr__free(m->classes);
    dr__free(m->fields);
    dr__free(m->shards);
    dr__free(m->prefix);
    dr__free(m->plan);
    *m = (dr__manifest){ 0 };
}

bool dr__manifest_add_shard(dr__manifest *m, const dr__set_shard *shard)
{
    dr__set_shard *shards = dr__grow(m->shards, &m->shards_cap, m->n_shards + 1, sizeof *shards);
    if (!shards)
        return false;
    m->shards = shards;
    shards[m->n_shards++] = *shard;
    return true;
}

bool dr__manifest_add_source(dr__manifest *m, const char *name, uint64_t fingerprint, uint64_t samples)
{
    dr__set_source *sources = dr__grow(m->sources, &m->sources_cap, m->n_sources + 1, sizeof *sources);
    char *copy = dr__strdup(name);
    if (sources)
        m->sources = sources;
    if (!sources || !copy) {
        dr__free(copy);
        return false;
    }
    sources[m->n_sources++] = (dr__set_source){ copy, fingerprint, samples };
    return true;
}

uint64_t dr__manifest_fingerprint(const dr__manifest *m)
{
    if (m->n_sources == 1 && !m->prefix)
        return m->sources[0].fingerprint;
    uint64_t h = m->prefix ? XXH3_64bits(m->prefix, strlen(m->prefix)) : 0;
    for (size_t i = 0; i < m->n_sources; i++) {
        const uint64_t facts[] = { m->sources[i].fingerprint, m->sources[i].samples };
        h = XXH3_64bits_withSeed(facts, sizeof facts, h);
    }
    return h;
}

void dr__member_name(const char *field, int number, char member[DR__FIELD_NAME])
{
    size_t i = 0;
    for (; field[i]; i++) {
        const char c = field[i];
        const bool upper = c >= 'A' && c <= 'Z';
        if (!upper && !(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_' && c != '-' && c != '.')
            break;
        member[i] = upper ? (char)(c - 'A' + 'a') : c;
    }
    member[i] = 0;
    if (field[i] || !i || member[0] == '.' || i > 48 || !strcmp(member, "cls") || !strncmp(member, "origin", 6))
        snprintf(member, DR__FIELD_NAME, "f%d", number);
}

static int spacing_of(const dr__manifest *m, const char *ext)
{
    for (int f = 0; f < m->n_fields; f++) {
        const dr__set_field *x = &m->fields[f];
        const size_t len = strlen(x->member);
        if (x->stored == DR__STORED_NPY && dr__is_volume(&x->field.desc) && !strncmp(ext, x->member, len) &&
            !strcmp(ext + len, DR__SPACING_END))
            return f;
    }
    return -1;
}

/* The field of a compressed member: its extension without what the codec added. */
static int packed_field_of(const dr__manifest *m, const char *ext)
{
    const char *dot = strrchr(ext, '.');
    char plain[DR__FIELD_NAME];
    if (!dot || (size_t)(dot - ext) >= sizeof plain)
        return -1;
    memcpy(plain, ext, (size_t)(dot - ext));
    plain[dot - ext] = 0;
    const int field = dr__manifest_field_of(m, plain);
    if (field >= 0 && !strcmp(m->fields[field].packed, dot))
        return field;
    for (int f = 0; f < m->n_fields; f++)
        if (m->fields[f].stored == DR__STORED_NPY && !strcmp(m->fields[f].packed, ".drz") && !strcmp(dot, ".drz") &&
            !strcmp(m->fields[f].member, plain))
            return f;
    return -1;
}

int dr__manifest_member_of(const dr__manifest *m, const char *ext, dr__member_form *form)
{
    int field = spacing_of(m, ext);
    *form = DR__MEMBER_SPACING;
    if (field >= 0)
        return field;
    field = packed_field_of(m, ext);
    *form = field >= 0 && !strcmp(m->fields[field].packed, ".drz") ? DR__MEMBER_FRAME : DR__MEMBER_TOOL;
    if (field >= 0)
        return field;
    *form = DR__MEMBER_PLAIN;
    return dr__manifest_field_of(m, ext);
}

int dr__manifest_field_of(const dr__manifest *m, const char *ext)
{
    int best = -1;
    size_t longest = 0;
    if (!strcmp(ext, DR__ORIGIN_EXT))
        return -1;
    for (int f = 0; f < m->n_fields; f++)
        if (m->fields[f].stored == DR__STORED_FILE && !strcmp(m->fields[f].member, ext))
            return f;
    for (int f = 0; f < m->n_fields; f++) {
        const dr__set_field *x = &m->fields[f];
        const size_t len = strlen(x->member);
        const bool below = !strncmp(ext, x->member, len) && ext[len] == '.';
        if (x->stored == DR__STORED_NPY && below && !strcmp(ext + len, ".npy"))
            return f;
        if (x->stored != DR__STORED_FILE)
            continue;
        if (!strcmp(x->member, "image") && dr__tar_is_image(ext))
            return f;
        if (below && len > longest) {
            best = f;
            longest = len;
        }
    }
    return best;
}

/* --- writing --- */

static json_t *hex(uint64_t value)
{
    char text[20];
    snprintf(text, sizeof text, "%016" PRIx64, value);
    return json_string(text);
}

/* Text of a file system or of a user, which need not be UTF-8: other bytes as "\u00XX" would be; lossless for UTF-8. */
static json_t *text_json(const char *text)
{
    json_t *value = json_string(text);
    if (value)
        return value;
    dr__text t = { 0 };
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        const char two[2] = { (char)(0xC0 | *p >> 6), (char)(0x80 | (*p & 0x3F)) };
        if (*p < 0x80)
            dr__text_add(&t, (const char *)p, 1);
        else
            dr__text_add(&t, two, 2);
    }
    value = t.failed ? NULL : json_string(t.text);
    dr__free(t.text);
    return value;
}

static json_t *field_json(const dr__set_field *f)
{
    const dr_desc *d = &f->field.desc;
    json_t *dims = json_array();
    for (int i = 0; i < d->n_dims; i++)
        json_array_append_new(dims, json_integer(d->dims[i]));
    return json_pack("{s:o, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:o}", "name", text_json(f->field.name), "kind",
                     kind_names[d->kind], "dtype", dr_dtype_name(d->dtype), "layout", layout_names[d->layout], "stored",
                     stored_names[f->stored], "member", f->member, "codec", f->codec, "packed", f->packed, "lossy",
                     (int)f->lossy, "dims", dims);
}

static json_t *shard_json(const dr__set_shard *s)
{
    return json_pack("{s:s, s:I, s:o, s:I, s:I, s:o, s:s}", "name", s->name, "size", (json_int_t)s->size, "xxh3",
                     hex(s->sum), "samples", (json_int_t)s->samples, "index_size", (json_int_t)s->index_size,
                     "index_xxh3", hex(s->index_sum), "keys", key_forms[s->keys]);
}

/* JSON inside JSON stays a text: its canonical form is compared byte by byte. */
static json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

static json_t *manifest_json(const dr__manifest *m)
{
    json_t *fields = json_array(), *shards = json_array(), *sources = json_array(), *classes = json_array();
    for (int i = 0; i < m->n_fields; i++)
        json_array_append_new(fields, field_json(&m->fields[i]));
    for (size_t i = 0; i < m->n_shards; i++)
        json_array_append_new(shards, shard_json(&m->shards[i]));
    for (size_t i = 0; i < m->n_classes; i++)
        json_array_append_new(classes, text_json(m->classes[i]));
    for (size_t i = 0; i < m->n_sources; i++)
        json_array_append_new(sources,
                              json_pack("{s:o, s:o, s:I}", "name", text_json(m->sources[i].name), "fingerprint",
                                        hex(m->sources[i].fingerprint), "samples", (json_int_t)m->sources[i].samples));
    json_t *o = json_pack("{s:i, s:I, s:o, s:o, s:o, s:o, s:o}", "drapps_set", VERSION, "generation",
                          (json_int_t)m->generation, "classes", classes, "fields", fields, "sources", sources, "shards",
                          shards, "prefix", text_or_null(m->prefix));
    if (o && m->plan)
        json_object_set_new(o, "plan", text_or_null(m->plan));
    return o;
}

static uint64_t sum_of(const json_t *o)
{
    char *text = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS);
    const uint64_t sum = text ? XXH3_64bits(text, strlen(text)) : 0;
    free(text); /* jansson's */
    return sum;
}

char *dr__manifest_encode(const dr__manifest *m)
{
    json_t *o = manifest_json(m);
    if (!o)
        return NULL;
    json_object_set_new(o, "xxh3", hex(sum_of(o)));
    char *text = json_dumps(o, JSON_INDENT(1)), *copy = text ? dr__strdup(text) : NULL;
    free(text);
    json_decref(o);
    return copy;
}

/* --- reading --- */

static bool get_text(const json_t *o, const char *key, char *out, size_t size)
{
    const json_t *v = json_object_get(o, key);
    const char *text = json_string_value(v);
    if (!text || strlen(text) >= size || strlen(text) != json_string_length(v))
        return false;
    memcpy(out, text, strlen(text) + 1);
    return true;
}

static bool get_count(const json_t *o, const char *key, uint64_t *out)
{
    const json_t *v = json_object_get(o, key);
    *out = (uint64_t)json_integer_value(v);
    return json_is_integer(v) && json_integer_value(v) >= 0;
}

static bool get_hex(const json_t *o, const char *key, uint64_t *out)
{
    char text[17], *end;
    if (!get_text(o, key, text, sizeof text) || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        return false;
    *out = strtoull(text, &end, 16);
    return true;
}

static bool get_name(const json_t *o, const char *key, const char *const *names, int n, int *out)
{
    char text[32];
    if (!get_text(o, key, text, sizeof text))
        return false;
    for (*out = 0; *out < n; ++*out)
        if (!strcmp(text, names[*out]))
            return true;
    return false;
}

static bool get_dims(const json_t *dims, dr_desc *d)
{
    d->n_dims = (int)json_array_size(dims);
    if (!json_is_array(dims) || json_array_size(dims) > DR_MAX_DIMS)
        return false;
    for (int i = 0; i < d->n_dims; i++) {
        const json_t *v = json_array_get(dims, (size_t)i);
        d->dims[i] = json_integer_value(v);
        if (!json_is_integer(v) || d->dims[i] < DR_UNKNOWN)
            return false;
    }
    return true;
}

/* Are kind, type and axes those of its form? */
static bool fits_form(const dr__set_field *f)
{
    const dr_desc *d = &f->field.desc;
    const bool text = d->kind == DR_KIND_BYTES || d->kind == DR_KIND_TEXT;
    switch (f->stored) {
    case DR__STORED_FILE:
        return text && d->n_dims == 1 && d->dtype == DR_U8;
    case DR__STORED_KEY:
        return d->kind == DR_KIND_TEXT && d->n_dims == 1 && d->dtype == DR_U8;
    case DR__STORED_CLS:
        return d->kind == DR_KIND_ARRAY && d->n_dims == 0 && d->dtype == DR_I64;
    case DR__STORED_NPY:
        return !text && (!dr__is_image(d) || (d->layout && (d->n_dims == 2 || d->n_dims == 3))) &&
               (!dr__is_volume(d) || d->n_dims == 4);
    }
    return false;
}

static bool take_field(const json_t *o, dr__set_field *f)
{
    char dtype[32];
    int kind, stored, layout;
    dr_desc *d = &f->field.desc;
    if (!get_text(o, "name", f->field.name, sizeof f->field.name) ||
        !get_text(o, "member", f->member, sizeof f->member) || !get_text(o, "codec", f->codec, sizeof f->codec) ||
        !get_text(o, "packed", f->packed, sizeof f->packed) || !get_text(o, "dtype", dtype, sizeof dtype) ||
        !get_name(o, "kind", kind_names, N_NAMES(kind_names), &kind) ||
        !get_name(o, "stored", stored_names, N_NAMES(stored_names), &stored) ||
        !get_name(o, "layout", layout_names, N_NAMES(layout_names), &layout) ||
        !get_dims(json_object_get(o, "dims"), d))
        return false;
    d->kind = (dr_kind)kind;
    d->dtype = dr_dtype_parse(dtype);
    d->layout = (dr_layout)layout;
    f->stored = (dr__stored)stored;
    f->lossy = json_is_true(json_object_get(o, "lossy"));
    return f->field.name[0] && f->member[0] && d->dtype && fits_form(f);
}

/* A name of a file in the folder, and of no other place. */
static bool is_plain_name(const char *name)
{
    return *name && *name != '.' && !strchr(name, '/');
}

static bool take_shard(const json_t *o, dr__set_shard *s)
{
    int keys;
    *s = (dr__set_shard){ 0 };
    if (!get_text(o, "name", s->name, sizeof s->name) || !is_plain_name(s->name) || !get_count(o, "size", &s->size) ||
        !get_hex(o, "xxh3", &s->sum) || !get_count(o, "samples", &s->samples) ||
        !get_count(o, "index_size", &s->index_size) || !get_hex(o, "index_xxh3", &s->index_sum) ||
        !get_name(o, "keys", key_forms, N_NAMES(key_forms), &keys) || s->samples > s->size)
        return false;
    s->keys = (dr__key_form)keys;
    return true;
}

static bool take_lists(const json_t *o, dr__manifest *m)
{
    const json_t *shards = json_object_get(o, "shards"), *sources = json_object_get(o, "sources"), *item;
    size_t i;
    if (!json_is_array(shards) || !json_is_array(sources))
        return false;
    json_array_foreach(shards, i, item)
    {
        dr__set_shard s;
        if (!take_shard(item, &s) || !dr__manifest_add_shard(m, &s))
            return false;
    }
    json_array_foreach(sources, i, item)
    {
        char name[MAX_PATH];
        uint64_t fingerprint, samples;
        if (!get_text(item, "name", name, sizeof name) || !get_hex(item, "fingerprint", &fingerprint) ||
            !get_count(item, "samples", &samples) || !dr__manifest_add_source(m, name, fingerprint, samples))
            return false;
    }
    return true;
}

static bool take_classes(const json_t *classes, dr__manifest *m)
{
    const size_t n = json_array_size(classes);
    m->classes = json_is_array(classes) ? dr__alloc_zero(n ? n : 1, sizeof *m->classes) : NULL;
    for (size_t i = 0; m->classes && i < n; i++) {
        const char *text = json_string_value(json_array_get(classes, i));
        if (!text || !(m->classes[i] = dr__strdup(text)))
            return false;
        m->n_classes = i + 1;
    }
    return m->classes != NULL;
}

static bool take_fields(const json_t *fields, dr__manifest *m)
{
    const size_t n = json_array_size(fields);
    if (!n || n > DR__MAX_FIELDS || !(m->fields = dr__alloc_zero(n, sizeof *m->fields)))
        return false;
    for (m->n_fields = 0; m->n_fields < (int)n; m->n_fields++)
        if (!take_field(json_array_get(fields, (size_t)m->n_fields), &m->fields[m->n_fields]))
            return false;
    return true;
}

static bool take_all(const json_t *o, dr__manifest *m)
{
    const json_t *prefix = json_object_get(o, "prefix"), *plan = json_object_get(o, "plan");
    if (!get_count(o, "generation", &m->generation) || !take_fields(json_object_get(o, "fields"), m) ||
        !take_classes(json_object_get(o, "classes"), m) || !take_lists(o, m))
        return false;
    if (json_is_string(prefix) && !(m->prefix = dr__strdup(json_string_value(prefix))))
        return false;
    return !json_is_string(plan) || (m->plan = dr__strdup(json_string_value(plan))) != NULL;
}

static dr_status take(json_t *o, const char *name, dr__manifest *m, dr_error *err)
{
    uint64_t version, sum;
    if (!json_is_object(o) || !get_count(o, "drapps_set", &version))
        return dr__fail(err, DR_ERR_FORMAT, "%s: not the manifest of a packed set, or a damaged one", name);
    if (version != VERSION)
        return dr__fail(err, DR_ERR_UNSUPPORTED, "%s: version %" PRIu64 " of the manifest; this build reads %d", name,
                        version, VERSION);
    if (!get_hex(o, "xxh3", &sum))
        return dr__fail(err, DR_ERR_FORMAT, "%s: the manifest has no checksum", name);
    json_object_del(o, "xxh3");
    if (sum != sum_of(o))
        return dr__fail(err, DR_ERR_FORMAT, "%s: the manifest is damaged: its checksum is wrong", name);
    if (!take_all(o, m))
        return dr__fail(err, DR_ERR_FORMAT, "%s: the manifest lacks an entry, or has a wrong one", name);
    return DR_OK;
}

dr_status dr__manifest_decode(const char *text, size_t size, const char *name, dr__manifest *out, dr_error *err)
{
    *out = (dr__manifest){ 0 };
    json_t *o = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
    dr_status status = take(o, name, out, err);
    json_decref(o);
    if (status != DR_OK)
        dr__manifest_free(out);
    return status;
}

static dr_status path_of(const char *folder, const char *file, char *path, size_t size, dr_error *err)
{
    const int n = snprintf(path, size, "%s/%s", folder, file);
    return n > 0 && (size_t)n < size ? DR_OK : dr__fail(err, DR_ERR_LIMIT, "%.200s...: path too long", folder);
}

bool dr__manifest_exists(const char *folder, const char *file)
{
    char path[MAX_PATH];
    dr__source_facts facts;
    return path_of(folder, file, path, sizeof path, NULL) == DR_OK && dr__source_stat(path, &facts, NULL) == DR_OK &&
           facts.kind == DR__SOURCE_FILE;
}

dr_status dr__manifest_read(const char *folder, const char *file, const dr__source_options *options, dr__manifest *out,
                            dr_error *err)
{
    char path[MAX_PATH];
    dr__source *source;
    uint64_t size;
    size_t got;
    *out = (dr__manifest){ 0 };
    DR_TRY(path_of(folder, file, path, sizeof path, err));
    DR_TRY(dr__source_open(path, options, &source, err));
    dr_status status = dr__source_size(source, &size, err);
    if (status == DR_OK && size > MAX_BYTES)
        status = dr__fail(err, DR_ERR_LIMIT, "%s: %" PRIu64 " bytes; a manifest may have %d", path, size, MAX_BYTES);
    char *text = status == DR_OK ? dr__alloc(size + 1) : NULL;
    if (status == DR_OK && !text)
        status = dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", path);
    if (status == DR_OK)
        status = dr__source_read_at(source, text, size, 0, &got, err);
    if (status == DR_OK)
        status = dr__manifest_decode(text, got, path, out, err);
    dr__free(text);
    dr__source_close(&source);
    return status;
}
