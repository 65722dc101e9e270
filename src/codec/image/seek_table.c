/* seek_table.c: hash tables with open addressing, a pointer a slot; entries are blocks that never change. */
#include "codec/image/seek_table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "codec/image/seek_layout.h"

enum {
    FIRST_SLOTS = 16,
    BLOCK_OVERHEAD = 16, /* what the heap takes for a block */
    ON_STACK = 4096,
    SHARD_SHIFT = 58, /* 64 - log2(DR__SEEK_SHARDS) */
};

typedef struct kept {
    dr__seek_key key;
    uint32_t rank, size;
    bool in_file;
    bool copied;     /* since saving began */
    bool was_copied; /* not this one, but a shorter one of the same image */
    uint8_t packed[];
} kept;

typedef struct shard {
    pthread_mutex_t lock; /* for all of it */
    kept **slots;
    size_t n, n_slots; /* n_slots: a power of two, or 0 */
} shard;

struct dr__seek_table {
    shard shards[DR__SEEK_SHARDS];
    size_t limit;
    atomic_size_t bytes;
    atomic_uint_fast64_t packed_bytes, new_images;
    atomic_uint_fast64_t drops; /* counted before the first entry goes */
};

dr__seek_table *dr__seek_table_new(size_t limit)
{
    dr__seek_table *t = dr__alloc_zero(1, sizeof *t);
    if (!t)
        return NULL;
    t->limit = limit;
    t->bytes = sizeof *t;
    for (int i = 0; i < DR__SEEK_SHARDS; i++)
        pthread_mutex_init(&t->shards[i].lock, NULL);
    return t;
}

void dr__seek_table_free(dr__seek_table **table)
{
    dr__seek_table *t = *table;
    for (int i = 0; t && i < DR__SEEK_SHARDS; i++) {
        shard *s = &t->shards[i];
        for (size_t k = 0; k < s->n_slots; k++)
            dr__free(s->slots[k]);
        dr__free(s->slots);
        pthread_mutex_destroy(&s->lock);
    }
    dr__free(t);
    *table = NULL;
}

size_t dr__seek_table_bytes(const dr__seek_table *t)
{
    return atomic_load(&t->bytes);
}

uint64_t dr__seek_table_packed_bytes(const dr__seek_table *t)
{
    return atomic_load(&t->packed_bytes);
}

uint64_t dr__seek_table_new_images(const dr__seek_table *t)
{
    return atomic_load(&t->new_images);
}

static shard *shard_of(dr__seek_table *t, const dr__seek_key *key)
{
    return &t->shards[key->hash >> SHARD_SHIFT];
}

/* The slot of a key, or the free one where it belongs.  Never full: half of the slots are free. */
static kept **slot_of(const shard *s, const dr__seek_key *key)
{
    size_t mask = s->n_slots - 1, i = (size_t)key->hash & mask;
    while (s->slots[i] && dr__seek_key_order(&s->slots[i]->key, key))
        i = (i + 1) & mask;
    return &s->slots[i];
}

static kept *look_up(const shard *s, const dr__seek_key *key)
{
    return s->n_slots ? *slot_of(s, key) : NULL;
}

bool dr__seek_table_get(dr__seek_table *t, const dr__seek_key *key, dr__seek_unpacker *unpack, void *to)
{
    shard *s = shard_of(t, key);
    pthread_mutex_lock(&s->lock);
    const kept *k = look_up(s, key);
    bool found = k && unpack(to, k->packed, k->size);
    pthread_mutex_unlock(&s->lock);
    return found;
}

bool dr__seek_table_find(dr__seek_table *t, const dr__seek_key *key, dr__seek_points *points)
{
    return dr__seek_table_get(t, key, dr__seek_unpack_points, points);
}

uint32_t dr__seek_table_rank(dr__seek_table *t, const dr__seek_key *key)
{
    shard *s = shard_of(t, key);
    pthread_mutex_lock(&s->lock);
    const kept *k = look_up(s, key);
    uint32_t n = k ? k->rank : 0;
    pthread_mutex_unlock(&s->lock);
    return n;
}

/* --- adding --- */

