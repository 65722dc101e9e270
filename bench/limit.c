/* limit.c: how fast the work itself is: a bare loop without a loader around it.
 *
 * Reads paths of JPEG files from standard input, loads them all, and then does with N threads what the workload
 * imagenet-train-224 asks of a sample, exactly: libjpeg-turbo decodes the rows and columns of a random crop, with the
 * margin that makes the result equal to decoding everything; PIL's integer resize; mirror; normalised float32 planes
 * into a ring of warm memory.  No queue, no batch, no file access, no randomness that must be the same tomorrow.
 *
 *     find DIR -name '*.jpg' | limit --threads 2 --samples 4096        prints one JSON line
 *     limit --pixels OUT < LIST      lines PATH <tab> x y w h flip: writes the float32 planes of these crops
 *
 * Files that are not grey or YCbCr/RGB (CMYK) are left out and counted.
 */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <jpeglib.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "kernel/resize.h"

enum { SIDE = 224, PLANE = SIDE * SIDE, SAMPLE = 3 * PLANE, RING = 256, MAX_THREADS = 256, ROWS_AT_ONCE = 8 };

struct box {
    int x, y, w, h;
    bool flip;
};

struct file {
    uint8_t *data;
    size_t size;
    int width, height;
    struct box box; /* --pixels only */
};

struct failure {
    struct jpeg_error_mgr base;
    jmp_buf back;
};

/* What a thread keeps from sample to sample. */
struct worker {
    struct jpeg_decompress_struct jpeg;
    struct failure failure;
    uint8_t *pixels, *scratch;
    size_t pixels_cap, scratch_cap;
    uint64_t rng;
    float *out;  /* where the current sample goes */
    bool mirror; /* and how */
};

static struct file *files;
static size_t n_files, n_left_out;
static const dr__kernels *kernels;
static float *ring;
static float table[3 * 256];
static atomic_size_t next_sample;
static size_t end_sample;

static void die(const char *what, const char *name)
{
    fprintf(stderr, "limit: %s: %s\n", name, what);
    exit(1);
}

static void *must(void *p)
{
    if (!p)
        die("out of memory", "allocation");
    return p;
}

/* --- random crops, distributed as torchvision's RandomResizedCrop --- */

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

static struct box draw_box(uint64_t *rng, int width, int height)
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
    longjmp(((struct failure *)jpeg->err)->back, 1);
}

static void on_message(j_common_ptr jpeg, int level)
{
    (void)jpeg, (void)level;
}

static void worker_init(struct worker *w, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    w->rng = seed;
    w->jpeg.err = jpeg_std_error(&w->failure.base);
    w->failure.base.error_exit = on_error;
    w->failure.base.emit_message = on_message;
    jpeg_create_decompress(&w->jpeg);
}

static void worker_free(struct worker *w)
{
    jpeg_destroy_decompress(&w->jpeg);
    dr__free_aligned(w->pixels);
    dr__free_aligned(w->scratch);
}

