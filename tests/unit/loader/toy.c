/* toy.c: made-up samples, and tapes of batches. */
#include "unit/loader/toy.h"

#include <dirent.h>
#include <jpeglib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "data/desc.h"
#include "format/dataset_internal.h"

struct toy_dataset {
    dr_dataset head;
    toy o;
};

static dr_error err;
static atomic_uint_fast64_t n_reads;

uint64_t toy_reads(void)
{
    return atomic_load(&n_reads);
}

static void key(const dr_dataset *set, uint64_t id, char *text, size_t size)
{
    (void)set;
    snprintf(text, size, "sample-%llu", (unsigned long long)id);
}

static void fill(uint8_t *at, size_t n, uint64_t id)
{
    uint64_t x = id * 0x9E3779B97F4A7C15u + 1;
    for (size_t i = 0; i < n; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        at[i] = (uint8_t)(x >> 56);
    }
}

/* The next field, with memory of its own. */
static dr_status add(dr__record *r, const dr_desc *desc, uint64_t id, dr_error *e)
{
    size_t bytes = 0;
    dr__desc_bytes_dense(desc, &bytes);
    uint8_t *at = dr__record_take(r, bytes);
    if (!at)
        return dr__fail(e, DR_ERR_NOMEM, "toy: out of memory");
    fill(at, bytes, id);
    const dr_view view = dr__view_dense(desc, at);
    return dr__record_view(r, &view, e);
}

static dr_desc list_desc(dr_dtype dtype, int64_t n, int64_t inner)
{
    return (dr_desc){ .dtype = dtype, .n_dims = inner ? 2 : 1, .dims = { n, inner } };
}

static bool is_reader(void)
{
    char name[16] = "";
    pthread_getname_np(pthread_self(), name, sizeof name);
    return !strcmp(name, "drapps-reader");
}

static dr_status read_sample(const dr_dataset *set, uint64_t id, dr__record *r, dr_error *e)
{
    const toy *o = &((const struct toy_dataset *)set)->o;
    atomic_fetch_add(&n_reads, 1);
    if (o->on_read)
        o->on_read(id);
    if (o->slow_every && id % o->slow_every == 0) {
        struct timespec t = { .tv_nsec = (long)o->slow_us * 1000 };
        nanosleep(&t, NULL);
    }
    if ((o->bad_every && id % o->bad_every == o->bad_at) || (o->fails_readers && is_reader()))
        return dr__fail(e, DR_ERR_FORMAT, "toy: made to fail");
    const int64_t times = id >= o->large_from && id < o->large_to ? o->large : 1;
    dr_desc image = dr__desc_image(DR_U8, o->h * times, o->w * times, 3),
            tokens = list_desc(DR_I32, (int64_t)(id % 5), 0);
    dr_desc boxes = list_desc(DR_F32, (int64_t)(id % 3), 4);
    dr_desc odd = list_desc(DR_U8, o->odd_every && id % o->odd_every == 0 ? 7 : 4, 0);
    char text[32];
    key(set, id, text, sizeof text);
    DR_TRY(dr__record_reset(r, (size_t)(o->h * o->w * 3 * times * times) + 4096, e));
    DR_TRY(add(r, &image, id, e));
    DR_TRY(dr__record_i64(r, (int64_t)id, e));
    DR_TRY(add(r, &tokens, id, e));
    DR_TRY(add(r, &boxes, id, e));
    DR_TRY(dr__record_text(r, text, strlen(text), e));
    return add(r, &odd, id, e);
}

static void close_toy(dr_dataset *set)
{
    (void)set;
}

static dr_status stamp(const dr_dataset *set, uint64_t id, dr__stamp *out, dr_error *e)
{
    (void)set, (void)e;
    out->version = out->modified = id;
    return DR_OK;
}

static const dr_dataset_def toy_def = { .read = read_sample, .key = key, .close = close_toy };
static const dr_dataset_def stamped_def = { .read = read_sample, .stamp = stamp, .key = key, .close = close_toy };

