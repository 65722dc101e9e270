/* remote_index.c: makes and reads what a drapps server tells of a data set. */
#include "format/remote_index.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "data/desc.h"
#include "format/remote_frame.h"

enum { META = 1, KEYS, STAMPS, PATHS, VALUES, N_SECTIONS = 5, RANGE_BYTES = 20, MAX_KEY = 8192 };

static const char *const form_names[] = { "unknown", "number", "key", "range" };

static dr_status no_memory(dr_error *err)
{
    return dr__fail(err, DR_ERR_NOMEM, "index: out of memory");
}

bool dr__remote_path_is_plain(const char *path)
{
    const char *part = path;
    if (!*path)
        return false;
    for (const char *c = path;; c++) {
        if (*c && *c != '/') {
            if ((unsigned char)*c < ' ' || *c == 127 || *c == '\\')
                return false;
            continue;
        }
        const size_t n = (size_t)(c - part);
        if (!n || (n == 1 && part[0] == '.') || (n == 2 && !memcmp(part, "..", 2)))
            return false;
        if (!*c)
            return true;
        part = c + 1;
    }
}

static dr_status wrong(dr_error *err, const char *what)
{
    return dr__fail(err, DR_ERR_FORMAT, "index of a remote set: %s", what);
}

/* --- making --- */

const char *dr__where_below(const dr__where *w, const char *root)
{
    const size_t n = strlen(root);
    const char *path = w->path;
    if (*path == '/' || strstr(path, "://")) {
        if (strncmp(path, root, n) != 0 || path[n] != '/')
            return NULL;
        path += n + 1;
    }
    return dr__remote_path_is_plain(path) ? path : NULL;
}

/* A set while its index is made. */
struct making {
    const dr_dataset *set;
    const char *root;
    dr__where_form *forms; /* of the fields */
    bool *by_key;
    dr__source_dir *dir; /* the root */
    bool listed;         /* look_around has listed listed_folder */
    char listed_folder[MAX_KEY];
    dr__names paths;
    size_t last_path;
    char key[MAX_KEY];
    dr__where where;
};

static bool is_whole_file(const dr__where *w)
{
    return !w->offset && w->size == DR__WHOLE_FILE;
}

/* A field has a form when all of its samples have it. */
static void choose_form(struct making *m, int field)
{
    m->by_key[field] = true;
    for (uint64_t id = 0; id < m->set->n_samples; id++) {
        dr__dataset_where(m->set, id, field, &m->where);
        const dr__where_form form = m->where.form;
        const char *path = form == DR__WHERE_RANGE ? dr__where_below(&m->where, m->root) : NULL;
        if (id && form != m->forms[field])
            m->forms[field] = DR__WHERE_UNKNOWN;
        else
            m->forms[field] = form;
        if (m->forms[field] == DR__WHERE_UNKNOWN || (form == DR__WHERE_RANGE && !path)) {
            m->forms[field] = DR__WHERE_UNKNOWN;
            return;
        }
        if (form != DR__WHERE_RANGE || !m->by_key[field])
            continue;
        m->set->def->key(m->set, id, m->key, sizeof m->key);
        m->by_key[field] = is_whole_file(&m->where) && !strcmp(path, m->key);
    }
}

static json_t *field_json(const struct making *m, int i)
{
    const dr__field *f = &m->set->fields[i];
    json_t *dims = json_array();
    for (int k = 0; k < f->desc.n_dims; k++)
        json_array_append_new(dims, f->desc.dims[k] < 0 ? json_null() : json_integer(f->desc.dims[k]));
    const char *form = m->forms[i] == DR__WHERE_RANGE && m->by_key[i] ? "file" : form_names[m->forms[i]];
    return json_pack("{s:s, s:i, s:i, s:s, s:o, s:s}", "name", f->name, "kind", f->desc.kind, "layout", f->desc.layout,
                     "dtype", dr_dtype_name(f->desc.dtype), "dims", dims, "form", form);
}

static json_t *classes_json(const dr_dataset *set)
{
    if (!set->n_classes)
        return json_null();
    json_t *classes = json_array();
    for (size_t i = 0; i < set->n_classes; i++)
        json_array_append_new(classes, json_string(set->classes[i]));
    return classes;
}

