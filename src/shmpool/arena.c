/* arena.c: see arena.h.  All calls with the lock held, but for dr__arena_cool. */
#include "shmpool/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/compiler.h"
#include "shmpool/shared.h"

enum { GRAIN = 64, LOOK_AT = 16, LITTLE = 4096 };
enum { SMALL = 64 << 10, LARGE = 1 << 20 }; /* a block below the one does not cut a free extent above the other */
enum { SPARE = 32 << 20 };                  /* so much stays warm, if batches are half as large */

static struct dr__node *nodes(char *base, const struct dr__arena *a)
{
    return (struct dr__node *)(void *)(base + a->nodes_at);
}

static uint64_t extent(const struct dr__node *t, uint32_t i)
{
    return t[t[i].next].offset - t[i].offset;
}

/* --- free extents by size --- */

static unsigned bin_of(uint64_t size)
{
    uint64_t units = size / GRAIN;
    if (units < 4)
        return units ? (unsigned)units - 1 : 0;
    unsigned log = 63 - (unsigned)__builtin_clzll(units);
    return (log - 2) * 4 + (unsigned)(units >> (log - 2) & 3) + 3;
}

static void push_bin(struct dr__arena *a, struct dr__node *t, uint32_t i, unsigned bin)
{
    t[i].bin_prev = 0;
    t[i].bin_next = a->bins[bin];
    t[a->bins[bin]].bin_prev = i; /* node 0 is nobody's: it may be written to */
    a->bins[bin] = i;
    a->bin_bits[bin / 64] |= UINT64_C(1) << bin % 64;
}

static void drop_bin(struct dr__arena *a, struct dr__node *t, uint32_t i, unsigned bin)
{
    if (t[i].bin_prev)
        t[t[i].bin_prev].bin_next = t[i].bin_next;
    else
        a->bins[bin] = t[i].bin_next;
    t[t[i].bin_next].bin_prev = t[i].bin_prev;
    if (!a->bins[bin])
        a->bin_bits[bin / 64] &= ~(UINT64_C(1) << bin % 64);
}

static void push_warm(struct dr__arena *a, struct dr__node *t, uint32_t i)
{
    t[i].warm_next = 0;
    t[i].warm_prev = a->newest;
    if (a->newest)
        t[a->newest].warm_next = i;
    else
        a->oldest = i;
    a->newest = i;
    a->warm += t[i].warm;
}

static void drop_warm(struct dr__arena *a, struct dr__node *t, uint32_t i)
{
    if (t[i].warm_prev)
        t[t[i].warm_prev].warm_next = t[i].warm_next;
    else
        a->oldest = t[i].warm_next;
    if (t[i].warm_next)
        t[t[i].warm_next].warm_prev = t[i].warm_prev;
    else
        a->newest = t[i].warm_prev;
    a->warm -= t[i].warm;
}

/* The extent is free: it can be found. */
static void link_free(struct dr__arena *a, struct dr__node *t, uint32_t i)
{
    uint64_t size = extent(t, i);
    t[i].warm = DR_MIN(t[i].warm, size);
    push_bin(a, t, i, bin_of(size));
    if (t[i].warm)
        push_warm(a, t, i);
    t[i].linked = 1;
}

static void unlink_free(struct dr__arena *a, struct dr__node *t, uint32_t i)
{
    drop_bin(a, t, i, bin_of(extent(t, i)));
    if (t[i].warm)
        drop_warm(a, t, i);
    t[i].linked = 0;
}

/* The best of the first few in a bin: the smallest that is large enough, among those one with warm pages. */
static uint32_t best_in_bin(const struct dr__arena *a, const struct dr__node *t, unsigned bin, uint64_t need, int tries)
{
    uint32_t best = 0;
    uint64_t best_size = UINT64_MAX;
    for (uint32_t i = a->bins[bin]; i && tries--; i = t[i].bin_next) {
        uint64_t size = extent(t, i);
        if (size >= need && (size < best_size || (size == best_size && t[i].warm > t[best].warm)))
            best = i, best_size = size;
    }
    return best;
}

