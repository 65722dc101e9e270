/* memory_tier.c: looking up, reading and keeping samples. */
#include "store/memory_tier.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "source/file.h"
#include "store/data_file.h"
#include "store/memory_parts.h"

enum { MOST_STEPS = 128, MOST_PART = 4 /* of the tier, for one sample */ };

#define BY_RECENCY (UINT64_C(1) << 63)

static uint64_t state_of(uint64_t stamp)
{
    return stamp % DR__MEMORY_STATES;
}

/* --- lookups, without the lock --- */

static uint32_t row_of(const dr__memory_tier *t, const dr_store_key *key)
{
    return (uint32_t)(key->low ^ key->high >> 32) & (t->head->n_rows - 1);
}

/* The entry of a key in one of the states from `least` on.  Rows may change on the way: at worst it is not found. */
static uint32_t look_up(const dr__memory_tier *t, const dr_store_key *key, uint64_t least, uint64_t *stamp)
{
    uint32_t i = atomic_load(&t->rows[row_of(t, key)]);
    for (int step = 0; i < t->head->n_blocks && step < MOST_STEPS; step++) {
        const dr__memory_entry *e = &t->entries[i];
        *stamp = atomic_load(&e->stamp);
        if (state_of(*stamp) >= least && atomic_load(&e->low) == key->low && atomic_load(&e->high) == key->high)
            return i;
        i = atomic_load(&e->next);
    }
    return DR__MEMORY_NONE;
}