static char *meta_text(const struct making *m, const char *name)
{
    char print[20], content[20];
    json_t *fields = json_array();
    for (int i = 0; i < m->set->n_fields; i++)
        json_array_append_new(fields, field_json(m, i));
    snprintf(print, sizeof print, "%016" PRIx64, m->set->fingerprint);
    snprintf(content, sizeof content, "%016" PRIx64, dr__dataset_content(m->set));
    json_t *o = json_pack("{s:i, s:s, s:s, s:I, s:I, s:s, s:s, s:o, s:o}", "version", DR__REMOTE_VERSION, "format",
                          m->set->format, "name", name, "samples", (json_int_t)m->set->n_samples, "places",
                          (json_int_t)m->set->n_places, "fingerprint", print, "content", content, "classes",
                          classes_json(m->set), "fields", fields);
    char *text = o ? json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(o);
    char *copy = text ? dr__strdup(text) : NULL;
    free(text); /* jansson's */
    return copy;
}

static void put_names(dr__section *s, const dr__names *names)
{
    for (size_t i = 0; i < names->n; i++)
        dr__put_bytes(s, dr__names_get(names, i), dr__names_len(names, i) + 1);
}

static void put_samples(struct making *m, dr__section *keys, dr__section *stamps)
{
    for (uint64_t id = 0; id < m->set->n_samples; id++) {
        dr__stamp stamp = { 0 };
        m->set->def->key(m->set, id, m->key, sizeof m->key);
        dr__put_bytes(keys, m->key, strlen(m->key) + 1);
        if (dr__dataset_stamp(m->set, id, &stamp, NULL) != DR_OK)
            stamp.version = 0;
        dr__put_u64(stamps, stamp.version);
    }
}

/* Samples of a shard follow each other, so the last path is mostly the right one. */
static bool find_path(struct making *m, const char *path, size_t *out)
{
    if (m->paths.n && !strcmp(dr__names_get(&m->paths, m->last_path), path)) {
        *out = m->last_path;
        return true;
    }
    for (size_t i = 0; i < m->paths.n && m->paths.n < 4096; i++)
        if (!strcmp(dr__names_get(&m->paths, i), path)) {
            *out = m->last_path = i;
            return true;
        }
    *out = m->last_path = m->paths.n;
    return dr__names_add(&m->paths, path, strlen(path));
}

/* Fields of numbers and ranges; the size of a file that cannot be looked at is 0, and reading it says why. */
static dr_status take_any(dr__source_lister *lister, const dr__source_entry *entry, dr_error *err)
{
    (void)lister, (void)entry, (void)err;
    return DR_OK;
}

/* Lists the folder of a file before the first of its files is asked for: a store that tells sizes in its listings then
 * needs no request for each. */
static void look_around(struct making *m, const char *name)
{
    dr__source_lister lister = { .take = take_any };
    char folder[MAX_KEY];
    const char *slash = strrchr(name, '/');
    const size_t n = slash ? (size_t)(slash - name) : 0;
    if (!m->dir->def->remote || n >= sizeof folder)
        return;
    memcpy(folder, name, n);
    folder[n] = 0;
    if (m->listed && !strcmp(folder, m->listed_folder))
        return;
    m->listed = true;
    memcpy(m->listed_folder, folder, n + 1);
    dr__source_dir_list(m->dir, folder, &lister, NULL);
}

static dr_status put_value(struct making *m, int field, uint64_t id, dr__section *s, dr_error *err)
{
    dr__source_facts facts;
    size_t path;
    dr__dataset_where(m->set, id, field, &m->where);
    if (m->forms[field] == DR__WHERE_NUMBER) {
        dr__put_u64(s, (uint64_t)m->where.number);
        return DR_OK;
    }
    const char *name = dr__where_below(&m->where, m->root);
    if (m->where.size == DR__WHOLE_FILE)
        look_around(m, name);
    if (m->where.size == DR__WHOLE_FILE)
        m->where.size =
            dr__source_dir_stat(m->dir, name, &facts, NULL) == DR_OK && facts.kind == DR__SOURCE_FILE ? facts.size : 0;
    if (m->by_key[field]) {
        dr__put_u64(s, m->where.size);
        return DR_OK;
    }
    if (!find_path(m, name, &path))
        return no_memory(err);
    dr__put_u64(s, m->where.offset);
    dr__put_u64(s, m->where.size);
    dr__put_u32(s, (uint32_t)path);
    return DR_OK;
}

static dr_status put_values(struct making *m, dr__section *s, dr_error *err)
{
    for (int f = 0; f < m->set->n_fields; f++)
        for (uint64_t id = 0; id < m->set->n_samples; id++)
            if (m->forms[f] == DR__WHERE_NUMBER || m->forms[f] == DR__WHERE_RANGE)
                DR_TRY(put_value(m, f, id, s, err));
    return DR_OK;
}

