/* codec_class.c: what kind of data an array is, told by type, first bytes and a sample. */
#include "codec/chain/codec_class.h"

#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "codec/array/integers.h"
#include "data/desc.h"

enum { SAMPLE = 32768, PIECES = 4, FEW = 1024 };

/* The first bytes of formats that are compressed already. */
static const struct magic {
    unsigned at, n;
    const char *bytes;
} magics[] = {
    { 0, 3, "\xff\xd8\xff" },        /* JPEG */
    { 0, 8, "\x89PNG\r\n\x1a\n" },   /* PNG */
    { 0, 4, "GIF8" },                /* GIF */
    { 8, 4, "WEBP" },                /* WebP */
    { 4, 4, "ftyp" },                /* MP4, HEIC, AVIF */
    { 4, 8, "JXL \r\n\x87\n" },      /* JPEG XL, in a container */
    { 0, 2, "\xff\x0a" },            /* JPEG XL */
    { 4, 4, "jP  " },                /* JPEG 2000 */
    { 0, 4, "\x1a\x45\xdf\xa3" },    /* Matroska, WebM */
    { 0, 4, "OggS" },                /* Ogg: Vorbis, Opus */
    { 0, 4, "fLaC" },                /* FLAC */
    { 0, 3, "ID3" },                 /* MP3 */
    { 0, 2, "\xff\xfb" },            /* MP3 */
    { 0, 2, "\x1f\x8b" },            /* gzip */
    { 0, 4, "PK\x03\x04" },          /* zip, npz */
    { 0, 3, "BZh" },                 /* bzip2 */
    { 0, 6, "\xfd\x37zXZ\0" },       /* xz */
    { 0, 6, "7z\xbc\xaf\x27\x1c" },  /* 7-Zip */
    { 0, 4, "\x28\xb5\x2f\xfd" },    /* Zstandard */
    { 0, 4, "\x04\x22\x4d\x18" },    /* LZ4 */
    { 0, 10, "\xff\x06\0\0sNaPpY" }, /* Snappy */
    { 0, 4,
      "\xd7"
      "DRC" }, /* a frame of this library */
};

const char *dr_codec_class_name(dr_codec_class data_class)
{
    switch (data_class) {
#define CLASS_CASE(name, value, text, summary)                                                                         \
    case DR_CODEC_##name:                                                                                              \
        return text;
        DR_CODEC_CLASS_MAP(CLASS_CASE)
#undef CLASS_CASE
    }
    return "?";
}

size_t dr__codec_sample(const void *data, size_t bytes, size_t elem, uint8_t *out, size_t cap)
{
    const uint8_t *from = data;
    if (bytes <= cap) {
        if (bytes)
            memcpy(out, from, bytes);
        return bytes;
    }
    const size_t piece = cap / PIECES / elem * elem, step = (bytes - piece) / (PIECES - 1) / elem * elem;
    for (size_t i = 0; i < PIECES; i++)
        memcpy(out + i * piece, from + i * step, piece);
    return piece * PIECES;
}

static bool has_magic(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < DR_COUNT(magics); i++)
        if (size >= magics[i].at + magics[i].n && !memcmp(data + magics[i].at, magics[i].bytes, magics[i].n))
            return true;
    return false;
}

/* Bits of a byte, if each byte stood alone; what it lacks to 8 by chance in so few bytes is added. */
static double entropy(const uint8_t *data, size_t n)
{
    size_t counts[256] = { 0 };
    double bits = 0;
    for (size_t i = 0; i < n; i++)
        counts[data[i]]++;
    for (int i = 0; i < 256; i++)
        if (counts[i])
            bits -= (double)counts[i] / (double)n * log2((double)counts[i] / (double)n);
    return bits + 255 / (2 * (double)n * 0.6931471805599453);
}

/* Printable characters, white space and the bytes of UTF-8 beyond ASCII; one odd byte in 200 is forgiven. */
static bool is_text(const uint8_t *data, size_t n)
{
    size_t n_odd = 0, n_high = 0;
    for (size_t i = 0; i < n; i++) {
        const uint8_t c = data[i];
        n_odd += (c < 32 && c != '\n' && c != '\r' && c != '\t') || c == 127 || c >= 0xf8 || c == 0xc0 || c == 0xc1;
        n_high += c >= 128;
    }
    return n && n_odd * 200 <= n && n_high * 2 <= n;
}

static dr_codec_class class_of_bytes(const uint8_t *data, size_t size)
{
    uint8_t sample[SAMPLE];
    if (has_magic(data, size))
        return DR_CODEC_MEDIA;
    const size_t n = dr__codec_sample(data, size, 1, sample, sizeof sample);
    if (is_text(sample, n))
        return DR_CODEC_TEXT;
    return n >= FEW && entropy(sample, n) > 7.95 ? DR_CODEC_MEDIA : DR_CODEC_OTHER;
}

/* Tokens are small, and neighbours have nothing to do with each other: they differ about as much as any two. */
static dr_codec_class class_of_integers(const uint8_t *data, size_t size, dr__elem elem)
{
    uint8_t sample[SAMPLE];
    const size_t bytes = dr__codec_sample(data, size, elem.size, sample, sizeof sample), n = bytes / elem.size;
    double step = 0, sum = 0, squares = 0, last = 0;
    for (size_t i = 0; i < n; i++) {
        const int64_t v = (int64_t)dr__integer_at(sample + i * elem.size, elem);
        const double x = (double)v;
        if (v < -100 || v >= 1 << 20) /* -100 marks what a loss leaves out */
            return DR_CODEC_INTS;
        sum += x;
        squares += x * x;
        step += i ? (x - last) * (x - last) : 0;
        last = x;
    }
    if (n < 16)
        return DR_CODEC_INTS;
    const double variance = squares / (double)n - (sum / (double)n) * (sum / (double)n);
    return step / (double)(n - 1) > variance ? DR_CODEC_TOKENS : DR_CODEC_INTS; /* independent: twice the variance */
}

dr_codec_class dr_codec_classify(const dr_desc *desc, const void *data)
{
    size_t bytes;
    if (!dr__desc_bytes_dense(desc, &bytes))
        return DR_CODEC_OTHER;
    switch (desc->dtype) {
    case DR_F16:
    case DR_BF16:
    case DR_F32:
    case DR_F64:
        return DR_CODEC_FLOATS;
    case DR_U16:
        return class_of_integers(data, bytes, (dr__elem){ DR__ELEM_UINT, 2 });
    case DR_I16:
        return class_of_integers(data, bytes, (dr__elem){ DR__ELEM_INT, 2 });
    case DR_I32:
        return class_of_integers(data, bytes, (dr__elem){ DR__ELEM_INT, 4 });
    case DR_I64:
        return class_of_integers(data, bytes, (dr__elem){ DR__ELEM_INT, 8 });
    default:
        break;
    }
    const bool is_plain = desc->n_dims <= 1 || desc->kind == DR_KIND_BYTES || desc->kind == DR_KIND_TEXT;
    return is_plain ? class_of_bytes(data, bytes) : DR_CODEC_PIXELS;
}
