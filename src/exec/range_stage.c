/* range_stage.c: see range_stage.h. */
#include "exec/range_stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "codec/image/seek_store.h"
#include "exec/exec.h"
#include "trace/event.h"

/* --- opening --- */

bool dr__ranges_mode_is_known(const char *mode)
{
    return !strcmp(mode, "auto") || !strcmp(mode, "on") || !strcmp(mode, "off");
}

void dr__ranges_open(dr__exec *e, const char *mode)
{
    dr__range_stage *r = &e->ranges;
    r->step = dr__program_ranged_step(e->program, "image");
    r->always = !strcmp(mode, "on");
    r->why = !strcmp(mode, "off") ? "as the option says"
             : r->step < 0        ? "no step decodes a part of the field \"image\""
             : e->cache           ? "samples are cached"
             : !e->seek           ? "without seek points"
                                  : NULL;
    r->on = !r->why;
    const char *gap = getenv("DRAPPS_RANGES_GAP");
    r->has_gap = gap && *gap;
    r->gap = r->has_gap ? strtoull(gap, NULL, 10) : 0;
}

/* Another read of a remote object is another request; of a local file, a call and a seek of the disk. */
static uint64_t gap_of(const dr__range_stage *r, const dr__ranged *ranged)
{
    return r->has_gap ? r->gap : ranged->gap ? ranged->gap : ranged->remote ? UINT64_MAX : DR__RANGES_LOCAL_GAP;
}

/* --- which way --- */

/* Relaxed everywhere: each number is of use by itself, and one that is lost is not missed. */
static void add_to(_Atomic double *mean, double value, double weight)
{
    const double before = atomic_load_explicit(mean, memory_order_relaxed);
    atomic_store_explicit(mean, before + (value - before) * weight, memory_order_relaxed);
}

void dr__range_times_add(dr__range_times *t, uint64_t ns, uint64_t bytes)
{
    const uint64_t n = atomic_fetch_add_explicit(&t->n, 1, memory_order_relaxed) + 1;
    const double weight = n < DR__RANGES_TRIAL ? 1.0 / (double)n : 1.0 / DR__RANGES_TRIAL;
    add_to(&t->ns, (double)ns, weight);
    add_to(&t->bytes, (double)bytes, weight);
    add_to(&t->slow, ns > DR__RANGES_SLOW_NS, weight);
}

static double ns_of_a_byte(const dr__range_times *t)
{
    const double bytes = atomic_load_explicit(&t->bytes, memory_order_relaxed);
    return bytes > 0 ? atomic_load_explicit(&t->ns, memory_order_relaxed) / bytes : 0;
}

dr__range_choice dr__ranges_choose(const dr__range_times *whole, const dr__range_times *ranged, uint64_t turn)
{
    if (atomic_load_explicit(&whole->n, memory_order_relaxed) < DR__RANGES_TRIAL ||
        atomic_load_explicit(&whole->slow, memory_order_relaxed) < 0.5)
        return DR__READ_WHOLE;
    const bool in_turn = turn % DR__RANGES_AGAIN == 0;
    if (atomic_load_explicit(&ranged->n, memory_order_relaxed) < DR__RANGES_TRIAL)
        return in_turn ? DR__READ_WHOLE_AND_NOTE : DR__READ_RANGES;
    const bool pays = ns_of_a_byte(ranged) < ns_of_a_byte(whole);
    return pays != in_turn ? DR__READ_RANGES : DR__READ_WHOLE_AND_NOTE;
}

static dr__range_choice choose(dr__range_stage *r)
{
    if (r->always || atomic_load_explicit(&r->remote, memory_order_relaxed))
        return DR__READ_RANGES;
    return dr__ranges_choose(&r->whole, &r->ranged, atomic_fetch_add_explicit(&r->turn, 1, memory_order_relaxed));
}

/* --- reading --- */

/* Looks for the note of an image while its sample is read. */
struct asker {
    dr__ranger head;
    dr__exec *e;
    dr__range_choice choice;
    bool found, gave; /* a note; its head, in place of the image */
    dr__jpeg_note note;
};

static const uint8_t *stand_in(dr__ranger *ranger, uint64_t name, size_t *size)
{
    struct asker *a = (struct asker *)ranger;
    a->found = a->choice != DR__READ_WHOLE && dr__seek_store_find_note(a->e->seek, name, &a->note);
    if (!a->found || a->choice != DR__READ_RANGES)
        return NULL;
    a->gave = true;
    *size = a->note.head.size;
    return a->note.head.bytes;
}

