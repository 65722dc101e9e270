/* shard_source.c: the open file of a shard. */
#include "format/shard_source.h"

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

void dr__shard_source_close(dr__shard_source *shard)
{
    dr__source *source = atomic_load(&shard->source);
    atomic_store(&shard->source, NULL);
    dr__source_close(&source);
}
