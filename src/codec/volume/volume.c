/* volume.c: which format a file is, its bytes through gzip or as they are, and voxels into the result's type and order.
 *
 * A chunk of numbers at a time is read, made float64, scaled and stored; the room holds zlib's state and the chunk.
 */
#include "codec/volume/volume.h"

#include <string.h>

#include "codec/codec_config.h"
#include "data/desc.h"
#ifdef DR_HAVE_ZLIB
#include <zlib.h>
#endif

enum { CHUNK = 2048, HEADER_MOST = 4096 + 16 };
enum { DEFLATE_MOST = 1032 }; /* bytes that one byte of a deflate stream can become */

/* The caller's room. */
struct room {
    double values[CHUNK];
    uint8_t raw[CHUNK * 8];
    uint8_t rest[DR__VOLUME_ROOM - CHUNK * 16]; /* zlib's */
};

/* The file's bytes from the start on, inflated where they must be. */
struct bytes {
    const uint8_t *at;
    size_t left;
    bool gzip;
#ifdef DR_HAVE_ZLIB
    z_stream z;
    uint8_t *room; /* that zlib takes its memory from */
    size_t room_left;
#endif
};

#ifdef DR_HAVE_ZLIB
static void *take_room(void *user, unsigned count, unsigned size)
{
    struct bytes *b = user;
    size_t need = ((size_t)count * size + 63) & ~(size_t)63;
    if (need > b->room_left)
        return NULL;
    uint8_t *p = b->room;
    b->room += need;
    b->room_left -= need;
    return p;
}

static void keep_room(void *user, void *p)
{
    (void)user, (void)p;
}

static dr_status open_gzip(struct bytes *b, uint8_t *room, dr_error *err)
{
    struct room *r = (struct room *)room;
    b->room = r->rest;
    b->room_left = sizeof r->rest;
    b->z = (z_stream){ .zalloc = take_room, .zfree = keep_room, .opaque = b, .next_in = (uint8_t *)b->at };
    if (inflateInit2(&b->z, 16 + MAX_WBITS) != Z_OK)
        return dr__fail(err, DR_ERR_NOMEM, "gzip: cannot start inflating");
    return DR_OK;
}

static void refill(struct bytes *b)
{
    if (b->z.avail_in)
        return;
    b->z.avail_in = (unsigned)(b->left < 1u << 30 ? b->left : 1u << 30);
    b->left -= b->z.avail_in;
}

/* Behind a gzip member: does another one follow?  Zero bytes between and behind members are padding (tapes, blocks of a
 * fixed size), as for gzip and Python. */
static bool begin_next_member(struct bytes *b)
{
    z_stream *z = &b->z;
    for (refill(b); z->avail_in && !*z->next_in; refill(b)) {
        z->next_in++;
        z->avail_in--;
    }
    return z->avail_in && inflateReset(z) == Z_OK;
}

/* As many as there are, up to n; a file may be several gzip members one after the other. */
static dr_status inflate_some(struct bytes *b, uint8_t *dst, size_t n, size_t *got, dr_error *err)
{
    z_stream *z = &b->z;
    z->next_out = dst;
    z->avail_out = (unsigned)n;
    while (z->avail_out) {
        refill(b);
        int status = inflate(z, Z_NO_FLUSH);
        if (status == Z_STREAM_END && begin_next_member(b))
            continue;
        if (status == Z_STREAM_END || (status == Z_BUF_ERROR && !z->avail_in && !b->left))
            break;
        if (status == Z_MEM_ERROR)
            return dr__fail(err, DR_ERR_NOMEM, "gzip: needs more than %d bytes to inflate", DR__VOLUME_ROOM);
        if (status != Z_OK)
            return dr__fail(err, DR_ERR_FORMAT, "gzip: %s", z->msg ? z->msg : "damaged data");
    }
    *got = n - z->avail_out;
    return DR_OK;
}
#endif

static bool is_gzip(const uint8_t *data, size_t size)
{
    return size >= 2 && data[0] == 0x1f && data[1] == 0x8b;
}

static dr_status open_bytes(struct bytes *b, const uint8_t *data, size_t size, uint8_t *room, dr_error *err)
{
    *b = (struct bytes){ .at = data, .left = size, .gzip = is_gzip(data, size) };
    if (!b->gzip)
        return DR_OK;
#ifdef DR_HAVE_ZLIB
    return open_gzip(b, room, err);
#else
    (void)room;
    return dr__fail(err, DR_ERR_UNSUPPORTED, "gzip: this build is without zlib");
#endif
}

