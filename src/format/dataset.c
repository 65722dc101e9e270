/* dataset.c: what all data sets share: counting, fields, classes, and opening a path by the format that fits. */
#include "format/dataset_internal.h"
#include "source/transfer.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "codec/file_types.h"

enum { MOST_DELAY_US = 60000000 };

void dr_read_defaults(dr_read_options *options)
{
    *options = (dr_read_options){ .size = sizeof *options, .format = "auto", .use_index = true };
}

static long read_delay(void)
{
    const char *text = getenv("DRAPPS_READ_DELAY_US");
    const long us = text ? strtol(text, NULL, 10) : 0;
    return DR_MAX(DR_MIN(us, MOST_DELAY_US), 0);
}

dr_status dr__dataset_read(const dr_dataset *set, uint64_t id, dr__record *record, dr_error *err)
{
    if (set->read_delay_us) {
        const struct timespec t = { set->read_delay_us / 1000000, set->read_delay_us % 1000000 * 1000 };
        nanosleep(&t, NULL);
    }
    return set->def->read(set, id, record, err);
}

dr_status dr__dataset_read_ranges(const dr__ranged *ranged, uint64_t version, const dr__byte_ranges *ranges,
                                  uint8_t *to, dr_error *err)
{
    return ranged->set->def->read_ranges(ranged->set, ranged->id, version, ranges, to, err);
}

dr__sample_ref dr__dataset_place(const dr_dataset *set, uint64_t seed, uint64_t epoch, uint64_t place)
{
    return set->def->place ? set->def->place(set, seed, epoch, place) : (dr__sample_ref){ .id = place };
}

dr_status dr__dataset_stamp(const dr_dataset *set, uint64_t id, dr__stamp *out, dr_error *err)
{
    if (!set->def->stamp)
        return dr__fail(err, DR_ERR_UNSUPPORTED, "%s: samples have no stamps", set->name);
    return set->def->stamp(set, id, out, err);
}

dr_status dr__dataset_file(const dr_dataset *set, uint64_t id, int field, char *text, size_t size, dr_error *err)
{
    if (!set->def->file)
        return dr__dataset_no_file(set, field, err);
    return set->def->file(set, id, field, text, size, err);
}

dr_status dr__dataset_file_is(const dr_dataset *set, const char *path, char *text, size_t size, dr_error *err)
{
    if (snprintf(text, size, "%s", path) < (int)size)
        return DR_OK;
    return dr__fail(err, DR_ERR_LIMIT, "%s: %.200s...: path too long", set->name, path);
}

dr_status dr__dataset_no_file(const dr_dataset *set, int field, dr_error *err)
{
    return dr__fail(err, DR_ERR_NOT_FOUND, "%s: field \"%s\" comes from no file", set->name, set->fields[field].name);
}

void dr__dataset_where(const dr_dataset *set, uint64_t id, int field, dr__where *out)
{
    out->form = DR__WHERE_UNKNOWN;
    out->number = 0;
    out->offset = out->size = 0;
    out->path[0] = 0;
    if (set->def->where)
        set->def->where(set, id, field, out);
}

const dr_dataset *dr__dataset_root(const dr_dataset *set)
{
    while (set->def->selected_from)
        set = set->def->selected_from(set);
    return set;
}

uint64_t dr__dataset_content(const dr_dataset *set)
{
    return set->content ? set->content : set->fingerprint;
}

dr_status dr__dataset_new(size_t size, const dr_dataset_def *def, const char *format, const char *name,
                          dr_dataset **out, dr_error *err)
{
    dr_dataset *set = dr__alloc_zero(1, size);
    char *copy = dr__strdup(name);
    if (!set || !copy) {
        dr__free(set);
        dr__free(copy);
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", name);
    }
    set->def = def;
    set->format = format;
    set->name = copy;
    set->most_times = 1;
    set->read_delay_us = read_delay();
    atomic_init(&set->refs, 1);
    *out = set;
    return DR_OK;
}