static bool take_bytes(dr__seek_table *t, size_t bytes)
{
    if (atomic_fetch_add(&t->bytes, bytes) + bytes <= t->limit)
        return true;
    atomic_fetch_sub(&t->bytes, bytes);
    return false;
}

static size_t bytes_of(const kept *k)
{
    return sizeof *k + k->size + BLOCK_OVERHEAD;
}

/* Puts the entries of a shard into another number of slots. */
static bool resize(dr__seek_table *t, shard *s, size_t n_slots)
{
    shard wider = { .n_slots = n_slots };
    if (!take_bytes(t, n_slots * sizeof *s->slots))
        return false;
    wider.slots = dr__alloc_zero(n_slots, sizeof *s->slots);
    if (!wider.slots) {
        atomic_fetch_sub(&t->bytes, n_slots * sizeof *s->slots);
        return false;
    }
    for (size_t i = 0; i < s->n_slots; i++)
        if (s->slots[i])
            *slot_of(&wider, &s->slots[i]->key) = s->slots[i];
    atomic_fetch_sub(&t->bytes, s->n_slots * sizeof *s->slots);
    dr__free(s->slots);
    s->slots = wider.slots;
    s->n_slots = n_slots;
    return true;
}

static bool is_new_image(const kept *k)
{
    return !k->in_file && !dr__seek_is_note(&k->key);
}

static void book(dr__seek_table *t, const kept *k)
{
    atomic_fetch_add(&t->packed_bytes, k->size + DR__SEEK_ENTRY_BYTES);
    atomic_fetch_add(&t->new_images, is_new_image(k));
}

/* Takes back what was booked, and the block itself. */
static void unbook(dr__seek_table *t, kept *k)
{
    atomic_fetch_sub(&t->packed_bytes, k->size + DR__SEEK_ENTRY_BYTES);
    atomic_fetch_sub(&t->new_images, is_new_image(k));
    atomic_fetch_sub(&t->bytes, bytes_of(k));
    dr__free(k);
}

/* shard's lock: puts an entry, whose bytes are taken, in its slot; false: no room, or known as well. */
static bool insert(dr__seek_table *t, shard *s, kept *k)
{
    if ((s->n + 1) * 2 > s->n_slots && !resize(t, s, s->n_slots ? s->n_slots * 2 : FIRST_SLOTS))
        return false;
    kept **slot = slot_of(s, &k->key);
    if (*slot && (*slot)->rank >= k->rank)
        return false;
    if (*slot) {
        k->in_file = (*slot)->in_file;
        k->was_copied = (*slot)->copied || (*slot)->was_copied;
        unbook(t, *slot);
    } else {
        s->n++;
    }
    *slot = k;
    book(t, k);
    return true;
}

/* shard's lock */
static bool is_late(const dr__seek_table *t, const shard *s, const dr__seek_key *key, uint64_t drops)
{
    return atomic_load(&t->drops) != drops && !look_up(s, key);
}

/* False: see dr__seek_table_put. */
static bool keep_packed(dr__seek_table *t, const kept *head, const uint8_t *packed, uint64_t drops)
{
    bool late = false;
    if (!take_bytes(t, bytes_of(head)))
        return true;
    kept *k = dr__alloc(sizeof *k + head->size);
    if (k) {
        *k = *head;
        memcpy(k->packed, packed, head->size);
        shard *s = shard_of(t, &head->key);
        pthread_mutex_lock(&s->lock);
        late = is_late(t, s, &head->key, drops);
        bool good = !late && insert(t, s, k);
        pthread_mutex_unlock(&s->lock);
        if (good)
            return true;
    }
    atomic_fetch_sub(&t->bytes, bytes_of(head));
    dr__free(k);
    return !late;
}

uint64_t dr__seek_table_drops(const dr__seek_table *t)
{
    return atomic_load(&t->drops);
}

bool dr__seek_table_put_packed(dr__seek_table *t, const dr__seek_entry *e, uint32_t rank, bool in_file, uint64_t drops)
{
    const kept head = { .key = e->key, .rank = rank, .size = (uint32_t)e->size, .in_file = in_file };
    return keep_packed(t, &head, e->packed, drops);
}

