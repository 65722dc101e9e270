/* make_image.c: test images: smooth colours with noise and edges, so that every filter of a decoder has work. */
#include "unit/codec/image/make_image.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "codec/codec_config.h"

#ifdef DR_HAVE_PNG
#include <png.h>
#endif
#ifdef DR_HAVE_WEBP
#include <webp/encode.h>
#endif

/* One row: a ramp, a block pattern, and noise. */
static void fill_row(uint8_t *row, int y, int width, int channels, uint64_t seed)
{
    uint64_t s = seed * 1000003u + (uint64_t)y;
    for (int x = 0; x < width; x++) {
        for (int c = 0; c < channels; c++) {
            int edge = ((x / 5 + y / 7 + c) & 3) == 0 ? 90 : 0;
            int noise = (int)(next_random(&s) & 63);
            row[x * channels + c] = (uint8_t)((x * (c + 2) + y * (3 - (c & 1)) + edge + noise) & 255);
        }
    }
}

/* Noise, a slope with few AC coefficients, one colour, or only 0 and 255. */
static void fill_plain(uint8_t *row, int y, int width, int channels, enum image_content content, uint64_t seed)
{
    uint64_t s = seed * 1000003u + (uint64_t)y;
    for (int i = 0; i < width * channels; i++) {
        int x = i / channels;
        switch (content) {
        case CONTENT_NOISE:
            row[i] = (uint8_t)next_random(&s);
            break;
        case CONTENT_SMOOTH:
            row[i] = (uint8_t)((x + y) / 2 + 40 * (i % channels));
            break;
        case CONTENT_EXTREME:
            row[i] = next_random(&s) & 1 ? 255 : 0;
            break;
        default:
            row[i] = (uint8_t)(seed >> 8 * (i % channels));
        }
    }
}

