/* jpeg_speed.c: the JPEG decoder beside libjpeg-turbo, on one core.
 *
 *     jpeg --data DIR [--n FILES] [--passes N] [--seed S] [--tasks full,crop,sample] [--cpu N]
 *
 * Loads the JPEG files below DIR (N of them, evenly spread over the sorted list), draws one RandomResizedCrop box for
 * each, and does the same work in several ways:
 *
 *   tasks  full    the whole image to RGB
 *          crop    the box to RGB
 *          sample  the box decoded, resized as PIL does, mirrored, normalised into a float32 CHW slot
 *   ways   libjpeg-turbo      itself, by jpeg_crop_scanline and jpeg_skip_scanlines: the baseline (work.c)
 *          drapps libjpeg     dr_jpeg_decode told to use libjpeg-turbo
 *          drapps             dr_jpeg_decode, without an index
 *          drapps first       the same with an empty index, which it fills: the first visit of a file
 *          drapps index       the same with an index that an earlier decode of the whole file has filled
 *          ... streamed       sample only: rows go from the decoder into the resize while in the cache, as in a loader
 *
 * Each pass does every task in every way on chunks of files in turn, the order changing from chunk to chunk, so that
 * whatever the machine does meanwhile hits all ways alike; a chunk is larger than the second-level cache, so that no
 * way finds its file warmed by another.  Ratios are to the baseline of the same pass.  Before that every way's pixels
 * are compared with those of the baseline's whole image.
 *
 * Prints one line of JSON on standard output and a table on standard error; the status is 1 if pixels differ.
 */
#include "work.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <drapps/jpeg.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "codec/image/image.h"
#include "codec/image/jpeg_seek.h"
#include "kernel/cpu.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

enum { CHUNK = 64, RING = 64, MAX_PASSES = 1000, SLACK = 64 };

enum task { FULL, CROP, WHOLE_SAMPLE, N_TASKS };
static const char *const task_names[] = { "full", "crop", "sample" };

enum by { BARE, LIBRARY, STREAM };
enum index { NONE, EMPTY, FILLED };

static const struct way {
    const char *name;
    enum by by;
    bool libjpeg;
    enum index index;
} ways[] = {
    { "libjpeg-turbo", BARE, true, NONE },
    { "drapps libjpeg", LIBRARY, true, NONE },
    { "drapps", LIBRARY, false, NONE },
    { "drapps first", LIBRARY, false, EMPTY },
    { "drapps index", LIBRARY, false, FILLED },
    { "drapps streamed", STREAM, false, NONE },
    { "drapps first streamed", STREAM, false, EMPTY },
    { "drapps index streamed", STREAM, false, FILLED },
};

enum { N_WAYS = sizeof ways / sizeof ways[0] };

/* A file with what is known of it. */
struct entry {
    struct file file;
    bool own; /* drapps decodes it by itself */
    dr_jpeg_index *index;
    dr__seek_points points; /* the same for streaming */
};

static struct entry *entries;
static size_t n_entries, n_left_out;

static struct bare bare;
static struct finish finish;
static dr_jpeg *own, *by_libjpeg; /* the second told to use libjpeg-turbo */
static dr_codec_state *codecs;
static struct warm pixels;
static dr__seek_points fresh; /* cleared before each use */
static float *ring;

static bool wanted[N_TASKS] = { true, true, true };
static size_t differing[N_TASKS][N_WAYS];
static double seconds[N_TASKS][N_WAYS][MAX_PASSES];

static void check(dr_status status, const dr_error *err)
{
    if (status != DR_OK)
        die(err->text, "drapps");
}

/* --- one file, one way --- */

static const uint8_t *decode_by_library(const struct way *way, struct entry *e, const struct box *b, ptrdiff_t *stride)
{
    dr_error err = { 0 };
    dr_jpeg_index *empty = NULL;
    dr_rect rect = { b->x, b->y, b->w, b->h };
    *stride = (ptrdiff_t)b->w * 3;
    uint8_t *out = warm_get(&pixels, (size_t)*stride * (size_t)b->h + SLACK);
    if (way->index == EMPTY)
        check(dr_jpeg_index_new(&empty, &err), &err);
    dr_jpeg_index *index = way->index == FILLED ? e->index : empty;
    check(dr_jpeg_decode(way->libjpeg ? by_libjpeg : own, e->file.data, e->file.size, &rect, index, out, *stride, &err),
          &err);
    dr_jpeg_index_free(&empty);
    return out;
}

static const uint8_t *decode(const struct way *way, struct entry *e, const struct box *b, ptrdiff_t *stride)
{
    return way->by == BARE ? bare_decode(&bare, &e->file, b, stride) : decode_by_library(way, e, b, stride);
}

