/* occurrences.c: counts how often each id of an epoch was pushed.  Every id has a bit for its first time; repeated ids
 * have a row in a table with open addressing, at most half full. */
#include "base/alloc.h"
#include "exec/pushed_order.h"

enum { MIN_ROWS = 64 };

dr_status dr__occurrences_begin(dr__occurrences *t, uint64_t n_ids, dr_error *err)
{
    dr__occurrences_free(t);
    t->seen = dr__alloc_zero(n_ids / 8 + 1, 1);
    return t->seen ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "out of memory");
}

void dr__occurrences_free(dr__occurrences *t)
{
    dr__free(t->seen);
    dr__free(t->repeats);
    *t = (dr__occurrences){ 0 };
}

/* The row of an id, or the free row where it belongs. */
static struct dr__repeat *find_row(struct dr__repeat *rows, size_t cap, uint64_t id)
{
    size_t at = (size_t)(id * 0x9E3779B97F4A7C15u >> 20) & (cap - 1);
    while (rows[at].n && rows[at].id != id)
        at = (at + 1) & (cap - 1);
    return &rows[at];
}

dr_status dr__occurrences_reserve(dr__occurrences *t, uint64_t n, dr_error *err)
{
    size_t cap = t->cap ? t->cap : MIN_ROWS;
    while (cap / 2 < t->used + n)
        cap *= 2;
    if (cap == t->cap)
        return DR_OK;
    struct dr__repeat *rows = dr__alloc_zero(cap, sizeof *rows);
    if (!rows)
        return dr__fail(err, DR_ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < t->cap; i++)
        if (t->repeats[i].n)
            *find_row(rows, cap, t->repeats[i].id) = t->repeats[i];
    dr__free(t->repeats);
    t->repeats = rows;
    t->cap = cap;
    return DR_OK;
}

uint32_t dr__occurrences_count(dr__occurrences *t, uint64_t id)
{
    uint8_t *seen = &t->seen[id / 8], bit = (uint8_t)(1u << id % 8);
    if (!(*seen & bit)) {
        *seen |= bit;
        return 0;
    }
    struct dr__repeat *row = find_row(t->repeats, t->cap, id);
    t->used += row->n == 0;
    row->id = id;
    return ++row->n;
}
