/* make_entry.c: from an entry of a request to a frame. */
#include "serve/make_entry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "data/desc.h"
#include "format/remote_index.h"
#include "op/op.h"
#include "serve/beneath.h"
#include "source/file.h"

enum { KEEP = 16 << 20 }; /* larger buffers are given back */

bool dr__maker_open(dr__maker *m, uint64_t memory, uint64_t most_pixels)
{
    *m = (dr__maker){ .bench = dr__workbench_new(), .where = dr__alloc(sizeof(dr__where)), .most_pixels = most_pixels };
    if (!m->bench || !m->where) {
        dr__maker_close(m);
        return false;
    }
    m->bench->memory_limit = (size_t)DR_MIN(memory, SIZE_MAX);
    return true;
}

void dr__maker_close(dr__maker *m)
{
    dr__workbench_free(&m->bench);
    dr__free(m->where);
    dr__free(m->bytes.text);
    *m = (dr__maker){ 0 };
}

static dr__remote_head head_of(const dr__remote_request *r, size_t entry, unsigned prefix)
{
    return (dr__remote_head){ .id = r->entries[entry].id, .prefix = (uint16_t)prefix, .entry = (uint16_t)entry };
}

/* A lossy codec would change what the client makes of it. */
static dr_status open_codec(const dr__remote_request *r, size_t entry, dr_codec **out, dr_error *err)
{
    const uint8_t number = r->entries[entry].codec;
    *out = NULL;
    if (number == DR__REMOTE_NO_CODEC)
        return DR_OK;
    DR_TRY(dr_codec_open(r->codecs[number], NULL, out, err));
    if (dr_codec_about(*out).lossless)
        return DR_OK;
    dr_codec_close(out);
    return dr__fail(err, DR_ERR_ARG, "codec %s is lossy", r->codecs[number]);
}

/* --- ops --- */

/* Elements of every image or volume that the sample makes on its way. */
static dr_status check_pixels(const dr__program *p, const dr__maker *m, dr_error *err)
{
    for (int s = 0; s < p->n_steps; s++) {
        const dr_desc *d = &m->bench->values[p->steps[s].out].desc;
        size_t bytes;
        if (!dr__desc_bytes_dense(d, &bytes))
            return dr__fail(err, DR_ERR_LIMIT, "%s: its result is too large",
                            p->graph->nodes[p->steps[s].node].op.def->name);
        const uint64_t elements = bytes / dr_dtype_size(d->dtype);
        const uint64_t pixels = dr__is_image(d) ? elements / (uint64_t)DR_MAX(dr__channels(d), 1) : elements;
        if (pixels > m->most_pixels)
            return dr__fail(err, DR_ERR_LIMIT, "%s: %" PRIu64 " pixels; %" PRIu64 " are allowed",
                            p->graph->nodes[p->steps[s].node].op.def->name, pixels, m->most_pixels);
    }
    return DR_OK;
}

static dr_status plan(dr__maker *m, const dr__program *p, const dr__rng_name *name, dr_error *err)
{
    DR_TRY(dr__sample_plan(p, m->bench, name, err));
    DR_TRY(check_pixels(p, m, err));
    m->cost = m->bench->cost;
    return m->most_cost > 0 && m->cost > m->most_cost ? dr__fail(err, DR_ERR_LIMIT, "its ops would take too long")
                                                      : DR_OK;
}

/* The outputs of the program, into bench->spare. */
static dr_status store(dr__maker *m, const dr__program *p, dr_error *err)
{
    dr__record *spare = &m->bench->spare;
    size_t total = dr__record_overhead((size_t)p->n_outputs), bytes;
    for (int i = 0; i < p->n_outputs; i++) {
        const dr_desc desc = dr__sample_desc(p, m->bench, i);
        if (!dr__desc_bytes_dense(&desc, &bytes) || !dr__add_size(total, bytes, &total))
            return dr__fail(err, DR_ERR_LIMIT, "\"%s\" is too large", p->outputs[i].name);
    }
    spare->max_bytes = m->bench->memory_limit;
    DR_TRY(dr__record_reset(spare, total, err));
    for (int i = 0; i < p->n_outputs; i++) {
        const dr_desc desc = dr__sample_desc(p, m->bench, i);
        dr__desc_bytes_dense(&desc, &bytes);
        void *place = dr__record_take(spare, bytes);
        if (!place)
            return dr__fail(err, DR_ERR_NOMEM, "out of memory");
        DR_TRY(dr__sample_store(p, m->bench, i, place, err));
        const dr_view view = dr__view_dense(&desc, place);
        DR_TRY(dr__record_view(spare, &view, err));
    }
    return DR_OK;
}

