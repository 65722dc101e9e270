/* remote_frame.c: writes and parses the frames of a drapps server.
 *
 * Frames are little-endian, as all files of drapps; so are the machines that it runs on.
 */
#include "format/remote_frame.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/cursor.h"
#include "data/desc.h"

enum {
    CPU_AT = 20, /* offsets in a head */
    SIZE_AT = 24,
    SUM_AT = 32,
    PLAIN = 0x80,       /* in a field's form */
    LEAST_PACKED = 256, /* smaller fields are never compressed */
    FIELD_HEAD = 12,    /* size, dtype, n_dims, layout, form */
    SEGMENTS_HEAD = 8,
};

static void put(dr__text *out, const void *data, size_t size)
{
    dr__text_add(out, data, size);
}

static void put_u16(dr__text *out, uint16_t v)
{
    put(out, &v, sizeof v);
}

static void put_u32(dr__text *out, uint32_t v)
{
    put(out, &v, sizeof v);
}

static void put_u64(dr__text *out, uint64_t v)
{
    put(out, &v, sizeof v);
}

static dr_status no_memory(dr_error *err)
{
    return dr__fail(err, DR_ERR_NOMEM, "frame: out of memory");
}

/* --- writing --- */

static void put_head(dr__text *out, const dr__remote_head *head, dr__remote_kind kind, int n_fields)
{
    const uint8_t bytes[2] = { (uint8_t)kind, 0 };
    put(out, DR__REMOTE_MAGIC, 4);
    put(out, bytes, sizeof bytes);
    put_u16(out, (uint16_t)n_fields);
    put_u64(out, head->id);
    put_u16(out, head->prefix);
    put_u16(out, head->entry);
    put_u32(out, head->cpu_us);
    put_u64(out, 0); /* size and sum: see finish */
    put_u64(out, 0);
}

/* Takes back what was added since `start`. */
static void undo(dr__text *out, size_t start)
{
    if (out->text)
        out->text[start] = 0;
    out->n = start;
    out->failed = false;
}

/* Fills in size and sum of the frame at `start`, or takes it back. */
static dr_status finish(dr__text *out, size_t start, dr_status status, dr_error *err)
{
    if (status == DR_OK && out->failed)
        status = no_memory(err);
    if (status != DR_OK) {
        undo(out, start);
        return status;
    }
    const char *payload = out->text + start + DR__REMOTE_HEAD;
    const uint64_t size = out->n - start - DR__REMOTE_HEAD, sum = XXH3_64bits(payload, size);
    memcpy(out->text + start + SIZE_AT, &size, sizeof size);
    memcpy(out->text + start + SUM_AT, &sum, sizeof sum);
    return DR_OK;
}

/* Makes `size` more bytes of the text, whose values the caller fills in. */
static uint8_t *put_room(dr__text *out, size_t size)
{
    size_t need;
    char *grown = out->failed || !dr__add_size(out->n, size, &need) || !dr__add_size(need, 1, &need)
                      ? NULL
                      : dr__grow(out->text, &out->cap, need, 1);
    if (!grown) {
        out->failed = true;
        return NULL;
    }
    out->text = grown;
    out->n += size;
    out->text[out->n] = 0;
    return (uint8_t *)out->text + out->n - size;
}

static dr_status put_desc(dr__text *out, const dr_desc *d, bool plain, size_t *size_at, dr_error *err)
{
    const uint8_t bytes[4] = { (uint8_t)d->dtype, (uint8_t)d->n_dims, (uint8_t)d->layout,
                               (uint8_t)(d->kind | (plain ? PLAIN : 0)) };
    *size_at = out->n;
    put_u64(out, 0);
    put(out, bytes, sizeof bytes);
    for (int i = 0; i < d->n_dims; i++) {
        if (d->dims[i] < 0 || d->dims[i] > UINT32_MAX)
            return dr__fail(err, DR_ERR_LIMIT, "frame: an extent of %lld; %u is the most", (long long)d->dims[i],
                            UINT32_MAX);
        put_u32(out, (uint32_t)d->dims[i]);
    }
    if (dr__is_volume(d))
        put(out, d->spacing, sizeof d->spacing);
    return DR_OK;
}