dr_status dr__dataset_add_field(dr_dataset *set, const char *name, const dr_desc *desc, dr_error *err)
{
    if (!*name || strlen(name) >= DR__FIELD_NAME)
        return dr__fail(err, DR_ERR_LIMIT, "%s: field name \"%.80s\" must have 1 to %d bytes", set->name, name,
                        DR__FIELD_NAME - 1);
    if (dr__dataset_find_field(set, name) >= 0)
        return dr__fail(err, DR_ERR_ARG, "%s: two fields with the name \"%s\"", set->name, name);
    if (set->n_fields == DR__MAX_FIELDS)
        return dr__fail(err, DR_ERR_LIMIT, "%s: no room for field \"%s\": more than %d fields", set->name, name,
                        DR__MAX_FIELDS);
    dr__field *fields = dr__grow(set->fields, &set->fields_cap, (size_t)set->n_fields + 1, sizeof *fields);
    if (!fields)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory for its fields", set->name);
    set->fields = fields;
    dr__field *f = &fields[set->n_fields++];
    memcpy(f->name, name, strlen(name) + 1);
    f->desc = *desc;
    return DR_OK;
}

dr_status dr__dataset_copy_fields(dr_dataset *set, const dr_dataset *from, dr_error *err)
{
    for (int i = 0; i < from->n_fields; i++)
        DR_TRY(dr__dataset_add_field(set, from->fields[i].name, &from->fields[i].desc, err));
    return DR_OK;
}

dr_status dr__dataset_set_classes(dr_dataset *set, const char *const *names, size_t n, dr_error *err)
{
    set->classes = dr__alloc_zero(n, sizeof *set->classes);
    if (!set->classes)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory for %zu classes", set->name, n);
    for (size_t i = 0; i < n; i++) {
        set->classes[i] = dr__strdup(names[i]);
        if (!set->classes[i])
            return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory for %zu classes", set->name, n);
        set->n_classes = i + 1;
    }
    return DR_OK;
}

dr_status dr__dataset_copy_classes(dr_dataset *set, const dr_dataset *from, dr_error *err)
{
    if (!from->n_classes)
        return DR_OK;
    return dr__dataset_set_classes(set, (const char *const *)from->classes, from->n_classes, err);
}

void dr__dataset_keep(dr_dataset *set, const char *path, const char *ending)
{
    char real[PATH_MAX], text[PATH_MAX + 64];
    if (!dr__source_real_name(path, real, sizeof real))
        return;
    if (dr__source_is_remote(path))
        ending = NULL;
    snprintf(text, sizeof text, "content of %s", real);
    set->keep_identity = dr__strdup(text);
    snprintf(text, sizeof text, "%s%s", real, ending ? ending : "");
    set->keep_beside = ending ? dr__strdup(text) : NULL;
}

int dr__dataset_find_field(const dr_dataset *set, const char *name)
{
    for (int i = 0; i < set->n_fields; i++)
        if (!strcmp(set->fields[i].name, name))
            return i;
    return -1;
}

const char *const *dr__extensions(const dr_read_options *options)
{
    return options && options->extensions ? options->extensions : dr__folder_extensions;
}

bool dr__has_extension(const char *name, size_t len, const char *const *extensions)
{
    for (; *extensions; extensions++) {
        size_t n = strlen(*extensions);
        if (n <= len && !strncasecmp(name + len - n, *extensions, n))
            return true;
    }
    return false;
}

const char *dr__extensions_text(const char *const *extensions, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; extensions[i] && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", extensions[i]);
    return text;
}

static const dr_format_def *find_format(const char *name)
{
    for (int i = 0; dr__format_table[i]; i++)
        if (!strcmp(dr__format_table[i]->name, name))
            return dr__format_table[i];
    return NULL;
}

const dr_format_def *dr__format_probe(const char *path)
{
    const dr_format_def *best = NULL;
    int best_score = 0;
    for (int i = 0; dr__format_table[i]; i++) {
        const dr_format_def *f = dr__format_table[i];
        int score = f->probe ? f->probe(path) : 0;
        if (score > best_score) {
            best = f;
            best_score = score;
        }
    }
    return best;
}

static dr_status no_format(const char *path, dr_error *err)
{
    char text[512];
    size_t used = 0;
    for (int i = 0; dr__format_table[i] && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s (%s)", i ? ", " : "", dr__format_table[i]->name,
                                 dr__format_table[i]->uses);
    return dr__fail(err, DR_ERR_UNSUPPORTED, "%s: no format fits; known formats are %s", path, text);
}