static dr_status run(dr__maker *m, const dr__program *p, const dr__served_set *set, const dr__remote_request *r,
                     size_t entry, dr_error *err)
{
    const dr__remote_entry *e = &r->entries[entry];
    const dr__rng_name name = { r->seed, r->epoch, e->id, e->occurrence };
    m->cost = 0;
    if (e->id >= set->set->n_samples)
        return dr__fail(err, DR_ERR_ARG, "sample %" PRIu64 " of %" PRIu64, e->id, set->set->n_samples);
    DR_TRY(dr__served_check(set, e->id, m->where, err));
    DR_TRY(dr__sample_read(m->bench, set->set, e->id, err));
    DR_TRY(plan(m, p, &name, err));
    DR_TRY(dr__sample_run(p, m->bench, err));
    return store(m, p, err);
}

static dr_status run_and_put(dr__maker *m, const dr__program *p, const dr__served_set *set, const dr__remote_request *r,
                             size_t entry, dr__text *out, dr_error *err)
{
    const dr__remote_head head = head_of(r, entry, r->entries[entry].prefix);
    dr_codec *codec;
    DR_TRY(run(m, p, set, r, entry, err));
    DR_TRY(open_codec(r, entry, &codec, err));
    const dr_status status =
        dr__remote_put_sample(out, &head, m->bench->spare.fields, m->bench->spare.n_fields, codec, err);
    dr_codec_close(&codec);
    return status;
}

dr_status dr__make_ops(dr__maker *m, dr__heads *heads, const dr__served_set *set, const dr__remote_request *r,
                       size_t entry, dr__text *out, dr_error *err)
{
    const dr__head_key key = { .set = set->set,
                               .set_number = set->number,
                               .graph = r->graph,
                               .outputs = r->outputs,
                               .prefix = r->entries[entry].prefix };
    dr__head *head;
    if (!r->graph || (r->ops && r->ops != dr__op_set()))
        return dr__fail(err, DR_ERR_UNSUPPORTED, "the ops of the client have other versions");
    DR_TRY(dr__heads_take(heads, &key, &head, err));
    const dr_status status = run_and_put(m, dr__head_program(head), set, r, entry, out, err);
    dr__heads_give_back(heads, &head);
    return status;
}

/* --- as it is stored --- */

static uint8_t *take_bytes(dr__maker *m, uint64_t size)
{
    char *grown = dr__grow(m->bytes.text, &m->bytes.cap, (size_t)size + 1, 1);
    if (!grown)
        return NULL;
    m->bytes.text = grown;
    m->bytes.n = (size_t)size;
    return (uint8_t *)grown;
}

static dr_status read_ranges(dr__maker *m, int fd, uint64_t base, uint64_t size, const dr__remote_range *ranges,
                             uint32_t n, dr_error *err)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (ranges[i].offset > size || ranges[i].size > size - ranges[i].offset)
            return dr__fail(err, DR_ERR_ARG, "range %" PRIu64 "+%" PRIu64 " of %" PRIu64 " bytes", ranges[i].offset,
                            ranges[i].size, size);
        total += ranges[i].size;
        if (total > size)
            return dr__fail(err, DR_ERR_LIMIT, "ranges of more bytes than the sample has, %" PRIu64, size);
    }
    uint8_t *to = take_bytes(m, total);
    if (!to)
        return dr__fail(err, DR_ERR_NOMEM, "out of memory");
    for (uint32_t i = 0; i < n; to += ranges[i++].size) {
        size_t got;
        if (dr__file_pread(fd, to, (size_t)ranges[i].size, base + ranges[i].offset, &got))
            return dr__fail_errno(err, DR_ERR_IO, "cannot read");
        if (got != ranges[i].size)
            return dr__fail(err, DR_ERR_IO, "the file has become shorter");
    }
    return DR_OK;
}

/* Of a set that does not tell where its images are, but reads ranges of them: a packed one. */
static dr_status read_ranges_of_set(dr__maker *m, const dr__served_set *set, uint64_t id,
                                    const dr__remote_range *ranges, uint32_t n, dr_error *err)
{
    dr__byte_ranges list = { 0 };
    const uint64_t most = DR_MAX((uint64_t)m->bench->memory_limit, (uint64_t)DR__ENCODED_LEAST);
    for (uint32_t i = 0; i < n; i++) {
        const bool after = !i || ranges[i].offset > ranges[i - 1].offset + ranges[i - 1].size;
        if (!after || !ranges[i].size || list.n == DR__MOST_RANGES)
            return dr__fail(err, DR_ERR_ARG, "ranges of such a set are in order and apart, and %d at most",
                            DR__MOST_RANGES);
        if (ranges[i].size > most || dr__byte_ranges_total(&list) > most - ranges[i].size)
            return dr__fail(err, DR_ERR_LIMIT, "ranges of more than %" PRIu64 " bytes", most);
        dr__byte_ranges_add(&list, ranges[i].offset, ranges[i].size, 0);
    }
    uint8_t *to = take_bytes(m, dr__byte_ranges_total(&list));
    if (!to)
        return dr__fail(err, DR_ERR_NOMEM, "out of memory");
    DR_TRY(dr__served_check(set, id, m->where, err));
    return set->set->def->read_ranges(set->set, id, 0, &list, to, err);
}

