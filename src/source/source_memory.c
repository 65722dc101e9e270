/* source_memory.c: bytes in memory as a source, for tests and for data that another program holds. */
#include <string.h>

#include "base/alloc.h"
#include "source/source.h"

struct memory {
    dr__source head;
    const uint8_t *data;
    size_t size;
};

static dr_status size(dr__source *source, uint64_t *out, dr_error *err)
{
    (void)err;
    *out = ((struct memory *)source)->size;
    return DR_OK;
}

static dr_status read_at(dr__source *source, void *buf, size_t n, uint64_t offset, size_t *got, dr_error *err)
{
    const struct memory *m = (struct memory *)source;
    (void)err;
    size_t left = offset < m->size ? m->size - (size_t)offset : 0;
    *got = n < left ? n : left;
    if (*got)
        memcpy(buf, m->data + offset, *got);
    return DR_OK;
}

static void close_memory(dr__source *source)
{
    (void)source;
}

static const dr_source_def memory_def = {
    .scheme = "memory",
    .summary = "bytes that the caller holds",
    .size = size,
    .read_at = read_at,
    .close = close_memory,
};

dr_status dr__source_memory(const void *data, size_t n, const char *name, dr__source **out, dr_error *err)
{
    struct memory *m = dr__alloc_zero(1, sizeof *m);
    char *copy = dr__strdup(name);
    if (!m || !copy) {
        dr__free(m);
        dr__free(copy);
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", name);
    }
    *m = (struct memory){ .head = { .def = &memory_def, .name = copy }, .data = data, .size = n };
    *out = &m->head;
    return DR_OK;
}
