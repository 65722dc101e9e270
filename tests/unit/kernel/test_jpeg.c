/* test_jpeg.c: the JPEG decoder's kernels give the bits of the linked libjpeg.
 *
 * Files are made of chosen coefficients.  libjpeg decodes them twice: to planes (raw data, before upsampling) and to
 * RGB.  The kernels have to get from the coefficients to its planes, and from its planes to its RGB.
 */
#include "unit/cm.h"

#include <jpeglib.h>

#include "base/rng.h"
#include "kernel/kernel.h"

/* Chroma; luma has up to twice as many both ways. */
enum { COLUMNS = 9, ROWS = 4, LUMA_COLUMNS = 2 * COLUMNS, LUMA_ROWS = 2 * ROWS };
enum { WIDTH = LUMA_COLUMNS * 8, HEIGHT = LUMA_ROWS * 8, EDGE = 64, STRIDE = EDGE + WIDTH + EDGE };

struct component {
    int columns, rows; /* in blocks */
    _Alignas(32) int16_t quant[64];
    _Alignas(32) int16_t coef[LUMA_ROWS * LUMA_COLUMNS][64];
    uint8_t plane[HEIGHT][STRIDE]; /* libjpeg's; the first pixel is at EDGE */
};

struct picture {
    int n, h, v; /* components; luma's sampling, chroma's being 1 */
    struct component c[3];
    uint8_t rgb[HEIGHT][WIDTH * 3]; /* libjpeg's */
};

struct file {
    unsigned char *data;
    unsigned long size;
};

static struct picture picture;
static dr_rng rng;

static int between(int least, int most)
{
    return least + (int)dr__rng_below(&rng, (uint64_t)(most - least + 1));
}

static void set_up(j_compress_ptr c, const struct picture *p)
{
    c->image_width = (JDIMENSION)(p->c[0].columns * 8);
    c->image_height = (JDIMENSION)(p->c[0].rows * 8);
    c->input_components = p->n;
    c->in_color_space = p->n == 1 ? JCS_GRAYSCALE : JCS_YCbCr;
    jpeg_set_defaults(c);
    /* arithmetic coding and a restart after each block carry coefficients of any size */
    c->arith_code = TRUE;
    c->restart_interval = 1;
    for (int i = 0; i < p->n; i++) {
        JQUANT_TBL **table = &c->quant_tbl_ptrs[i];
        if (!*table)
            *table = jpeg_alloc_quant_table((j_common_ptr)c);
        for (int k = 0; k < 64; k++)
            (*table)->quantval[k] = (uint16_t)p->c[i].quant[k];
        c->comp_info[i].quant_tbl_no = i;
        c->comp_info[i].h_samp_factor = i == 0 ? p->h : 1;
        c->comp_info[i].v_samp_factor = i == 0 ? p->v : 1;
    }
}

static void hand_over(j_compress_ptr c, jvirt_barray_ptr array, const struct component *from)
{
    for (int y = 0; y < from->rows; y++) {
        JBLOCKARRAY rows = c->mem->access_virt_barray((j_common_ptr)c, array, (JDIMENSION)y, 1, TRUE);
        memcpy(rows[0], from->coef[y * from->columns], (size_t)from->columns * sizeof(JBLOCK));
    }
}

static struct file encode(const struct picture *p)
{
    struct file f = { 0 };
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    jvirt_barray_ptr arrays[3];
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &f.data, &f.size);
    set_up(&c, p);
    for (int i = 0; i < p->n; i++)
        arrays[i] = c.mem->request_virt_barray((j_common_ptr)&c, JPOOL_IMAGE, TRUE, (JDIMENSION)p->c[i].columns,
                                               (JDIMENSION)p->c[i].rows, (JDIMENSION)p->v);
    jpeg_write_coefficients(&c, arrays);
    for (int i = 0; i < p->n; i++)
        hand_over(&c, arrays[i], &p->c[i]);
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    return f;
}