static dr_status read_ranges_of_file(dr__maker *m, const dr__served_set *set, const char *path,
                                     const dr__remote_range *ranges, uint32_t n, dr_error *err)
{
    struct stat st;
    int fd;
    DR_TRY(dr__beneath_open(set->root_fd, path, &fd, &st, err));
    const uint64_t size = m->where->size == DR__WHOLE_FILE ? (uint64_t)st.st_size : m->where->size;
    const dr_status status = size > m->bench->memory_limit && size > DR__ENCODED_LEAST
                                 ? dr__fail(err, DR_ERR_LIMIT, "it has %" PRIu64 " bytes", size)
                                 : read_ranges(m, fd, m->where->offset, size, ranges, n, err);
    close(fd);
    return status;
}

/* Whether a sample is the one that the client means.  Looked at before and after its ranges are read. */
static dr_status check_stamp(const dr__served_set *set, const dr__remote_entry *e, dr_error *err)
{
    dr__stamp now;
    if (!e->stamp)
        return DR_OK;
    DR_TRY(dr__dataset_stamp(set->set, e->id, &now, err));
    return now.version == e->stamp ? DR_OK : dr__fail(err, DR_ERR_STATE, "it was changed");
}

static dr_status put_ranges(dr__maker *m, const dr__served_set *set, const dr__remote_request *r, size_t entry,
                            dr__text *out, dr_error *err)
{
    const dr__remote_entry *e = &r->entries[entry];
    const dr__remote_range *ranges = r->ranges + e->first_range;
    const dr__remote_head head = head_of(r, entry, 0);
    m->where->form = DR__WHERE_UNKNOWN;
    if (set->image >= 0)
        dr__dataset_where(set->set, e->id, set->image, m->where);
    const char *path = m->where->form == DR__WHERE_RANGE ? dr__where_below(m->where, set->root) : NULL;
    const bool by_set = set->image >= 0 && m->where->form == DR__WHERE_UNKNOWN && set->set->def->read_ranges;
    if (!path && !by_set)
        return dr__fail(err, DR_ERR_UNSUPPORTED, "this set does not tell where its samples are");
    DR_TRY(check_stamp(set, e, err));
    if (path)
        DR_TRY(read_ranges_of_file(m, set, path, ranges, e->n_ranges, err));
    else
        DR_TRY(read_ranges_of_set(m, set, e->id, ranges, e->n_ranges, err));
    DR_TRY(check_stamp(set, e, err));
    const dr_status status =
        dr__remote_put_segments(out, &head, ranges, (int)e->n_ranges, m->bytes.text, m->bytes.n, err);
    if (m->bytes.cap > KEEP) {
        dr__free(m->bytes.text);
        m->bytes = (dr__text){ 0 };
    }
    return status;
}

/* The sample as it is stored is mostly compressed already: the codec is meant for what ops make. */
static dr_status put_whole(dr__maker *m, const dr__served_set *set, const dr__remote_request *r, size_t entry,
                           dr__text *out, dr_error *err)
{
    const dr__remote_head head = head_of(r, entry, 0);
    DR_TRY(dr__served_check(set, head.id, m->where, err));
    DR_TRY(dr__sample_read(m->bench, set->set, head.id, err));
    return dr__remote_put_sample(out, &head, m->bench->record.fields, m->bench->record.n_fields, NULL, err);
}

/* Paths of this machine are nobody's business: the folder of the set becomes the name of the set. */
static void hide_root(const dr__served_set *set, dr_error *err)
{
    char text[sizeof err->text];
    const char *at = strstr(err->text, set->root);
    if (!at || !set->root[1])
        return;
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - err->text), err->text, set->name, at + strlen(set->root));
    memcpy(err->text, text, sizeof text);
    if (strstr(err->text, set->root))
        snprintf(err->text, sizeof err->text, "%s: %s", set->name, dr_status_text(err->status));
}

dr_status dr__make_stored(dr__maker *m, const dr__served_set *set, const dr__remote_request *r, size_t entry,
                          dr__text *out, bool *failed, dr_error *err)
{
    const dr__remote_entry *e = &r->entries[entry];
    const dr__remote_head head = head_of(r, entry, 0);
    dr_error why = { 0 };
    dr_status status;
    if (e->id >= set->set->n_samples)
        status = dr__fail(&why, DR_ERR_ARG, "sample %" PRIu64 " of %" PRIu64, e->id, set->set->n_samples);
    else
        status = e->by_ranges ? put_ranges(m, set, r, entry, out, &why) : put_whole(m, set, r, entry, out, &why);
    *failed = status != DR_OK;
    if (status == DR_OK)
        return DR_OK;
    hide_root(set, &why);
    return dr__remote_put_error(out, &head, &why, err);
}
