/* key_table.c: linear probing; the keys are hashes already. */
#include "store/key_table.h"

#include "base/alloc.h"

struct dr__key_slot {
    dr_store_key key;
    uint64_t location; /* 0: never used; GONE: was; else file number + 1 above the offset in units of 64 */
};

#define GONE UINT64_MAX

enum { FIRST_SLOTS = 256, OFFSET_BITS = 44, UNIT = 64 };

static uint64_t packed(dr__key_location p)
{
    return ((uint64_t)p.file + 1) << OFFSET_BITS | p.offset / UNIT;
}

static dr__key_location unpacked(uint64_t p)
{
    const uint64_t mask = (UINT64_C(1) << OFFSET_BITS) - 1;
    return (dr__key_location){ (uint32_t)((p >> OFFSET_BITS) - 1), (p & mask) * UNIT };
}

static bool same(const dr_store_key *a, const dr_store_key *b)
{
    return a->low == b->low && a->high == b->high;
}

/* The slot of a key, or the first free one of its row.  There is always one. */
static struct dr__key_slot *slot_of(const dr__key_table *t, const dr_store_key *key)
{
    size_t i = (size_t)key->low & (t->n_slots - 1);
    while (t->slots[i].location && (t->slots[i].location == GONE || !same(&t->slots[i].key, key)))
        i = (i + 1) & (t->n_slots - 1);
    return &t->slots[i];
}

static bool resize(dr__key_table *t)
{
    dr__key_table larger = { .n_slots = FIRST_SLOTS, .n = t->n, .n_used = t->n };
    while (larger.n_slots < 4 * t->n)
        larger.n_slots *= 2;
    larger.slots = dr__alloc_zero(larger.n_slots, sizeof *larger.slots);
    if (!larger.slots)
        return false;
    for (size_t i = 0; i < t->n_slots; i++)
        if (t->slots[i].location && t->slots[i].location != GONE)
            *slot_of(&larger, &t->slots[i].key) = t->slots[i];
    dr__free(t->slots);
    *t = larger;
    return true;
}

bool dr__key_table_set(dr__key_table *t, const dr_store_key *key, dr__key_location location)
{
    if (location.file >= DR__MOST_DATA_FILES - 2 || location.offset / UNIT >> OFFSET_BITS)
        return false;
    if (4 * (t->n_used + 1) > 3 * t->n_slots && !resize(t))
        return false;
    struct dr__key_slot *slot = slot_of(t, key);
    if (!slot->location) {
        slot->key = *key;
        t->n++;
        t->n_used++;
    }
    slot->location = packed(location);
    return true;
}

bool dr__key_table_find(const dr__key_table *t, const dr_store_key *key, dr__key_location *out)
{
    if (!t->n)
        return false;
    const struct dr__key_slot *slot = slot_of(t, key);
    if (slot->location)
        *out = unpacked(slot->location);
    return slot->location != 0;
}

void dr__key_table_drop(dr__key_table *t, const dr_store_key *key, dr__key_location location)
{
    if (!t->n)
        return;
    struct dr__key_slot *slot = slot_of(t, key);
    if (slot->location != packed(location))
        return;
    slot->location = GONE;
    t->n--;
}

void dr__key_table_free(dr__key_table *t)
{
    dr__free(t->slots);
    *t = (dr__key_table){ 0 };
}