static dr_status read_some(struct bytes *b, uint8_t *dst, size_t n, size_t *got, dr_error *err)
{
#ifdef DR_HAVE_ZLIB
    if (b->gzip)
        return inflate_some(b, dst, n, got, err);
#endif
    (void)err;
    *got = n < b->left ? n : b->left;
    memcpy(dst, b->at, *got);
    b->at += *got;
    b->left -= *got;
    return DR_OK;
}

static dr_status read_exactly(struct bytes *b, uint8_t *dst, size_t n, const dr__volume_info *info, dr_error *err)
{
    size_t got = 0;
    DR_TRY(read_some(b, dst, n, &got, err));
    if (got == n)
        return DR_OK;
    return dr__fail(err, DR_ERR_FORMAT, "%s: the file ends before its last voxel", info->format);
}

void dr__volume_turn(dr__volume_info *info, const int axis[4])
{
    double spacing[3];
    memcpy(spacing, info->spacing, sizeof spacing);
    for (int i = 0; i < 4; i++) {
        info->axis[i] = axis[i];
        info->dims[axis[i]] = info->stored[i];
        if (i && axis[i])
            info->spacing[axis[i] - 1] = spacing[i - 1];
    }
}

/* Extents are at most 2^31 each, so the check goes one at a time. */
static dr_status check_size(const dr__volume_info *info, size_t size, int64_t most, dr_error *err)
{
    int64_t n = 1;
    for (int i = 0; i < 4; i++) {
        if (info->stored[i] > most / n)
            return dr__fail(err, DR_ERR_LIMIT, "%s: more than max_voxels = %lld voxels", info->format, (long long)most);
        n *= info->stored[i];
    }
    double have = (double)size * (info->gzip ? DEFLATE_MOST : 1);
    if ((double)n * info->bytes + (double)info->data_at > have)
        return dr__fail(err, DR_ERR_FORMAT, "%s: %zu bytes cannot hold %lld voxels", info->format, size, (long long)n);
    return DR_OK;
}

dr_status dr__volume_header(const uint8_t *data, size_t size, const dr__volume_options *options, uint8_t *room,
                            dr__volume_info *info, dr_error *err)
{
    uint8_t head[HEADER_MOST];
    struct bytes b;
    size_t n;
    *info = (dr__volume_info){ .gzip = is_gzip(data, size) };
    DR_TRY(open_bytes(&b, data, size, room, err));
    DR_TRY(read_some(&b, head, sizeof head, &n, err));
    const dr_volume_codec *const *codec = dr__volume_codecs;
    while (*codec && !(*codec)->probe(head, n))
        codec++;
    if (!*codec)
        return dr__fail(err, DR_ERR_FORMAT, "volume: neither NIfTI-1 nor .npy (%zu bytes)", size);
    info->format = (*codec)->name;
    DR_TRY((*codec)->header(head, n, options, info, err));
    return check_size(info, size, options->max_voxels, err);
}

/* --- voxels --- */

static void swap_bytes(uint8_t *raw, size_t n, int bytes)
{
    for (size_t i = 0; i < n; i++, raw += bytes)
        for (int k = 0; k < bytes / 2; k++) {
            uint8_t hold = raw[k];
            raw[k] = raw[bytes - 1 - k];
            raw[bytes - 1 - k] = hold;
        }
}

#define LOAD(type)                                                                                                     \
    for (size_t i = 0; i < n; i++) {                                                                                   \
        type v;                                                                                                        \
        memcpy(&v, raw + i * sizeof v, sizeof v);                                                                      \
        values[i] = (double)v;                                                                                         \
    }                                                                                                                  \
    break

static void load(const dr__volume_info *info, const uint8_t *raw, double *values, size_t n)
{
    switch (info->number << 8 | info->bytes) {
    case 'u' << 8 | 1:
        LOAD(uint8_t);
    case 'u' << 8 | 2:
        LOAD(uint16_t);
    case 'u' << 8 | 4:
        LOAD(uint32_t);
    case 'u' << 8 | 8:
        LOAD(uint64_t);
    case 'i' << 8 | 1:
        LOAD(int8_t);
    case 'i' << 8 | 2:
        LOAD(int16_t);
    case 'i' << 8 | 4:
        LOAD(int32_t);
    case 'i' << 8 | 8:
        LOAD(int64_t);
    case 'f' << 8 | 4:
        LOAD(float);
    default:
        LOAD(double);
    }
    if (info->slope != 1 || info->offset != 0)
        for (size_t i = 0; i < n; i++)
            values[i] = info->slope * values[i] + info->offset;
}

