/* codec_frame.c: headers of frames and of their blocks. */
#include "codec/chain/codec_frame.h"

#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "data/desc.h"

enum { HAS_DICT = 1, HAS_SPACING = 2, IS_LOSSY = 4, ALL_FLAGS = 7, LAST_KIND = DR_KIND_MASKS };

static const uint8_t magic[4] = { 0xd7, 'D', 'R', 'C' };

uint64_t dr__codec_frame_hash(const void *data, size_t size, uint64_t before)
{
    return XXH3_64bits_withSeed(data, size, before);
}

dr_status dr__codec_desc_bytes(const dr_desc *desc, size_t *bytes, dr_error *err)
{
    const size_t size = dr_dtype_size(desc->dtype);
    char text[128];
    if (!size)
        return dr__fail(err, DR_ERR_ARG, "codec: dtype must be a dr_dtype, got %d", (int)desc->dtype);
    if (desc->n_dims < 0 || desc->n_dims > DR_MAX_DIMS)
        return dr__fail(err, DR_ERR_ARG, "codec: n_dims must be 0 to %d, got %d", DR_MAX_DIMS, desc->n_dims);
    if (!dr__desc_known(desc))
        return dr__fail(err, DR_ERR_ARG, "codec: the extents of %s must be known", dr__desc_text_of(desc, text, 128));
    if (!dr__desc_bytes_dense(desc, bytes) || *bytes > DR_CODEC_MAX_BYTES)
        return dr__fail(err, DR_ERR_LIMIT, "codec: %s is larger than 64 TiB", dr__desc_text_of(desc, text, 128));
    return DR_OK;
}

/* ---- Writing ---------------------------------------------------------------------------------------------------- */

static uint8_t *put(uint8_t *at, const void *data, size_t n)
{
    memcpy(at, data, n);
    return at + n;
}

static uint8_t *put_varint(uint8_t *at, uint64_t x)
{
    for (; x >= 128; x >>= 7)
        *at++ = (uint8_t)(x | 128);
    *at++ = (uint8_t)x;
    return at;
}

static bool has_spacing(const dr_desc *d)
{
    return d->spacing[0] != 0 || d->spacing[1] != 0 || d->spacing[2] != 0;
}

size_t dr__codec_frame_write_head(const dr__codec_frame *f, uint64_t checksum, uint8_t *out)
{
    const dr_desc *d = &f->desc;
    const int flags =
        (f->dict_id ? HAS_DICT : 0) | (has_spacing(d) ? HAS_SPACING : 0) | (f->chain.n_lossy ? IS_LOSSY : 0);
    uint8_t *at = put(out, magic, sizeof magic);
    *at++ = DR__CODEC_FRAME_VERSION;
    *at++ = (uint8_t)flags;
    *at++ = (uint8_t)d->dtype;
    *at++ = (uint8_t)d->kind;
    *at++ = (uint8_t)((unsigned)d->layout << 4 | (unsigned)d->n_dims);
    *at++ = (uint8_t)f->block_log;
    *at++ = (uint8_t)f->chain.n;
    for (unsigned i = 0; i < f->chain.n; i++) {
        const int param = f->chain.stages[i].param;
        *at++ = dr__chain_stage_id(&f->chain.stages[i]);
        at = put_varint(at, param < 0 ? (uint64_t)-param * 2 - 1 : (uint64_t)param * 2);
    }
    for (int i = 0; i < d->n_dims; i++)
        at = put_varint(at, (uint64_t)d->dims[i]);
    if (flags & HAS_DICT)
        at = put(at, &f->dict_id, 4);
    if (flags & HAS_SPACING)
        at = put(at, d->spacing, sizeof d->spacing);
    if (flags & IS_LOSSY)
        at = put(put(at, &f->abs_error, 8), &f->rel_error, 8);
    const uint64_t sum = dr__codec_frame_hash(out, (size_t)(at - out), checksum);
    at = put(at, &sum, 8);
    return (size_t)(at - out);
}

static bool is_stored(const dr__codec_frame *f, const dr__block *block, unsigned i)
{
    const dr__chain_stage *s = &f->chain.stages[i];
    return i + 1 < block->n_stages && !(s->array && s->array->fixed);
}