static unsigned next_bin(const struct dr__arena *a, unsigned bin)
{
    for (unsigned word = bin / 64; word < DR__BINS / 64; word++) {
        uint64_t bits = a->bin_bits[word];
        if (word == bin / 64)
            bits &= ~UINT64_C(0) << bin % 64;
        if (bits)
            return word * 64 + (unsigned)__builtin_ctzll(bits);
    }
    return DR__BINS;
}

static unsigned last_bin(const struct dr__arena *a)
{
    unsigned word = DR__BINS / 64 - 1;
    while (word && !a->bin_bits[word])
        word--;
    return word * 64 + 63 - (unsigned)__builtin_clzll(a->bin_bits[word]);
}

/* A small block that lies where a large one was makes the next large one take new pages: it goes where most is free. */
static uint32_t find_free(const struct dr__arena *a, const struct dr__node *t, uint64_t need)
{
    unsigned bin = bin_of(need);
    uint32_t found = best_in_bin(a, t, bin, need, LOOK_AT);
    unsigned larger = found || bin + 1 >= DR__BINS ? DR__BINS : next_bin(a, bin + 1);
    if (larger < DR__BINS && need < SMALL && larger >= bin_of(LARGE))
        larger = last_bin(a);
    if (larger < DR__BINS)
        found = best_in_bin(a, t, larger, need, LOOK_AT);
    return found ? found : best_in_bin(a, t, bin, need, -1);
}

/* --- nodes --- */

static bool any_node_left(const struct dr__arena *a)
{
    return a->spare || a->high < a->n_nodes;
}

static uint32_t node_new(struct dr__arena *a, struct dr__node *t)
{
    uint32_t i = a->spare;
    if (i) {
        a->spare = t[i].next;
        return i;
    }
    if (a->high >= a->n_nodes)
        return 0;
    i = a->high;
    t[i] = (struct dr__node){ 0 };
    a->high++;
    return i;
}

static void node_free(struct dr__arena *a, struct dr__node *t, uint32_t i)
{
    t[i].next = a->spare;
    a->spare = i;
}

void dr__arena_init(char *base, struct dr__arena *a)
{
    struct dr__node *t = nodes(base, a);
    enum { NOBODY, ALL, LAST, N };
    t[ALL] = (struct dr__node){ .offset = a->begin, .next = LAST };
    t[LAST] = (struct dr__node){
        .offset = a->end, .prev = ALL, .state = DR__NODE_USED, .holder = DR__BY_BOARD, .generation = UINT32_MAX
    };
    a->high = N;
    link_free(a, t, ALL);
}

/* From there on, a free extent has no more warm bytes than these.  Rather too many: pages that are forgotten stay for
 * ever.  But those of its beginning are known, so that what is used over and over does not add to them each time. */
static uint64_t warm_behind(const struct dr__node *n, uint64_t size)
{
    const uint64_t room = n->warm_end > n->offset + size ? n->warm_end - n->offset - size : 0;
    const uint64_t before = DR_MIN(DR_MIN(n->warm_head, size), n->warm);
    return DR_MIN(n->warm - before, room);
}

/* Cuts the extent i down to `size`; what is behind becomes free.  Without a node for it, i keeps all. */
static void split(struct dr__arena *a, struct dr__node *t, uint32_t i, uint64_t size)
{
    uint32_t rest = extent(t, i) > size ? node_new(a, t) : 0;
    if (!rest)
        return;
    t[rest].offset = t[i].offset + size;
    t[rest].next = t[i].next;
    t[rest].prev = i;
    t[rest].state = DR__NODE_FREE;
    t[rest].warm = warm_behind(&t[i], size);
    t[rest].warm_head = t[i].warm_head > size ? t[i].warm_head - size : 0;
    t[rest].warm_end = t[i].warm_end;
    dr__step();
    t[i].next = rest;
    dr__step();
    t[t[rest].next].prev = rest;
    link_free(a, t, rest);
}

/* next: the one behind it. */
static void add_warm(struct dr__node *n, const struct dr__node *next)
{
    if (n->warm_head == next->offset - n->offset)
        n->warm_head += next->warm_head;
    n->warm_end = next->warm ? next->warm_end : n->warm_end;
    n->warm += next->warm;
}

