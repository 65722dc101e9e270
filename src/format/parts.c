/* parts.c: what mixtures and concatenations share, and concatenations, which need nothing else. */
#include "format/parts.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "data/desc.h"

static const dr__part *part_of_id(const dr__parts *p, uint64_t id)
{
    int i = p->n_parts - 1;
    while (i > 0 && id < p->parts[i].first_id)
        i--;
    return &p->parts[i];
}

int dr__parts_at(const dr__parts *p, uint64_t place)
{
    int i = p->n_parts - 1;
    while (i > 0 && place < p->parts[i].first_place)
        i--;
    return i;
}

/* The fields of a record in the order of the whole. */
static dr_status reorder(dr__record *record, const uint16_t *field, dr_error *err)
{
    dr_view *ordered = dr__grow(record->reordered, &record->reordered_cap, (size_t)record->n_fields, sizeof *ordered);
    if (!ordered)
        return dr__fail(err, DR_ERR_NOMEM, "out of memory for the fields of a sample");
    for (int i = 0; i < record->n_fields; i++)
        ordered[i] = record->fields[field[i]];
    const size_t cap = record->reordered_cap;
    record->reordered = record->fields;
    record->reordered_cap = record->fields_cap;
    record->fields = ordered;
    record->fields_cap = cap;
    return DR_OK;
}

dr_status dr__parts_read(const dr_dataset *set, uint64_t id, dr__record *record, dr_error *err)
{
    const dr__part *p = part_of_id((const dr__parts *)set, id);
    DR_TRY(p->set->def->read(p->set, id - p->first_id, record, err));
    return p->field ? reorder(record, p->field, err) : DR_OK;
}

void dr__parts_key(const dr_dataset *set, uint64_t id, char *text, size_t size)
{
    const dr__part *p = part_of_id((const dr__parts *)set, id);
    p->set->def->key(p->set, id - p->first_id, text, size);
}

dr_status dr__parts_stamp(const dr_dataset *set, uint64_t id, dr__stamp *out, dr_error *err)
{
    const dr__part *p = part_of_id((const dr__parts *)set, id);
    return dr__dataset_stamp(p->set, id - p->first_id, out, err);
}

dr_status dr__parts_file(const dr_dataset *set, uint64_t id, int field, char *text, size_t size, dr_error *err)
{
    const dr__part *p = part_of_id((const dr__parts *)set, id);
    return dr__dataset_file(p->set, id - p->first_id, p->field ? p->field[field] : field, text, size, err);
}

void dr__parts_close(dr_dataset *set)
{
    dr__parts *p = (dr__parts *)set;
    for (int i = 0; i < p->n_parts; i++) {
        dr_dataset_unref(&p->parts[i].set);
        dr__free(p->parts[i].field);
    }
    dr__free(p->parts);
}

/* --- adding --- */

dr_status dr__parts_begin(dr__parts *p, int n, dr_error *err)
{
    p->parts = dr__alloc_zero((size_t)n, sizeof *p->parts);
    return p->parts ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "%s: out of memory for %d sets", p->head.format, n);
}

/* What holds for both: extents that differ are not known beforehand. */
static bool merge_desc(dr_desc *a, const dr_desc *b)
{
    if (a->kind != b->kind || a->dtype != b->dtype || a->layout != b->layout || a->n_dims != b->n_dims)
        return false;
    for (int i = 0; i < a->n_dims; i++)
        if (a->dims[i] != b->dims[i])
            a->dims[i] = DR_UNKNOWN;
    return true;
}

static dr_status match_fields(dr__parts *m, dr__part *p, dr_error *err)
{
    dr_dataset *head = &m->head, *first = m->parts[0].set;
    char a[128], b[128];
    bool same_order = true;
    p->field = dr__realloc(NULL, (size_t)head->n_fields, sizeof *p->field);
    if (!p->field)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", head->format);
    for (int i = 0; i < head->n_fields; i++) {
        dr__field *want = &head->fields[i];
        int k = dr__dataset_find_field(p->set, want->name);
        if (k < 0)
            return dr__fail(err, DR_ERR_ARG, "%s: %s has the field \"%s\", %s has not", head->format, first->name,
                            want->name, p->set->name);
        const dr_desc *have = &p->set->fields[k].desc;
        if (!merge_desc(&want->desc, have))
            return dr__fail(err, DR_ERR_ARG, "%s: field \"%s\" is %s in %s and %s in %s", head->format, want->name,
                            dr__desc_text_of(&want->desc, a, sizeof a), first->name,
                            dr__desc_text_of(have, b, sizeof b), p->set->name);
        p->field[i] = (uint16_t)k;
        same_order = same_order && k == i;
    }
    if (p->set->n_fields != head->n_fields)
        return dr__fail(err, DR_ERR_ARG, "%s: %s has %d fields, %s has %d", head->format, first->name, head->n_fields,
                        p->set->name, p->set->n_fields);
    if (same_order) {
        dr__free(p->field);
        p->field = NULL;
    }
    return DR_OK;
}