static void start(j_decompress_ptr d, struct jpeg_error_mgr *errors, const struct file *f)
{
    d->err = jpeg_std_error(errors);
    jpeg_create_decompress(d);
    jpeg_mem_src(d, f->data, f->size);
    assert_int_equal(jpeg_read_header(d, TRUE), JPEG_HEADER_OK);
    d->dct_method = JDCT_ISLOW;
}

static void decode_planes(struct picture *p, const struct file *f)
{
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr errors;
    JSAMPROW rows[3][2 * DCTSIZE];
    start(&d, &errors, f);
    d.raw_data_out = TRUE;
    jpeg_start_decompress(&d);
    for (int top = 0; top < p->c[p->n - 1].rows * 8; top += DCTSIZE) {
        for (int i = 0; i < p->n; i++)
            for (int y = 0; y < (i == 0 ? p->v : 1) * DCTSIZE; y++)
                rows[i][y] = p->c[i].plane[top * (i == 0 ? p->v : 1) + y] + EDGE;
        jpeg_read_raw_data(&d, (JSAMPARRAY[]){ rows[0], rows[1], rows[2] }, (JDIMENSION)(p->v * DCTSIZE));
    }
    jpeg_finish_decompress(&d);
    assert_int_equal(errors.num_warnings, 0);
    jpeg_destroy_decompress(&d);
}

static void decode_rgb(struct picture *p, const struct file *f)
{
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr errors;
    start(&d, &errors, f);
    d.out_color_space = JCS_RGB;
    jpeg_start_decompress(&d);
    while (d.output_scanline < d.output_height)
        jpeg_read_scanlines(&d, (JSAMPROW[]){ p->rgb[d.output_scanline] }, 1);
    jpeg_finish_decompress(&d);
    jpeg_destroy_decompress(&d);
}

/* What libjpeg makes of the coefficients. */
static void decode(struct picture *p)
{
    struct file f = encode(p);
    decode_planes(p, &f);
    if (p->n == 3)
        decode_rgb(p, &f);
    free(f.data);
}

static void shape(struct picture *p, int n, int h, int v)
{
    p->n = n;
    p->h = h;
    p->v = v;
    for (int i = 0; i < n; i++) {
        p->c[i].columns = COLUMNS * (i == 0 ? h : 1);
        p->c[i].rows = ROWS * (i == 0 ? v : 1);
    }
}

/* About one in `one_in` of the first `area` coefficients of each block, within +-reach; steps up to max_step. */
static void fill(struct component *c, int area, int one_in, int reach, int max_step)
{
    memset(c->coef, 0, sizeof(c->coef));
    for (int i = 0; i < 64; i++)
        c->quant[i] = (int16_t)(uint16_t)between(1, max_step);
    for (int b = 0; b < c->columns * c->rows; b++)
        for (int i = 0; i < area; i++)
            if (between(1, one_in) == 1)
                c->coef[b][i] = (int16_t)between(-reach, reach);
}

static void expect_idct(const dr__kernels *k, const struct component *c, const char *what)
{
    uint8_t got[8][LUMA_COLUMNS * 8];
    for (int y = 0; y < c->rows; y++) {
        k->idct_8x8(got[0], sizeof(got[0]), c->coef[y * c->columns], c->quant, c->columns);
        for (int row = 0; row < 8; row++)
            if (memcmp(got[row], c->plane[y * 8 + row] + EDGE, (size_t)c->columns * 8) != 0)
                fail_msg("%s: pixels of row %d differ from libjpeg's", what, y * 8 + row);
    }
}

static void check_idct(int area, int one_in, int reach, int max_step)
{
    char what[100];
    snprintf(what, sizeof(what), "area %d, one in %d, up to %d, steps up to %d", area, one_in, reach, max_step);
    shape(&picture, 1, 1, 1);
    fill(&picture.c[0], area, one_in, reach, max_step);
    decode(&picture);
    expect_idct(dr__kernels_c(), &picture.c[0], what);
    expect_idct(dr__kernels_best(), &picture.c[0], what);
}