static bool transfer_run(const dr__memory_tier *t, uint64_t offset, uint8_t *data, size_t size, bool writing)
{
    size_t got;
    if (!writing)
        return !dr__file_pread(t->fd, data, size, offset, &got) && got == size;
    while (size) {
        const ssize_t n = pwrite(t->fd, data, size, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        data += n;
        offset += (uint64_t)n;
        size -= (size_t)n;
    }
    return true;
}

/* Bytes `from` .. `from` + size of a record whose blocks begin with `block`; blocks side by side in one call.  A reader
 * may follow blocks that were given to another record: it stays within the data, and ends. */
static bool transfer(const dr__memory_tier *t, uint32_t block, uint64_t from, uint8_t *data, size_t size, bool writing)
{
    const uint64_t bytes = t->head->block_bytes;
    const uint32_t n = t->head->n_blocks;
    for (; from >= bytes && block < n; from -= bytes)
        block = atomic_load(&t->blocks[block]);
    while (size) {
        if (block >= n)
            return false;
        const uint32_t first = block;
        size_t run = (size_t)(bytes - from);
        block = atomic_load(&t->blocks[first]);
        for (uint32_t last = first; run < size && block == last + 1 && block < n; last++) {
            run += bytes;
            block = atomic_load(&t->blocks[block]);
        }
        run = DR_MIN(run, size);
        if (!transfer_run(t, t->head->data_at + first * bytes + from, data, run, writing))
            return false;
        data += run;
        size -= run;
        from = 0;
    }
    return true;
}

bool dr__memory_find(dr__memory_tier *t, const dr_store_key *key, dr_stored *out)
{
    uint8_t head[DR__DATA_RECORD_HEAD];
    uint64_t stamp;
    size_t length;
    const uint32_t i = look_up(t, key, DR__MEMORY_READY, &stamp);
    if (i == DR__MEMORY_NONE)
        return false;
    const dr__memory_entry *e = &t->entries[i];
    if (!transfer(t, atomic_load(&e->first), 0, head, sizeof head, false) ||
        !dr__data_parse_head(head, sizeof head, out, &length) || out->key.low != key->low || out->key.high != key->high)
        return false;
    out->record_at = i;
    out->stamp = stamp;
    out->payload_at = length;
    return atomic_load(&e->stamp) == stamp;
}

bool dr__memory_read(dr__memory_tier *t, const dr_stored *f, void *payload)
{
    const dr__memory_entry *e = &t->entries[f->record_at];
    return transfer(t, atomic_load(&e->first), f->payload_at, payload, f->payload_bytes, false) &&
           atomic_load(&e->stamp) == f->stamp;
}

uint64_t dr__memory_tick(const dr__memory_tier *t)
{
    return atomic_load(&t->head->tick);
}

static uint64_t next_use(dr__memory_tier *t, const dr__use *use)
{
    const uint64_t tick = atomic_fetch_add(&t->head->tick, 1) + 1;
    return use && use->next ? use->next : UINT64_MAX - tick;
}

/* --- changes; all under lock --- */

static void free_blocks(dr__memory_tier *t, uint32_t first, uint32_t n)
{
    dr__memory_head *h = t->head;
    uint32_t last = first;
    for (uint32_t i = 1; i < n; i++)
        last = atomic_load(&t->blocks[last]);
    atomic_store(&t->blocks[last], h->free_block);
    h->free_block = first;
    h->n_free += n;
    atomic_fetch_sub(&h->blocks, n);
}

static void unlink_entry(dr__memory_tier *t, uint32_t i)
{
    dr__memory_entry *e = &t->entries[i];
    const dr_store_key key = { atomic_load(&e->low), atomic_load(&e->high) };
    _Atomic uint32_t *at = &t->rows[row_of(t, &key)];
    while (atomic_load(at) != i)
        at = &t->entries[atomic_load(at)].next;
    atomic_store(at, atomic_load(&e->next));
}

/* lose: its blocks are not to be used again. */
static void remove_entry(dr__memory_tier *t, uint32_t i, bool lose)
{
    dr__memory_entry *e = &t->entries[i];
    const uint64_t generation = atomic_load(&e->stamp) / DR__MEMORY_STATES;
    atomic_store(&e->stamp, (generation + 1) * DR__MEMORY_STATES + DR__MEMORY_FREE);
    unlink_entry(t, i);
    dr__memory_order_remove(t, i);
    if (!lose)
        free_blocks(t, atomic_load(&e->first), atomic_load(&e->n_blocks));
    atomic_store(&e->next, t->head->free_entry);
    t->head->free_entry = i;
    atomic_fetch_sub(&t->head->records, 1);
}

static bool is_stale(const dr__memory_tier *t, uint32_t i)
{
    const dr__memory_entry *e = &t->entries[i];
    return state_of(atomic_load(&e->stamp)) == DR__MEMORY_WRITING && dr__now_ns() > e->since_ns + DR__MEMORY_STALE_NS;
}

static uint32_t usable(const dr__memory_head *h)
{
    return h->n_free - (h->full ? h->n_blocks - h->n_used_blocks : 0);
}

/* Evicts what is used after `limit` until there are n blocks. */
static bool make_room(dr__memory_tier *t, uint32_t n, uint64_t limit)
{
    while (usable(t->head) < n) {
        const uint32_t top = dr__memory_order_top(t);
        if (top == DR__MEMORY_NONE)
            return false;
        if (!is_stale(t, top) &&
            (state_of(atomic_load(&t->entries[top].stamp)) == DR__MEMORY_WRITING || t->entries[top].next_use <= limit))
            return false;
        remove_entry(t, top, false);
        atomic_fetch_add(&t->head->evicted, 1);
    }
    return true;
}

/* Blocks that were used before come first: the system has memory for them. */
static uint32_t take_blocks(dr__memory_tier *t, uint32_t n)
{
    dr__memory_head *h = t->head;
    uint32_t first = DR__MEMORY_NONE, last = DR__MEMORY_NONE;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t block = h->free_block;
        if (block != DR__MEMORY_NONE)
            h->free_block = atomic_load(&t->blocks[block]);
        else
            block = h->n_used_blocks++;
        if (last == DR__MEMORY_NONE)
            first = block;
        else
            atomic_store(&t->blocks[last], block);
        last = block;
    }
    atomic_store(&t->blocks[last], DR__MEMORY_NONE);
    h->n_free -= n;
    atomic_fetch_add(&h->blocks, n);
    return first;
}

/* There are as many entries as blocks, and every entry has a block. */
static uint32_t take_entry(dr__memory_tier *t)
{
    dr__memory_head *h = t->head;
    const uint32_t i = h->free_entry;
    if (i == DR__MEMORY_NONE)
        return h->n_used_entries++;
    h->free_entry = atomic_load(&t->entries[i].next);
    return i;
}

/* The entry of a new record, with its blocks, in the state WRITING. */
static uint32_t add_entry(dr__memory_tier *t, const dr_store_key *key, uint32_t n, uint64_t use)
{
    const uint32_t i = take_entry(t);
    dr__memory_entry *e = &t->entries[i];
    _Atomic uint32_t *row = &t->rows[row_of(t, key)];
    atomic_store(&e->low, key->low);
    atomic_store(&e->high, key->high);
    atomic_store(&e->first, take_blocks(t, n));
    atomic_store(&e->n_blocks, n);
    e->since_ns = dr__now_ns();
    atomic_fetch_add(&e->stamp, DR__MEMORY_WRITING - DR__MEMORY_FREE);
    atomic_store(&e->next, atomic_load(row));
    atomic_store(row, i);
    dr__memory_order_add(t, i, use);
    atomic_fetch_add(&t->head->records, 1);
    return i;
}

/* --- keeping --- */

/* Samples that are used after it give way to one with that next use.  Of samples whose next use is not known, those
 * that were used at tick k have the use UINT64_MAX - k. */
