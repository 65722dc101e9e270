/* mixture.c: several data sets as one, each with its share of every epoch.
 *
 * Places first .. first + n - 1 of an epoch belong to one set.  A set hands out its samples in passes: a running
 * number counts its places over all epochs, number / size is the pass, and each pass goes through the set once in an
 * order of its own.  So nothing is remembered, any place of any epoch is found directly, and a set with a small share
 * goes on in the next epoch where it stopped.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/permute.h"
#include "data/desc.h"
#include "format/dataset.h"

struct part {
    dr_dataset *set;      /* a reference */
    uint64_t first_id;    /* of its samples in the mixture */
    uint64_t first_place; /* of its share in each epoch */
    uint64_t n_places;
    double rest;                   /* what rounding down left over */
    uint8_t field[DR__MAX_FIELDS]; /* field i of the mixture is field field[i] of the set */
};

struct mix {
    dr_dataset head;
    struct part *parts;
    int n_parts;
};

static const struct part *part_of_id(const struct mix *m, uint64_t id)
{
    int i = m->n_parts - 1;
    while (i > 0 && id < m->parts[i].first_id)
        i--;
    return &m->parts[i];
}

static dr_status read_sample(const dr_dataset *set, uint64_t id, dr__record *record, dr_error *err)
{
    const struct part *p = part_of_id((const struct mix *)set, id);
    dr_view fields[DR__MAX_FIELDS];
    DR_TRY(p->set->def->read(p->set, id - p->first_id, record, err));
    memcpy(fields, record->fields, sizeof fields);
    for (int i = 0; i < record->n_fields; i++)
        record->fields[i] = fields[p->field[i]];
    return DR_OK;
}

static void key(const dr_dataset *set, uint64_t id, char *text, size_t size)
{
    const struct part *p = part_of_id((const struct mix *)set, id);
    p->set->def->key(p->set, id - p->first_id, text, size);
}

static dr_status stamp(const dr_dataset *set, uint64_t id, uint64_t *out, dr_error *err)
{
    const struct part *p = part_of_id((const struct mix *)set, id);
    if (!p->set->def->stamp)
        return dr__fail(err, DR_ERR_UNSUPPORTED, "%s: samples have no stamps", p->set->name);
    return p->set->def->stamp(p->set, id - p->first_id, out, err);
}

/* How often the sample stood in this epoch before: once in each whole pass since the epoch began, and in the pass the
 * epoch began with, if its place there was not already over. */
static uint32_t occurrence(uint64_t size, uint64_t start, uint64_t pass, uint64_t index, uint64_t first_key)
{
    uint64_t first_pass = start / size;
    if (pass == first_pass)
        return 0;
    uint64_t before = pass - first_pass - 1;
    return (uint32_t)(before + (dr__permute_inverse(size, first_key, index) >= start % size));
}

static dr__sample_ref place(const dr_dataset *set, uint64_t seed, uint64_t epoch, uint64_t place)
{
    const struct mix *m = (const struct mix *)set;
    int i = m->n_parts - 1;
    while (i > 0 && place < m->parts[i].first_place)
        i--;
    const struct part *p = &m->parts[i];
    uint64_t size = p->set->n_samples, start = epoch * p->n_places, number = start + (place - p->first_place);
    uint64_t pass = number / size;
    uint64_t index = dr__permute(size, dr__permute_key(seed, (uint64_t)i, pass), number % size);
    uint64_t first_key = dr__permute_key(seed, (uint64_t)i, start / size);
    return (dr__sample_ref){ .id = p->first_id + index, .occurrence = occurrence(size, start, pass, index, first_key) };
}

static void close_mix(dr_dataset *set)
{
    struct mix *m = (struct mix *)set;
    for (int i = 0; i < m->n_parts; i++)
        dr_dataset_unref(&m->parts[i].set);
    dr__free(m->parts);
}

static const dr_dataset_def mix_def = {
    .read = read_sample,
    .key = key,
    .stamp = stamp,
    .place = place,
    .close = close_mix,
};

/* What holds for both: extents that differ are not known beforehand. */
static bool merge_desc(dr_desc *a, const dr_desc *b)
{
    if (a->kind != b->kind || a->dtype != b->dtype || a->layout != b->layout || a->n_dims != b->n_dims)
        return false;
    for (int i = 0; i < a->n_dims; i++)
        if (a->dims[i] != b->dims[i])
            a->dims[i] = DR_UNKNOWN;
    return true;
}

static dr_status match_fields(struct mix *m, struct part *p, dr_error *err)
{
    dr_dataset *head = &m->head, *first = m->parts[0].set;
    char a[128], b[128];
    for (int i = 0; i < head->n_fields; i++) {
        dr__field *want = &head->fields[i];
        int k = dr__dataset_find_field(p->set, want->name);
        if (k < 0)
            return dr__fail(err, DR_ERR_ARG, "mix: %s has the field \"%s\", %s has not", first->name, want->name,
                            p->set->name);
        const dr_desc *have = &p->set->fields[k].desc;
        if (!merge_desc(&want->desc, have))
            return dr__fail(err, DR_ERR_ARG, "mix: field \"%s\" is %s in %s and %s in %s", want->name,
                            dr__desc_text_of(&want->desc, a, sizeof a), first->name,
                            dr__desc_text_of(have, b, sizeof b), p->set->name);
        p->field[i] = (uint8_t)k;
    }
    if (p->set->n_fields != head->n_fields)
        return dr__fail(err, DR_ERR_ARG, "mix: %s has %d fields, %s has %d", first->name, head->n_fields, p->set->name,
                        p->set->n_fields);
    return DR_OK;
}