static dr_status choose(const char *path, const char *name, const dr_format_def **out, dr_error *err)
{
    if (name && strcmp(name, "auto")) {
        *out = find_format(name);
        if (!*out)
            return dr__fail(err, DR_ERR_ARG, "format must be auto, drapps, flat, folder, list or tar, got \"%s\"",
                            name);
        return DR_OK;
    }
    *out = dr__format_probe(path);
    if (*out)
        return DR_OK;
    dr__source_facts facts;
    DR_TRY(dr__source_stat(path, &facts, err));
    return no_format(path, err);
}

/* What finds out the format, or expands patterns, has no options. */
static dr_status open_with(const char *path, const dr_read_options *o, dr_dataset **out, dr_error *err)
{
    const dr__source_options options = dr__source_options_of(o), *before = dr__source_assume(&options);
    const dr_format_def *format;
    dr__transfer_ask(o->interrupted, o->user);
    dr_status status = choose(path, o->format, &format, err);
    if (status == DR_OK)
        status = format->open(path, o, out, err);
    dr__source_assume(before);
    dr__transfer_ask(NULL, NULL);
    return status;
}

dr_status dr_dataset_open(const char *path, const dr_read_options *options, dr_dataset **out, dr_error *err)
{
    if (!path || !*path || !out)
        return dr__fail(err, DR_ERR_ARG, "dr_dataset_open: needs a path and a place for the result");
    dr_read_options o;
    dr_read_defaults(&o);
    if (options) { /* a caller built with an older header has a shorter struct */
        memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
        o.size = sizeof o;
    }
    *out = NULL;
    if (!(o.timeout_s >= 0 && o.timeout_s < 1e9))
        return dr__fail(err, DR_ERR_ARG, "timeout_s must be from 0 to 1e9 seconds, got %g", o.timeout_s);
    DR_TRY(open_with(path, &o, out, err));
    char *name = o.name ? dr__strdup(o.name) : NULL;
    if (o.name && !name) {
        dr_dataset_unref(out);
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", o.name);
    }
    if (name) {
        dr__free((*out)->name);
        (*out)->name = name;
    }
    return DR_OK;
}

dr_dataset *dr_dataset_ref(dr_dataset *set)
{
    /* relaxed: the caller holds a reference, so the object cannot vanish meanwhile */
    atomic_fetch_add_explicit(&set->refs, 1, memory_order_relaxed);
    return set;
}

void dr_dataset_unref(dr_dataset **set)
{
    dr_dataset *s = *set;
    *set = NULL;
    if (!s || atomic_fetch_sub(&s->refs, 1) > 1)
        return;
    s->def->close(s);
    for (size_t i = 0; i < s->n_classes; i++)
        dr__free(s->classes[i]);
    dr__free(s->classes);
    dr__free(s->fields);
    dr__free(s->keep_beside);
    dr__free(s->keep_identity);
    dr__free(s->name);
    dr__free(s);
}

const char *dr_dataset_name(const dr_dataset *set)
{
    return set->name;
}

const char *dr_dataset_format(const dr_dataset *set)
{
    return set->format;
}

uint64_t dr_dataset_size(const dr_dataset *set)
{
    return set->n_samples;
}

uint64_t dr_dataset_places(const dr_dataset *set)
{
    return set->n_places;
}

uint64_t dr_dataset_fingerprint(const dr_dataset *set)
{
    return set->fingerprint;
}

dr_status dr_dataset_key(const dr_dataset *set, uint64_t id, char *text, size_t size, dr_error *err)
{
    if (id >= set->n_samples)
        return dr__fail(err, DR_ERR_ARG, "%s: sample must be below %llu, got %llu", set->name,
                        (unsigned long long)set->n_samples, (unsigned long long)id);
    if (size)
        set->def->key(set, id, text, size);
    return DR_OK;
}

int dr_dataset_fields(const dr_dataset *set)
{
    return set->n_fields;
}

const char *dr_dataset_field(const dr_dataset *set, int i, dr_desc *desc)
{
    if (i < 0 || i >= set->n_fields)
        return NULL;
    if (desc)
        *desc = set->fields[i].desc;
    return set->fields[i].name;
}

size_t dr_dataset_classes(const dr_dataset *set)
{
    return set->n_classes;
}

const char *dr_dataset_class(const dr_dataset *set, size_t i)
{
    return i < set->n_classes ? set->classes[i] : NULL;
}