static int field_of(const dr__record *record)
{
    for (int f = 0; f < record->n_fields; f++)
        if (record->fields[f].data == record->ranged.data && record->fields[f].desc.kind == DR_KIND_BYTES)
            return f;
    return -1;
}

/* Of the image of a sample that was read whole. */
static uint64_t stored_bytes(const dr__exec *e, const dr__record *record)
{
    const int f = e->program->steps[e->ranges.step].in;
    return f < record->n_fields ? (uint64_t)record->fields[f].desc.dims[0] : 0;
}

static dr_status read_with(dr__exec *e, dr__workbench *bench, const dr__job *j, struct asker *a, dr_error *err)
{
    bench->record.ranger = &a->head;
    const dr_status status = dr__sample_read(bench, e->set, j->ref.id, err);
    bench->record.ranger = NULL;
    if (status == DR_OK && a->gave && !bench->record.ranged.set) /* the format does not say where the image is */
        return dr__sample_read(bench, e->set, j->ref.id, err);
    if (status != DR_OK || !bench->record.ranged.set)
        bench->record.ranged = (dr__ranged){ 0 };
    dr__ranged *ranged = &bench->record.ranged;
    if (ranged->remote)
        atomic_store_explicit(&e->ranges.remote, true, memory_order_relaxed);
    /* From the first remote sample on, all are to be noted. */
    ranged->wanted = a->choice != DR__READ_WHOLE || ranged->remote;
    ranged->noted = a->found && ranged->known && a->note.version == ranged->version;
    return status;
}

/* Whether the name and version of a sample are of interest: of local files that are read fast only until it is known
 * that they are local and fast. */
static bool says_where(const dr__range_stage *r, dr__range_choice choice)
{
    return choice != DR__READ_WHOLE || atomic_load_explicit(&r->whole.n, memory_order_relaxed) < DR__RANGES_TRIAL;
}

static dr_status read_whole(dr__exec *e, dr__workbench *bench, const dr__job *j, dr__range_choice choice, dr_error *err)
{
    struct asker a = { .head = { stand_in }, .e = e, .choice = choice };
    return read_with(e, bench, j, &a, err);
}

void dr__ranges_again(dr__exec *e, const dr__workbench *bench)
{
    for (int i = 0; bench->record.part.on && i < bench->record.part.n; i++) /* in vain, but read */
        atomic_fetch_add(&e->stats.bytes_read, bench->record.part.pieces[i].size);
    atomic_fetch_add(&e->ranges.again, 1);
}

dr_status dr__ranges_read_whole(dr__exec *e, dr__workbench *bench, const dr__job *j, dr_error *err)
{
    if (err)
        *err = (dr_error){ 0 };
    dr__ranges_again(e, bench);
    return read_whole(e, bench, j, DR__READ_WHOLE_AND_NOTE, err);
}

bool dr__ranges_plan(dr__exec *e, dr__workbench *bench, const dr__sample_ref *ref, const dr__jpeg_note *note,
                     dr__byte_ranges *ranges)
{
    dr__record *record = &bench->record;
    dr__record_part *part = &record->part;
    const dr__rng_name name = { e->o.seed, e->order.epoch, ref->id, ref->occurrence };
    const int field = field_of(record);
    if (field < 0 || field != e->program->steps[e->ranges.step].in)
        return false;
    part->on = true;
    part->field = field;
    part->size = note->content.size;
    part->scan = note->head.scan;
    part->orientation = note->head.orientation;
    part->content = note->content;
    part->n = 0;
    return dr__sample_ranges(e->program, bench, &name, e->ranges.step, gap_of(&e->ranges, &record->ranged), ranges);
}

static bool read_ranges(dr__workbench *bench, const dr__byte_ranges *ranges, uint64_t version)
{
    uint8_t *to = dr__record_take_ranges(&bench->record, ranges);
    if (to && dr__dataset_read_ranges(&bench->record.ranged, version, ranges, to, NULL) == DR_OK)
        return true;
    bench->record.part.n = 0;
    return false;
}

void dr__ranges_count(dr__exec *e, const dr__byte_ranges *ranges, uint64_t stored)
{
    dr__range_stage *r = &e->ranges;
    atomic_fetch_add(&r->samples, 1);
    atomic_fetch_add(&r->reads, (uint64_t)ranges->n);
    atomic_fetch_add(&r->bytes_read, dr__byte_ranges_total(ranges));
    atomic_fetch_add(&r->bytes_stored, stored);
}