static void set_size(dr__text *out, size_t size_at, uint64_t size)
{
    if (!out->failed)
        memcpy(out->text + size_at, &size, sizeof size);
}

/* A dense copy of the elements at the end of the text. */
static dr_status put_elements(dr__text *out, const dr_view *view, size_t bytes, dr_error *err)
{
    uint8_t *place = put_room(out, bytes);
    if (!place)
        return no_memory(err);
    const dr_view dense = dr__view_dense(&view->desc, place);
    if (bytes)
        dr__view_copy((dr_view *)&dense, view);
    return DR_OK;
}

static bool worth_packing(const dr_codec *codec, const dr_desc *d, size_t bytes)
{
    return codec && bytes >= LEAST_PACKED && dr_codec_takes(codec, d->dtype);
}

/* Compresses the elements that end the text, which begin at `start`, in place.  False: they are not smaller for it. */
static bool pack(dr__text *out, size_t start, size_t bytes, const dr_desc *desc, const dr_codec *codec)
{
    size_t bound, n = 0;
    if (dr_codec_bound(codec, desc, &bound, NULL) != DR_OK || !put_room(out, bound)) {
        out->failed = false;
        return false;
    }
    uint8_t *plain = (uint8_t *)out->text + start, *packed = plain + bytes;
    const bool smaller = dr_codec_encode(codec, desc, plain, packed, bound, &n, NULL) == DR_OK && n < bytes;
    if (smaller)
        memmove(plain, packed, n);
    out->n = start + (smaller ? n : bytes);
    out->text[out->n] = 0;
    return smaller;
}

static dr_status put_field(dr__text *out, const dr_view *view, const dr_codec *codec, dr_error *err)
{
    size_t bytes, size_at;
    if (!dr__desc_bytes_dense(&view->desc, &bytes))
        return dr__fail(err, DR_ERR_LIMIT, "frame: a field is too large");
    DR_TRY(put_desc(out, &view->desc, true, &size_at, err));
    const size_t start = out->n;
    DR_TRY(put_elements(out, view, bytes, err));
    if (worth_packing(codec, &view->desc, bytes) && pack(out, start, bytes, &view->desc, codec))
        out->text[size_at + 11] = (char)view->desc.kind; /* no longer plain */
    set_size(out, size_at, out->n - start);
    return DR_OK;
}

dr_status dr__remote_put_sample(dr__text *out, const dr__remote_head *head, const dr_view *fields, int n_fields,
                                const dr_codec *codec, dr_error *err)
{
    const size_t start = out->n;
    dr_status status = DR_OK;
    if (n_fields < 0 || n_fields > DR__MAX_FIELDS)
        return dr__fail(err, DR_ERR_LIMIT, "frame: %d fields; %d are the most", n_fields, DR__MAX_FIELDS);
    put_head(out, head, DR__REMOTE_SAMPLE, n_fields);
    for (int i = 0; status == DR_OK && i < n_fields; i++)
        status = put_field(out, &fields[i], codec, err);
    return finish(out, start, status, err);
}

dr_status dr__remote_put_segments(dr__text *out, const dr__remote_head *head, const dr__remote_range *ranges,
                                  int n_ranges, const void *bytes, uint64_t size, dr_error *err)
{
    const size_t start = out->n;
    uint64_t left = size;
    if (n_ranges < 0 || n_ranges > DR__REMOTE_RANGES)
        return dr__fail(err, DR_ERR_LIMIT, "frame: %d ranges; %d are the most", n_ranges, DR__REMOTE_RANGES);
    for (int i = 0; i < n_ranges; i++) {
        if (ranges[i].size > left)
            return dr__fail(err, DR_ERR_ARG, "frame: ranges of more than %llu bytes", (unsigned long long)size);
        left -= ranges[i].size;
    }
    if (left)
        return dr__fail(err, DR_ERR_ARG, "frame: ranges of less than %llu bytes", (unsigned long long)size);
    put_head(out, head, DR__REMOTE_SEGMENTS, 0);
    put_u32(out, (uint32_t)n_ranges);
    put_u32(out, 0);
    for (int i = 0; i < n_ranges; i++) {
        put_u64(out, ranges[i].offset);
        put_u64(out, ranges[i].size);
    }
    put(out, bytes, (size_t)size);
    return finish(out, start, DR_OK, err);
}

