/* mixture.c: several data sets as one, each with its share of every epoch.
 *
 * Places first .. first + n - 1 of an epoch belong to one set.  A set hands out its samples in passes: a running
 * number counts its places over all epochs, number / size is the pass, and each pass goes through the set once in an
 * order of its own.  So there is no state, any place of any epoch is found directly, and a set with a small share
 * continues in the next epoch where it stopped.
 */
#include <math.h>
#include <stdio.h>
#include <xxhash.h>

#include "base/permute.h"
#include "format/parts.h"

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
    const dr__parts *m = (const dr__parts *)set;
    const int i = dr__parts_at(m, place);
    const dr__part *p = &m->parts[i];
    uint64_t size = p->set->n_places, start = epoch * p->n_places, number = start + (place - p->first_place);
    uint64_t pass = number / size;
    uint64_t index = dr__permute(size, dr__permute_key(seed, (uint64_t)i, pass), number % size);
    uint64_t first_key = dr__permute_key(seed, (uint64_t)i, start / size);
    const dr__sample_ref ref = dr__dataset_place(p->set, seed, epoch, index);
    const uint32_t before = occurrence(size, start, pass, index, first_key);
    return (dr__sample_ref){ p->first_id + ref.id, before * p->set->most_times + ref.occurrence };
}

static const dr_dataset_def mix_def = {
    .read = dr__parts_read,
    .key = dr__parts_key,
    .stamp = dr__parts_stamp,
    .file = dr__parts_file,
    .place = place,
    .close = dr__parts_close,
};

static dr_status add_part(dr__parts *m, dr_dataset *set, double weight, dr_error *err)
{
    if (!set || !(weight >= 0) || isinf(weight))
        return dr__fail(err, DR_ERR_ARG, "mix: set %d: weight is %g; it must be 0 or more", m->n_parts, weight);
    if (weight > 0 && set->n_places == 0)
        return dr__fail(err, DR_ERR_ARG, "mix: %s has no samples, but weight %g", set->name, weight);
    DR_TRY(dr__parts_add(m, set, err));
    m->head.fingerprint = XXH3_64bits_withSeed(&weight, sizeof weight, m->head.fingerprint);
    return DR_OK;
}

/* Shares of n by weight, whole and exact in sum: round down, then one more each for the largest remainders, the
 * earlier set first among equals. */
static void apportion(dr__parts *m, const double *weights, double sum, uint64_t n)
{
    uint64_t given = 0, first = 0;
    for (int i = 0; i < m->n_parts; i++) {
        dr__part *p = &m->parts[i];
        double share = weights[i] / sum * (double)n;
        p->n_places = (uint64_t)share;
        p->n_places = p->n_places > n - given ? n - given : p->n_places; /* doubles round */
        p->rest = weights[i] > 0 ? share - (double)(uint64_t)share : -1;
        given += p->n_places;
    }
    for (; given < n; given++) {
        dr__part *best = &m->parts[0];
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

static dr_status fill(dr__parts *m, dr_dataset *const *sets, const double *weights, int n_sets, uint64_t length,
                      dr_error *err)
{
    double sum = 0;
    DR_TRY(dr__parts_begin(m, n_sets, err));
    for (int i = 0; i < n_sets; i++) {
        DR_TRY(add_part(m, sets[i], weights[i], err));
        sum += weights[i];
    }
    if (!(sum > 0) || isinf(sum))
        return dr__fail(err, DR_ERR_ARG, "mix: the weights sum to %g; one of them must be above 0", sum);
    m->head.n_places = length ? length : m->head.n_places;
    apportion(m, weights, sum, m->head.n_places);
    m->head.fingerprint = XXH3_64bits_withSeed(&m->head.n_places, sizeof m->head.n_places, m->head.fingerprint);
    return dr__parts_finish(m, err);
}

dr_status dr_dataset_mix(dr_dataset *const *sets, const double *weights, int n_sets, uint64_t length, dr_dataset **out,
                         dr_error *err)
{
    if (!sets || !weights || n_sets < 1)
        return dr__fail(err, DR_ERR_ARG, "mix: needs sets and their weights");
    char name[64];
    snprintf(name, sizeof name, "mixture of %d", n_sets);
    dr_dataset *set;
    DR_TRY(dr__dataset_new(sizeof(dr__parts), &mix_def, "mix", name, &set, err));
    dr_status status = fill((dr__parts *)set, sets, weights, n_sets, length, err);
    if (status != DR_OK) {
        dr_dataset_unref(&set);
        return status;
    }
    *out = set;
    return DR_OK;
}
