/* limit.c: how fast the work itself is: a bare loop without a loader around it.
 *
 * Reads paths of JPEG files from standard input, loads them all, and then does with N threads what the workload
 * imagenet-train-224 asks of a sample, exactly: a random crop is decoded as if everything had been, resized as PIL does
 * with integers, mirrored, and normalised to float32 planes in a ring of warm memory, in huge pages as the batches of a
 * loader.  No queue, no batch, no file access, no randomness that must be the same tomorrow.
 *
 *     find DIR -name '*.jpg' | limit --threads 2 --samples 4096        prints one JSON line
 *     limit --pixels OUT < LIST      lines PATH <tab> x y w h flip: writes the float32 planes of these crops
 *     --decoder drapps               the codec of the loader, without seek points: what a loader adds to its own work
 *     --decoder libjpeg              libjpeg-turbo alone: what the work costs without anything of drapps in the decoder
 *     --consumer                     a further thread reads every batch of 64, as a loader's consumer does (feed.h)
 *     --files                        a thread reads the file of each sample, from the page cache, as a loader does
 *
 * Files that are not grey or YCbCr/RGB (CMYK) are left out and counted.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "data/bufpool.h"
#include "feed.h"
#include "work.h"

enum { MAX_THREADS = 256 };

/* What a thread keeps from sample to sample. */
struct worker {
    struct bare bare;
    dr_codec_state *codecs;
    struct finish finish;
    struct warm bytes; /* of the file at hand, with --files */
    uint64_t rng;
};

static bool by_libjpeg, has_consumer, reads_files;
static struct file *files;
static char **paths; /* of the files */
static size_t n_files, n_left_out;
static float *ring;
static struct feed feed;
static atomic_size_t next_sample;
static size_t end_sample;

static void worker_init(struct worker *w, uint64_t seed)
{
    w->rng = seed;
    w->bytes = (struct warm){ 0 };
    bare_open(&w->bare);
    w->codecs = must(dr__codec_state_new());
    finish_open(&w->finish);
}

static void worker_free(struct worker *w)
{
    bare_close(&w->bare);
    dr__codec_state_free(&w->codecs);
    finish_close(&w->finish);
    warm_free(&w->bytes);
}

static void make_sample(struct worker *w, const struct file *f, const struct box *b, float *out)
{
    if (!by_libjpeg) {
        finish_stream(&w->finish, w->codecs, f, b, NULL, out);
        return;
    }
    ptrdiff_t stride;
    const uint8_t *pixels = bare_decode(&w->bare, f, b, &stride);
    finish_sample(&w->finish, pixels, stride, b, out);
}

/* --- the loop --- */

/* The calls of a loader: open, look, read all, close. */
static void read_again(struct worker *w, const char *path, struct file *f)
{
    struct stat facts;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &facts) || (size_t)facts.st_size != f->size)
        die("cannot be read, or has changed", path);
    f->data = warm_get(&w->bytes, f->size);
    for (size_t done = 0; done < f->size;) {
        ssize_t n = pread(fd, f->data + done, f->size - done, (off_t)done);
        if (n <= 0)
            die("cannot be read", path);
        done += (size_t)n;
    }
    close(fd);
}

static void *work(void *argument)
{
    struct worker *w = argument;
    for (;;) {
        size_t i = atomic_fetch_add(&next_sample, 1);
        if (i >= end_sample)
            return NULL;
        struct file f = files[i % n_files];
        if (has_consumer)
            feed_wait_for_room(&feed, i);
        if (reads_files)
            read_again(w, paths[i % n_files], &f);
        struct box b = draw_box(&w->rng, f.width, f.height);
        make_sample(w, &f, &b, ring + (i % RING) * SAMPLE);
        if (has_consumer)
            feed_sample_made(&feed, i);
    }
}

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static pthread_t start(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, function, argument))
        die("cannot start", "thread");
    return thread;
}

static void run(struct worker *workers, int n_threads, size_t samples)
{
    pthread_t threads[MAX_THREADS + 1];
    int n = 0;
    atomic_store(&next_sample, 0);
    end_sample = samples;
    feed_begin(&feed, samples);
    if (has_consumer)
        threads[n++] = start(feed_read, &feed);
    for (int i = 0; i < n_threads; i++)
        threads[n++] = start(work, &workers[i]);
    while (n > 0)
        pthread_join(threads[--n], NULL);
}