dr_dataset *toy_set(const toy *options)
{
    dr_dataset *set = NULL;
    const dr_dataset_def *def = options->stamped ? &stamped_def : &toy_def;
    assert_ok(dr__dataset_new(sizeof(struct toy_dataset), def, "toy", "toy", &set, &err));
    toy *o = &((struct toy_dataset *)set)->o;
    *o = *options;
    o->h = o->h ? o->h : 8;
    o->w = o->w ? o->w : 6;
    dr_desc image = dr__desc_image(DR_U8, o->large ? DR_UNKNOWN : o->h, o->large ? DR_UNKNOWN : o->w, 3),
            label = dr__desc_scalar(DR_I64);
    dr_desc tokens = list_desc(DR_I32, DR_UNKNOWN, 0), boxes = list_desc(DR_F32, DR_UNKNOWN, 4);
    dr_desc text = dr__desc_text(DR_UNKNOWN), odd = list_desc(DR_U8, 4, 0);
    assert_ok(dr__dataset_add_field(set, "image", &image, &err));
    assert_ok(dr__dataset_add_field(set, "label", &label, &err));
    assert_ok(dr__dataset_add_field(set, "tokens", &tokens, &err));
    assert_ok(dr__dataset_add_field(set, "boxes", &boxes, &err));
    assert_ok(dr__dataset_add_field(set, "text", &text, &err));
    assert_ok(dr__dataset_add_field(set, "odd", &odd, &err));
    set->n_samples = set->n_places = o->n;
    set->fingerprint = XXH3_64bits(o, sizeof *o);
    return set;
}

dr_graph *graph_of(const char *nodes)
{
    dr_graph *g = NULL;
    char text[8192];
    snprintf(text, sizeof text, "{\"version\":1,\"nodes\":[%s]}", nodes ? nodes : "");
    assert_ok(dr_graph_from_json(text, &g, &err));
    return g;
}

/* --- JPEG files --- */

static void write_jpeg(const char *path, int w, int h, int gray, unsigned seed)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr e;
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    c.err = jpeg_std_error(&e);
    jpeg_create_compress(&c);
    jpeg_stdio_dest(&c, f);
    c.image_width = (JDIMENSION)w;
    c.image_height = (JDIMENSION)h;
    c.input_components = gray ? 1 : 3;
    c.in_color_space = gray ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, 85, TRUE);
    if (seed % 3 == 1)
        jpeg_simple_progression(&c);
    jpeg_start_compress(&c, TRUE);
    uint8_t *row = malloc((size_t)w * 3);
    for (int y = 0; y < h; y++) {
        for (int x = 0; x < w * c.input_components; x++)
            row[x] = (uint8_t)(128 + (x * 3 + y * 2) % 90 - (int)((unsigned)(x * y) * seed % 31) * 2);
        jpeg_write_scanlines(&c, &row, 1);
    }
    free(row);
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    fclose(f);
}

dr_dataset *jpeg_set(char folder[64], int n)
{
    return jpeg_set_sized(folder, n, 0, 0);
}

void truncate_jpeg(const char *folder, int i)
{
    char path[128];
    struct stat st;
    snprintf(path, sizeof path, "%s/%03d.jpg", folder, i);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size * 2 / 3), 0);
}

dr_dataset *jpeg_set_sized(char folder[64], int n, int w, int h)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, 64, "%s/drapps-test-XXXXXX", tmp && strlen(tmp) < 40 ? tmp : "/tmp");
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < n; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%03d.jpg", folder, i);
        write_jpeg(path, w ? w : 40 + i * 13 % 90, h ? h : 36 + i * 29 % 70, i % 5 == 4, (unsigned)i + 1);
    }
    dr_read_options o;
    dr_read_defaults(&o);
    o.format = "flat";
    o.use_index = false;
    dr_dataset *set = NULL;
    assert_ok(dr_dataset_open(folder, &o, &set, &err));
    return set;
}

void remove_folder(const char *folder)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.')
            unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    rmdir(folder);
}

/* --- tapes --- */

static uint64_t hash_view(const dr_view *v, uint64_t h)
{
    size_t bytes = 0;
    dr__desc_bytes_dense(&v->desc, &bytes);
    h = XXH3_64bits_withSeed(&v->desc.kind, sizeof v->desc.kind, h);
    h = XXH3_64bits_withSeed(&v->desc.dtype, sizeof v->desc.dtype, h);
    h = XXH3_64bits_withSeed(&v->desc.layout, sizeof v->desc.layout, h);
    h = XXH3_64bits_withSeed(v->desc.dims, (size_t)v->desc.n_dims * sizeof v->desc.dims[0], h);
    return bytes ? XXH3_64bits_withSeed(v->data, bytes, h) : h;
}

uint64_t batch_hash(const dr_batch *b)
{
    uint64_t h = dr_batch_number(b), n = dr_batch_samples(b);
    for (int i = 0; i < dr_batch_fields(b); i++) {
        dr_batch_field f;
        assert_ok(dr_batch_field_at(b, i, &f, &err));
        h = XXH3_64bits_withSeed(f.name, strlen(f.name), h);
        if (f.collate == DR_COLLATE_LIST) {
            for (uint64_t k = 0; k < n; k++)
                h = hash_view(&f.items[k], h);
            continue;
        }
        h = hash_view(&f.array, h);
        if (f.offsets)
            h = XXH3_64bits_withSeed(f.offsets, (n + 1) * sizeof *f.offsets, h);
        if (f.sizes)
            h = XXH3_64bits_withSeed(f.sizes, n * (size_t)(f.array.desc.n_dims - 1) * sizeof *f.sizes, h);
    }
    return h;
}

