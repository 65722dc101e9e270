/* source_table.c: all sources, and the choice among them by name. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "source/source.h"

const dr_source_def *const dr__source_table[] = {
    &dr__source_file, &dr__source_http, &dr__source_https, &dr__source_s3, NULL,
};

static const dr__source_options no_options;

static _Thread_local const dr__source_options *assumed;

/* What remote names turned out to be while a data set is opened: each format asks for the same few. */
enum { REMEMBERED = 8 };

struct remembered {
    char *name;
    dr__source_facts facts;
    dr_status status;
    dr_error err;
};

static _Thread_local struct remembered *remembered; /* REMEMBERED of them; NULL: none yet */
static _Thread_local size_t n_remembered;

static void forget(void)
{
    for (size_t i = 0; remembered && i < REMEMBERED; i++)
        dr__free(remembered[i].name);
    dr__free(remembered);
    remembered = NULL;
    n_remembered = 0;
}

const dr__source_options *dr__source_assume(const dr__source_options *options)
{
    const dr__source_options *before = assumed;
    assumed = options;
    forget();
    return before;
}

const dr__source_options *dr__source_assumed(void)
{
    return assumed ? assumed : &no_options;
}

/* Of a call without options: local files need none, and refuse what is meant for others. */
static const dr__source_options *options_for(const dr_source_def *def)
{
    return def->remote ? dr__source_assumed() : &no_options;
}

/* Length of "scheme" in "scheme://..."; 0: a plain path. */
static size_t scheme_length(const char *name)
{
    const char *colon = strchr(name, ':');
    if (!colon || strncmp(colon, "://", 3) || memchr(name, '/', (size_t)(colon - name)))
        return 0;
    return (size_t)(colon - name);
}

const dr_source_def *dr__source_def_of(const char *name)
{
    const size_t scheme = scheme_length(name);
    for (int i = 0; dr__source_table[i]; i++) {
        const char *s = dr__source_table[i]->scheme;
        if (scheme ? s && strlen(s) == scheme && !strncmp(s, name, scheme) : !s)
            return dr__source_table[i];
    }
    return NULL;
}

static dr_status find(const char *name, const dr_source_def **out, dr_error *err)
{
    *out = dr__source_def_of(name);
    if (*out)
        return DR_OK;
    return dr__fail(err, DR_ERR_UNSUPPORTED, "%s: this build cannot read from %.*s://", name, (int)scheme_length(name),
                    name);
}

bool dr__source_is_remote(const char *name)
{
    const dr_source_def *def = dr__source_def_of(name);
    return def && def->remote;
}

bool dr__source_real_name(const char *name, char *text, size_t size)
{
    char real[PATH_MAX];
    const bool remote = dr__source_is_remote(name);
    if (!remote && !realpath(name, real))
        return false;
    const int n = snprintf(text, size, "%s", remote ? name : real);
    return n >= 0 && (size_t)n < size;
}

/* --- one object --- */

dr_status dr__source_open(const char *name, const dr__source_options *options, dr__source **out, dr_error *err)
{
    const dr_source_def *def;
    DR_TRY(find(name, &def, err));
    char *copy = dr__strdup(name);
    if (!copy)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", name);
    dr_status status = def->open(name, options ? options : options_for(def), out, err);
    if (status != DR_OK) {
        dr__free(copy);
        return status;
    }
    (*out)->def = def;
    (*out)->name = copy;
    return DR_OK;
}

dr_status dr__source_size(dr__source *source, uint64_t *size, dr_error *err)
{
    return source->def->size(source, size, err);
}

dr_status dr__source_read_at(dr__source *source, void *buf, size_t size, uint64_t offset, size_t *got, dr_error *err)
{
    return source->def->read_at(source, buf, size, offset, got, err);
}

void dr__source_close(dr__source **source)
{
    if (!*source)
        return;
    (*source)->def->close(*source);
    dr__free((*source)->name);
    dr__free(*source);
    *source = NULL;
}

/* --- directories --- */