static void sample_streamed(const struct way *way, struct entry *e, float *out)
{
    dr__seek_clear(&fresh);
    dr__seek_points *points = way->index == FILLED ? &e->points : way->index == EMPTY ? &fresh : NULL;
    finish_stream(&finish, codecs, &e->file, &e->file.box, points, out);
}

static struct box whole(const struct entry *e)
{
    return (struct box){ 0, 0, e->file.width, e->file.height, false };
}

static void do_task(enum task task, const struct way *way, struct entry *e, float *out)
{
    struct box all = whole(e);
    ptrdiff_t stride;
    if (way->by == STREAM) {
        sample_streamed(way, e, out);
        return;
    }
    const uint8_t *part = decode(way, e, task == FULL ? &all : &e->file.box, &stride);
    if (task == WHOLE_SAMPLE)
        finish_sample(&finish, part, stride, &e->file.box, out);
}

static bool applies(enum task task, const struct way *way)
{
    return wanted[task] && (way->by != STREAM || (task == WHOLE_SAMPLE && dr__codec_jpeg.stream));
}

/* --- equality --- */

static bool same_rows(const uint8_t *a, ptrdiff_t a_stride, const uint8_t *b, ptrdiff_t b_stride, const struct box *box)
{
    for (int y = 0; y < box->h; y++)
        if (memcmp(a + y * a_stride, b + y * b_stride, (size_t)box->w * 3))
            return false;
    return true;
}

/* Compares each way's result with a part of the whole image at `image`, rows `stride` apart. */
static bool agrees(enum task task, const struct way *way, struct entry *e, const uint8_t *image, ptrdiff_t stride)
{
    static float want[SAMPLE], got[SAMPLE];
    struct box all = whole(e), *b = task == FULL ? &all : &e->file.box;
    const uint8_t *part = image + (ptrdiff_t)b->y * stride + (ptrdiff_t)b->x * 3;
    if (task == WHOLE_SAMPLE) {
        finish_sample(&finish, part, stride, b, want);
        memset(got, 0xff, sizeof got);
        do_task(task, way, e, got);
        return !memcmp(want, got, sizeof want);
    }
    ptrdiff_t got_stride;
    const uint8_t *result = decode(way, e, b, &got_stride);
    return same_rows(result, got_stride, part, stride, b);
}

static void compare(struct entry *e, struct warm *copy)
{
    struct box all = whole(e);
    ptrdiff_t stride;
    const uint8_t *image = bare_decode(&bare, &e->file, &all, &stride);
    size_t bytes = (size_t)stride * (size_t)all.h;
    memcpy(warm_get(copy, bytes + SLACK), image, bytes);
    for (int t = 0; t < N_TASKS; t++)
        for (int w = 0; w < N_WAYS; w++)
            if (applies(t, &ways[w]))
                differing[t][w] += !agrees(t, &ways[w], e, copy->data, stride);
}

/* --- files --- */

static bool decodes(const struct way *way, struct entry *e)
{
    struct box all = whole(e);
    dr_rect rect = { 0, 0, all.w, all.h };
    dr_error err = { 0 };
    uint8_t *out = warm_get(&pixels, (size_t)all.w * (size_t)all.h * 3 + SLACK);
    return dr_jpeg_decode(way->libjpeg ? by_libjpeg : own, e->file.data, e->file.size, &rect, e->index, out,
                          (ptrdiff_t)all.w * 3, &err) == DR_OK;
}

/* Fills both indexes; false for a file that is left out. */
static bool learn(struct entry *e)
{
    dr_error err = { 0 };
    dr_jpeg_info info;
    if (!bare_look(&bare, &e->file) || dr_jpeg_header(own, e->file.data, e->file.size, &info, &err) != DR_OK)
        return false;
    e->own = !strcmp(info.decoder, "drapps");
    check(dr_jpeg_index_new(&e->index, &err), &err);
    if (!decodes(&ways[1], e) || !decodes(&ways[2], e))
        return false;
    dr__decode_options options;
    dr__decode_defaults(&options);
    options.seek = &e->points;
    dr_rect rect = { 0, 0, info.width, info.height };
    dr_view out = { .data = pixels.data,
                    .stride = (ptrdiff_t)info.width * 3,
                    .desc = { DR_KIND_IMAGE, DR_U8, DR_LAYOUT_HWC, { 0 }, 3, { info.height, info.width, 3 } },
                    .window = rect };
    check(dr__codec_jpeg.decode(codecs, e->file.data, e->file.size, &options, &rect, &out, &err), &err);
    return true;
}