dr_status dr__remote_put_error(dr__text *out, const dr__remote_head *head, const dr_error *why, dr_error *err)
{
    const size_t start = out->n, n = strnlen(why->text, DR__REMOTE_ERROR_TEXT);
    put_head(out, head, DR__REMOTE_ERROR, 0);
    put_u32(out, (uint32_t)why->status);
    put(out, why->text, n);
    return finish(out, start, DR_OK, err);
}

void dr__remote_set_cpu(dr__text *out, size_t at, uint32_t cpu_us)
{
    if (!out->failed)
        memcpy(out->text + at + CPU_AT, &cpu_us, sizeof cpu_us);
}

/* --- parsing --- */

static dr_status damaged(dr_error *err, const char *why)
{
    return dr__fail(err, DR_ERR_FORMAT, "frame: %s", why);
}

static dr_status get_u16(dr_cursor *c, uint16_t *out, dr_error *err)
{
    const uint8_t *bytes;
    DR_TRY(dr__cursor_bytes(c, sizeof *out, &bytes, err));
    memcpy(out, bytes, sizeof *out);
    return DR_OK;
}

dr_status dr__remote_parse_head(const void *data, uint64_t most, dr__remote_head *out, dr_error *err)
{
    dr_cursor c = dr__cursor(data, DR__REMOTE_HEAD, "frame");
    const uint8_t *magic;
    uint8_t kind, flags;
    *out = (dr__remote_head){ 0 };
    DR_TRY(dr__cursor_bytes(&c, 4, &magic, err));
    if (memcmp(magic, DR__REMOTE_MAGIC, 4) != 0)
        return damaged(err, "no frame of a drapps server begins like this");
    DR_TRY(dr__cursor_u8(&c, &kind, err));
    DR_TRY(dr__cursor_u8(&c, &flags, err));
    DR_TRY(get_u16(&c, &out->n_fields, err));
    DR_TRY(dr__cursor_u64(&c, &out->id, err));
    DR_TRY(get_u16(&c, &out->prefix, err));
    DR_TRY(get_u16(&c, &out->entry, err));
    DR_TRY(dr__cursor_u32(&c, &out->cpu_us, err));
    DR_TRY(dr__cursor_u64(&c, &out->size, err));
    DR_TRY(dr__cursor_u64(&c, &out->sum, err));
    out->kind = (dr__remote_kind)kind;
    if (kind > DR__REMOTE_ERROR || flags)
        return dr__fail(err, DR_ERR_FORMAT, "frame: kind %u with flags %u is not known", kind, flags);
    if (out->n_fields > DR__MAX_FIELDS || (out->n_fields && kind != DR__REMOTE_SAMPLE))
        return dr__fail(err, DR_ERR_FORMAT, "frame: %u fields in one of kind %u", out->n_fields, kind);
    if (out->size > most)
        return dr__fail(err, DR_ERR_LIMIT, "frame: a payload of %llu bytes; %llu are allowed",
                        (unsigned long long)out->size, (unsigned long long)most);
    return DR_OK;
}

dr_status dr__remote_check(const dr__remote_head *head, const void *payload, dr_error *err)
{
    return XXH3_64bits(payload, head->size) == head->sum ? DR_OK : damaged(err, "its checksum is wrong");
}

/* A field before it is decoded. */
struct field {
    dr_desc desc;
    bool plain;
    const uint8_t *bytes;
    size_t size;  /* in the payload */
    size_t dense; /* decoded */
};