static dr_status encode(struct making *m, const char *name, dr__section *out, dr_error *err)
{
    dr__section s[N_SECTIONS] = { { .id = META }, { .id = KEYS }, { .id = STAMPS }, { .id = PATHS }, { .id = VALUES } };
    char *meta = meta_text(m, name);
    put_samples(m, &s[1], &s[2]);
    dr_status status = put_values(m, &s[4], err);
    put_names(&s[3], &m->paths);
    if (meta)
        dr__put_bytes(&s[0], meta, strlen(meta));
    bool failed = !meta;
    for (int i = 0; i < N_SECTIONS; i++)
        failed = failed || s[i].failed;
    if (status == DR_OK && !failed)
        dr__index_encode(s, N_SECTIONS, out);
    if (status == DR_OK && (failed || out->failed))
        status = no_memory(err);
    dr__sections_free(s, N_SECTIONS);
    dr__free(meta);
    return status;
}

static dr_status begin(struct making *m, const dr_dataset *set, const char *root, dr_error *err)
{
    m->set = set;
    m->root = root;
    m->forms = dr__alloc_zero((size_t)set->n_fields, sizeof *m->forms);
    m->by_key = dr__alloc_zero((size_t)set->n_fields, sizeof *m->by_key);
    if (!m->forms || !m->by_key)
        return no_memory(err);
    DR_TRY(dr__source_dir_open(root, NULL, &m->dir, err));
    for (int f = 0; f < set->n_fields; f++)
        choose_form(m, f);
    return DR_OK;
}

static void end(struct making *m)
{
    dr__source_dir_close(&m->dir);
    dr__names_free(&m->paths);
    dr__free(m->forms);
    dr__free(m->by_key);
    dr__free(m);
}

dr_status dr__remote_index_encode(const dr_dataset *set, const char *root, const char *name, dr__section *out,
                                  dr_error *err)
{
    struct making *m = dr__alloc_zero(1, sizeof *m);
    if (!m)
        return no_memory(err);
    dr_status status = begin(m, set, root, err);
    if (status == DR_OK)
        status = encode(m, name, out, err);
    end(m);
    return status;
}

dr_status dr__remote_index_meta(const dr_dataset *set, const char *root, const char *name, char **out, dr_error *err)
{
    struct making *m = dr__alloc_zero(1, sizeof *m);
    if (!m)
        return no_memory(err);
    dr_status status = begin(m, set, root, err);
    *out = status == DR_OK ? meta_text(m, name) : NULL;
    if (status == DR_OK && !*out)
        status = no_memory(err);
    end(m);
    return status;
}

/* --- reading --- */