size_t dr__codec_frame_block_head(const dr__codec_frame *f, unsigned n_stages)
{
    const dr__block block = { .n_stages = n_stages };
    size_t n = 4;
    for (unsigned i = 0; i < n_stages; i++)
        n += is_stored(f, &block, i) ? 4 : 0;
    return n;
}

size_t dr__codec_frame_write_block(const dr__codec_frame *f, const dr__block *block, uint8_t *out)
{
    const uint32_t head = (uint32_t)block->sizes[block->n_stages] | block->n_stages << DR__BLOCK_SIZE_BITS;
    uint8_t *at = put(out, &head, 4);
    for (unsigned i = 0; i < block->n_stages; i++) {
        const uint32_t size = (uint32_t)block->sizes[i + 1];
        if (is_stored(f, block, i))
            at = put(at, &size, 4);
    }
    return (size_t)(at - out);
}

/* ---- Reading ---------------------------------------------------------------------------------------------------- */

size_t dr__codec_frame_block_bytes(const dr__codec_frame *f, size_t at)
{
    const size_t block = (size_t)1 << f->block_log, left = f->raw_bytes - at;
    return left < block ? left : block;
}

static bool take_u32(const uint8_t **at, const uint8_t *end, uint32_t *out)
{
    if (end - *at < 4)
        return false;
    memcpy(out, *at, 4);
    *at += 4;
    return true;
}

bool dr__codec_frame_read_block(const dr__codec_frame *f, const uint8_t **at, const uint8_t *end, size_t raw,
                                dr__block *block)
{
    uint32_t head, size;
    if (!take_u32(at, end, &head))
        return false;
    *block = (dr__block){ .n_stages = head >> DR__BLOCK_SIZE_BITS, .sizes = { raw } };
    if (block->n_stages > f->chain.n)
        return false;
    for (unsigned i = 0; i < block->n_stages; i++) {
        if (is_stored(f, block, i)) {
            if (!take_u32(at, end, &size))
                return false;
            block->sizes[i + 1] = size;
        }
    }
    size = head & (((uint32_t)1 << DR__BLOCK_SIZE_BITS) - 1);
    if (!block->n_stages && size != raw)
        return false;
    block->sizes[block->n_stages] = size;
    return dr__chain_check(&f->plan, block) && size <= (size_t)(end - *at);
}

static dr_status varint(dr_cursor *c, uint64_t *out, dr_error *err)
{
    uint8_t b;
    *out = 0;
    for (unsigned shift = 0; shift < 63; shift += 7) {
        DR_TRY(dr__cursor_u8(c, &b, err));
        *out |= (uint64_t)(b & 127) << shift;
        if (b < 128)
            return DR_OK;
    }
    return dr__fail(err, DR_ERR_FORMAT, "frame: a number of its header is damaged");
}

static dr_status read_stages(dr_cursor *c, unsigned n, dr__codec_frame *f, dr_error *err)
{
    uint8_t id;
    uint64_t param;
    if (!n || n > DR__MAX_STAGES)
        return dr__fail(err, DR_ERR_FORMAT, "frame: must have 1 to %d stages, has %u", DR__MAX_STAGES, n);
    for (unsigned i = 0; i < n; i++) {
        DR_TRY(dr__cursor_u8(c, &id, err));
        DR_TRY(varint(c, &param, err));
        if (param > 1000)
            return dr__fail(err, DR_ERR_FORMAT, "frame: a level is damaged");
        const int half = (int)(param / 2);
        DR_TRY(dr__chain_add(&f->chain, id, param % 2 ? -half - 1 : half, err));
    }
    return DR_OK;
}

static dr_status take(dr_cursor *c, void *out, size_t n, dr_error *err)
{
    const uint8_t *from;
    DR_TRY(dr__cursor_bytes(c, n, &from, err));
    memcpy(out, from, n);
    return DR_OK;
}

