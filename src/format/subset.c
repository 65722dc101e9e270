/* subset.c: some places of another data set: a range, a list, or all of them in a fixed random order.
 *
 * Samples keep the ids that they have in the other set, and with them their draws, cache entries and messages.  A
 * subset only maps places to places.  A range takes no memory, a list 8 bytes a sample.  Subsets of subsets are
 * allowed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/permute.h"
#include "format/dataset_internal.h"

enum kind { RANGE = 1, LIST = 2, SHUFFLED = 3 };

struct subset {
    dr_dataset head;
    dr_dataset *set; /* a reference */
    enum kind kind;
    uint64_t first; /* RANGE: first, first + step, ... */
    int64_t step;
    uint64_t key;      /* SHUFFLED: of the permutation */
    uint64_t *indices; /* LIST: places of the set; owned */
    uint32_t *times;   /* LIST: how often the index came before; NULL: none comes twice; owned */
};

static uint64_t place_in_set(const struct subset *s, uint64_t place)
{
    switch (s->kind) {
    case RANGE:
        return s->first + place * (uint64_t)s->step; /* wraps for steps below 0, as it should */
    case LIST:
        return s->indices[place];
    default:
        return dr__permute(s->head.n_places, s->key, place);
    }
}

static dr__sample_ref place(const dr_dataset *set, uint64_t seed, uint64_t epoch, uint64_t place)
{
    const struct subset *s = (const struct subset *)set;
    dr__sample_ref ref = dr__dataset_place(s->set, seed, epoch, place_in_set(s, place));
    if (s->times)
        ref.occurrence += s->times[place] * s->set->most_times;
    return ref;
}

static dr_status read_sample(const dr_dataset *set, uint64_t id, dr__record *record, dr_error *err)
{
    const dr_dataset *of = ((const struct subset *)set)->set;
    return of->def->read(of, id, record, err);
}

static void key(const dr_dataset *set, uint64_t id, char *text, size_t size)
{
    const dr_dataset *of = ((const struct subset *)set)->set;
    of->def->key(of, id, text, size);
}

static dr_status file(const dr_dataset *set, uint64_t id, int field, char *text, size_t size, dr_error *err)
{
    return dr__dataset_file(((const struct subset *)set)->set, id, field, text, size, err);
}

static dr_status stamp(const dr_dataset *set, uint64_t id, dr__stamp *out, dr_error *err)
{
    return dr__dataset_stamp(((const struct subset *)set)->set, id, out, err);
}

static const dr_dataset *selected_from(const dr_dataset *set)
{
    return ((const struct subset *)set)->set;
}

static void close_subset(dr_dataset *set)
{
    struct subset *s = (struct subset *)set;
    dr_dataset_unref(&s->set);
    dr__free(s->indices);
    dr__free(s->times);
}

static const dr_dataset_def subset_def = {
    .read = read_sample,
    .key = key,
    .stamp = stamp,
    .file = file,
    .place = place,
    .selected_from = selected_from,
    .fixed_places = true,
    .close = close_subset,
};

/* --- making --- */

/* "photos (10 of 500 samples)", also where the set is a subset itself. */
static const char *name_of(const dr_dataset *set, uint64_t n, char *text, size_t size)
{
    while (set->def == &subset_def)
        set = ((const struct subset *)set)->set;
    snprintf(text, size, "%s (%" PRIu64 " of %" PRIu64 " samples)", set->name, n, set->n_places);
    return text;
}

static dr_status copy_text(const char *text, char **out, dr_error *err)
{
    *out = text ? dr__strdup(text) : NULL;
    return text && !*out ? dr__fail(err, DR_ERR_NOMEM, "out of memory") : DR_OK;
}

/* All but which places it has. */
static dr_status fill(struct subset *s, dr_dataset *set, uint64_t n, dr_error *err)
{
    dr_dataset *head = &s->head;
    s->set = dr_dataset_ref(set);
    head->n_samples = set->n_samples;
    head->n_places = n;
    head->most_times = set->most_times;
    DR_TRY(dr__dataset_copy_fields(head, set, err));
    head->content = dr__dataset_content(set);
    DR_TRY(copy_text(set->keep_beside, &head->keep_beside, err));
    DR_TRY(copy_text(set->keep_identity, &head->keep_identity, err));
    return dr__dataset_copy_classes(head, set, err);
}

static dr_status begin(dr_dataset *set, enum kind kind, uint64_t n, struct subset **out, dr_error *err)
{
    char name[4096 + 64];
    if (!set)
        return dr__fail(err, DR_ERR_ARG, "subset: needs a data set");
    if (set->def->place && !set->def->fixed_places)
        return dr__fail(err, DR_ERR_UNSUPPORTED,
                        "%s: which samples a mixture has changes each epoch; select from its sets, then mix",
                        set->name);
    dr_dataset *made;
    DR_TRY(
        dr__dataset_new(sizeof(struct subset), &subset_def, "subset", name_of(set, n, name, sizeof name), &made, err));
    dr_status status = fill((struct subset *)made, set, n, err);
    if (status != DR_OK) {
        dr_dataset_unref(&made);
        return status;
    }
    *out = (struct subset *)made;
    (*out)->kind = kind;
    return DR_OK;
}