static dr_status read_dims(dr_cursor *c, dr_desc *d, dr_error *err)
{
    const uint8_t *spacing;
    for (int i = 0; i < d->n_dims; i++) {
        uint32_t extent;
        DR_TRY(dr__cursor_u32(c, &extent, err));
        d->dims[i] = extent;
    }
    if (!dr__is_volume(d))
        return DR_OK;
    DR_TRY(dr__cursor_bytes(c, sizeof d->spacing, &spacing, err));
    memcpy(d->spacing, spacing, sizeof d->spacing);
    return DR_OK;
}

/* Images have three axes, and a layout says so; code that trusts a description relies on it. */
static bool fits_kind(const dr_desc *d)
{
    const int n = d->n_dims;
    if (!dr_dtype_size(d->dtype) || d->kind > DR_KIND_MASKS || d->layout > DR_LAYOUT_CHW)
        return false;
    if (d->kind == DR_KIND_BYTES || d->kind == DR_KIND_TEXT)
        return n == 1 && d->dtype == DR_U8 && d->layout == DR_LAYOUT_ANY;
    if (dr__is_image(d))
        return d->layout != DR_LAYOUT_ANY ? n == 3 : n == 2 || n == 3;
    return (!dr__is_volume(d) || n == 4) && d->layout == DR_LAYOUT_ANY;
}

static dr_status read_desc(dr_cursor *c, struct field *f, uint64_t *size, dr_error *err)
{
    uint8_t dtype, n_dims, layout, form;
    DR_TRY(dr__cursor_u64(c, size, err));
    DR_TRY(dr__cursor_u8(c, &dtype, err));
    DR_TRY(dr__cursor_u8(c, &n_dims, err));
    DR_TRY(dr__cursor_u8(c, &layout, err));
    DR_TRY(dr__cursor_u8(c, &form, err));
    f->plain = form & PLAIN;
    f->desc = (dr_desc){
        .kind = (dr_kind)(form & ~PLAIN), .dtype = (dr_dtype)dtype, .layout = (dr_layout)layout, .n_dims = n_dims
    };
    if (n_dims > DR_MAX_DIMS)
        return dr__fail(err, DR_ERR_FORMAT, "frame: an array of %u axes", n_dims);
    DR_TRY(read_dims(c, &f->desc, err));
    return fits_kind(&f->desc) ? DR_OK : damaged(err, "the description of a field is wrong");
}

/* A field in a codec's frame says twice what it is. */
static dr_status check_packed(const struct field *f, dr_error *err)
{
    dr_codec_frame frame;
    DR_TRY(dr_codec_peek(f->bytes, f->size, &frame, err));
    return dr__desc_equal(&frame.desc, &f->desc) && frame.raw_bytes == f->dense && !frame.dict_id
               ? DR_OK
               : damaged(err, "a field and its codec's frame differ");
}

static dr_status read_field(dr_cursor *c, struct field *f, dr_error *err)
{
    uint64_t size;
    DR_TRY(read_desc(c, f, &size, err));
    if (!dr__desc_bytes_dense(&f->desc, &f->dense))
        return damaged(err, "a field is too large");
    if (size > dr__cursor_left(c))
        return damaged(err, "a field ends behind its frame");
    f->size = (size_t)size;
    DR_TRY(dr__cursor_bytes(c, f->size, &f->bytes, err));
    if (!f->plain)
        return check_packed(f, err);
    return f->size == f->dense ? DR_OK : damaged(err, "a field has another size than its shape");
}

static dr_status decode_field(const struct field *f, dr__record *record, dr_error *err)
{
    uint8_t *place = dr__record_take(record, f->dense);
    if (!place)
        return no_memory(err);
    if (!f->plain)
        DR_TRY(dr_codec_decode(f->bytes, f->size, NULL, place, f->dense, err));
    else if (f->dense)
        memcpy(place, f->bytes, f->dense);
    const dr_view view = dr__view_dense(&f->desc, place);
    return dr__record_view(record, &view, err);
}

