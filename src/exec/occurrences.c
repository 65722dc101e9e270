/* occurrences.c: how often each id of an epoch was seen.  Most come once and take a bit; the others have a row in a
 * table with open addressing, at most half full. */
#include "base/alloc.h"
#include "exec/pushed_order.h"

enum { FEWEST_ROWS = 64 };

dr_status dr__occurrences_begin(dr__occurrences *t, uint64_t n_ids, dr_error *err)
{
    dr__occurrences_free(t);
    t->seen = dr__alloc_zero(n_ids / 8 + 1, 1);
    return t->seen ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "out of memory");
}

void dr__occurrences_free(dr__occurrences *t)
{
    dr__free(t->seen);
    dr__free(t->again);
    *t = (dr__occurrences){ 0 };
}

/* The row of an id, or the free one where it would stand. */
static struct dr__again *find_row(struct dr__again *rows, size_t cap, uint64_t id)
{
    size_t at = (size_t)(id * 0x9E3779B97F4A7C15u >> 20) & (cap - 1);
    while (rows[at].n && rows[at].id != id)
        at = (at + 1) & (cap - 1);
    return &rows[at];
}

dr_status dr__occurrences_reserve(dr__occurrences *t, uint64_t n, dr_error *err)
{
    size_t cap = t->cap ? t->cap : FEWEST_ROWS;
    while (cap / 2 < t->used + n)
        cap *= 2;
    if (cap == t->cap)
        return DR_OK;
    struct dr__again *rows = dr__alloc_zero(cap, sizeof *rows);
    if (!rows)
        return dr__fail(err, DR_ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < t->cap; i++)
        if (t->again[i].n)
            *find_row(rows, cap, t->again[i].id) = t->again[i];
    dr__free(t->again);
    t->again = rows;
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
    struct dr__again *row = find_row(t->again, t->cap, id);
    t->used += row->n == 0;
    row->id = id;
    return ++row->n;
}
