/* renumbered.c: the places of another data set as samples of their own: sample i is what stands at place i.
 *
 * A selection keeps the ids of the set that it was taken from; this one has ids from 0 on.  So it can stand for a data
 * set of its own, and what is stored of it has the ids that it has.  Nothing that is learnt of it is kept: that would
 * be filed under ids of others.
 */
#include <inttypes.h>
#include <stdio.h>
#include <xxhash.h>

#include "format/dataset_internal.h"

struct renumbered {
    dr_dataset head;
    dr_dataset *set; /* a reference */
};

static const dr_dataset *inner(const dr_dataset *set)
{
    return ((const struct renumbered *)set)->set;
}

static uint64_t id_of(const dr_dataset *set, uint64_t id)
{
    return dr__dataset_place(inner(set), 0, 0, id).id; /* places are fixed: seed and epoch do not matter */
}

static dr_status read_sample(const dr_dataset *set, uint64_t id, dr__record *record, dr_error *err)
{
    return inner(set)->def->read(inner(set), id_of(set, id), record, err);
}

static void key(const dr_dataset *set, uint64_t id, char *text, size_t size)
{
    inner(set)->def->key(inner(set), id_of(set, id), text, size);
}

static dr_status stamp(const dr_dataset *set, uint64_t id, dr__stamp *out, dr_error *err)
{
    return dr__dataset_stamp(inner(set), id_of(set, id), out, err);
}

static dr_status file(const dr_dataset *set, uint64_t id, int field, char *text, size_t size, dr_error *err)
{
    return dr__dataset_file(inner(set), id_of(set, id), field, text, size, err);
}

static void close_renumbered(dr_dataset *set)
{
    dr_dataset_unref(&((struct renumbered *)set)->set);
}

static const dr_dataset_def renumbered_def = {
    .read = read_sample,
    .key = key,
    .stamp = stamp,
    .file = file,
    .close = close_renumbered,
};

static dr_status fill(struct renumbered *r, dr_dataset *set, dr_error *err)
{
    dr_dataset *head = &r->head;
    const uint64_t parts[] = { set->fingerprint, set->n_places };
    r->set = dr_dataset_ref(set);
    head->n_samples = head->n_places = set->n_places;
    head->fingerprint = XXH3_64bits_withSeed(parts, sizeof parts, 1);
    DR_TRY(dr__dataset_copy_fields(head, set, err));
    return dr__dataset_copy_classes(head, set, err);
}

dr_status dr_dataset_renumbered(dr_dataset *set, dr_dataset **out, dr_error *err)
{
    if (!set)
        return dr__fail(err, DR_ERR_ARG, "renumbered: needs a data set");
    if (set->def->place && !set->def->fixed_places)
        return dr__fail(err, DR_ERR_UNSUPPORTED, "%s: which samples a mixture has changes each epoch", set->name);
    dr_dataset *made;
    DR_TRY(dr__dataset_new(sizeof(struct renumbered), &renumbered_def, "renumbered", set->name, &made, err));
    dr_status status = fill((struct renumbered *)made, set, err);
    if (status != DR_OK) {
        dr_dataset_unref(&made);
        return status;
    }
    *out = made;
    return DR_OK;
}
