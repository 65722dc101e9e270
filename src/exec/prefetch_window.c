/* prefetch_window.c: the prefetch window of a loader, from its settings and its memory. */
#include "exec/prefetch_window.h"

#include "exec/exec.h"
#include "sched/prefetch_rule.h"

/* Whether all samples have the same size, so that a batch's size is known beforehand. */
static bool has_known_size(const dr__program *p)
{
    size_t ignored;
    for (int i = 0; i < p->n_outputs; i++)
        if (!dr__desc_bytes_dense(&p->outputs[i].desc, &ignored))
            return false;
    return true;
}

int dr__prefetch_first(const dr__exec *e)
{
    const uint64_t batch_bytes = has_known_size(e->program) ? e->o.batch_size * e->budget.sample_bytes : 0;
    return (int)dr__prefetch_default(e->o.batch_size, batch_bytes, e->budget.batch_bytes, (uint64_t)e->knobs.workers);
}

size_t dr__prefetch_batch_bytes(const dr__exec *e)
{
    return e->budget.batch_slots * e->budget.sample_bytes + e->budget.item_bytes;
}

/* Memory that other loaders use of the shared budget; 0 for a loader with a memory_limit of its own. */
static size_t taken_by_others(const dr__exec *e)
{
    size_t bytes = 0;
    for (const dr__exec *x = dr__pool_execs(); x && !e->o.memory_limit; x = x->next)
        if (x != e && !x->o.memory_limit)
            bytes += (x->progress.opened - x->progress.delivered) * dr__prefetch_batch_bytes(x) + x->lanes.bytes;
    return bytes;
}

uint64_t dr__prefetch_window(const dr__exec *e)
{
    const size_t one = dr__prefetch_batch_bytes(e), taken = taken_by_others(e) + e->lanes.bytes;
    size_t left = e->budget.batch_bytes > taken ? e->budget.batch_bytes - taken : 0;
    if (e->knobs.prefetch_bytes)
        left = DR_MIN(left, e->knobs.prefetch_bytes);
    const uint64_t fit = one ? left / one : UINT64_MAX;
    return DR_MAX(DR_MIN((uint64_t)e->knobs.prefetch, fit), 1);
}

uint64_t dr__prefetch_to_push(const dr__exec *e, uint64_t wanted, bool by_user)
{
    return by_user ? wanted : DR_MAX(wanted, (uint64_t)e->knobs.prefetch + 1);
}
