/* remote_index.c: an index is written by the server and parsed by its clients. */
#include "format/remote_index.h"

#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/desc.h"

enum { WHAT = 1, KEYS = 2, FILES = 3, STAMPS = 4, SIZES = 5, N_SECTIONS = 5 };
enum { PROTOCOL = 1, KEY_SIZE = 8192, LEAST_KEY = 1 /* byte of a key in the index: its end */ };

static const char *const from_names[] = {
    [DR__REMOTE_FROM_SERVER] = NULL,
    [DR__REMOTE_FROM_FILE] = "file",
    [DR__REMOTE_FROM_KEY] = "key",
    [DR__REMOTE_FROM_CLASS] = "class",
};

/* --- writing --- */

/* Folders are files and what their paths say; any other format may have read anything. */
static dr__remote_from from_of(const dr_dataset *set, int field)
{
    const bool by_class = !strcmp(set->format, "folder");
    if (!by_class && strcmp(set->format, "flat") != 0)
        return DR__REMOTE_FROM_SERVER;
    if (field == 0)
        return DR__REMOTE_FROM_FILE;
    return field == set->n_fields - 1 ? DR__REMOTE_FROM_KEY : DR__REMOTE_FROM_CLASS;
}

static json_t *field_json(const dr_dataset *set, int i)
{
    const dr_desc *d = &set->fields[i].desc;
    json_t *dims = json_array();
    for (int k = 0; k < d->n_dims; k++)
        json_array_append_new(dims, json_integer(d->dims[k]));
    json_t *o = json_pack("{s:s, s:i, s:i, s:i, s:o}", "name", set->fields[i].name, "kind", (int)d->kind, "dtype",
                          (int)d->dtype, "layout", (int)d->layout, "dims", dims);
    if (from_names[from_of(set, i)])
        json_object_set_new(o, "from", json_string(from_names[from_of(set, i)]));
    return o;
}

static char *what_json(const dr_dataset *set)
{
    char fingerprint[20], content[20];
    json_t *fields = json_array(), *classes = json_array();
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, set->fingerprint);
    snprintf(content, sizeof content, "%016" PRIx64, set->content);
    for (int i = 0; i < set->n_fields; i++)
        json_array_append_new(fields, field_json(set, i));
    for (size_t i = 0; i < set->n_classes; i++)
        json_array_append_new(classes, json_stringn_nocheck(set->classes[i], strlen(set->classes[i])));
    json_t *o = json_pack("{s:i, s:s, s:I, s:s, s:s, s:o, s:o}", "protocol", PROTOCOL, "format", set->format, "samples",
                          (json_int_t)set->n_samples, "fingerprint", fingerprint, "content", content, "fields", fields,
                          "classes", classes);
    char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
    json_decref(o);
    return text;
}

static void put_text(dr__section *s, const char *text)
{
    dr__put_bytes(s, text, strlen(text) + 1);
}

static dr_status put_names(const dr_dataset *set, dr__section *keys, dr__section *files, dr_error *err)
{
    char key[KEY_SIZE], file[KEY_SIZE];
    bool same = true;
    const bool has_files = from_of(set, 0) == DR__REMOTE_FROM_FILE;
    for (uint64_t i = 0; i < set->n_samples; i++) {
        set->def->key(set, i, key, sizeof key);
        if (strlen(key) == sizeof key - 1)
            return dr__fail(err, DR_ERR_LIMIT, "%s: key of sample %" PRIu64 " is longer than %d bytes", set->name, i,
                            KEY_SIZE - 2);
        put_text(keys, key);
        if (!has_files)
            continue;
        DR_TRY(dr__dataset_file(set, i, 0, file, sizeof file, err));
        same = same && !strcmp(key, file);
        put_text(files, file);
    }
    if (same)
        files->size = 0;
    return DR_OK;
}

/* A stamp that one sample lacks is none: samples without it would be told apart by their bytes. */
static void put_stamps(const dr_dataset *set, dr__section *out)
{
    uint64_t stamp;
    for (uint64_t i = 0; i < set->n_samples; i++) {
        if (dr__dataset_stamp(set, i, &stamp, NULL) != DR_OK) {
            out->size = 0;
            return;
        }
        dr__put_u64(out, stamp);
    }
}