static void *copy_of(const void *data, size_t bytes)
{
    void *copy = malloc(bytes + 1);
    memcpy(copy, data, bytes);
    return copy;
}

void tape_add(tape *t, dr_batch *b)
{
    uint64_t n = dr_batch_samples(b);
    t->batches = realloc(t->batches, (t->n + 1) * sizeof *t->batches);
    t->batches[t->n++] = (taped_batch){
        .number = dr_batch_number(b),
        .epoch = dr_batch_epoch(b),
        .n = n,
        .padded = dr_batch_padded(b),
        .hash = batch_hash(b),
        .ids = copy_of(dr_batch_ids(b), n * sizeof(uint64_t)),
        .positions = copy_of(dr_batch_positions(b), n * sizeof(uint64_t)),
        .bad = copy_of(dr_batch_bad(b), strlen(dr_batch_bad(b)) + 1),
    };
}

void tape_free(tape *t)
{
    for (size_t i = 0; i < t->n; i++) {
        free(t->batches[i].ids);
        free(t->batches[i].positions);
        free(t->batches[i].bad);
    }
    free(t->batches);
    *t = (tape){ 0 };
}

void tape_read(tape *t, dr_loader *loader, int64_t most)
{
    for (int64_t i = 0; most < 0 || i < most; i++) {
        dr_batch *b = NULL;
        dr_status status = dr_loader_next(loader, -1, &b, &err);
        if (status == DR_END)
            return;
        assert_ok(status);
        tape_add(t, b);
        dr_batch_unref(&b);
    }
}

void assert_same_tape(const tape *a, const tape *b, const char *what)
{
    if (a->n != b->n)
        fail_msg("%s: %zu batches and %zu", what, a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        const taped_batch *x = &a->batches[i], *y = &b->batches[i];
        if (x->number != y->number || x->epoch != y->epoch || x->n != y->n || x->padded != y->padded)
            fail_msg("%s: batch %zu differs: number %llu and %llu, samples %llu and %llu", what, i,
                     (unsigned long long)x->number, (unsigned long long)y->number, (unsigned long long)x->n,
                     (unsigned long long)y->n);
        assert_memory_equal(x->ids, y->ids, x->n * sizeof *x->ids);
        assert_memory_equal(x->positions, y->positions, x->n * sizeof *x->positions);
        if (x->hash != y->hash)
            fail_msg("%s: batch %zu has other bytes", what, i);
    }
}

void assert_each_once(const tape *t, uint64_t n)
{
    uint8_t *seen = calloc(n + 1, 1);
    for (size_t i = 0; i < t->n; i++)
        for (uint64_t k = 0; k < t->batches[i].n; k++) {
            uint64_t p = t->batches[i].positions[k];
            if (p >= n)
                continue;
            if (seen[p]++)
                fail_msg("position %llu was delivered twice", (unsigned long long)p);
        }
    for (uint64_t p = 0; p < n; p++)
        if (!seen[p])
            fail_msg("position %llu was not delivered", (unsigned long long)p);
    free(seen);
}

void finish_epoch(tape *t, dr_loader **loader, uint64_t n)
{
    tape_read(t, *loader, -1);
    assert_each_once(t, n);
    tape_free(t);
    dr_loader_close(loader);
}

json_t *loader_stats(dr_loader *loader)
{
    char *text = NULL;
    assert_ok(dr_loader_stats(loader, &text, &err));
    json_t *stats = json_loads(text, 0, NULL);
    assert_non_null(stats);
    dr_text_free(&text);
    return stats;
}

json_int_t stat_of(dr_loader *loader, const char *key)
{
    json_t *stats = loader_stats(loader), *value = json_object_get(stats, key);
    assert_true(json_is_integer(value));
    json_int_t n = json_integer_value(value);
    json_decref(stats);
    return n;
}

dr_loader *open_loader(dr_dataset *set, dr_graph *graph, const dr_loader_options *options)
{
    dr_loader *l = NULL;
    assert_ok(dr_loader_open(set, graph, options, &l, &err));
    return l;
}

dr_loader_options options_of(uint64_t batch_size, int workers)
{
    dr_loader_options o;
    dr_loader_defaults(&o);
    o.batch_size = batch_size;
    o.workers = workers;
    o.policy = "fixed";
    return o;
}

tape epoch_of(dr_dataset *set, dr_graph *graph, const dr_loader_options *options)
{
    tape t = { 0 };
    dr_loader *l = open_loader(set, graph, options);
    tape_read(&t, l, -1);
    dr_loader_close(&l);
    return t;
}