bool dr__seek_table_put(dr__seek_table *t, const dr__seek_key *key, const dr__seek_points *points, bool in_file,
                        uint64_t drops)
{
    uint8_t small[ON_STACK], *large = NULL;
    size_t bound = dr__seek_pack_bound(points);
    if (bound > sizeof small && !(large = dr__alloc(bound)))
        return true;
    uint8_t *packed = large ? large : small;
    const dr__seek_entry entry = { .key = *key, .packed = packed, .size = dr__seek_pack(points, packed) };
    const bool in_time = dr__seek_table_put_packed(t, &entry, points->n, in_file, drops);
    dr__free(large);
    return in_time;
}

/* --- saving --- */

static int entry_order(const void *a, const void *b)
{
    return dr__seek_key_order(&((const dr__seek_entry *)a)->key, &((const dr__seek_entry *)b)->key);
}

/* shard's lock */
static bool copy_entries(shard *s, dr__seek_copy *copy)
{
    dr__seek_entry *entries = dr__grow(copy->entries, &copy->cap, s->n, sizeof *entries);
    if (!entries)
        return false;
    copy->entries = entries;
    for (size_t i = 0; i < s->n_slots; i++) {
        kept *k = s->slots[i];
        if (!k)
            continue;
        k->copied = true;
        entries[copy->n++] = (dr__seek_entry){ .key = k->key, .size = k->size };
        dr__put_bytes(&copy->bytes, k->packed, k->size);
    }
    return !copy->bytes.failed;
}

bool dr__seek_table_copy(dr__seek_table *t, int shard_number, dr__seek_copy *copy)
{
    shard *s = &t->shards[shard_number];
    copy->n = copy->bytes.size = 0;
    pthread_mutex_lock(&s->lock);
    bool good = copy_entries(s, copy);
    pthread_mutex_unlock(&s->lock);
    const uint8_t *at = copy->bytes.data; /* it has grown to its end: now it stays where it is */
    for (size_t i = 0; good && i < copy->n; at += copy->entries[i++].size)
        copy->entries[i].packed = at;
    if (good)
        qsort(copy->entries, copy->n, sizeof *copy->entries, entry_order);
    return good;
}

void dr__seek_copy_free(dr__seek_copy *copy)
{
    dr__free(copy->entries);
    dr__free(copy->bytes.data);
    *copy = (dr__seek_copy){ 0 };
}

/* shard's lock: what was copied goes, the rest moves to where it is found without it. */
static void drop_copied(dr__seek_table *t, shard *s)
{
    kept **slots = s->slots;
    size_t n_slots = s->n_slots;
    s->slots = NULL;
    s->n = s->n_slots = 0;
    atomic_fetch_sub(&t->bytes, n_slots * sizeof *slots); /* first: there must be room for the new ones */
    for (size_t i = 0; i < n_slots; i++) {
        kept *k = slots[i];
        if (k && k->copied)
            unbook(t, k);
        else if (k && ((s->n + 1) * 2 <= s->n_slots || resize(t, s, s->n_slots ? s->n_slots * 2 : FIRST_SLOTS)))
            *slot_of(s, &k->key) = k, s->n++;
        else if (k)
            unbook(t, k); /* no memory for new slots: forgotten */
    }
    dr__free(slots);
}

/* shard's lock: the file has something of an image now, if a shorter entry was saved. */
static void settle_entry(dr__seek_table *t, kept *k, bool saved)
{
    if (saved && k->was_copied && !k->in_file) {
        atomic_fetch_sub(&t->new_images, is_new_image(k));
        k->in_file = true;
    }
    k->copied = k->was_copied = false;
}

void dr__seek_table_end_save(dr__seek_table *t, bool saved)
{
    atomic_fetch_add(&t->drops, saved);
    for (int i = 0; i < DR__SEEK_SHARDS; i++) {
        shard *s = &t->shards[i];
        pthread_mutex_lock(&s->lock);
        if (saved)
            drop_copied(t, s);
        for (size_t k = 0; k < s->n_slots; k++)
            if (s->slots[k])
                settle_entry(t, s->slots[k], saved);
        pthread_mutex_unlock(&s->lock);
    }
}