static void print_line(int n_threads, size_t samples, double seconds, double cpu)
{
    char decoder[128];
    snprintf(decoder, sizeof decoder, "libjpeg-turbo %d", LIBJPEG_TURBO_VERSION_NUMBER);
    if (!by_libjpeg)
        dr__image_decoder_text(&dr__codec_jpeg, false, decoder, sizeof decoder);
    printf("{\"peer\": \"limit\", \"decoder\": \"%s\", \"settings\": {\"threads\": %d, \"consumer\": %s, "
           "\"files\": %s}, \"samples\": %zu, \"samples_read\": %zu, \"read_cpu_ms_per_sample\": %.4f, "
           "\"seconds\": %.3f, \"samples_per_s\": %.2f, \"cpu_ms_per_sample\": %.4f, \"files\": %zu, "
           "\"left_out\": %zu, \"version\": \"%s\"}\n",
           by_libjpeg ? "libjpeg" : "drapps", n_threads, has_consumer ? "true" : "false",
           reads_files ? "true" : "false", samples, feed.samples_read, (double)feed.read_ns / 1e6 / (double)samples,
           seconds, (double)samples / seconds, cpu * 1e3 / (double)samples, n_files, n_left_out, decoder);
}

static void measure(int n_threads, size_t samples)
{
    struct worker *workers = must(dr__alloc_zero((size_t)n_threads, sizeof *workers));
    dr__bufpool *pool = must(dr__bufpool_new(0));
    dr__buf *memory = must(dr__buf_new(pool, (size_t)RING * SAMPLE * sizeof *ring));
    ring = (float *)(void *)memory->data;
    memset(ring, 0, (size_t)RING * SAMPLE * sizeof *ring);
    feed_open(&feed, ring);
    for (int i = 0; i < n_threads; i++)
        worker_init(&workers[i], 1000u + (uint64_t)i);
    run(workers, n_threads, DR_MAX(n_files, (size_t)RING));
    double began = now_seconds(), cpu = cpu_seconds();
    run(workers, n_threads, samples);
    double seconds = now_seconds() - began;
    print_line(n_threads, samples, seconds, cpu_seconds() - cpu);
    for (int i = 0; i < n_threads; i++)
        worker_free(&workers[i]);
    feed_close(&feed);
    dr__buf_free(&memory);
    dr__bufpool_close(&pool);
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
    printf("{\"pixels\": \"%s\", \"decoder\": \"%s\", \"samples\": %zu, \"left_out\": %zu}\n", path,
           by_libjpeg ? "libjpeg" : "drapps", n_files, n_left_out);
    worker_free(&w);
}

/* --- files --- */

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
        if (n_files == room) {
            room = room ? 2 * room : 256;
            files = must(dr__realloc(files, room, sizeof *files));
            paths = must(dr__realloc(paths, room, sizeof *paths));
        }
        struct file *f = &files[n_files];
        memset(f, 0, sizeof *f);
        load_file(f, line);
        if (boxes)
            parse_box(f, tab ? tab + 1 : "");
        if (bare_look(&w.bare, f))
            paths[n_files++] = must(dr__strdup(line));
        else
            dr__free(f->data), n_left_out++;
    }
    free(line);
    worker_free(&w);
}

static bool is_libjpeg(const char *decoder)
{
    if (strcmp(decoder, "libjpeg") && strcmp(decoder, "drapps"))
        die("--decoder drapps or libjpeg", decoder);
    return !strcmp(decoder, "libjpeg");
}

static void free_list(void)
{
    for (size_t i = 0; i < n_files; i++) {
        dr__free(files[i].data);
        dr__free(paths[i]);
    }
    dr__free(files);
    dr__free(paths);
}

struct options {
    long threads, samples;
    const char *pixels;
};

/* An option with a value; ends the program where there is none of that name. */
static void set_option(struct options *o, const char *name, const char *value)
{
    if (value && !strcmp(name, "--threads"))
        o->threads = atol(value);
    else if (value && !strcmp(name, "--samples"))
        o->samples = atol(value);
    else if (value && !strcmp(name, "--pixels"))
        o->pixels = value;
    else if (value && !strcmp(name, "--decoder"))
        by_libjpeg = is_libjpeg(value);
    else
        die("usage: limit [--threads N] [--samples N] [--decoder drapps|libjpeg] [--consumer] [--files] [--pixels OUT] "
            "< LIST",
            name);
}

static struct options parse(int argc, char **argv)
{
    struct options o = { .threads = 2, .samples = 4096 };
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--consumer"))
            has_consumer = true;
        else if (!strcmp(argv[i], "--files"))
            reads_files = true;
        else
            set_option(&o, argv[i], i + 1 < argc ? argv[i + 1] : NULL), i++;
    }
    if (o.threads < 1 || o.threads > MAX_THREADS || o.samples < 1)
        die("threads 1 to 256, samples 1 or more", "arguments");
    return o;
}

int main(int argc, char **argv)
{
    const struct options o = parse(argc, argv);
    load_list(stdin, o.pixels != NULL);
    if (n_files == 0)
        die("no JPEG file", "standard input");
    if (o.pixels)
        write_pixels(o.pixels);
    else
        measure((int)o.threads, (size_t)o.samples);
    free_list();
    return 0;
}