size_t make_exif(uint8_t block[26], int orientation, bool big_endian)
{
    static const uint8_t little[26] = { 'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0 };
    static const uint8_t big[26] = { 'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1 };
    memcpy(block, big_endian ? big : little, 26);
    block[big_endian ? 19 : 18] = (uint8_t)orientation;
    return 26;
}

static void write_exif(j_compress_ptr cinfo, const struct jpeg_spec *spec)
{
    uint8_t marker[32] = "Exif\0\0";
    if (spec->orientation == 0)
        return;
    size_t n = make_exif(marker + 6, spec->orientation, spec->big_endian);
    jpeg_write_marker(cinfo, JPEG_APP0 + 1, marker, (unsigned)(6 + n));
}

static void set_color(j_compress_ptr cinfo, enum jpeg_color color)
{
    static const struct {
        int n;
        J_COLOR_SPACE in, stored;
    } spaces[] = {
        [JPEG_GRAY] = { 1, JCS_GRAYSCALE, JCS_GRAYSCALE }, [JPEG_YCC] = { 3, JCS_RGB, JCS_YCbCr },
        [JPEG_PLAIN_RGB] = { 3, JCS_RGB, JCS_RGB },        [JPEG_CMYK] = { 4, JCS_CMYK, JCS_CMYK },
        [JPEG_YCCK] = { 4, JCS_CMYK, JCS_YCCK },
    };
    cinfo->input_components = spaces[color].n;
    cinfo->in_color_space = spaces[color].in;
    jpeg_set_defaults(cinfo);
    jpeg_set_colorspace(cinfo, spaces[color].stored);
}

/* One scan per component, two scans, or the DC coefficients alone. */
static int scan_script(jpeg_scan_info *scans, const struct jpeg_spec *spec, int n_components)
{
    if (spec->partly_separate && n_components == 3) {
        scans[0] = (jpeg_scan_info){ .comps_in_scan = 1, .Se = 63 };
        scans[1] = (jpeg_scan_info){ .comps_in_scan = 2, .component_index = { 1, 2 }, .Se = 63 };
        return 2;
    }
    if (spec->dc_only) {
        scans[0] = (jpeg_scan_info){ .comps_in_scan = n_components };
        for (int c = 0; c < n_components; c++)
            scans[0].component_index[c] = c;
        return 1;
    }
    for (int c = 0; c < n_components; c++)
        scans[c] = (jpeg_scan_info){ .comps_in_scan = 1, .component_index = { c }, .Se = 63 };
    return n_components;
}

/* The table's symbols in random order, with other code lengths than the standard's. */
static void reshape_huffman(JHUFF_TBL *t, enum jpeg_huffman huffman, uint64_t *seed)
{
    int n = 0;
    for (int i = 1; i <= 16; i++)
        n += t->bits[i];
    for (int i = n - 1; i > 0; i--) {
        int k = random_in(seed, 0, i);
        UINT8 swap = t->huffval[i];
        t->huffval[i] = t->huffval[k];
        t->huffval[k] = swap;
    }
    memset(t->bits, 0, sizeof(t->bits));
    int steps = huffman == HUFFMAN_STEEP ? (n < 16 ? n - 1 : 8) : 0; /* 8 leave room for 255 codes of 16 bits */
    for (int i = 1; i <= steps; i++)
        t->bits[i] = 1;
    t->bits[huffman == HUFFMAN_FLAT ? 8 : 16] = (UINT8)(n - steps);
}

static void set_huffman(j_compress_ptr cinfo, const struct jpeg_spec *spec)
{
    uint64_t seed = spec->seed;
    cinfo->optimize_coding = spec->huffman == HUFFMAN_OPTIMAL || (spec->huffman == HUFFMAN_BY_SEED && (spec->seed & 1));
    if (spec->arithmetic)
        cinfo->optimize_coding = FALSE;
    if (spec->huffman < HUFFMAN_LONG)
        return;
    for (int i = 0; i < 2; i++) {
        reshape_huffman(cinfo->dc_huff_tbl_ptrs[i], spec->huffman, &seed);
        reshape_huffman(cinfo->ac_huff_tbl_ptrs[i], spec->huffman, &seed);
    }
}

static void set_names(j_compress_ptr cinfo, const struct jpeg_spec *spec)
{
    uint64_t s = spec->seed + 1;
    for (int c = 0; c < cinfo->num_components && spec->ids != IDS_USUAL; c++)
        cinfo->comp_info[c].component_id = spec->ids == IDS_RGB ? "RGBA"[c] : 60 * c + random_in(&s, 0, 59);
    if (spec->no_jfif)
        cinfo->write_JFIF_header = FALSE;
    if (spec->adobe)
        cinfo->write_Adobe_marker = TRUE;
    else if (spec->ids == IDS_RGB)
        cinfo->write_Adobe_marker = FALSE; /* the ids alone say it */
}

static void set_coding(j_compress_ptr cinfo, const struct jpeg_spec *spec, jpeg_scan_info *scans)
{
    jpeg_set_quality(cinfo, spec->quality ? spec->quality : 90, !spec->wide_quant);
    for (int c = 0; c < cinfo->num_components; c++) {
        cinfo->comp_info[c].h_samp_factor = spec->h[c] ? spec->h[c] : 1;
        cinfo->comp_info[c].v_samp_factor = spec->v[c] ? spec->v[c] : 1;
    }
    cinfo->restart_interval = (unsigned)spec->restart;
    cinfo->arith_code = spec->arithmetic;
    set_huffman(cinfo, spec);
    set_names(cinfo, spec);
    if (spec->progressive)
        jpeg_simple_progression(cinfo);
    if (spec->interleaved_off || spec->dc_only || spec->partly_separate) {
        cinfo->num_scans = scan_script(scans, spec, cinfo->num_components);
        cinfo->scan_info = scans;
    }
}

/* 16-bit quantisation tables are worth a warning to libjpeg. */
static void say_nothing(j_common_ptr cinfo, int level)
{
    (void)cinfo;
    (void)level;
}

struct blob make_jpeg(const struct jpeg_spec *spec)
{
    struct jpeg_compress_struct cinfo;
    struct jpeg_error_mgr errors;
    jpeg_scan_info scans[4];
    unsigned char *bytes = NULL;
    unsigned long n = 0;
    cinfo.err = jpeg_std_error(&errors);
    errors.emit_message = say_nothing;
    jpeg_create_compress(&cinfo);
    jpeg_mem_dest(&cinfo, &bytes, &n);
    cinfo.image_width = (JDIMENSION)spec->width;
    cinfo.image_height = (JDIMENSION)spec->height;
    set_color(&cinfo, spec->color);
    set_coding(&cinfo, spec, scans);
    if (spec->no_tables)
        jpeg_suppress_tables(&cinfo, TRUE);
    jpeg_start_compress(&cinfo, !spec->no_tables);
    write_exif(&cinfo, spec);
    uint8_t *row = malloc((size_t)spec->width * 4);
    assert(row);
    while (cinfo.next_scanline < cinfo.image_height) {
        if (spec->content == CONTENT_MIXED)
            fill_row(row, (int)cinfo.next_scanline, spec->width, cinfo.input_components, spec->seed);
        else
            fill_plain(row, (int)cinfo.next_scanline, spec->width, cinfo.input_components, spec->content, spec->seed);
        jpeg_write_scanlines(&cinfo, &row, 1);
    }
    jpeg_finish_compress(&cinfo);
    jpeg_destroy_compress(&cinfo);
    struct blob b = blob_copy(bytes, n);
    free(row);
    free(bytes);
    return b;
}

#ifdef DR_HAVE_PNG
static void png_append(png_structp png, png_bytep data, size_t n)
{
    struct blob *b = png_get_io_ptr(png);
    b->data = realloc(b->data, b->size + n);
    assert(b->data);
    memcpy(b->data + b->size, data, n);
    b->size += n;
}

static void png_flush_nothing(png_structp png)
{
    (void)png;
}

static void set_palette(png_structp png, png_infop info, const struct png_spec *spec)
{
    png_color colors[256];
    png_byte alpha[256];
    int n = 1 << spec->depth;
    uint64_t s = spec->seed;
    for (int i = 0; i < n; i++) {
        uint64_t r = next_random(&s);
        colors[i] = (png_color){ (png_byte)r, (png_byte)(r >> 8), (png_byte)(r >> 16) };
        alpha[i] = (png_byte)(r >> 24);
    }
    png_set_PLTE(png, info, colors, n);
    if (spec->transparent)
        png_set_tRNS(png, info, alpha, n, NULL);
}

static void set_chunks(png_structp png, png_infop info, const struct png_spec *spec)
{
    uint8_t exif[26];
    png_set_IHDR(png, info, (png_uint_32)spec->width, (png_uint_32)spec->height, spec->depth, spec->color_type,
                 spec->interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    if (spec->color_type == PNG_COLOR_TYPE_PALETTE)
        set_palette(png, info, spec);
    else if (spec->transparent) {
        png_color_16 key = { .red = 7, .green = 9, .blue = 3, .gray = 1 };
        png_set_tRNS(png, info, NULL, 0, &key);
    }
    if (spec->orientation)
        png_set_eXIf_1(png, info, (png_uint_32)make_exif(exif, spec->orientation, true), exif);
}

struct blob make_png(const struct png_spec *spec)
{
    struct blob grown = { 0 };
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    assert(png && info);
    png_set_write_fn(png, &grown, png_append, png_flush_nothing);
    png_set_compression_level(png, 1);
    set_chunks(png, info, spec);
    png_write_info(png, info);
    size_t row = png_get_rowbytes(png, info);
    uint8_t *pixels = malloc(row * (size_t)spec->height);
    png_bytep *rows = malloc((size_t)spec->height * sizeof(*rows));
    assert(pixels && rows);
    for (int y = 0; y < spec->height; y++) {
        rows[y] = pixels + (size_t)y * row;
        fill_row(rows[y], y, (int)row, 1, spec->seed);
    }
    png_write_image(png, rows);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    struct blob b = blob_copy(grown.data, grown.size);
    free(rows);
    free(pixels);
    free(grown.data);
    return b;
}
#endif

#ifdef DR_HAVE_WEBP
struct blob make_webp(const struct webp_spec *spec)
{
    int channels = spec->alpha ? 4 : 3, stride = spec->width * channels;
    uint8_t *pixels = malloc((size_t)stride * (size_t)spec->height), *bytes = NULL;
    assert(pixels);
    for (int y = 0; y < spec->height; y++)
        fill_row(pixels + (size_t)y * (size_t)stride, y, spec->width, channels, spec->seed);
    float q = spec->quality ? (float)spec->quality : 80;
    size_t n;
    if (spec->lossless)
        n = spec->alpha ? WebPEncodeLosslessRGBA(pixels, spec->width, spec->height, stride, &bytes)
                        : WebPEncodeLosslessRGB(pixels, spec->width, spec->height, stride, &bytes);
    else
        n = spec->alpha ? WebPEncodeRGBA(pixels, spec->width, spec->height, stride, q, &bytes)
                        : WebPEncodeRGB(pixels, spec->width, spec->height, stride, q, &bytes);
    assert(n > 0);
    struct blob b = blob_copy(bytes, n);
    WebPFree(bytes);
    free(pixels);
    return b;
}

static void put_little(uint8_t *p, uint32_t v, int n)
{
    for (int i = 0; i < n; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

/* RIFF, VP8X, ANIM, and one ANMF that holds the still image's chunks (ALPH before VP8, or VP8L). */
struct blob make_animation(const struct webp_spec *spec, int x, int y, int canvas_width, int canvas_height)
{
    struct blob still = make_webp(spec);
    size_t skip = memcmp(still.data + 12, "VP8X", 4) == 0 ? 30 : 12, inner = still.size - skip;
    struct blob b = { calloc(1, 12 + 18 + 14 + 24 + inner), 12 + 18 + 14 + 24 + inner };
    uint8_t *p = b.data;
    assert(p);
    memcpy(p, "RIFF", 4);
    put_little(p + 4, (uint32_t)(b.size - 8), 4);
    memcpy(p + 8, "WEBPVP8X", 8);
    put_little(p + 16, 10, 4);
    p[20] = (uint8_t)(0x02 | (spec->alpha ? 0x10 : 0));
    put_little(p + 24, (uint32_t)(canvas_width - 1), 3);
    put_little(p + 27, (uint32_t)(canvas_height - 1), 3);
    memcpy(p + 30, "ANIM", 4);
    put_little(p + 34, 6, 4);
    memcpy(p + 44, "ANMF", 4);
    put_little(p + 48, (uint32_t)(16 + inner), 4);
    put_little(p + 52, (uint32_t)(x / 2), 3);
    put_little(p + 55, (uint32_t)(y / 2), 3);
    put_little(p + 58, (uint32_t)(spec->width - 1), 3);
    put_little(p + 61, (uint32_t)(spec->height - 1), 3);
    put_little(p + 64, 100, 3);
    memcpy(p + 68, still.data + skip, inner);
    blob_free(&still);
    return b;
}
#endif