static dr_status match_classes(const char *what, const dr_dataset *a, const dr_dataset *b, dr_error *err)
{
    bool same = a->n_classes == b->n_classes;
    for (size_t i = 0; same && i < a->n_classes; i++)
        same = !strcmp(a->classes[i], b->classes[i]);
    if (same)
        return DR_OK;
    return dr__fail(err, DR_ERR_ARG,
                    "%s: %s (%zu classes) and %s (%zu) have different classes: labels would mean two things", what,
                    a->name, a->n_classes, b->name, b->n_classes);
}

dr_status dr__parts_add(dr__parts *m, dr_dataset *set, dr_error *err)
{
    dr_dataset *head = &m->head;
    if (set->def->place && !set->def->fixed_places)
        return dr__fail(err, DR_ERR_UNSUPPORTED, "%s: set %d is a mixture, which changes each epoch; use its sets",
                        head->format, m->n_parts);
    dr__part *p = &m->parts[m->n_parts++];
    *p = (dr__part){ .set = dr_dataset_ref(set),
                     .first_id = head->n_samples,
                     .first_place = head->n_places,
                     .n_places = set->n_places };
    head->n_samples += set->n_samples;
    head->n_places += set->n_places;
    head->most_times = DR_MAX(head->most_times, set->most_times);
    head->fingerprint = XXH3_64bits_withSeed(&set->fingerprint, sizeof set->fingerprint, head->fingerprint);
    if (m->n_parts == 1)
        DR_TRY(dr__dataset_copy_fields(head, set, err));
    DR_TRY(match_classes(head->format, m->parts[0].set, set, err));
    return match_fields(m, p, err);
}

/* It lies in the cache folder: there is no place beside all of them. */
static void keep(dr__parts *m)
{
    char text[96];
    uint64_t hash = 0;
    for (int i = 0; i < m->n_parts; i++) {
        const char *part = m->parts[i].set->keep_identity;
        if (!part)
            return;
        hash = XXH3_64bits_withSeed(part, strlen(part), hash);
    }
    snprintf(text, sizeof text, "content of mixture %016llx", (unsigned long long)hash);
    m->head.keep_identity = dr__strdup(text);
}

dr_status dr__parts_finish(dr__parts *m, dr_error *err)
{
    keep(m);
    return dr__dataset_copy_classes(&m->head, m->parts[0].set, err);
}

/* --- concatenations --- */

static dr__sample_ref place(const dr_dataset *set, uint64_t seed, uint64_t epoch, uint64_t place)
{
    const dr__parts *m = (const dr__parts *)set;
    const dr__part *p = &m->parts[dr__parts_at(m, place)];
    dr__sample_ref ref = dr__dataset_place(p->set, seed, epoch, place - p->first_place);
    ref.id += p->first_id;
    return ref;
}

static const dr_dataset_def concat_def = {
    .read = dr__parts_read,
    .key = dr__parts_key,
    .stamp = dr__parts_stamp,
    .file = dr__parts_file,
    .place = place,
    .fixed_places = true,
    .close = dr__parts_close,
};

static dr_status fill(dr__parts *m, dr_dataset *const *sets, int n_sets, dr_error *err)
{
    uint64_t content = 0;
    DR_TRY(dr__parts_begin(m, n_sets, err));
    for (int i = 0; i < n_sets; i++) {
        if (!sets[i])
            return dr__fail(err, DR_ERR_ARG, "concat: set %d is NULL", i);
        DR_TRY(dr__parts_add(m, sets[i], err));
        const uint64_t part[2] = { dr__dataset_content(sets[i]), sets[i]->n_samples };
        content = XXH3_64bits_withSeed(part, sizeof part, content);
    }
    const uint64_t whole[2] = { m->head.fingerprint, (uint64_t)n_sets };
    m->head.fingerprint = XXH3_64bits(whole, sizeof whole); /* not that of a mixture */
    m->head.content = content;
    return dr__parts_finish(m, err);
}

dr_status dr_dataset_concat(dr_dataset *const *sets, int n_sets, dr_dataset **out, dr_error *err)
{
    if (!sets || n_sets < 1 || !out)
        return dr__fail(err, DR_ERR_ARG, "concat: needs sets and a place for the result");
    char name[64];
    snprintf(name, sizeof name, "concatenation of %d", n_sets);
    dr_dataset *set;
    *out = NULL;
    DR_TRY(dr__dataset_new(sizeof(dr__parts), &concat_def, "concat", name, &set, err));
    dr_status status = fill((dr__parts *)set, sets, n_sets, err);
    if (status != DR_OK)
        dr_dataset_unref(&set);
    *out = status == DR_OK ? set : NULL;
    return status;
}