static dr_status match_classes(const dr_dataset *a, const dr_dataset *b, dr_error *err)
{
    bool same = a->n_classes == b->n_classes;
    for (size_t i = 0; same && i < a->n_classes; i++)
        same = !strcmp(a->classes[i], b->classes[i]);
    if (same)
        return DR_OK;
    return dr__fail(err, DR_ERR_ARG,
                    "mix: %s (%zu classes) and %s (%zu) have different classes: labels would mean two things", a->name,
                    a->n_classes, b->name, b->n_classes);
}

static dr_status add_part(struct mix *m, dr_dataset *set, double weight, dr_error *err)
{
    if (!set || !(weight >= 0) || isinf(weight))
        return dr__fail(err, DR_ERR_ARG, "mix: set %d: weight is %g; it must be 0 or more", m->n_parts, weight);
    if (set->def->place)
        return dr__fail(err, DR_ERR_UNSUPPORTED, "mix: set %d is itself a mixture; mix its sets directly", m->n_parts);
    struct part *p = &m->parts[m->n_parts++];
    *p = (struct part){ .set = dr_dataset_ref(set), .first_id = m->head.n_samples };
    m->head.n_samples += set->n_samples;
    m->head.fingerprint = XXH3_64bits_withSeed(&set->fingerprint, sizeof set->fingerprint, m->head.fingerprint);
    m->head.fingerprint = XXH3_64bits_withSeed(&weight, sizeof weight, m->head.fingerprint);
    if (m->n_parts == 1) {
        m->head.n_fields = set->n_fields;
        memcpy(m->head.fields, set->fields, sizeof set->fields);
    }
    DR_TRY(match_classes(m->parts[0].set, set, err));
    return match_fields(m, p, err);
}

/* Shares of n by weight, whole and exact in sum: round down, then one more each for the largest remainders, the
 * earlier set first among equals. */
static void apportion(struct mix *m, const double *weights, double sum, uint64_t n)
{
    uint64_t given = 0, first = 0;
    for (int i = 0; i < m->n_parts; i++) {
        struct part *p = &m->parts[i];
        double share = weights[i] / sum * (double)n;
        p->n_places = (uint64_t)share;
        p->n_places = p->n_places > n - given ? n - given : p->n_places; /* doubles round */
        p->rest = weights[i] > 0 ? share - (double)(uint64_t)share : -1;
        given += p->n_places;
    }
    for (; given < n; given++) {
        struct part *best = &m->parts[0];
        for (int i = 1; i < m->n_parts; i++)
            if (m->parts[i].rest > best->rest)
                best = &m->parts[i];
        best->n_places++;
        best->rest -= 1;
    }
    for (int i = 0; i < m->n_parts; i++) {
        m->parts[i].first_place = first;
        first += m->parts[i].n_places;
    }
}

/* What is learnt of the sets' content lies in the cache folder: there is no place beside all of them. */
static void keep(struct mix *m)
{
    char text[96];
    uint64_t hash = 0;
    for (int i = 0; i < m->n_parts; i++) {
        const char *part = m->parts[i].set->keep_identity;
        if (!part)
            return;
        hash = XXH3_64bits_withSeed(part, strlen(part), hash);
    }
    snprintf(text, sizeof text, "content of mixture %016llx", (unsigned long long)hash);
    m->head.keep_identity = dr__strdup(text);
}

static dr_status fill(struct mix *m, dr_dataset *const *sets, const double *weights, int n_sets, uint64_t length,
                      dr_error *err)
{
    double sum = 0;
    m->parts = dr__alloc_zero((size_t)n_sets, sizeof *m->parts);
    if (!m->parts)
        return dr__fail(err, DR_ERR_NOMEM, "mix: out of memory for %d sets", n_sets);
    for (int i = 0; i < n_sets; i++) {
        DR_TRY(add_part(m, sets[i], weights[i], err));
        sum += weights[i];
    }
    if (!(sum > 0) || isinf(sum))
        return dr__fail(err, DR_ERR_ARG, "mix: the weights sum to %g; one of them must be above 0", sum);
    m->head.n_places = length ? length : m->head.n_samples;
    apportion(m, weights, sum, m->head.n_places);
    m->head.fingerprint = XXH3_64bits_withSeed(&m->head.n_places, sizeof m->head.n_places, m->head.fingerprint);
    keep(m);
    const dr_dataset *first = m->parts[0].set;
    return first->n_classes
               ? dr__dataset_set_classes(&m->head, (const char *const *)first->classes, first->n_classes, err)
               : DR_OK;
}

dr_status dr_dataset_mix(dr_dataset *const *sets, const double *weights, int n_sets, uint64_t length, dr_dataset **out,
                         dr_error *err)
{
    if (!sets || !weights || n_sets < 1)
        return dr__fail(err, DR_ERR_ARG, "mix: needs sets and their weights");
    char name[64];
    snprintf(name, sizeof name, "mixture of %d", n_sets);
    dr_dataset *set;
    DR_TRY(dr__dataset_new(sizeof(struct mix), &mix_def, "mix", name, &set, err));
    dr_status status = fill((struct mix *)set, sets, weights, n_sets, length, err);
    if (status != DR_OK) {
        dr_dataset_unref(&set);
        return status;
    }
    *out = set;
    return DR_OK;
}