dr_status dr__source_dir_open(const char *name, const dr__source_options *options, dr__source_dir **out, dr_error *err)
{
    const dr_source_def *def = &dr__source_file;
    *out = NULL;
    if (name)
        DR_TRY(find(name, &def, err));
    if (!def->open_dir)
        return dr__fail(err, DR_ERR_UNSUPPORTED, "%s: %s:// has no folders", name, def->scheme);
    char *copy = dr__strdup(name ? name : ".");
    if (!copy)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", name ? name : ".");
    dr_status status = def->open_dir(name, options ? options : options_for(def), out, err);
    if (status != DR_OK) {
        dr__free(copy);
        return status;
    }
    (*out)->def = def;
    (*out)->name = copy;
    return DR_OK;
}

static dr_status read_into(dr__source *source, uint64_t offset, uint64_t n, dr__source_target *target, size_t *got,
                           dr_error *err)
{
    dr_status status = DR_OK;
    uint8_t *memory = target->reserve(target, (size_t)n, 0, &status, err);
    return memory ? dr__source_read_at(source, memory, (size_t)n, offset, got, err) : status;
}

/* A source without directories: the object is opened. */
static dr_status get_object(const char *name, dr__source_target *target, size_t *size, dr_error *err)
{
    dr__source *source;
    uint64_t total;
    DR_TRY(dr__source_open(name, NULL, &source, err));
    dr_status status = dr__source_size(source, &total, err);
    if (status == DR_OK)
        status = read_into(source, 0, total, target, size, err);
    dr__source_close(&source);
    return status;
}

static dr_status get_object_range(const char *name, uint64_t version, uint64_t offset, size_t size,
                                  dr__source_target *target, size_t *got, dr_error *err)
{
    dr__source *source;
    DR_TRY(dr__source_open(name, NULL, &source, err));
    dr_status status = DR_OK;
    if (version && source->facts.version != version)
        status = dr__fail(err, DR_ERR_STATE, "%s: was changed while the data set is open", name);
    if (status == DR_OK)
        status = read_into(source, offset, size, target, got, err);
    dr__source_close(&source);
    return status;
}

/* The def that a path below a directory goes to: a name with a scheme does not depend on the directory, which then
 * serves only where it is of the same source. */
static dr_status find_below(dr__source_dir **dir, const char *path, const dr_source_def **def, dr_error *err)
{
    *def = (*dir)->def;
    if (!scheme_length(path))
        return DR_OK;
    DR_TRY(find(path, def, err));
    if ((*dir)->def != *def)
        *dir = NULL;
    return DR_OK;
}

dr_status dr__source_dir_get(dr__source_dir *dir, const char *path, dr__source_target *target, size_t *size,
                             dr_error *err)
{
    const dr_source_def *def;
    DR_TRY(find_below(&dir, path, &def, err));
    return def->get ? def->get(dir, path, target, size, err) : get_object(path, target, size, err);
}

dr_status dr__source_dir_get_range(dr__source_dir *dir, const char *path, uint64_t version, uint64_t offset,
                                   size_t size, dr__source_target *target, size_t *got, dr_error *err)
{
    const dr_source_def *def;
    DR_TRY(find_below(&dir, path, &def, err));
    return def->get_range ? def->get_range(dir, path, version, offset, size, target, got, err)
                          : get_object_range(path, version, offset, size, target, got, err);
}

/* What had the same version before and after it was read was of this version. */
dr_status dr__source_dir_get_versioned(dr__source_dir *dir, const char *path, dr__source_target *target, size_t *size,
                                       uint64_t *version, dr_error *err)
{
    dr__source_facts before, after;
    dr__source_dir *of = dir;
    const dr_source_def *def;
    DR_TRY(find_below(&of, path, &def, err));
    if (def->get_versioned)
        return def->get_versioned(of, path, target, size, version, err);
    DR_TRY(dr__source_dir_stat(dir, path, &before, err));
    DR_TRY(dr__source_dir_get(dir, path, target, size, err));
    DR_TRY(dr__source_dir_stat(dir, path, &after, err));
    *version = before.version == after.version ? after.version : 0;
    return DR_OK;
}