dr_status dr__remote_index_encode(const dr_dataset *set, uint64_t (*size_of)(const dr_dataset *set, uint64_t id),
                                  dr__section *out, dr_error *err)
{
    dr__section all[N_SECTIONS] = {
        { .id = WHAT }, { .id = KEYS }, { .id = FILES }, { .id = STAMPS }, { .id = SIZES }
    };
    *out = (dr__section){ 0 };
    if (set->def->place || set->n_places != set->n_samples)
        return dr__fail(err, DR_ERR_UNSUPPORTED, "%s: a selection or mixture has no index", set->name);
    char *what = what_json(set);
    dr_status status =
        what ? put_names(set, &all[1], &all[2], err)
             : dr__fail(err, DR_ERR_UNSUPPORTED, "%s: the name of a field or class is not UTF-8", set->name);
    if (status == DR_OK) {
        put_text(&all[0], what);
        put_stamps(set, &all[3]);
        for (uint64_t i = 0; size_of && i < set->n_samples; i++)
            dr__put_u64(&all[4], size_of(set, i));
        dr__index_encode(all, N_SECTIONS, out);
        if (out->failed)
            status = dr__fail(err, DR_ERR_NOMEM, "%s: out of memory for its index", set->name);
    }
    free(what); /* jansson's */
    dr__sections_free(all, N_SECTIONS);
    if (status != DR_OK)
        dr__sections_free(out, 1);
    return status;
}

/* --- parsing --- */

static dr_status wrong(const char *name, const char *what, dr_error *err)
{
    return dr__fail(err, DR_ERR_FORMAT, "%s: index: %s", name, what);
}

static bool read_hex(const json_t *o, const char *member, uint64_t *out)
{
    const char *text = json_string_value(json_object_get(o, member));
    char *end;
    if (!text || strlen(text) != 16)
        return false;
    *out = strtoull(text, &end, 16);
    return !*end;
}

static bool read_int(const json_t *o, const char *member, int most, int *out)
{
    const json_t *v = json_object_get(o, member);
    const json_int_t n = json_integer_value(v);
    *out = (int)n;
    return json_is_integer(v) && n >= 0 && n <= most;
}

static bool read_field(const json_t *o, dr__field *field, dr__remote_from *from)
{
    const char *name = json_string_value(json_object_get(o, "name"));
    const char *text = json_string_value(json_object_get(o, "from"));
    const json_t *dims = json_object_get(o, "dims");
    int kind, dtype, layout;
    if (!name || !*name || strlen(name) >= sizeof field->name || !read_int(o, "kind", DR_KIND_MASKS, &kind) ||
        !read_int(o, "dtype", UINT8_MAX, &dtype) || !dr_dtype_size((dr_dtype)dtype) ||
        !read_int(o, "layout", DR_LAYOUT_CHW, &layout) || !json_is_array(dims) || json_array_size(dims) > DR_MAX_DIMS)
        return false;
    *field = (dr__field){ .desc = { .kind = (dr_kind)kind,
                                    .dtype = (dr_dtype)dtype,
                                    .layout = (dr_layout)layout,
                                    .n_dims = (int)json_array_size(dims) } };
    memcpy(field->name, name, strlen(name) + 1);
    for (int i = 0; i < field->desc.n_dims; i++) {
        const json_t *v = json_array_get(dims, (size_t)i);
        field->desc.dims[i] = json_integer_value(v);
        if (!json_is_integer(v) || field->desc.dims[i] < DR_UNKNOWN)
            return false;
    }
    *from = DR__REMOTE_FROM_SERVER;
    for (size_t i = 1; text && i < DR_COUNT(from_names); i++)
        if (!strcmp(text, from_names[i]))
            *from = (dr__remote_from)i;
    return true;
}

