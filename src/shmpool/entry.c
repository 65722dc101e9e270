/* entry.c: what happens to the slots of a post and the samples of a batch.  With the lock held. */
#include "shmpool/shared.h"

#include "base/clock.h"
#include "base/compiler.h"

struct dr__slot *dr__slots(const dr_shmpool *c, const struct dr__entry *e)
{
    return dr_shmpool_block_data(c, e->items);
}

const void *dr__request(const dr_shmpool *c, const struct dr__entry *e)
{
    return dr__slots(c, e) + e->n_slots;
}

dr_shmpool_sample *dr__samples(const dr_shmpool *c, const struct dr__entry *e)
{
    return dr_shmpool_block_data(c, e->samples);
}

uint64_t dr__batch_tag(const dr_shmpool *c, const struct dr__entry *e)
{
    const dr_shmpool_sample *samples = e->keep ? NULL : dr__samples(c, e); /* none: the batch is gone */
    return samples ? samples[0].tag : e->tag;
}

uint64_t dr__slot_cost(const dr_shmpool *c, const struct dr__slot *s)
{
    return s->cost_ns > 0 ? (uint64_t)s->cost_ns : dr__times_mean(&c->board->times);
}

void dr__count_waiting(const dr_shmpool *c, struct dr__entry *e, uint32_t slot, int sign)
{
    const struct dr__slot *s = &dr__slots(c, e)[slot];
    uint64_t cost = s->cost_ns > 0 ? (uint64_t)s->cost_ns : 0;
    uint64_t *sum = s->slow ? &e->slow_ns : &e->fast_ns;
    *sum += sign > 0 ? cost : -cost;
    e->n_waiting += (uint32_t)sign;
    e->n_slow += s->slow ? (uint32_t)sign : 0;
    e->n_redo += s->attempts || s->placed ? (uint32_t)sign : 0;
}

/* --- places --- */

/* Out of order: the oldest batch of the post's group that has room. */
static struct dr__entry *batch_with_room(dr_shmpool *c, const struct dr__entry *post)
{
    for (uint64_t seq = c->board->fill; seq < c->board->tail; seq++) {
        struct dr__entry *e = dr__entry_of(c, seq);
        bool fits = e->live && !e->keep && !e->dropped && e->batch == DR__FILLING && e->group == post->group;
        if (fits && e->n_taken < e->n_slots)
            return e;
    }
    return NULL; /* cannot be: there is as much room as was posted */
}

void dr__slot_place(dr_shmpool *c, struct dr__entry *e, uint32_t slot, uint64_t begun_ns)
{
    struct dr__slot *s = &dr__slots(c, e)[slot];
    struct dr__entry *to = e->keep ? e : batch_with_room(c, e);
    if (s->placed || e->dropped || !to)
        return;
    s->batch = (uint32_t)(to - c->entries);
    s->place = e->keep ? slot : to->n_taken; /* a place that was taken stays so */
    dr_shmpool_sample *sample = &dr__samples(c, to)[s->place];
    sample->tag = e->tag;
    sample->slot = slot;
    dr__step();
    s->placed = 1;
    dr__step();
    sample->state = DR__TAKEN;
    if (!to->n_taken++)
        to->opened_ns = begun_ns ? begun_ns : dr__now_ns();
}

/* --- the end of slots --- */

static void fill_sample(dr_shmpool *c, const struct dr__slot *s, const struct dr__sample_end *end)
{
    struct dr__entry *to = &c->entries[s->batch];
    dr_shmpool_sample *sample = &dr__samples(c, to)[s->place];
    sample->worker = s->worker;
    sample->attempts = s->attempts;
    sample->ns = end->ns;
    sample->end_ns = dr__now_ns();
    sample->block = end->block;
    dr__step();
    sample->state = end->state;
    dr__step();
    if (++to->n_done == to->n_slots && to->batch == DR__FILLING) {
        to->batch = DR__COMPLETE;
        c->board->n_complete += !to->dropped;
    }
}

void dr__slot_over(dr_shmpool *c, struct dr__entry *e, uint32_t slot, const struct dr__sample_end *end)
{
    struct dr__slot *s = &dr__slots(c, e)[slot];
    dr__slot_place(c, e, slot, end->begun_ns);
    struct dr__entry *to = s->placed ? &c->entries[s->batch] : NULL;
    if (to)
        fill_sample(c, s, end);
    e->n_claimed -= s->state == DR__SLOT_CLAIMED;
    if (s->state == DR__SLOT_WAITING)
        dr__count_waiting(c, e, slot, -1);
    s->state = DR__SLOT_OVER;
    e->n_over++;
    dr__step();
    if (to)
        dr__arena_give(c->base, &c->board->arena, end->block, DR__BY_BOARD, 0);
    else
        dr__arena_free(c->base, &c->board->arena, end->block);
    if (to && to != e)
        dr__entry_sweep(c, to);
    c->board->n_samples++;
}

void dr__batch_ready(dr_shmpool *c, struct dr__entry *e)
{
    dr_shmpool_sample *samples = dr__samples(c, e);
    for (uint32_t i = 0; i < e->n_slots; i++)
        if (samples[i].state == DR_SHMPOOL_OK && samples[i].block) {
            dr__arena_free(c->base, &c->board->arena, samples[i].block);
            samples[i].block = 0;
        }
}

/* --- the end of entries --- */

static void free_batch(dr_shmpool *c, struct dr__entry *e)
{
    struct dr__arena *a = &c->board->arena;
    dr_shmpool_sample *samples = dr__samples(c, e);
    for (uint32_t i = 0; i < e->n_slots; i++)
        dr__arena_free(c->base, a, samples[i].block);
    dr__arena_free(c->base, a, e->slab);
    dr__arena_free(c->base, a, e->head);
    dr__arena_free(c->base, a, e->samples);
}

void dr__entry_free(dr_shmpool *c, struct dr__entry *e)
{
    struct dr__arena *a = &c->board->arena;
    if (e->batch != DR__GONE && dr__arena_find(c->base, a, e->samples))
        free_batch(c, e);
    dr__arena_free(c->base, a, e->items);
}

void dr__entry_sweep(dr_shmpool *c, struct dr__entry *e)
{
    bool in_use = e->n_claimed || e->batch == DR__FINISHING || (e->batch != DR__GONE && e->n_taken > e->n_done);
    bool over = e->dropped ? !in_use : e->n_over == e->n_slots && e->batch == DR__GONE;
    if (!e->live || !over)
        return;
    e->live = 0;
    dr__step();
    dr__entry_free(c, e);
    c->board->n_dropped -= e->dropped;
}

static bool has_room(const struct dr__entry *e)
{
    return e->batch == DR__FILLING && e->n_taken < e->n_slots;
}

void dr__board_advance(dr_shmpool *c)
{
    struct dr__board *b = c->board;
    while (b->head < b->tail && !dr__entry_of(c, b->head)->live)
        b->head++;
    b->open = DR_MAX(b->open, b->head);
    b->fill = DR_MAX(b->fill, b->head);
    b->take = DR_MAX(b->take, b->head);
    for (const struct dr__entry *e; b->open < b->tail; b->open++)
        if (e = dr__entry_of(c, b->open), e->live && !e->dropped && e->n_over < e->n_slots)
            break;
    for (const struct dr__entry *e; b->fill < b->tail; b->fill++)
        if (e = dr__entry_of(c, b->fill), e->live && !e->dropped && has_room(e))
            break;
    for (const struct dr__entry *e; b->take < b->tail; b->take++)
        if (e = dr__entry_of(c, b->take), e->live && !e->dropped && e->batch != DR__GONE)
            break;
}