/* Pixels within and far beyond 0 to 255, but coefficients times steps of at most 300: no sum reaches 16 bits. */
static void test_idct(void **state)
{
    (void)state;
    static const int areas[] = { 1, 8, 20, 64 };
    for (int i = 0; i < 200; i++)
        check_idct(areas[i % 4], 1 + i / 4 % 5, 1 << (i / 8 % 9), 300 >> (i / 8 % 9));
}

/* Coefficients that no encoder makes overflow 16 bits; then only libjpeg-turbo's x86 code has the same bits. */
static void test_idct_overflow(void **state)
{
    (void)state;
#if defined(__x86_64__) && defined(LIBJPEG_TURBO_VERSION_NUMBER)
    static const int areas[] = { 1, 8, 64, 64 }, steps[] = { 1, 255, 65535 };
    for (int i = 0; i < 300; i++)
        check_idct(areas[i % 4], 1 + i / 4 % 4 * 5, (1 << (9 + i / 3 % 7)) - 1, steps[i % 3]);
#else
    skip();
#endif
}

/* Copies of the first and last sample stand beside each row, as the kernels want it at the border of an image. */
static void widen(struct component *c)
{
    for (int y = 0; y < c->rows * 8; y++) {
        c->plane[y][EDGE - 1] = c->plane[y][EDGE];
        c->plane[y][EDGE + c->columns * 8] = c->plane[y][EDGE + c->columns * 8 - 1];
    }
}

/* Row y of the image from a chroma plane: sampling as luma's. */
static void upsample(const dr__kernels *k, uint8_t *dst, const struct component *c, int y, int h, int v)
{
    const size_t n = (size_t)c->columns * 8;
    const int near = y / v, proposal = near + (y % 2 ? 1 : -1), last = c->rows * 8 - 1;
    const int far = proposal < 0 ? 0 : proposal > last ? last : proposal;
    const uint8_t *const here = c->plane[near] + EDGE, *const there = c->plane[far] + EDGE;
    if (h == 2 && v == 2)
        k->upsample_h2v2(dst, here, there, n);
    else if (h == 2)
        k->upsample_h2(dst, here, n);
    else if (v == 2)
        k->upsample_v2(dst, here, there, n, y % 2 ? 2 : 1);
    else
        memcpy(dst, here, n);
}

static void expect_rgb(const dr__kernels *k, const struct picture *p)
{
    uint8_t chroma[2][WIDTH + EDGE], got[WIDTH * 3];
    const size_t width = (size_t)p->c[0].columns * 8;
    for (int y = 0; y < p->c[0].rows * 8; y++) {
        upsample(k, chroma[0], &p->c[1], y, p->h, p->v);
        upsample(k, chroma[1], &p->c[2], y, p->h, p->v);
        k->ycc_to_rgb(got, p->c[0].plane[y] + EDGE, chroma[0], chroma[1], width);
        if (memcmp(got, p->rgb[y], width * 3) != 0)
            fail_msg("sampling %dx%d: pixels of row %d differ from libjpeg's", p->h, p->v, y);
    }
}

static void test_upsampling_and_colours(void **state)
{
    (void)state;
    for (int i = 0; i < 80; i++) {
        shape(&picture, 3, 1 + i % 2, 1 + i / 2 % 2);
        for (int c = 0; c < 3; c++)
            fill(&picture.c[c], i % 5 ? 64 : 1, 1 + i % 3, 20 + i * 2, 10);
        decode(&picture);
        widen(&picture.c[1]);
        widen(&picture.c[2]);
        expect_rgb(dr__kernels_c(), &picture);
        expect_rgb(dr__kernels_best(), &picture);
    }
}

int main(void)
{
    const dr__rng_name name = { .seed = 8 };
    rng = dr__rng_open(&name, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idct),
        cmocka_unit_test(test_idct_overflow),
        cmocka_unit_test(test_upsampling_and_colours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
