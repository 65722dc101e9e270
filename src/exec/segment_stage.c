/* segment_stage.c: see segment_stage.h. */
#include "exec/segment_stage.h"

#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "codec/image/seek_store.h"
#include "format/remote_set.h"

void dr__segments_open(dr__exec *e, dr__segments *s, const dr_dataset *root, dr__remote_client *client, bool on)
{
    s->root = root;
    s->client = client;
    s->on = on && e->ranges.on;
}

/* The note of a sample, if it is one of the sample as the index has it. */
static bool find_note(const dr__exec *e, const dr__segments *s, uint64_t id, dr__jpeg_note *note)
{
    uint64_t name, version;
    return s->on && dr__remote_set_names(s->root, id, &name, &version) &&
           dr__seek_store_find_note(e->seek, name, note) && note->version == version;
}

/* What an answer with these ranges has; one with the whole sample has at least its bytes. */
static uint64_t wire_bytes(const dr__byte_ranges *ranges)
{
    return DR__REMOTE_HEAD + 8 + 16 * (uint64_t)ranges->n + dr__byte_ranges_total(ranges);
}

/* Plans the segments of a sample from its note.  False: the whole of it is less, or has to be read. */
static bool plan_segments(dr__exec *e, const dr__segments *s, dr__workbench *bench, const dr__sample_ref *ref,
                          dr__jpeg_note *note, dr__byte_ranges *ranges)
{
    bench->seek = e->seek;
    bench->record.max_bytes = DR_MAX(bench->memory_limit, (size_t)DR__ENCODED_LEAST);
    return find_note(e, s, ref->id, note) &&
           dr__remote_set_stand_in(s->root, ref->id, note->head.bytes, note->head.size, &bench->record, NULL) ==
               DR_OK &&
           dr__ranges_plan(e, bench, ref, note, ranges) && wire_bytes(ranges) < note->content.size;
}

/* Asks for segments.  An answer that concerns this sample alone is no error of the epoch. */
static dr_status ask(const dr__segments *s, dr__workbench *bench, const dr__job *job, const dr__byte_ranges *ranges,
                     uint64_t version, dr__remote_answer *answer, dr_error *err)
{
    const dr__remote_wish wish = {
        .id = job->ref.id, .occurrence = job->ref.occurrence, .ranges = ranges, .stamp = version
    };
    const dr_status status = dr__remote_client_sample(s->client, &wish, &bench->record, answer, err);
    if (answer->refused || (answer->told && status == DR_ERR_UNSUPPORTED))
        dr__remote_set_no_ranges(s->root);
    return status;
}

static bool ends_epoch(dr_status status, const dr__remote_answer *answer)
{
    return !answer->told && (status == DR_ERR_STATE || status == DR_ERR_CANCELLED || status == DR_ERR_NOMEM);
}

bool dr__segments_read(dr__exec *e, dr__segments *s, dr__workbench *bench, dr__job *job, dr_status *status,
                       dr_error *err)
{
    dr__jpeg_note note;
    dr__byte_ranges ranges;
    dr__remote_answer answer;
    dr_error why = { 0 };
    if (!s->on)
        return false;
    if (!plan_segments(e, s, bench, &job->ref, &note, &ranges)) {
        dr__ranges_forget(bench);
        return false;
    }
    *status = ask(s, bench, job, &ranges, note.version, &answer, &why);
    if (*status == DR_OK) {
        job->wire_bytes = answer.bytes;
        job->stored_bytes = note.content.size;
        dr__ranges_count(e, &ranges, note.content.size);
        atomic_fetch_add(&s->samples, 1);
        atomic_fetch_add(&s->bytes, answer.bytes);
        atomic_fetch_add(&s->stored, note.content.size);
        return true;
    }
    dr__ranges_forget(bench);
    atomic_fetch_add(&s->failed, 1);
    if (ends_epoch(*status, &answer))
        *err = why;
    return ends_epoch(*status, &answer);
}

void dr__segments_whole(dr__exec *e, dr__segments *s, dr__workbench *bench, uint64_t id)
{
    dr__jpeg_note note;
    dr__ranges_forget(bench);
    if (!s->on)
        return;
    dr__remote_set_say(s->root, id, &bench->record);
    bench->record.ranged.wanted = true;
    bench->record.ranged.noted = find_note(e, s, id, &note);
}

/* --- an epoch beforehand --- */

static void draw(dr__exec *e, const dr__segments *s, dr__workbench *bench, const dr__sample_ref *ref,
                 dr__offload_drawn *out)
{
    dr__jpeg_note note;
    dr__byte_ranges ranges;
    if (!plan_segments(e, s, bench, ref, &note, &ranges))
        return;
    out->bytes = (float)wire_bytes(&ranges);
    out->cost = (float)bench->cost;
}

dr_status dr__segments_draw(dr__exec *e, const dr__segments *s, dr__offload_drawn **out, dr_error *err)
{
    dr__workbench *bench = dr__workbench_new();
    *out = dr__alloc_zero(DR_MAX(s->root->n_samples, 1), sizeof **out);
    if (!bench || !*out) {
        dr__workbench_free(&bench);
        dr__free(*out);
        *out = NULL;
        return dr__fail(err, DR_ERR_NOMEM, "offload: out of memory for %llu samples",
                        (unsigned long long)s->root->n_samples);
    }
    bench->memory_limit = e->budget.bench_bytes;
    bool stopped = false;
    for (uint64_t i = 0; i < e->set->n_places && !stopped; i++) {
        const dr__sample_ref ref = dr__dataset_place(e->set, e->o.seed, e->order.epoch, i);
        draw(e, s, bench, &ref, &(*out)[ref.id]);
        stopped = i % 64 == 0 && atomic_load(&e->run.abandoned);
    }
    dr__workbench_free(&bench);
    if (!stopped)
        return DR_OK;
    dr__free(*out);
    *out = NULL;
    return DR_ERR_CANCELLED;
}