/* What the state of a loader compares: the set and what was taken of it. */
static void set_fingerprint(struct subset *s, uint64_t a, uint64_t b)
{
    const uint64_t parts[] = { s->set->fingerprint, (uint64_t)s->kind, a, b, s->head.n_places };
    s->head.fingerprint = XXH3_64bits(parts, sizeof parts);
}

dr_status dr_dataset_slice(dr_dataset *set, uint64_t first, int64_t step, uint64_t n, dr_dataset **out, dr_error *err)
{
    struct subset *s;
    if (set && n) {
        const uint64_t most = set->n_places;
        const uint64_t stride = step < 0 ? 0 - (uint64_t)step : (uint64_t)step;
        const uint64_t room = first >= most ? 0 : step < 0 ? first : most - 1 - first;
        if (first >= most || !step || (n - 1 && stride > room / (n - 1)))
            return dr__fail(err, DR_ERR_ARG,
                            "slice: %" PRIu64 " places from %" PRIu64 " on in steps of %" PRId64
                            " are not within the %" PRIu64 " of %s",
                            n, first, step, most, set->name);
    }
    DR_TRY(begin(set, RANGE, n, &s, err));
    s->first = first;
    s->step = step;
    set_fingerprint(s, first, (uint64_t)step);
    *out = &s->head;
    return DR_OK;
}

dr_status dr_dataset_shuffled(dr_dataset *set, uint64_t seed, dr_dataset **out, dr_error *err)
{
    struct subset *s;
    DR_TRY(begin(set, SHUFFLED, set ? set->n_places : 0, &s, err));
    s->key = dr__permute_key(seed, 0, (uint64_t)SHUFFLED); /* not the order of an epoch */
    set_fingerprint(s, seed, 0);
    *out = &s->head;
    return DR_OK;
}

/* Each index counts how often it came before: the same sample is then augmented anew. */
static dr_status count_times(struct subset *s, uint64_t n, dr_error *err)
{
    uint32_t *counts = dr__alloc_zero(s->set->n_places, sizeof *counts), most = 1;
    s->times = dr__alloc_zero(n, sizeof *s->times);
    if (counts && s->times) {
        for (uint64_t i = 0; i < n; i++) {
            s->times[i] = counts[s->indices[i]]++;
            most = DR_MAX(most, s->times[i] + 1);
        }
    }
    dr__free(counts);
    if (!counts || !s->times)
        return dr__fail(err, DR_ERR_NOMEM, "select: out of memory for %" PRIu64 " indices", n);
    s->head.most_times *= most;
    return DR_OK;
}

static dr_status has_repeats(const struct subset *s, uint64_t n, bool *out, dr_error *err)
{
    uint8_t *seen = dr__alloc_zero(s->set->n_places / 8 + 1, 1);
    if (!seen)
        return dr__fail(err, DR_ERR_NOMEM, "select: out of memory for %" PRIu64 " indices", n);
    *out = false;
    for (uint64_t i = 0; i < n && !*out; i++) {
        const uint64_t at = s->indices[i];
        *out = seen[at / 8] >> at % 8 & 1;
        seen[at / 8] |= (uint8_t)(1u << at % 8);
    }
    dr__free(seen);
    return DR_OK;
}

static dr_status copy_indices(struct subset *s, const int64_t *indices, uint64_t n, dr_error *err)
{
    bool repeats = false;
    s->indices = dr__alloc_zero(DR_MAX(n, 1), sizeof *s->indices);
    if (!s->indices)
        return dr__fail(err, DR_ERR_NOMEM, "select: out of memory for %" PRIu64 " indices", n);
    for (uint64_t i = 0; i < n; i++) {
        if (indices[i] < 0 || (uint64_t)indices[i] >= s->set->n_places)
            return dr__fail(err, DR_ERR_ARG,
                            "select: indices must be below %" PRIu64 ", the samples of %s, got %" PRId64,
                            s->set->n_places, s->set->name, indices[i]);
        s->indices[i] = (uint64_t)indices[i];
    }
    DR_TRY(has_repeats(s, n, &repeats, err));
    return repeats ? count_times(s, n, err) : DR_OK;
}

dr_status dr_dataset_select(dr_dataset *set, const int64_t *indices, uint64_t n, dr_dataset **out, dr_error *err)
{
    struct subset *s;
    if (n && !indices)
        return dr__fail(err, DR_ERR_ARG, "select: needs indices");
    DR_TRY(begin(set, LIST, n, &s, err));
    dr_status status = copy_indices(s, indices, n, err);
    if (status != DR_OK) {
        dr_dataset *made = &s->head;
        dr_dataset_unref(&made);
        return status;
    }
    set_fingerprint(s, XXH3_64bits(s->indices, n * sizeof *s->indices), 0);
    *out = &s->head;
    return DR_OK;
}
