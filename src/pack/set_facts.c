/* set_facts.c: what is asked about data sets on behalf of packing: manifest, names of files, checks. */
#include <drapps/pack.h>

#include <inttypes.h>
#include <stdio.h>

#include "format/packed.h"
#include "pack/source_marks.h"

enum { MAX_PATH = 8192 };

dr_status dr_dataset_manifest(const dr_dataset *set, char **text, dr_error *err)
{
    const dr__manifest *m = dr__packed_manifest(set);
    *text = m ? dr__manifest_encode(m) : NULL;
    return m && !*text ? dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", set->name) : DR_OK;
}

dr_status dr_dataset_file(const dr_dataset *set, uint64_t id, int field, char *text, size_t size, dr_error *err)
{
    if (id >= set->n_samples || field < 0 || field >= set->n_fields)
        return dr__fail(err, DR_ERR_ARG,
                        "%s: sample must be below %" PRIu64 ", got %" PRIu64 "; field must be 0 to %d, got %d",
                        set->name, set->n_samples, id, set->n_fields - 1, field);
    return dr__dataset_file(set, id, field, text, size, err);
}

static dr_status check_sum(const char *path, uint64_t want_size, uint64_t want_sum, dr_error *err)
{
    uint64_t sum, size;
    DR_TRY(dr__packed_sum(path, NULL, &sum, &size, err));
    if (size != want_size)
        return dr__fail(err, DR_ERR_FORMAT, "%s: has %" PRIu64 " bytes, was written with %" PRIu64, path, size,
                        want_size);
    if (sum != want_sum)
        return dr__fail(err, DR_ERR_FORMAT, "%s: is damaged: its checksum is wrong", path);
    return DR_OK;
}

dr_status dr_dataset_check_shard(const dr_dataset *set, size_t shard, dr_error *err)
{
    const dr__manifest *m = dr__packed_manifest(set);
    char path[MAX_PATH];
    if (!m || shard >= m->n_shards)
        return dr__fail(err, DR_ERR_ARG, "%s: has no shard %zu with checksums", set->name, shard);
    const dr__set_shard *s = &m->shards[shard];
    snprintf(path, sizeof path, "%s/%s", dr__packed_folder(set), s->name);
    DR_TRY(check_sum(path, s->size, s->sum, err));
    snprintf(path, sizeof path, "%s/%s" DR__SHARD_INDEX, dr__packed_folder(set), s->name);
    DR_TRY(check_sum(path, s->index_size, s->index_sum, err));
    return dr__marks_check(dr__packed_folder(set), s->name, s->samples, err);
}

dr_status dr_dataset_compare(const dr_dataset *set, size_t shard, const dr_dataset *source, uint64_t first,
                             dr_pack_changes *changes, dr_error *err)
{
    const dr__manifest *m = dr__packed_manifest(set);
    if (!m || shard >= m->n_shards)
        return dr__fail(err, DR_ERR_ARG, "%s: has no shard %zu that was packed", set->name, shard);
    return dr__marks_compare(dr__packed_folder(set), m->shards[shard].name, m->shards[shard].samples, source, first,
                             changes, err);
}