/* Memory that is there already. */
struct fixed_target {
    dr__source_target head;
    uint8_t *memory;
    size_t size;
};

static uint8_t *reserve_fixed(dr__source_target *target, size_t size, size_t keep, dr_status *status, dr_error *err)
{
    const struct fixed_target *t = (const struct fixed_target *)target;
    (void)keep;
    if (size <= t->size)
        return t->memory;
    *status = dr__fail(err, DR_ERR_FORMAT, "%zu bytes came, %zu were asked for", size, t->size);
    return NULL;
}

dr_status dr__source_dir_get_ranges(dr__source_dir *dir, const char *path, uint64_t version,
                                    const dr__byte_ranges *ranges, uint8_t *to, dr_error *err)
{
    if (!scheme_length(path) && dir->def->get_ranges)
        return dir->def->get_ranges(dir, path, version, ranges, to, err);
    for (int i = 0; i < ranges->n; to += ranges->at[i++].size) {
        const dr__byte_range *r = &ranges->at[i];
        struct fixed_target target = { .head = { reserve_fixed }, .memory = to, .size = (size_t)r->size };
        size_t got;
        DR_TRY(dr__source_dir_get_range(dir, path, version, r->offset, (size_t)r->size, &target.head, &got, err));
        if (got != r->size)
            return dr__fail(err, DR_ERR_FORMAT, "%s/%s: %llu bytes wanted at %llu, %zu there", dir->name, path,
                            (unsigned long long)r->size, (unsigned long long)r->offset, got);
    }
    return DR_OK;
}

static const struct remembered *recall(const char *name)
{
    for (size_t i = 0; remembered && i < REMEMBERED; i++)
        if (remembered[i].name && !strcmp(remembered[i].name, name))
            return &remembered[i];
    return NULL;
}

/* Without memory it is asked for again. */
static void remember(const char *name, dr_status status, const dr__source_facts *facts, const dr_error *err)
{
    if (!remembered && !(remembered = dr__alloc_zero(REMEMBERED, sizeof *remembered)))
        return;
    struct remembered *r = &remembered[n_remembered++ % REMEMBERED];
    dr__free(r->name);
    *r = (struct remembered){ .name = dr__strdup(name), .facts = *facts, .status = status, .err = *err };
}

static dr_status stat_remote(const dr_source_def *def, const char *name, dr__source_facts *facts, dr_error *err)
{
    const struct remembered *known = recall(name);
    dr_error why = { 0 };
    if (!known) {
        const dr_status status = def->stat(NULL, name, facts, &why);
        if (status == DR_OK || status == DR_ERR_NOT_FOUND)
            remember(name, status, facts, &why);
        if (status != DR_OK && err)
            *err = why;
        return status;
    }
    *facts = known->facts;
    if (known->status != DR_OK && err)
        *err = known->err;
    return known->status;
}

dr_status dr__source_stat(const char *name, dr__source_facts *facts, dr_error *err)
{
    const dr_source_def *def;
    dr__source *source;
    DR_TRY(find(name, &def, err));
    if (def->remote && def->stat && assumed)
        return stat_remote(def, name, facts, err);
    if (def->stat)
        return def->stat(NULL, name, facts, err);
    DR_TRY(dr__source_open(name, NULL, &source, err));
    *facts = source->facts;
    dr__source_close(&source);
    return DR_OK;
}

dr_status dr__source_dir_stat(dr__source_dir *dir, const char *path, dr__source_facts *facts, dr_error *err)
{
    const dr_source_def *def;
    DR_TRY(find_below(&dir, path, &def, err));
    return dir ? def->stat(dir, path, facts, err) : dr__source_stat(path, facts, err);
}

dr_status dr__source_dir_list(dr__source_dir *dir, const char *path, dr__source_lister *lister, dr_error *err)
{
    return dir->def->list(dir, path, lister, err);
}

void dr__source_dir_close(dr__source_dir **dir)
{
    if (!*dir)
        return;
    (*dir)->def->close_dir(*dir);
    dr__free((*dir)->name);
    dr__free(*dir);
    *dir = NULL;
}