/* Joins the free extent i with the one behind it when that is free too; the latter must not be found any more. */
static void join_next(struct dr__arena *a, struct dr__node *t, uint32_t i)
{
    uint32_t next = t[i].next;
    add_warm(&t[i], &t[next]);
    dr__step();
    t[i].next = t[next].next;
    dr__step();
    t[t[i].next].prev = i;
    node_free(a, t, next);
}

/* A free extent that cannot be found yet joins its neighbours, and then can. */
static void put_free(struct dr__arena *a, struct dr__node *t, uint32_t i)
{
    uint32_t next = t[i].next, prev = t[i].prev;
    if (t[next].state == DR__NODE_FREE) {
        unlink_free(a, t, next);
        join_next(a, t, i);
    }
    if (prev && t[prev].state == DR__NODE_FREE) {
        unlink_free(a, t, prev);
        join_next(a, t, prev);
        i = prev;
    }
    link_free(a, t, i);
}

/* --- blocks --- */

static uint64_t block_of(const struct dr__node *t, uint32_t i)
{
    return (uint64_t)t[i].generation << 32 | i;
}

static void count_used(struct dr__arena *a, const struct dr__node *t, uint32_t i)
{
    uint64_t size = t[i].holder == DR__BY_COOL ? 0 : extent(t, i);
    a->used += size;
    a->held += t[i].holder == DR__BY_OWNER ? 0 : size;
    a->peak = DR_MAX(a->peak, a->used);
    a->recent[0] = DR_MAX(a->recent[0], a->used);
}

static void uncount_used(struct dr__arena *a, const struct dr__node *t, uint32_t i)
{
    uint64_t size = t[i].holder == DR__BY_COOL ? 0 : extent(t, i);
    a->used -= size;
    a->held -= t[i].holder == DR__BY_OWNER ? 0 : size;
}

static uint64_t use_extent(struct dr__arena *a, struct dr__node *t, uint32_t i, size_t bytes, uint16_t holder,
                           int32_t pid)
{
    t[i].generation++;
    t[i].bytes = bytes;
    t[i].holder = holder;
    t[i].pid = pid;
    dr__step();
    t[i].state = DR__NODE_USED;
    dr__step();
    count_used(a, t, i);
    return block_of(t, i);
}

/* The extent for a block of that size, and how much of it is needed; 0: none.  One that cannot be split for want of a
 * node does for a block that fills most of it: else a small block could take all that is free. */
static uint32_t find_for(const struct dr__arena *a, const struct dr__node *t, size_t bytes, uint64_t *need)
{
    if (bytes > a->end - a->begin)
        return 0;
    *need = bytes ? (bytes + GRAIN - 1) / GRAIN * GRAIN : GRAIN;
    uint32_t i = find_free(a, t, *need);
    bool fits = i && (any_node_left(a) || extent(t, i) - *need <= DR_MAX(*need / 8, LITTLE));
    return fits ? i : 0;
}

bool dr__arena_has_warm(char *base, const struct dr__arena *a, size_t bytes)
{
    const struct dr__node *t = nodes(base, a);
    uint64_t need;
    uint32_t i = find_for(a, t, bytes, &need);
    return i && t[i].warm - warm_behind(&t[i], need) >= need - need / 4;
}

uint64_t dr__arena_new(char *base, struct dr__arena *a, size_t bytes, uint16_t holder, int32_t pid)
{
    struct dr__node *t = nodes(base, a);
    uint64_t need;
    uint32_t i = find_for(a, t, bytes, &need);
    if (!i)
        return 0;
    unlink_free(a, t, i);
    split(a, t, i, need);
    return use_extent(a, t, i, bytes, holder, pid);
}

struct dr__node *dr__arena_find(char *base, const struct dr__arena *a, uint64_t block)
{
    struct dr__node *t = nodes(base, a);
    uint32_t i = (uint32_t)block;
    bool known = i && i < a->n_nodes && t[i].generation == block >> 32 && t[i].state == DR__NODE_USED;
    return known ? &t[i] : NULL;
}