/* What a client is to make of a field must be what the field is. */
static bool fits_from(const dr__remote_index *index, int i)
{
    static const dr_kind kinds[] = { [DR__REMOTE_FROM_FILE] = DR_KIND_BYTES,
                                     [DR__REMOTE_FROM_KEY] = DR_KIND_TEXT,
                                     [DR__REMOTE_FROM_CLASS] = DR_KIND_ARRAY };
    const dr_desc *d = &index->fields[i].desc;
    return index->from[i] == DR__REMOTE_FROM_SERVER ||
           (d->kind == kinds[index->from[i]] &&
            (index->from[i] == DR__REMOTE_FROM_CLASS ? d->dtype == DR_I64 && d->n_dims == 0 : d->n_dims == 1) &&
            (index->from[i] != DR__REMOTE_FROM_FILE || i == 0));
}

static dr_status read_fields(const json_t *what, const char *name, dr__remote_index *out, dr_error *err)
{
    const json_t *fields = json_object_get(what, "fields");
    const size_t n = json_array_size(fields);
    if (n < 1 || n > DR__MAX_FIELDS)
        return wrong(name, "no fields, or too many", err);
    out->fields = dr__alloc_zero(n, sizeof *out->fields);
    out->from = dr__alloc_zero(n, sizeof *out->from);
    if (!out->fields || !out->from)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory for its fields", name);
    for (; (size_t)out->n_fields < n; out->n_fields++) {
        const int i = out->n_fields;
        if (!read_field(json_array_get(fields, (size_t)i), &out->fields[i], &out->from[i]) || !fits_from(out, i))
            return wrong(name, "a field is not one", err);
    }
    return DR_OK;
}

static dr_status read_classes(const json_t *what, const char *name, dr__remote_index *out, dr_error *err)
{
    const json_t *classes = json_object_get(what, "classes");
    const size_t n = json_array_size(classes);
    if (!n)
        return DR_OK;
    out->classes = dr__alloc_zero(n, sizeof *out->classes);
    for (size_t i = 0; out->classes && i < n; i++) {
        const char *text = json_string_value(json_array_get(classes, i));
        if (!text)
            return wrong(name, "a class is not a text", err);
        out->classes[i] = dr__strdup(text);
        if (!out->classes[i])
            break;
        out->n_classes = i + 1;
    }
    return out->n_classes == n ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "%s: out of memory for %zu classes", name, n);
}

static dr_status read_what(const json_t *what, const char *name, dr__remote_index *out, dr_error *err)
{
    const char *format = json_string_value(json_object_get(what, "format"));
    const json_t *samples = json_object_get(what, "samples");
    int protocol;
    if (!read_int(what, "protocol", INT_MAX, &protocol) || protocol != PROTOCOL)
        return dr__fail(err, DR_ERR_UNSUPPORTED, "%s: index: the server speaks another version of the protocol", name);
    if (!format || strlen(format) >= sizeof out->format || !json_is_integer(samples) ||
        json_integer_value(samples) < 0 || !read_hex(what, "fingerprint", &out->fingerprint) ||
        !read_hex(what, "content", &out->content))
        return wrong(name, "a member is missing or wrong", err);
    memcpy(out->format, format, strlen(format) + 1);
    out->n_samples = (uint64_t)json_integer_value(samples);
    DR_TRY(read_fields(what, name, out, err));
    return read_classes(what, name, out, err);
}

static dr_status read_names(dr_cursor *c, uint64_t n, const char *name, dr__names *out, dr_error *err)
{
    const char *text;
    size_t len;
    if (dr__cursor_left(c) / LEAST_KEY < n)
        return wrong(name, "fewer names than samples", err);
    while (out->n < n) {
        DR_TRY(dr__cursor_text(c, &text, &len, err));
        if (!dr__names_add(out, text, len))
            return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory for %" PRIu64 " names", name, n);
    }
    return dr__cursor_left(c) ? wrong(name, "more names than samples", err) : DR_OK;
}