static dr_status read_desc(dr_cursor *c, const uint8_t *head, dr__codec_frame *f, dr_error *err)
{
    dr_desc *d = &f->desc;
    *d = (dr_desc){ .dtype = (dr_dtype)head[6],
                    .kind = (dr_kind)head[7],
                    .layout = (dr_layout)(head[8] >> 4),
                    .n_dims = head[8] & 15 };
    if (!dr_dtype_size(d->dtype) || head[7] > LAST_KIND || d->layout > DR_LAYOUT_CHW || d->n_dims > DR_MAX_DIMS)
        return dr__fail(err, DR_ERR_FORMAT, "frame: the description of its array is damaged");
    for (int i = 0; i < d->n_dims; i++) {
        uint64_t extent;
        DR_TRY(varint(c, &extent, err));
        if (extent > INT64_MAX)
            return dr__fail(err, DR_ERR_FORMAT, "frame: an extent is damaged");
        d->dims[i] = (int64_t)extent;
    }
    if (dr__codec_desc_bytes(d, &f->raw_bytes, NULL) != DR_OK)
        return dr__fail(err, DR_ERR_FORMAT, "frame: the extents of its array are damaged");
    return DR_OK;
}

static dr_status read_head(dr_cursor *c, const uint8_t *start, dr__codec_frame *f, dr_error *err)
{
    const uint8_t *head;
    DR_TRY(dr__cursor_bytes(c, 11, &head, err));
    if (memcmp(head, magic, sizeof magic) != 0)
        return dr__fail(err, DR_ERR_FORMAT, "frame: these are not the first bytes of a frame");
    if (head[4] != DR__CODEC_FRAME_VERSION)
        return dr__fail(err, DR_ERR_UNSUPPORTED, "frame: it has version %d, this library reads %d", head[4],
                        DR__CODEC_FRAME_VERSION);
    const unsigned flags = head[5];
    f->block_log = head[9];
    if (flags > ALL_FLAGS || f->block_log < DR__CODEC_FRAME_BLOCK_LOG_MIN ||
        f->block_log > DR__CODEC_FRAME_BLOCK_LOG_MAX)
        return dr__fail(err, DR_ERR_FORMAT, "frame: its header is damaged");
    DR_TRY(read_stages(c, head[10], f, err));
    DR_TRY(read_desc(c, head, f, err));
    if (flags & HAS_DICT)
        DR_TRY(dr__cursor_u32(c, &f->dict_id, err));
    if (flags & HAS_SPACING)
        DR_TRY(take(c, f->desc.spacing, sizeof f->desc.spacing, err));
    if (flags & IS_LOSSY) {
        DR_TRY(take(c, &f->abs_error, 8, err));
        DR_TRY(take(c, &f->rel_error, 8, err));
    }
    DR_TRY(dr__cursor_u64(c, &f->checksum, err));
    f->head_bytes = (size_t)(c->at - start);
    if (!(flags & IS_LOSSY) != !f->chain.n_lossy)
        return dr__fail(err, DR_ERR_FORMAT, "frame: its header is damaged");
    return DR_OK;
}

dr_status dr__codec_frame_read(const void *frame, size_t size, dr__codec_frame *f, dr_error *err)
{
    dr_cursor c = dr__cursor(frame, size, "frame");
    *f = (dr__codec_frame){ 0 };
    DR_TRY(read_head(&c, frame, f, err));
    if (dr__chain_plan_for(&f->chain, f->desc.dtype, &f->plan, NULL) != DR_OK)
        return dr__fail(err, DR_ERR_FORMAT, "frame: its stages do not take %s", dr_dtype_name(f->desc.dtype));
    const uint8_t *at = c.at;
    for (size_t raw = 0; raw < f->raw_bytes;) {
        const size_t bytes = dr__codec_frame_block_bytes(f, raw);
        dr__block block;
        if (!dr__codec_frame_read_block(f, &at, c.end, bytes, &block))
            return dr__fail(err, DR_ERR_FORMAT, "frame: the block at byte %zu of the array is damaged or cut off", raw);
        at += block.sizes[block.n_stages];
        raw += bytes;
    }
    if (at != c.end)
        return dr__fail(err, DR_ERR_FORMAT, "frame: %zu bytes follow its end", (size_t)(c.end - at));
    return DR_OK;
}