/* Whole numbers, `lo` to `hi`, into elements `step` apart. */
#define STORE_WHOLE(type, lo, hi)                                                                                      \
    for (size_t i = 0; i < n; i++) {                                                                                   \
        if (!(values[i] >= (double)(lo) && values[i] <= (double)(hi)) || values[i] != (double)(type)values[i])         \
            return dr__fail(err, DR_ERR_FORMAT, "a voxel is %g; " #type " holds whole numbers from %g to %g",          \
                            values[i], (double)(lo), (double)(hi));                                                    \
        ((type *)dst)[(ptrdiff_t)i * step] = (type)values[i];                                                          \
    }                                                                                                                  \
    return DR_OK

static dr_status store(dr_dtype dtype, uint8_t *dst, ptrdiff_t step, const double *values, size_t n, dr_error *err)
{
    switch (dtype) {
    case DR_U8:
        STORE_WHOLE(uint8_t, 0, UINT8_MAX);
    case DR_I16:
        STORE_WHOLE(int16_t, INT16_MIN, INT16_MAX);
    case DR_I32:
        STORE_WHOLE(int32_t, INT32_MIN, INT32_MAX);
    case DR_I64:
        STORE_WHOLE(int64_t, -9007199254740992.0, 9007199254740992.0);
    default:
        for (size_t i = 0; i < n; i++)
            ((float *)dst)[(ptrdiff_t)i * step] = (float)values[i];
        return DR_OK;
    }
}

/* One run of the file's fastest axis, `step` elements apart in the result. */
static dr_status decode_run(struct bytes *b, const dr__volume_info *info, uint8_t *room, dr_dtype dtype, uint8_t *dst,
                            ptrdiff_t step, dr_error *err)
{
    struct room *r = (struct room *)room;
    for (int64_t done = 0; done < info->stored[3];) {
        size_t n = (size_t)(info->stored[3] - done < CHUNK ? info->stored[3] - done : CHUNK);
        DR_TRY(read_exactly(b, r->raw, n * (size_t)info->bytes, info, err));
        if (info->swap)
            swap_bytes(r->raw, n, info->bytes);
        load(info, r->raw, r->values, n);
        DR_TRY(store(dtype, dst + done * step * (ptrdiff_t)dr_dtype_size(dtype), step, r->values, n, err));
        done += (int64_t)n;
    }
    return DR_OK;
}

static dr_status skip_header(struct bytes *b, const dr__volume_info *info, dr_error *err)
{
    uint8_t gone[512];
    for (uint64_t left = info->data_at; left;) {
        size_t n = left < sizeof gone ? (size_t)left : sizeof gone;
        DR_TRY(read_exactly(b, gone, n, info, err));
        left -= n;
    }
    return DR_OK;
}

dr_status dr__volume_decode(const uint8_t *data, size_t size, const dr__volume_info *info, uint8_t *room, dr_view *out,
                            dr_error *err)
{
    struct bytes b;
    ptrdiff_t step[4], apart[4] = { 0 }; /* of the result's axes; of the stored ones, in elements */
    size_t element = dr_dtype_size(out->desc.dtype);
    DR_TRY(open_bytes(&b, data, size, room, err));
    DR_TRY(skip_header(&b, info, err));
    step[3] = 1;
    for (int i = 2; i >= 0; i--)
        step[i] = step[i + 1] * (ptrdiff_t)info->dims[i + 1];
    for (int i = 0; i < 4; i++)
        apart[i] = step[info->axis[i]];
    for (int64_t i = 0; i < info->stored[0]; i++)
        for (int64_t j = 0; j < info->stored[1]; j++)
            for (int64_t k = 0; k < info->stored[2]; k++) {
                uint8_t *dst = out->data + (size_t)(i * apart[0] + j * apart[1] + k * apart[2]) * element;
                DR_TRY(decode_run(&b, info, room, out->desc.dtype, dst, apart[3], err));
            }
    return DR_OK;
}
