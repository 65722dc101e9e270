/* work.c: the bare work on one sample. */
#include "work.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>

#include "base/alloc.h"
#include "base/compiler.h"

enum { ROWS_AT_ONCE = 8 };

void die(const char *what, const char *name)
{
    fprintf(stderr, "%s: %s\n", name, what);
    exit(1);
}

void *must(void *p)
{
    if (!p)
        die("out of memory", "allocation");
    return p;
}

double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

uint8_t *warm_get(struct warm *block, size_t size)
{
    if (size > block->cap) {
        dr__free_aligned(block->data);
        block->data = must(dr__alloc_aligned(size));
        block->cap = size;
    }
    return block->data;
}

void warm_free(struct warm *block)
{
    dr__free_aligned(block->data);
    *block = (struct warm){ 0 };
}

/* --- random crops --- */

static uint64_t random_bits(uint64_t *state) /* splitmix64 */
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static double random_unit(uint64_t *state)
{
    return (double)(random_bits(state) >> 11) * 0x1p-53;
}

struct box draw_box(uint64_t *rng, int width, int height)
{
    const double low = log(3.0 / 4.0), high = log(4.0 / 3.0);
    struct box b = { .flip = random_bits(rng) & 1 };
    for (int i = 0; i < 10; i++) {
        double area = (double)width * height * (0.08 + 0.92 * random_unit(rng));
        double ratio = exp(low + (high - low) * random_unit(rng));
        b.w = (int)lrint(sqrt(area * ratio)), b.h = (int)lrint(sqrt(area / ratio));
        if (b.w > 0 && b.w <= width && b.h > 0 && b.h <= height) {
            b.x = (int)(random_bits(rng) % (uint64_t)(width - b.w + 1));
            b.y = (int)(random_bits(rng) % (uint64_t)(height - b.h + 1));
            return b;
        }
    }
    b.w = DR_MIN(width, (int)lrint(height * 4.0 / 3.0)), b.h = DR_MIN(height, (int)lrint(width * 4.0 / 3.0));
    b.x = (width - b.w) / 2, b.y = (height - b.h) / 2;
    return b;
}

/* --- decode --- */

static void on_error(j_common_ptr jpeg)
{
    longjmp(((struct bare *)jpeg->client_data)->back, 1);
}

static void on_message(j_common_ptr jpeg, int level)
{
    (void)jpeg, (void)level;
}

void bare_open(struct bare *bare)
{
    memset(bare, 0, sizeof *bare);
    bare->jpeg.err = jpeg_std_error(&bare->errors);
    bare->errors.error_exit = on_error;
    bare->errors.emit_message = on_message;
    bare->jpeg.client_data = bare;
    jpeg_create_decompress(&bare->jpeg);
}

void bare_close(struct bare *bare)
{
    jpeg_destroy_decompress(&bare->jpeg);
    warm_free(&bare->pixels);
}

bool bare_look(struct bare *bare, struct file *file)
{
    if (setjmp(bare->back)) {
        jpeg_abort_decompress(&bare->jpeg);
        return false;
    }
    jpeg_mem_src(&bare->jpeg, file->data, (unsigned long)file->size);
    jpeg_read_header(&bare->jpeg, TRUE);
    file->width = (int)bare->jpeg.image_width, file->height = (int)bare->jpeg.image_height;
    J_COLOR_SPACE space = bare->jpeg.jpeg_color_space;
    jpeg_abort_decompress(&bare->jpeg);
    return space == JCS_GRAYSCALE || space == JCS_YCbCr || space == JCS_RGB;
}

/* Limits decoding to the box's columns.  Smooth upsampling takes the edge of what it decodes for the image's edge:
 * one chroma sample more on each side keeps that out of the box.  Returns the column that decoding begins with. */
static int crop_columns(struct jpeg_decompress_struct *jpeg, const struct box *b)
{
    if (jpeg->num_components == 1 && jpeg->max_h_samp_factor != 1)
        return 0; /* libjpeg-turbo counts blocks of a lone component by its sampling factor: not exact */
    int margin = jpeg->max_h_samp_factor > 1 ? 2 : 0;
    int first = DR_MAX(b->x - margin, 0), end = DR_MIN(b->x + b->w + margin, (int)jpeg->output_width);
    if (end - first < 16) /* too few samples change the way of upsampling */
        return 0;
    JDIMENSION x = (JDIMENSION)first, width = (JDIMENSION)(end - first);
    jpeg_crop_scanline(jpeg, &x, &width);
    return (int)x;
}

const uint8_t *bare_decode(struct bare *bare, const struct file *file, const struct box *box, ptrdiff_t *stride)
{
    struct jpeg_decompress_struct *jpeg = &bare->jpeg;
    if (setjmp(bare->back))
        die("cannot decode", "JPEG");
    jpeg_mem_src(jpeg, file->data, (unsigned long)file->size);
    jpeg_read_header(jpeg, TRUE);
    jpeg->out_color_space = JCS_RGB;
    jpeg_start_decompress(jpeg);
    int first = crop_columns(jpeg, box);
    size_t row = (size_t)jpeg->output_width * 3;
    uint8_t *pixels = warm_get(&bare->pixels, row * (size_t)box->h);
    if (box->y > 0)
        jpeg_skip_scanlines(jpeg, (JDIMENSION)box->y);
    for (int y = 0; y < box->h;) {
        JSAMPROW rows[ROWS_AT_ONCE];
        int n = DR_MIN(box->h - y, ROWS_AT_ONCE);
        for (int i = 0; i < n; i++)
            rows[i] = pixels + row * (size_t)(y + i);
        y += (int)jpeg_read_scanlines(jpeg, rows, (JDIMENSION)n);
    }
    jpeg_abort_decompress(jpeg);
    *stride = (ptrdiff_t)row;
    return pixels + (size_t)(box->x - first) * 3;
}