static dr_status read_all(const dr__remote_head *head, const void *payload, struct field *fields, dr__record *record,
                          dr_error *err)
{
    dr_cursor c = dr__cursor(payload, head->size, "frame");
    size_t total = dr__record_overhead(head->n_fields);
    for (int i = 0; i < head->n_fields; i++) {
        DR_TRY(read_field(&c, &fields[i], err));
        if (!dr__add_size(total, fields[i].dense, &total))
            return damaged(err, "its fields are too large");
    }
    if (dr__cursor_left(&c))
        return damaged(err, "bytes follow its last field");
    DR_TRY(dr__record_reset(record, total, err));
    if (!dr__record_reserve_fields(record, head->n_fields))
        return no_memory(err);
    for (int i = 0; i < head->n_fields; i++)
        DR_TRY(decode_field(&fields[i], record, err));
    return DR_OK;
}

dr_status dr__remote_read_sample(const dr__remote_head *head, const void *payload, dr__record *record, dr_error *err)
{
    if (head->kind != DR__REMOTE_SAMPLE)
        return damaged(err, "it has no sample");
    struct field few[8],
        *fields = head->n_fields <= (int)DR_COUNT(few) ? few : dr__alloc_zero(head->n_fields, sizeof *fields);
    if (!fields)
        return no_memory(err);
    const dr_status status = read_all(head, payload, fields, record, err);
    if (fields != few)
        dr__free(fields);
    return status;
}

dr_status dr__remote_read_segments(const dr__remote_head *head, const void *payload,
                                   dr__remote_range ranges[DR__REMOTE_RANGES], int *n_ranges, const uint8_t **bytes,
                                   dr_error *err)
{
    dr_cursor c = dr__cursor(payload, head->size, "frame");
    uint32_t n, zero;
    uint64_t total = 0;
    if (head->kind != DR__REMOTE_SEGMENTS)
        return damaged(err, "it has no segments");
    DR_TRY(dr__cursor_u32(&c, &n, err));
    DR_TRY(dr__cursor_u32(&c, &zero, err));
    if (n > DR__REMOTE_RANGES || zero)
        return dr__fail(err, DR_ERR_FORMAT, "frame: %u ranges; %d are the most", n, DR__REMOTE_RANGES);
    for (uint32_t i = 0; i < n; i++) {
        DR_TRY(dr__cursor_u64(&c, &ranges[i].offset, err));
        DR_TRY(dr__cursor_u64(&c, &ranges[i].size, err));
        if (ranges[i].size > head->size || ranges[i].offset > UINT64_MAX - ranges[i].size)
            return damaged(err, "a range is too large");
        total += ranges[i].size; /* at most 4096 times the payload's size, which is below 2^46 */
    }
    if (total != dr__cursor_left(&c))
        return damaged(err, "its ranges have other bytes than it");
    *n_ranges = (int)n;
    *bytes = c.at;
    return DR_OK;
}

static bool is_failure(int32_t status)
{
    switch (status) {
#define CASE(name, value, text)                                                                                        \
    case value:                                                                                                        \
        return value < 0;
        DR_STATUS_MAP(CASE)
#undef CASE
    }
    return false;
}

dr_status dr__remote_read_error(const dr__remote_head *head, const void *payload, dr_error *why, dr_error *err)
{
    dr_cursor c = dr__cursor(payload, head->size, "frame");
    uint32_t status;
    if (head->kind != DR__REMOTE_ERROR)
        return damaged(err, "it has no error");
    DR_TRY(dr__cursor_u32(&c, &status, err));
    if (!is_failure((int32_t)status))
        return dr__fail(err, DR_ERR_FORMAT, "frame: status %d is none of an error", (int32_t)status);
    const size_t n = DR_MIN(dr__cursor_left(&c), sizeof why->text - 1);
    why->status = (dr_status)(int32_t)status;
    memcpy(why->text, c.at, n);
    why->text[n] = 0;
    for (size_t i = 0; i < n; i++) /* nothing that moves a terminal's cursor */
        if ((unsigned char)why->text[i] < ' ' || why->text[i] == 127)
            why->text[i] = ' ';
    return DR_OK;
}
