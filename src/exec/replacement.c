/* replacement.c: which sample replaces a bad one, in native loaders and, by dr_replacement, in Python.
 *
 * The choice is keyed by seed, epoch, id and occurrence of the original bad sample and by the attempt: neither workers
 * nor timing matter.  sample.c makes the replacement, and tries the next one where it is bad as well.
 */
#include "exec/exec.h"

/* Op ids of the executor's own draws; above those of any graph. */
enum { REPLACE_OP = 0x7F000000 };

uint64_t dr__replacement(const dr__rng_name *bad, uint32_t attempt, uint64_t n)
{
    dr_rng rng = dr__rng_open(bad, REPLACE_OP + attempt);
    return dr__rng_below(&rng, n);
}

dr__sample_ref dr__replacement_sample(const dr_dataset *set, const dr__rng_name *bad, uint32_t attempt)
{
    dr__sample_ref ref = { .occurrence = dr__replacement_occurrence(attempt) };
    if (set->def->fixed_places) /* only samples that have a place in the set */
        ref.id = dr__dataset_place(set, bad->seed, bad->epoch, dr__replacement(bad, attempt, set->n_places)).id;
    else
        ref.id = dr__replacement(bad, attempt, set->n_samples);
    return ref;
}