void dr__ranges_forget(dr__workbench *bench)
{
    bench->record.part.on = false;
    bench->record.ranged = (dr__ranged){ 0 };
}

dr_status dr__ranges_read(dr__exec *e, dr__workbench *bench, const dr__job *j, dr_error *err)
{
    dr__range_stage *r = &e->ranges;
    struct asker a = { .head = { stand_in }, .e = e, .choice = choose(r) };
    dr__byte_ranges ranges;
    const uint64_t start = dr__now_ns();
    bench->seek = e->seek;
    DR_TRY(says_where(r, a.choice) ? read_with(e, bench, j, &a, err) : dr__sample_read(bench, e->set, j->ref.id, err));
    if (!bench->record.ranged.stood_in) {
        dr__range_times_add(&r->whole, dr__now_ns() - start, stored_bytes(e, &bench->record));
        return DR_OK;
    }
    if (!dr__ranges_plan(e, bench, &j->ref, &a.note, &ranges) || !read_ranges(bench, &ranges, a.note.version))
        return dr__ranges_read_whole(e, bench, j, err);
    dr__ranges_count(e, &ranges, a.note.content.size);
    dr__range_times_add(&r->ranged, dr__now_ns() - start, a.note.content.size);
    return DR_OK;
}

/* --- noting --- */

void dr__ranges_note(dr__exec *e, dr__workbench *bench)
{
    const dr__ranged *ranged = &bench->record.ranged;
    const int f = ranged->set && ranged->wanted && ranged->known && !ranged->noted ? field_of(&bench->record) : -1;
    dr__jpeg_note note = { .version = ranged->version, .content = ranged->content };
    if (f < 0 || ranged->stood_in)
        return;
    const uint8_t *data = bench->record.fields[f].data;
    const size_t size = (size_t)bench->record.fields[f].desc.dims[0];
    if (!dr__jpeg_head_make(data, size, &note.head))
        return;
    if (!ranged->by_content)
        note.content = dr__seek_key_of(data, size);
    dr__seek_store_put_note(e->seek, ranged->name, &note);
    atomic_fetch_add(&e->ranges.noted, 1);
}

/* --- for people --- */

void dr__ranges_stats(const dr__exec *e, json_t *stats)
{
    const dr__range_stage *r = &e->ranges;
    json_object_set_new(stats, "range_samples", json_integer((json_int_t)atomic_load(&r->samples)));
    json_object_set_new(stats, "range_reads", json_integer((json_int_t)atomic_load(&r->reads)));
    json_object_set_new(stats, "range_bytes_read", json_integer((json_int_t)atomic_load(&r->bytes_read)));
    json_object_set_new(stats, "range_bytes_stored", json_integer((json_int_t)atomic_load(&r->bytes_stored)));
    json_object_set_new(stats, "range_again", json_integer((json_int_t)atomic_load(&r->again)));
    json_object_set_new(stats, "range_noted", json_integer((json_int_t)atomic_load(&r->noted)));
}

void dr__ranges_trace(const dr__exec *e)
{
    const dr__range_stage *r = &e->ranges;
    const unsigned long long samples = atomic_load(&r->samples), again = atomic_load(&r->again);
    if (samples)
        dr__trace_event(e->trace, "ranges", "\"samples\":%llu,\"again\":%llu,\"bytes_read\":%llu,\"bytes_stored\":%llu",
                        samples, again, (unsigned long long)atomic_load(&r->bytes_read),
                        (unsigned long long)atomic_load(&r->bytes_stored));
}

void dr__ranges_explain(const dr__exec *e, char *text, size_t size)
{
    const dr__range_stage *r = &e->ranges;
    const uint64_t samples = atomic_load(&r->samples), stored = atomic_load(&r->bytes_stored);
    text[0] = 0;
    if (!r->on && !r->always)
        return;
    if (!r->on)
        snprintf(text, size, "ranges: none: %s\n", r->why);
    else if (samples)
        snprintf(text, size, "ranges: %llu samples so far, %.0f %% of their bytes read\n", (unsigned long long)samples,
                 stored ? 100.0 * (double)atomic_load(&r->bytes_read) / (double)stored : 0.0);
    else
        snprintf(text, size, "ranges: %s, none read so far\n",
                 r->always ? "of all JPEGs that are known" : "where reading takes long");
}