static dr_status read_numbers(dr_cursor *c, uint64_t n, const char *name, uint64_t **out, dr_error *err)
{
    if (dr__cursor_left(c) / 8 != n || dr__cursor_left(c) % 8)
        return wrong(name, "not as many numbers as samples", err);
    *out = n ? dr__alloc_zero(n, sizeof **out) : NULL;
    if (n && !*out)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory for %" PRIu64 " samples", name, n);
    for (uint64_t i = 0; i < n; i++)
        DR_TRY(dr__cursor_u64(c, &(*out)[i], err));
    return DR_OK;
}

/* Paths are joined to a URL: none may lead out of the set. */
static bool stays_inside(const char *path)
{
    if (!*path || *path == '/')
        return false;
    for (;;) {
        const size_t n = strcspn(path, "/");
        if (n == 0 || (n == 1 && path[0] == '.') || (n == 2 && path[0] == '.' && path[1] == '.'))
            return false;
        if (!path[n])
            return true;
        path += n + 1;
    }
}

static dr_status check_files(const dr__remote_index *index, const char *name, dr_error *err)
{
    for (uint64_t i = 0; index->from[0] == DR__REMOTE_FROM_FILE && i < index->n_samples; i++)
        if (!stays_inside(dr__remote_index_file(index, i)))
            return wrong(name, "a path leads out of the set", err);
    return DR_OK;
}

static dr_status open_section(const void *data, size_t size, uint32_t id, const char *name, dr_cursor *out,
                              dr_error *err)
{
    const dr_status status = dr__index_section(data, size, id, out, err);
    return status == DR_OK ? DR_OK : dr__error_prefix(err, "%s", name);
}

dr_status dr__remote_index_decode(const void *data, size_t size, const char *name, dr__remote_index *out, dr_error *err)
{
    dr_cursor c;
    const char *text;
    size_t len;
    *out = (dr__remote_index){ 0 };
    DR_TRY(open_section(data, size, WHAT, name, &c, err));
    DR_TRY(dr__cursor_text(&c, &text, &len, err));
    json_t *what = json_loads(text, 0, NULL);
    dr_status status = json_is_object(what) ? read_what(what, name, out, err) : wrong(name, "not JSON", err);
    json_decref(what);
    DR_TRY(status);
    DR_TRY(open_section(data, size, KEYS, name, &c, err));
    DR_TRY(read_names(&c, out->n_samples, name, &out->keys, err));
    DR_TRY(open_section(data, size, FILES, name, &c, err));
    if (dr__cursor_left(&c))
        DR_TRY(read_names(&c, out->n_samples, name, &out->files, err));
    DR_TRY(open_section(data, size, STAMPS, name, &c, err));
    if (dr__cursor_left(&c))
        DR_TRY(read_numbers(&c, out->n_samples, name, &out->stamps, err));
    DR_TRY(open_section(data, size, SIZES, name, &c, err));
    if (dr__cursor_left(&c))
        DR_TRY(read_numbers(&c, out->n_samples, name, &out->sizes, err));
    return check_files(out, name, err);
}

const char *dr__remote_index_file(const dr__remote_index *index, uint64_t id)
{
    return dr__names_get(index->files.n ? &index->files : &index->keys, id);
}

/* Classes are in the order of their names, as Python sorts them. */
int64_t dr__remote_index_class(const dr__remote_index *index, uint64_t id)
{
    const char *key = dr__names_get(&index->keys, id);
    const size_t n = strcspn(key, "/");
    for (size_t lo = 0, hi = index->n_classes; lo < hi;) {
        const size_t mid = lo + (hi - lo) / 2;
        char head[NAME_MAX + 1];
        if (n > NAME_MAX)
            return -1;
        memcpy(head, key, n);
        head[n] = 0;
        const int order = dr__name_compare(head, index->classes[mid]);
        if (!order)
            return (int64_t)mid;
        if (order < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return -1;
}

void dr__remote_index_free(dr__remote_index *index)
{
    for (size_t i = 0; i < index->n_classes; i++)
        dr__free(index->classes[i]);
    dr__free(index->classes);
    dr__free(index->fields);
    dr__free(index->from);
    dr__free(index->stamps);
    dr__free(index->sizes);
    dr__names_free(&index->keys);
    dr__names_free(&index->files);
    *index = (dr__remote_index){ 0 };
}