/* --- resize, mirror, normalise --- */

/* ToTensor and Normalize in the order and precision of torchvision. */
void finish_open(struct finish *finish)
{
    const float mean[3] = { 0.485f, 0.456f, 0.406f }, std[3] = { 0.229f, 0.224f, 0.225f };
    memset(finish, 0, sizeof *finish);
    finish->kernels = dr__kernels_best();
    for (int k = 0; k < 3; k++)
        for (int v = 0; v < 256; v++)
            finish->table.value[k * 256 + v] = ((float)v / 255.0f - mean[k]) / std[k];
    dr__lut_f32_prepare(&finish->table);
}

void finish_close(struct finish *finish)
{
    warm_free(&finish->scratch);
}

void finish_row(void *user, const uint8_t *row, int y)
{
    struct finish *f = user;
    f->kernels->lut_planar_f32(f->out + (size_t)y * SIDE, PLANE, row, SIDE, 3, f->mirror, &f->table);
}

void finish_plan(struct finish *finish, const struct box *box, float *out)
{
    dr__resize_spec spec = {
        .in_w = box->w, .in_h = box->h, .out_w = SIDE, .out_h = SIDE, .channels = 3, .filter = DR__FILTER_BILINEAR
    };
    size_t bytes;
    finish->out = out;
    finish->mirror = box->flip;
    if (!dr__resize_scratch(&spec, &bytes))
        die("size out of range", "resize");
    dr__resize_plan(&finish->plan, &spec, warm_get(&finish->scratch, bytes));
}

void finish_sample(struct finish *finish, const uint8_t *pixels, ptrdiff_t stride, const struct box *box, float *out)
{
    finish_plan(finish, box, out);
    dr__resize_run(&finish->plan, finish->kernels, pixels, stride, finish_row, finish);
}

/* Bands of rows that go straight into the resize. */
struct flow {
    dr__bands bands;
    dr__resize_flow resize;
    struct finish *finish;
};

static void flow_begin(dr__bands *bands)
{
    struct flow *flow = (struct flow *)bands;
    dr__resize_begin(&flow->resize, &flow->finish->plan, flow->finish->kernels, finish_row, flow->finish);
}

static void flow_take(dr__bands *bands, const uint8_t *rows, ptrdiff_t stride, int n)
{
    dr__resize_take(&((struct flow *)bands)->resize, rows, stride, n, DR__BAND_SLACK);
}

void finish_stream(struct finish *finish, dr_codec_state *codecs, const struct file *file, const struct box *box,
                   dr__seek_points *points, float *out)
{
    struct flow flow = { .bands = { flow_begin, flow_take }, .finish = finish };
    dr_rect rect = { box->x, box->y, box->w, box->h };
    dr__decode_options options;
    dr_error err = { 0 };
    dr__decode_defaults(&options);
    options.seek = points;
    finish_plan(finish, box, out);
    if (dr__codec_jpeg.stream(codecs, file->data, file->size, &options, &rect, &flow.bands, &err) != DR_OK)
        die(err.text, "drapps");
}

/* --- files --- */

void load_file(struct file *file, const char *path)
{
    FILE *in = fopen(path, "rb");
    if (!in || fseek(in, 0, SEEK_END))
        die("cannot be read", path);
    long size = ftell(in);
    rewind(in);
    file->data = must(dr__alloc(size > 0 ? (size_t)size : 1));
    file->size = fread(file->data, 1, (size_t)size, in);
    if (size <= 0 || file->size != (size_t)size)
        die("cannot be read", path);
    fclose(in);
}

static bool is_jpeg(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && (!strcasecmp(dot, ".jpg") || !strcasecmp(dot, ".jpeg"));
}

static void add_name(struct names *names, const char *path)
{
    if (names->n == names->cap) {
        names->cap = 2 * names->cap + 64;
        names->at = must(dr__realloc(names->at, names->cap, sizeof *names->at));
    }
    names->at[names->n++] = must(dr__strdup(path));
}

static void find_in(const char *folder, struct names *names)
{
    struct dirent **found;
    int n = scandir(folder, &found, NULL, alphasort);
    if (n < 0)
        die("cannot be read", folder);
    for (int i = 0; i < n; i++) {
        char path[4096];
        struct stat facts;
        snprintf(path, sizeof path, "%s/%s", folder, found[i]->d_name);
        if (found[i]->d_name[0] != '.' && !stat(path, &facts)) {
            if (S_ISDIR(facts.st_mode))
                find_in(path, names);
            else if (is_jpeg(path))
                add_name(names, path);
        }
        free(found[i]);
    }
    free(found);
}

struct names find_jpegs(const char *folder)
{
    struct names names = { 0 };
    find_in(folder, &names);
    return names;
}

void names_free(struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        dr__free(names->at[i]);
    dr__free(names->at);
    *names = (struct names){ 0 };
}