static uint64_t limit_of(uint64_t next, const dr__use *use)
{
    return next < BY_RECENCY ? next : use && use->since ? UINT64_MAX - use->since : 0;
}

bool dr__memory_may_keep(const dr__memory_tier *t, uint64_t bytes, const dr__use *use)
{
    const dr__memory_head *h = t->head;
    const uint64_t left = h->n_blocks - atomic_load(&h->blocks);
    const uint64_t next = use && use->next ? use->next : UINT64_MAX;
    return bytes / h->block_bytes + 1 < left || atomic_load(&h->latest) > limit_of(next, use);
}

static dr__memory_kept reserve(dr__memory_tier *t, const dr_store_key *key, uint32_t n, const dr__use *use,
                               uint32_t *entry, uint64_t *stamp)
{
    const uint64_t next = next_use(t, use);
    const uint32_t there = look_up(t, key, DR__MEMORY_WRITING, stamp);
    if (there != DR__MEMORY_NONE && !is_stale(t, there))
        return DR__MEMORY_THERE;
    if (there != DR__MEMORY_NONE)
        remove_entry(t, there, false);
    if (!make_room(t, n, limit_of(next, use)))
        return DR__MEMORY_LATER;
    *entry = add_entry(t, key, n, next);
    *stamp = atomic_load(&t->entries[*entry].stamp);
    return DR__MEMORY_KEPT;
}

/* The system has no more memory: what was never used stays so. */
static void shrink(dr__memory_tier *t, uint32_t entry, uint64_t stamp)
{
    if (!dr__memory_lock(t))
        return; /* it is stale soon */
    if (atomic_load(&t->entries[entry].stamp) == stamp)
        remove_entry(t, entry, true);
    t->head->full = 1;
    dr__memory_unlock(t);
}

dr__memory_kept dr__memory_put(dr__memory_tier *t, dr_stored *s, const void *payload, const dr__use *use)
{
    uint8_t head[DR__DATA_RECORD_HEAD] = { 0 };
    uint32_t entry;
    uint64_t stamp;
    s->payload_sum = XXH3_64bits(payload, s->payload_bytes);
    const size_t length = dr__data_make_head(s, head);
    const uint64_t total = length + s->payload_bytes;
    const uint64_t n = total / t->head->block_bytes + (total % t->head->block_bytes > 0);
    if (n > t->head->n_blocks / MOST_PART)
        return DR__MEMORY_TOO_BIG;
    if (!dr__memory_lock(t))
        return DR__MEMORY_BUSY;
    const dr__memory_kept kept = reserve(t, &s->key, (uint32_t)n, use, &entry, &stamp);
    const uint32_t first = kept == DR__MEMORY_KEPT ? atomic_load(&t->entries[entry].first) : 0;
    dr__memory_unlock(t);
    if (kept != DR__MEMORY_KEPT)
        return kept;
    if (!transfer(t, first, 0, head, length, true) ||
        !transfer(t, first, length, (uint8_t *)(uintptr_t)payload, s->payload_bytes, true)) {
        shrink(t, entry, stamp);
        return DR__MEMORY_FAILED;
    }
    uint_fast64_t was = stamp;
    return atomic_compare_exchange_strong(&t->entries[entry].stamp, &was,
                                          stamp + (DR__MEMORY_READY - DR__MEMORY_WRITING))
               ? DR__MEMORY_KEPT
               : DR__MEMORY_BUSY;
}

void dr__memory_touch(dr__memory_tier *t, const dr_stored *f, const dr__use *use)
{
    const uint64_t next = next_use(t, use);
    if (!dr__memory_lock(t))
        return; /* it stays a little longer than it should */
    if (atomic_load(&t->entries[f->record_at].stamp) == f->stamp)
        dr__memory_order_change(t, (uint32_t)f->record_at, next);
    dr__memory_unlock(t);
}

void dr__memory_drop(dr__memory_tier *t, const dr_stored *f)
{
    if (!dr__memory_lock(t))
        return;
    if (atomic_load(&t->entries[f->record_at].stamp) == f->stamp)
        remove_entry(t, (uint32_t)f->record_at, false);
    dr__memory_unlock(t);
}

void dr__memory_get_stats(dr__memory_tier *t, dr__memory_stats *out)
{
    dr__memory_head *h = t->head;
    *out = (dr__memory_stats){ .records = atomic_load(&h->records),
                               .bytes = h->data_at + atomic_load(&h->blocks) * h->block_bytes,
                               .limit = h->limit,
                               .evicted = atomic_load(&h->evicted),
                               .shared = t->path[0] != 0,
                               .short_of = h->full };
}