static void forget(struct entry *e)
{
    dr__free(e->file.data);
    dr_jpeg_index_free(&e->index);
    dr__seek_free(&e->points);
}

static void load_all(const char *folder, size_t most, uint64_t seed)
{
    struct names names = find_jpegs(folder);
    size_t n = DR_MIN(most, names.n);
    entries = must(dr__alloc_zero(n + 1, sizeof *entries));
    for (size_t i = 0; i < n; i++) {
        struct entry *e = &entries[n_entries];
        memset(e, 0, sizeof *e);
        load_file(&e->file, names.at[i * names.n / n]);
        if (learn(e)) {
            e->file.box = draw_box(&seed, e->file.width, e->file.height);
            n_entries++;
        } else {
            forget(e);
            n_left_out++;
        }
    }
    names_free(&names);
    if (n_entries == 0)
        die("no JPEG file", folder);
}

/* --- measuring --- */

static double run_chunk(enum task task, const struct way *way, size_t from, size_t to)
{
    double began = now_seconds();
    for (size_t i = from; i < to; i++)
        do_task(task, way, &entries[i], ring + i % RING * SAMPLE);
    return now_seconds() - began;
}

static void run_pass(int pass)
{
    for (int t = 0; t < N_TASKS; t++)
        for (size_t from = 0, chunk = 0; from < n_entries; from += CHUNK, chunk++)
            for (int k = 0; k < N_WAYS; k++) {
                size_t w = ((size_t)k + chunk + (size_t)pass) % N_WAYS;
                if (applies(t, &ways[w]))
                    seconds[t][w][pass] += run_chunk(t, &ways[w], from, DR_MIN(from + CHUNK, n_entries));
            }
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct spread {
    double least, median, most;
};

static struct spread spread_of(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_size);
    return (struct spread){ values[0], (values[(n - 1) / 2] + values[n / 2]) / 2, values[n - 1] };
}

static struct spread ms_of(int task, int way, int passes)
{
    double values[MAX_PASSES];
    for (int p = 0; p < passes; p++)
        values[p] = 1e3 * seconds[task][way][p] / (double)n_entries;
    return spread_of(values, passes);
}

static struct spread ratio_of(int task, int way, int passes)
{
    double values[MAX_PASSES];
    for (int p = 0; p < passes; p++)
        values[p] = seconds[task][0][p] / seconds[task][way][p];
    return spread_of(values, passes);
}

/* --- the report --- */

static void print_way(int task, int way, int passes, bool first)
{
    struct spread ms = ms_of(task, way, passes), ratio = ratio_of(task, way, passes);
    double of_minima = ms_of(task, 0, passes).least / ms.least;
    printf("%s{\"task\": \"%s\", \"way\": \"%s\", \"ms_median\": %.4f, \"ms_min\": %.4f, \"ms_max\": %.4f, "
           "\"ratio_median\": %.3f, \"ratio_min\": %.3f, \"ratio_max\": %.3f, \"ratio_of_minima\": %.3f, "
           "\"differing_images\": %zu}",
           first ? "" : ", ", task_names[task], ways[way].name, ms.median, ms.least, ms.most, ratio.median, ratio.least,
           ratio.most, of_minima, differing[task][way]);
    fprintf(stderr, "%-7s %-22s %8.4f %8.4f %7.2f x [%.2f, %.2f] %9zu\n", task_names[task], ways[way].name, ms.median,
            ms.least, ratio.median, ratio.least, ratio.most, differing[task][way]);
}

/* What a first visit costs above one without an index, in ms a file. */
static void print_build_cost(int passes)
{
    printf("\"index_build_ms\": {");
    for (int t = 0, n = 0; t < N_TASKS; t++)
        if (wanted[t])
            printf("%s\"%s\": %.4f", n++ ? ", " : "", task_names[t],
                   ms_of(t, 3, passes).median - ms_of(t, 2, passes).median);
    printf("}, ");
}

static void print_data(void)
{
    double bytes = 0, index = 0, area = 0, crop = 0;
    size_t n_own = 0;
    for (size_t i = 0; i < n_entries; i++) {
        const struct entry *e = &entries[i];
        bytes += (double)e->file.size;
        index += (double)dr_jpeg_index_bytes(e->index);
        area += (double)e->file.width * e->file.height;
        crop += (double)e->file.box.w * e->file.box.h;
        n_own += e->own;
    }
    double n = (double)n_entries;
    printf("\"files\": %zu, \"left_out\": %zu, \"decoded_by_drapps\": %zu, \"file_bytes\": %.1f, \"megapixels\": %.4f, "
           "\"crop_share\": %.4f, \"index_bytes\": %.1f, \"index_share\": %.6f, ",
           n_entries, n_left_out, n_own, bytes / n, area / n * 1e-6, crop / area, index / n, index / bytes);
    fprintf(stderr,
            "%zu files, %zu left out, %zu decoded by drapps itself; %.0f bytes, %.3f megapixels a file; "
            "index %.0f bytes a file, %.2f %%\n",
            n_entries, n_left_out, n_own, bytes / n, area / n * 1e-6, index / n, 100 * index / bytes);
}

