/* next_use.c: positions in later epochs, by the inverse permutation. */
#include "exec/next_use.h"

#include "base/permute.h"

enum { EPOCHS = 16 };

bool dr__next_use_is_known(const dr__exec *e)
{
    return !e->o.pushed_order && (!e->set->def->place || e->set->def->fixed_places);
}

static uint64_t position_in(const dr__exec *e, uint64_t epoch, uint64_t place)
{
    const uint64_t n = e->set->n_places;
    return e->o.shuffle ? dr__permute_inverse(n, dr__permute_key(e->o.seed, epoch, 0), place) : place;
}

uint64_t dr__next_use(const dr__exec *e, uint64_t position, uint64_t local_world)
{
    const uint64_t n = e->set->n_places, epoch = e->order.epoch, at = position % n;
    const uint64_t place = e->o.shuffle ? dr__permute(n, dr__permute_key(e->o.seed, epoch, 0), at) : at;
    if (epoch + EPOCHS >= (UINT64_C(1) << 62) / n)
        return 0;
    for (uint64_t later = epoch + 1; later <= epoch + EPOCHS; later++) {
        const uint64_t next = position_in(e, later, place), rank = next % e->o.world_size;
        if (rank / local_world == e->o.rank / local_world)
            return later * n + next + 1;
    }
    return 0;
}
