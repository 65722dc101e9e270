/* shard_source.c: the open file of a shard. */
#include "format/shard_source.h"

#include <inttypes.h>

dr_status dr__shard_source_get(dr__shard_source *shard, size_t number, const char *path,
                               const dr__source_options *options, dr__source **out, bool *own, dr_error *err)
{
    *own = number >= DR__SHARDS_OPEN;
    *out = atomic_load(&shard->source);
    if (*out)
        return DR_OK;
    DR_TRY(dr__source_open(path, options, out, err));
    dr__source *none = NULL;
    if (!*own && !atomic_compare_exchange_strong(&shard->source, &none, *out)) {
        dr__source_close(out); /* another thread was first */
        *out = none;
    }
    return DR_OK;
}

dr_status dr__shard_source_ranges(dr__source *source, uint64_t offset, uint64_t size, const dr__byte_ranges *ranges,
                                  uint8_t *to, dr_error *err)
{
    for (int i = 0; i < ranges->n; to += ranges->at[i++].size) {
        const dr__byte_range *r = &ranges->at[i];
        size_t got;
        if (r->offset > size || r->size > size - r->offset)
            return dr__fail(err, DR_ERR_FORMAT, "%s: a range beyond the end of its member", source->name);
        DR_TRY(dr__source_read_at(source, to, (size_t)r->size, offset + r->offset, &got, err));
        if (got != r->size)
            return dr__fail(err, DR_ERR_FORMAT, "%s: truncated: %" PRIu64 " bytes wanted at %" PRIu64 ", %zu there",
                            source->name, r->size, offset + r->offset, got);
    }
    return DR_OK;
}

void dr__shard_source_close(dr__shard_source *shard)
{
    dr__source *source = atomic_load(&shard->source);
    atomic_store(&shard->source, NULL);
    dr__source_close(&source);
}