static bool report(int passes)
{
    size_t n_differing = 0;
    char decoder[128];
    printf("{\"bench\": \"jpeg\", \"decoder\": \"%s\", \"kernels\": \"%s\", \"baseline\": \"libjpeg-turbo " TEXT(
               LIBJPEG_TURBO_VERSION) "\", "
                                      "\"passes\": %d, ",
           dr__image_decoder_text(&dr__codec_jpeg, false, decoder, sizeof decoder), dr__cpu_name(dr__cpu_use()),
           passes);
    print_data();
    print_build_cost(passes);
    fprintf(stderr, "%-7s %-22s %8s %8s %9s %20s\n", "task", "way", "median", "min ms", "ratio", "differing images");
    printf("\"results\": [");
    for (int t = 0, n = 0; t < N_TASKS; t++)
        for (int w = 0; w < N_WAYS; w++)
            if (applies(t, &ways[w])) {
                print_way(t, w, passes, n++ == 0);
                n_differing += differing[t][w];
            }
    printf("]}\n");
    return n_differing == 0;
}

/* --- the program --- */

struct settings {
    const char *data;
    long n, passes, seed, cpu;
};

static void pick_tasks(const char *list)
{
    for (int t = 0; t < N_TASKS; t++)
        wanted[t] = strstr(list, task_names[t]) != NULL;
    if (!wanted[FULL] && !wanted[CROP] && !wanted[WHOLE_SAMPLE])
        die("--tasks full, crop, sample or several of them", list);
}

static struct settings read_arguments(int argc, char **argv)
{
    static const char usage[] = "--data DIR [--n FILES] [--passes N] [--seed S] [--tasks full,crop,sample] [--cpu N]";
    struct settings s = { .n = 1000, .passes = 7, .seed = 1, .cpu = -1 };
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        long *number = !strcmp(name, "--n")        ? &s.n
                       : !strcmp(name, "--passes") ? &s.passes
                       : !strcmp(name, "--seed")   ? &s.seed
                       : !strcmp(name, "--cpu")    ? &s.cpu
                                                   : NULL;
        if (number)
            *number = atol(value);
        else if (!strcmp(name, "--data"))
            s.data = value;
        else if (!strcmp(name, "--tasks"))
            pick_tasks(value);
        else
            die(usage, name);
    }
    if (!s.data || argc % 2 == 0 || s.n < 1 || s.passes < 1 || s.passes > MAX_PASSES)
        die(usage, "usage");
    return s;
}

/* One core for the whole run: the one at hand, or that asked for. */
static void pin(long cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)(cpu < 0 ? sched_getcpu() : cpu), &set);
    if (sched_setaffinity(0, sizeof set, &set))
        die("cannot run on that CPU", "--cpu");
}

static void open_decoders(void)
{
    dr_error err = { 0 };
    bare_open(&bare);
    finish_open(&finish);
    check(dr_jpeg_open(&own, &err), &err);
    check(dr_jpeg_open(&by_libjpeg, &err), &err);
    dr_jpeg_use_libjpeg(by_libjpeg, true);
    codecs = must(dr__codec_state_new());
    ring = must(dr__alloc_aligned((size_t)RING * SAMPLE * sizeof *ring));
    memset(ring, 0, (size_t)RING * SAMPLE * sizeof *ring);
}

static void close_all(void)
{
    for (size_t i = 0; i < n_entries; i++)
        forget(&entries[i]);
    dr__free(entries);
    bare_close(&bare);
    finish_close(&finish);
    dr_jpeg_close(&own);
    dr_jpeg_close(&by_libjpeg);
    dr__codec_state_free(&codecs);
    dr__seek_free(&fresh);
    warm_free(&pixels);
    dr__free_aligned(ring);
}

int main(int argc, char **argv)
{
    struct settings s = read_arguments(argc, argv);
    pin(s.cpu);
    open_decoders();
    load_all(s.data, (size_t)s.n, (uint64_t)s.seed);
    struct warm copy = { 0 };
    for (size_t i = 0; i < n_entries; i++)
        compare(&entries[i], &copy);
    warm_free(&copy);
    for (int pass = 0; pass < s.passes; pass++)
        run_pass(pass);
    bool same = report((int)s.passes);
    close_all();
    return same ? 0 : 1;
}