static bool take_hex(const json_t *o, const char *key, uint64_t *out)
{
    const char *text = json_string_value(json_object_get(o, key));
    char *end;
    if (!text || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        return false;
    *out = strtoull(text, &end, 16);
    return !*end;
}

static bool take_count(const json_t *o, const char *key, uint64_t *out)
{
    const json_t *v = json_object_get(o, key);
    *out = json_is_integer(v) && json_integer_value(v) >= 0 ? (uint64_t)json_integer_value(v) : 0;
    return json_is_integer(v) && json_integer_value(v) >= 0;
}

static dr_status take_text(const json_t *o, const char *key, char **out, dr_error *err)
{
    const char *text = json_string_value(json_object_get(o, key));
    *out = text ? dr__strdup(text) : NULL;
    return *out ? DR_OK : text ? no_memory(err) : wrong(err, "its description lacks a name");
}

static bool take_desc(const json_t *o, dr_desc *d)
{
    uint64_t kind, layout;
    const json_t *dims = json_object_get(o, "dims");
    const char *dtype = json_string_value(json_object_get(o, "dtype"));
    if (!take_count(o, "kind", &kind) || kind > DR_KIND_MASKS || !take_count(o, "layout", &layout) ||
        layout > DR_LAYOUT_CHW || !dtype || !dr_dtype_parse(dtype) || !json_is_array(dims) ||
        json_array_size(dims) > DR_MAX_DIMS)
        return false;
    *d = (dr_desc){ .kind = (dr_kind)kind,
                    .layout = (dr_layout)layout,
                    .dtype = dr_dtype_parse(dtype),
                    .n_dims = (int)json_array_size(dims) };
    for (int i = 0; i < d->n_dims; i++) {
        const json_t *extent = json_array_get(dims, (size_t)i);
        if (!json_is_null(extent) && !(json_is_integer(extent) && json_integer_value(extent) >= 0))
            return false;
        d->dims[i] = json_is_null(extent) ? DR_UNKNOWN : json_integer_value(extent);
    }
    return true;
}

static bool take_form(const json_t *o, dr__remote_values *v)
{
    const char *form = json_string_value(json_object_get(o, "form"));
    v->by_key = form && !strcmp(form, "file");
    if (v->by_key) {
        v->form = DR__WHERE_RANGE;
        return true;
    }
    for (int i = 0; form && i <= DR__WHERE_RANGE; i++)
        if (!strcmp(form, form_names[i])) {
            v->form = (dr__where_form)i;
            return true;
        }
    return false;
}

static dr_status take_fields(const json_t *list, dr__remote_index *x, dr_error *err)
{
    const size_t n = json_array_size(list);
    if (!json_is_array(list) || !n || n > DR__MAX_FIELDS)
        return wrong(err, "it has no fields, or too many");
    x->fields = dr__alloc_zero(n, sizeof *x->fields);
    x->values = dr__alloc_zero(n, sizeof *x->values);
    if (!x->fields || !x->values)
        return no_memory(err);
    for (size_t i = 0; i < n; i++) {
        const json_t *o = json_array_get(list, i);
        const char *name = json_string_value(json_object_get(o, "name"));
        if (!name || !*name || strlen(name) >= DR__FIELD_NAME || !take_desc(o, &x->fields[i].desc) ||
            !take_form(o, &x->values[i]))
            return wrong(err, "the description of a field is wrong");
        memcpy(x->fields[i].name, name, strlen(name) + 1);
        const dr_desc *d = &x->fields[i].desc;
        if (x->values[i].form == DR__WHERE_NUMBER && (d->dtype != DR_I64 || d->n_dims))
            return wrong(err, "a number is no int64");
        x->n_fields = (int)i + 1;
    }
    return DR_OK;
}

static dr_status take_classes(const json_t *list, dr__remote_index *x, dr_error *err)
{
    const size_t n = json_array_size(list);
    if (!list || json_is_null(list))
        return DR_OK;
    x->classes = json_is_array(list) && n ? dr__alloc_zero(n, sizeof *x->classes) : NULL;
    if (!x->classes)
        return n ? no_memory(err) : wrong(err, "its classes are no list");
    for (size_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        x->classes[i] = name ? dr__strdup(name) : NULL;
        if (!x->classes[i])
            return name ? no_memory(err) : wrong(err, "a class has no name");
        x->n_classes = i + 1;
    }
    return DR_OK;
}

static dr_status take_meta(const json_t *o, dr__remote_index *x, dr_error *err)
{
    uint64_t version;
    if (!json_is_object(o) || !take_count(o, "version", &version))
        return wrong(err, "its description is no JSON object with a version");
    if (version != DR__REMOTE_VERSION)
        return dr__fail(err, DR_ERR_UNSUPPORTED, "index of a remote set: version %" PRIu64 "; this build knows %d",
                        version, DR__REMOTE_VERSION);
    if (!take_count(o, "samples", &x->n_samples) || !take_count(o, "places", &x->n_places) ||
        !take_hex(o, "fingerprint", &x->fingerprint) || !take_hex(o, "content", &x->content))
        return wrong(err, "its description lacks something");
    DR_TRY(take_text(o, "format", &x->format, err));
    DR_TRY(take_text(o, "name", &x->name, err));
    DR_TRY(take_classes(json_object_get(o, "classes"), x, err));
    return take_fields(json_object_get(o, "fields"), x, err);
}

static dr_status take_names(dr_cursor *c, dr__names *out, dr_error *err)
{
    const char *text;
    size_t len;
    while (dr__cursor_left(c)) {
        DR_TRY(dr__cursor_text(c, &text, &len, err));
        if (!dr__names_add(out, text, len))
            return no_memory(err);
    }
    return DR_OK;
}

static size_t bytes_of(const dr__remote_values *v)
{
    return v->form == DR__WHERE_NUMBER ? 8 : v->form != DR__WHERE_RANGE ? 0 : v->by_key ? 8 : RANGE_BYTES;
}

static bool reserve_values(const dr__remote_index *x, dr__remote_values *v)
{
    const size_t n = (size_t)x->n_samples;
    const bool table = v->form == DR__WHERE_RANGE && !v->by_key;
    if (v->form == DR__WHERE_NUMBER)
        return (v->numbers = dr__alloc_zero(n, sizeof *v->numbers)) != NULL;
    if (v->form != DR__WHERE_RANGE)
        return true;
    v->sizes = dr__alloc_zero(n, sizeof *v->sizes);
    v->offsets = table ? dr__alloc_zero(n, sizeof *v->offsets) : NULL;
    v->paths = table ? dr__alloc_zero(n, sizeof *v->paths) : NULL;
    return v->sizes && (!table || (v->offsets && v->paths));
}

static dr_status take_value(dr_cursor *c, const dr__remote_index *x, dr__remote_values *v, size_t i, dr_error *err)
{
    uint64_t number;
    if (v->form == DR__WHERE_NUMBER) {
        DR_TRY(dr__cursor_u64(c, &number, err));
        v->numbers[i] = (int64_t)number;
        return DR_OK;
    }
    if (v->form != DR__WHERE_RANGE)
        return DR_OK;
    if (!v->by_key)
        DR_TRY(dr__cursor_u64(c, &v->offsets[i], err));
    DR_TRY(dr__cursor_u64(c, &v->sizes[i], err));
    if (v->sizes[i] > INT64_MAX || (!v->by_key && v->offsets[i] > INT64_MAX))
        return wrong(err, "a range is too large");
    if (v->by_key)
        return dr__remote_path_is_plain(dr__names_get(&x->keys, i)) ? DR_OK : wrong(err, "a key is no path");
    DR_TRY(dr__cursor_u32(c, &v->paths[i], err));
    return v->paths[i] < x->paths.n ? DR_OK : wrong(err, "a path is missing");
}

static dr_status take_values(dr_cursor *c, dr__remote_index *x, dr_error *err)
{
    size_t each = 0;
    for (int f = 0; f < x->n_fields; f++)
        each += bytes_of(&x->values[f]);
    if (dr__cursor_left(c) != each * x->n_samples) /* n_samples is at most the bytes of the keys */
        return wrong(err, "it has too many values, or too few");
    for (int f = 0; f < x->n_fields; f++) {
        if (x->n_samples && !reserve_values(x, &x->values[f]))
            return no_memory(err);
        for (size_t i = 0; i < x->n_samples; i++)
            DR_TRY(take_value(c, x, &x->values[f], i, err));
    }
    return DR_OK;
}

static dr_status take_stamps(dr_cursor *c, dr__remote_index *x, dr_error *err)
{
    if (dr__cursor_left(c) != x->n_samples * 8)
        return wrong(err, "it has too many stamps, or too few");
    x->stamps = dr__alloc_zero(x->n_samples ? (size_t)x->n_samples : 1, sizeof *x->stamps);
    if (!x->stamps)
        return no_memory(err);
    for (size_t i = 0; i < x->n_samples; i++)
        DR_TRY(dr__cursor_u64(c, &x->stamps[i], err));
    return DR_OK;
}

static dr_status check_paths(const dr__names *paths, dr_error *err)
{
    for (size_t i = 0; i < paths->n; i++)
        if (!dr__remote_path_is_plain(dr__names_get(paths, i)))
            return wrong(err, "a path leads out of the set");
    return DR_OK;
}

static dr_status decode(const void *data, size_t size, dr__remote_index *x, dr_error *err)
{
    dr_cursor c[N_SECTIONS];
    for (uint32_t i = 0; i < N_SECTIONS; i++)
        DR_TRY(dr__index_section(data, size, META + i, &c[i], err));
    json_t *meta = json_loadb((const char *)c[0].at, dr__cursor_left(&c[0]), JSON_REJECT_DUPLICATES, NULL);
    const dr_status status = take_meta(meta, x, err);
    json_decref(meta);
    DR_TRY(status);
    DR_TRY(take_names(&c[1], &x->keys, err));
    if (x->keys.n != x->n_samples)
        return wrong(err, "it has too many keys, or too few");
    DR_TRY(take_stamps(&c[2], x, err));
    DR_TRY(take_names(&c[3], &x->paths, err));
    DR_TRY(check_paths(&x->paths, err));
    return take_values(&c[4], x, err);
}

dr_status dr__remote_index_decode(const void *data, size_t size, dr__remote_index *out, dr_error *err)
{
    *out = (dr__remote_index){ 0 };
    const dr_status status = decode(data, size, out, err);
    if (status != DR_OK)
        dr__remote_index_free(out);
    return status;
}

void dr__remote_index_free(dr__remote_index *x)
{
    for (int f = 0; x->values && f < x->n_fields; f++) {
        dr__free(x->values[f].numbers);
        dr__free(x->values[f].sizes);
        dr__free(x->values[f].offsets);
        dr__free(x->values[f].paths);
    }
    for (size_t i = 0; i < x->n_classes; i++)
        dr__free(x->classes[i]);
    dr__free(x->classes);
    dr__free(x->values);
    dr__free(x->fields);
    dr__free(x->format);
    dr__free(x->name);
    dr__free(x->stamps);
    dr__names_free(&x->keys);
    dr__names_free(&x->paths);
    *x = (dr__remote_index){ 0 };
}
