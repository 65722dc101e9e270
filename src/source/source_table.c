/* source_table.c: all sources, and the choice among them by name. */
#include <string.h>

#include "base/alloc.h"
#include "source/source.h"

const dr_source_def *const dr__source_table[] = {
    &dr__source_file,
    NULL,
};

/* Length of "scheme" in "scheme://..."; 0: a plain path. */
static size_t scheme_length(const char *name)
{
    const char *colon = strstr(name, "://");
    if (!colon || memchr(name, '/', (size_t)(colon - name)))
        return 0;
    return (size_t)(colon - name);
}

static const dr_source_def *find(const char *name, size_t scheme)
{
    for (int i = 0; dr__source_table[i]; i++) {
        const char *s = dr__source_table[i]->scheme;
        if (scheme ? s && strlen(s) == scheme && !strncmp(s, name, scheme) : !s)
            return dr__source_table[i];
    }
    return NULL;
}

dr_status dr__source_open(const char *name, dr__source **out, dr_error *err)
{
    size_t scheme = scheme_length(name);
    const dr_source_def *def = find(name, scheme);
    if (!def)
        return dr__fail(err, DR_ERR_UNSUPPORTED, "%s: this build cannot read from %.*s://", name, (int)scheme, name);
    char *copy = dr__strdup(name);
    if (!copy)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", name);
    dr_status status = def->open(name, out, err);
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
