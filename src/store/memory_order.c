/* memory_order.c: a binary heap of entries in shared memory; each entry knows its place in it. */
#include "store/memory_parts.h"

static uint64_t key_at(const dr__memory_tier *t, uint32_t at)
{
    return t->entries[t->heap[at]].next_use;
}

static void place(dr__memory_tier *t, uint32_t at, uint32_t entry)
{
    t->heap[at] = entry;
    t->entries[entry].heap_at = at;
}

static void rise(dr__memory_tier *t, uint32_t at, uint32_t entry)
{
    const uint64_t key = t->entries[entry].next_use;
    for (; at > 0 && key_at(t, (at - 1) / 2) < key; at = (at - 1) / 2)
        place(t, at, t->heap[(at - 1) / 2]);
    place(t, at, entry);
}

static void sink(dr__memory_tier *t, uint32_t at, uint32_t entry)
{
    const uint64_t key = t->entries[entry].next_use;
    const uint32_t n = t->head->n_heap;
    for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
        child += child + 1 < n && key_at(t, child + 1) > key_at(t, child);
        if (key_at(t, child) <= key)
            break;
        place(t, at, t->heap[child]);
    }
    place(t, at, entry);
}

static void publish(dr__memory_tier *t)
{
    atomic_store(&t->head->latest, t->head->n_heap ? key_at(t, 0) : 0);
}

static void settle(dr__memory_tier *t, uint32_t at, uint32_t entry)
{
    if (at > 0 && key_at(t, (at - 1) / 2) < t->entries[entry].next_use)
        rise(t, at, entry);
    else
        sink(t, at, entry);
}

void dr__memory_order_add(dr__memory_tier *t, uint32_t entry, uint64_t next_use)
{
    t->entries[entry].next_use = next_use;
    rise(t, t->head->n_heap++, entry);
    publish(t);
}

void dr__memory_order_change(dr__memory_tier *t, uint32_t entry, uint64_t next_use)
{
    t->entries[entry].next_use = next_use;
    settle(t, t->entries[entry].heap_at, entry);
    publish(t);
}

void dr__memory_order_remove(dr__memory_tier *t, uint32_t entry)
{
    const uint32_t at = t->entries[entry].heap_at, last = t->heap[--t->head->n_heap];
    if (last != entry)
        settle(t, at, last);
    publish(t);
}

uint32_t dr__memory_order_top(const dr__memory_tier *t)
{
    return t->head->n_heap ? t->heap[0] : DR__MEMORY_NONE;
}