static uint8_t *warm(uint8_t **block, size_t *cap, size_t size)
{
    if (size > *cap) {
        dr__free_aligned(*block);
        *block = must(dr__alloc_aligned(size));
        *cap = size;
    }
    return *block;
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

/* Decodes the box; returns its first pixel, rows *stride apart.  Errors leave by longjmp. */
static const uint8_t *decode(struct worker *w, const struct file *f, const struct box *b, ptrdiff_t *stride)
{
    struct jpeg_decompress_struct *jpeg = &w->jpeg;
    jpeg_mem_src(jpeg, f->data, (unsigned long)f->size);
    jpeg_read_header(jpeg, TRUE);
    jpeg->out_color_space = JCS_RGB;
    jpeg_start_decompress(jpeg);
    int first = crop_columns(jpeg, b);
    size_t row = (size_t)jpeg->output_width * 3;
    uint8_t *pixels = warm(&w->pixels, &w->pixels_cap, row * (size_t)b->h);
    if (b->y > 0)
        jpeg_skip_scanlines(jpeg, (JDIMENSION)b->y);
    for (int y = 0; y < b->h;) {
        JSAMPROW rows[ROWS_AT_ONCE];
        int n = DR_MIN(b->h - y, ROWS_AT_ONCE);
        for (int i = 0; i < n; i++)
            rows[i] = pixels + row * (size_t)(y + i);
        y += (int)jpeg_read_scanlines(jpeg, rows, (JDIMENSION)n);
    }
    jpeg_abort_decompress(jpeg);
    *stride = (ptrdiff_t)row;
    return pixels + (size_t)(b->x - first) * 3;
}

/* --- resize, mirror, normalise --- */

static void put_row(void *user, const uint8_t *row, int y)
{
    struct worker *w = user;
    kernels->lut_planar_f32(w->out + (size_t)y * SIDE, PLANE, row, SIDE, 3, w->mirror, table);
}

static void resize(struct worker *w, const uint8_t *src, ptrdiff_t stride, const struct box *b)
{
    dr__resize_spec spec = {
        .in_w = b->w, .in_h = b->h, .out_w = SIDE, .out_h = SIDE, .channels = 3, .filter = DR__FILTER_BILINEAR
    };
    dr__resize plan;
    size_t bytes;
    if (!dr__resize_scratch(&spec, &bytes))
        die("size out of range", "resize");
    dr__resize_plan(&plan, &spec, warm(&w->scratch, &w->scratch_cap, bytes));
    dr__resize_run(&plan, kernels, src, stride, put_row, w);
}

/* ToTensor and Normalize in the order and precision of torchvision. */
static void fill_table(void)
{
    const float mean[3] = { 0.485f, 0.456f, 0.406f }, std[3] = { 0.229f, 0.224f, 0.225f };
    for (int k = 0; k < 3; k++)
        for (int v = 0; v < 256; v++)
            table[k * 256 + v] = ((float)v / 255.0f - mean[k]) / std[k];
}

static void make_sample(struct worker *w, const struct file *f, const struct box *b, float *out)
{
    if (setjmp(w->failure.back))
        die("cannot decode", "JPEG");
    w->out = out, w->mirror = b->flip;
    ptrdiff_t stride;
    const uint8_t *src = decode(w, f, b, &stride);
    resize(w, src, stride, b);
}

/* --- the loop --- */

static void *work(void *argument)
{
    struct worker *w = argument;
    for (;;) {
        size_t i = atomic_fetch_add(&next_sample, 1);
        if (i >= end_sample)
            return NULL;
        const struct file *f = &files[i % n_files];
        struct box b = draw_box(&w->rng, f->width, f->height);
        make_sample(w, f, &b, ring + (i % RING) * SAMPLE);
    }
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void run(struct worker *workers, int n_threads, size_t samples)
{
    pthread_t threads[MAX_THREADS];
    atomic_store(&next_sample, 0);
    end_sample = samples;
    for (int i = 0; i < n_threads; i++)
        if (pthread_create(&threads[i], NULL, work, &workers[i]))
            die("cannot start", "thread");
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
}

static void measure(int n_threads, size_t samples)
{
    struct worker *workers = must(dr__alloc_zero((size_t)n_threads, sizeof *workers));
    ring = must(dr__alloc_aligned((size_t)RING * SAMPLE * sizeof *ring));
    memset(ring, 0, (size_t)RING * SAMPLE * sizeof *ring);
    for (int i = 0; i < n_threads; i++)
        worker_init(&workers[i], 1000u + (uint64_t)i);
    run(workers, n_threads, DR_MAX(n_files, (size_t)RING));
    double began = now(), cpu = cpu_seconds();
    run(workers, n_threads, samples);
    double seconds = now() - began;
    cpu = cpu_seconds() - cpu;
    printf("{\"peer\": \"limit\", \"settings\": {\"threads\": %d}, \"samples\": %zu, \"seconds\": %.3f, "
           "\"samples_per_s\": %.2f, \"cpu_ms_per_sample\": %.4f, \"files\": %zu, \"left_out\": %zu, "
           "\"version\": \"libjpeg-turbo %d\"}\n",
           n_threads, samples, seconds, (double)samples / seconds, cpu * 1e3 / (double)samples, n_files, n_left_out,
           LIBJPEG_TURBO_VERSION_NUMBER);
    for (int i = 0; i < n_threads; i++)
        worker_free(&workers[i]);
    dr__free_aligned(ring);
    dr__free(workers);
}

static void write_pixels(const char *path)
{
    static float sample[SAMPLE];
    struct worker w;
    FILE *out = fopen(path, "wb");
    if (!out)
        die("cannot be written", path);
    worker_init(&w, 1);
    for (size_t i = 0; i < n_files; i++) {
        make_sample(&w, &files[i], &files[i].box, sample);
        if (fwrite(sample, sizeof sample, 1, out) != 1)
            die("cannot be written", path);
    }
    if (fclose(out))
        die("cannot be written", path);
    printf("{\"pixels\": \"%s\", \"samples\": %zu, \"left_out\": %zu}\n", path, n_files, n_left_out);
    worker_free(&w);
}

/* --- files --- */

static void load(struct file *f, const char *path)
{
    FILE *in = fopen(path, "rb");
    if (!in || fseek(in, 0, SEEK_END))
        die("cannot be read", path);
    long size = ftell(in);
    rewind(in);
    f->data = must(dr__alloc(size > 0 ? (size_t)size : 1));
    f->size = fread(f->data, 1, (size_t)size, in);
    if (size <= 0 || f->size != (size_t)size)
        die("cannot be read", path);
    fclose(in);
}

/* Width, height, and whether libjpeg can give RGB. */
static bool look(struct worker *w, struct file *f)
{
    if (setjmp(w->failure.back))
        return false;
    jpeg_mem_src(&w->jpeg, f->data, (unsigned long)f->size);
    jpeg_read_header(&w->jpeg, TRUE);
    f->width = (int)w->jpeg.image_width, f->height = (int)w->jpeg.image_height;
    J_COLOR_SPACE space = w->jpeg.jpeg_color_space;
    jpeg_abort_decompress(&w->jpeg);
    return space == JCS_GRAYSCALE || space == JCS_YCbCr || space == JCS_RGB;
}

static void parse_box(struct file *f, const char *text)
{
    int flip;
    if (sscanf(text, "%d %d %d %d %d", &f->box.x, &f->box.y, &f->box.w, &f->box.h, &flip) != 5)
        die("expected: PATH <tab> x y w h flip", text);
    f->box.flip = flip;
}

static void load_list(FILE *list, bool boxes)
{
    struct worker w;
    char *line = NULL;
    size_t cap = 0, room = 0;
    worker_init(&w, 1);
    for (ssize_t n; (n = getline(&line, &cap, list)) > 0;) {
        line[strcspn(line, "\n")] = 0;
        char *tab = strchr(line, '\t');
        if (tab)
            *tab = 0;
        if (n_files == room)
            files = must(dr__realloc(files, room = room ? 2 * room : 256, sizeof *files));
        struct file *f = &files[n_files];
        memset(f, 0, sizeof *f);
        load(f, line);
        if (boxes)
            parse_box(f, tab ? tab + 1 : "");
        if (look(&w, f))
            n_files++;
        else
            dr__free(f->data), n_left_out++;
    }
    free(line);
    worker_free(&w);
}

int main(int argc, char **argv)
{
    long threads = 2, samples = 4096;
    const char *pixels = NULL;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 < argc && !strcmp(argv[i], "--threads"))
            threads = atol(argv[i + 1]);
        else if (i + 1 < argc && !strcmp(argv[i], "--samples"))
            samples = atol(argv[i + 1]);
        else if (i + 1 < argc && !strcmp(argv[i], "--pixels"))
            pixels = argv[i + 1];
        else
            die("usage: limit [--threads N] [--samples N] [--pixels OUT] < LIST", argv[i]);
    }
    if (threads < 1 || threads > MAX_THREADS || samples < 1)
        die("threads 1 to 256, samples 1 or more", "arguments");
    load_list(stdin, pixels != NULL);
    if (n_files == 0)
        die("no JPEG file", "standard input");
    kernels = dr__kernels_best();
    fill_table();
    if (pixels)
        write_pixels(pixels);
    else
        measure((int)threads, (size_t)samples);
    for (size_t i = 0; i < n_files; i++)
        dr__free(files[i].data);
    dr__free(files);
    return 0;
}