void dr__arena_free(char *base, struct dr__arena *a, uint64_t block)
{
    struct dr__node *t = nodes(base, a), *n = dr__arena_find(base, a, block);
    if (!n)
        return;
    uint32_t i = (uint32_t)(n - t);
    uncount_used(a, t, i);
    n->warm = n->holder == DR__BY_COOL ? 0 : extent(t, i);
    n->warm_head = n->warm;
    n->warm_end = n->offset + n->warm;
    dr__step();
    n->state = DR__NODE_FREE;
    dr__step();
    put_free(a, t, i);
}

void dr__arena_give(char *base, struct dr__arena *a, uint64_t block, uint16_t holder, int32_t pid)
{
    struct dr__node *t = nodes(base, a), *n = dr__arena_find(base, a, block);
    if (!n)
        return;
    uint32_t i = (uint32_t)(n - t);
    uncount_used(a, t, i);
    n->holder = holder;
    n->pid = pid;
    count_used(a, t, i);
}

void dr__arena_free_of(char *base, struct dr__arena *a, uint16_t holder, int32_t pid)
{
    struct dr__node *t = nodes(base, a);
    for (uint32_t i = 1; i < a->high; i++)
        if (t[i].state == DR__NODE_USED && t[i].pid && (t[i].holder == holder || t[i].pid == pid))
            dr__arena_free(base, a, block_of(t, i));
}

/* --- warm pages --- */

static uint64_t keep_warm(const struct dr__arena *a)
{
    if (a->keep_free)
        return a->keep_free;
    uint64_t recent = DR_MAX(a->recent[0], a->recent[1]), enough = recent + recent / 4;
    return DR_MAX(DR_MIN(a->largest * 2, SPARE), enough > a->used ? enough - a->used : 0);
}

uint64_t dr__arena_take_warm(char *base, struct dr__arena *a, int32_t pid)
{
    struct dr__node *t = nodes(base, a);
    uint32_t i = a->oldest;
    if (!i || a->warm <= keep_warm(a))
        return 0;
    unlink_free(a, t, i);
    uint64_t size = (t[i].warm_end - t[i].offset + GRAIN - 1) / GRAIN * GRAIN;
    split(a, t, i, DR_MIN(size, extent(t, i)));
    return use_extent(a, t, i, extent(t, i), DR__BY_COOL, pid);
}

void dr__arena_cool(char *base, const struct dr__arena *a, uint64_t block)
{
    const struct dr__node *n = dr__arena_find(base, a, block);
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t from = (n->offset + page - 1) / page * page, to = (n->offset + n->bytes) / page * page;
    if (from < to)
        madvise(base + from, to - from, MADV_REMOVE);
}

void dr__arena_next_row(struct dr__arena *a)
{
    a->recent[1] = a->recent[0];
    a->recent[0] = a->used;
}

/* --- after a death --- */

/* Marks (linked) what the chain holds, joins free neighbours, and makes a list of the other nodes. */
static void rebuild_chain(struct dr__arena *a, struct dr__node *t)
{
    enum { FIRST = 1 };
    for (uint32_t i = 0; i < a->high; i++)
        t[i].linked = 0;
    for (uint32_t i = FIRST, prev = 0; i; prev = i, i = t[i].next) {
        while (t[i].state == DR__NODE_FREE && t[t[i].next].state == DR__NODE_FREE) {
            add_warm(&t[i], &t[t[i].next]);
            t[i].next = t[t[i].next].next;
        }
        t[i].prev = prev;
        t[i].linked = 1;
    }
    a->spare = 0;
    for (uint32_t i = FIRST; i < a->high; i++)
        if (!t[i].linked) {
            t[i].state = DR__NODE_FREE;
            node_free(a, t, i);
        }
}

void dr__arena_rebuild(char *base, struct dr__arena *a)
{
    struct dr__node *t = nodes(base, a);
    rebuild_chain(a, t);
    for (unsigned i = 0; i < DR__BINS; i++)
        a->bins[i] = 0;
    for (unsigned i = 0; i < DR__BINS / 64; i++)
        a->bin_bits[i] = 0;
    a->oldest = a->newest = 0;
    a->used = a->held = a->warm = 0;
    for (uint32_t i = 1; i; i = t[i].next)
        if (t[i].state == DR__NODE_FREE)
            link_free(a, t, i);
        else if (t[i].next)
            count_used(a, t, i);
}
