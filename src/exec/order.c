/* order.c: positions of an epoch, their ranks and their samples.
 *
 * The order of an epoch has as many positions as the data set has places.  From `base` on, a global batch is world x
 * batch_size consecutive positions, of which rank r takes r, r + world, ...  Padding continues past the end of the
 * order at its beginning.
 */
#include "base/permute.h"
#include "exec/exec.h"

void dr__order_count(const dr__exec *e, uint64_t base, uint64_t *n_local, uint64_t *n_batches)
{
    uint64_t n = e->set->n_places, per_batch = e->o.world_size * e->o.batch_size;
    uint64_t left = base < n ? n - base : 0;
    uint64_t full = left / per_batch, rest = left % per_batch;
    *n_batches = full;
    *n_local = full * e->o.batch_size;
    if (!rest || e->o.last == DR_LAST_DROP)
        return;
    uint64_t mine = rest > e->o.rank ? (rest - e->o.rank + e->o.world_size - 1) / e->o.world_size : 0;
    if (e->o.last == DR_LAST_PAD)
        mine = e->o.batch_size;
    *n_local += mine;
    *n_batches += mine > 0;
}

uint64_t dr__order_position(const dr__exec *e, uint64_t local, bool *padding)
{
    uint64_t batch = local / e->o.batch_size, slot = local % e->o.batch_size;
    uint64_t position = e->order.base + (batch * e->o.batch_size + slot) * e->o.world_size + e->o.rank;
    *padding = position >= e->set->n_places;
    return position;
}

dr__sample_ref dr__order_sample(const dr_dataset *set, uint64_t seed, uint64_t epoch, bool shuffle, uint64_t position)
{
    uint64_t n = set->n_places, place = position % n;
    if (shuffle)
        place = dr__permute(n, dr__permute_key(seed, epoch, 0), place);
    dr__sample_ref ref = dr__dataset_place(set, seed, epoch, place);
    ref.occurrence += (uint32_t)(position / n) * set->most_times; /* a repeat that pads is augmented anew */
    return ref;
}
