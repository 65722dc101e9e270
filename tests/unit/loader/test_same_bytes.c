/* The first promise: what a batch holds depends on data, graph, seed, epoch and position alone.  Random graphs run by
 * the reference (unfused, C kernels, one thread) and in every other way; all must agree to the bit.
 *
 * DRAPPS_TEST_SEED=n draws other graphs; DRAPPS_TEST_ROUNDS=n draws more. */
#include "unit/loader/toy.h"

#include "kernel/cpu.h"
#include "loader/loader_internal.h"
#include "op/op.h"
#include "unit/loader/random_graph.h"

/* How slow samples are treated; ALL_SLOW: every sample is one. */
enum { LANES, NO_LANES, ALL_SLOW };

static dr_error err;
static uint64_t x;                    /* of the dice */
static unsigned used[256];            /* rows of the op table that stood in a graph */
static uint64_t n_asked, n_delivered; /* samples */

static uint64_t setting(const char *name, uint64_t standard)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : standard;
}

/* The set gives the arrays back when it is gone. */
static void free_arrays(void *user)
{
    void **memory = user;
    for (int i = 0; i < 3; i++)
        free(memory[i]);
    free(memory);
}

static dr_dataset *array_set(int64_t n, int64_t h, int64_t w, int64_t c)
{
    size_t bytes = (size_t)(n * h * w * c);
    uint8_t *images = malloc(bytes), *masks = malloc((size_t)(n * h * w));
    int64_t *labels = malloc((size_t)n * sizeof *labels);
    for (size_t i = 0; i < bytes; i++)
        images[i] = (uint8_t)(dice(&x, 3) ? i / 7 + dice(&x, 40) : dice(&x, 256));
    for (size_t i = 0; i < (size_t)(n * h * w); i++)
        masks[i] = (uint8_t)dice(&x, 5);
    for (int64_t i = 0; i < n; i++)
        labels[i] = i;
    dr_array arrays[] = {
        { "image", { .kind = DR_KIND_IMAGE, .dtype = DR_U8, .n_dims = 4, .dims = { n, h, w, c } }, images },
        { "mask", { .kind = DR_KIND_MASK, .dtype = DR_U8, .n_dims = 3, .dims = { n, h, w } }, masks },
        { "label", { .dtype = DR_I64, .n_dims = 1, .dims = { n } }, labels },
    };
    void **memory = malloc(3 * sizeof *memory);
    for (int i = 0; i < 3; i++)
        memory[i] = (void *)arrays[i].data;
    dr_dataset *set = NULL;
    assert_ok(dr_dataset_from_arrays(arrays, 3, free_arrays, memory, &set, &err));
    return set;
}

/* A sample that an op cannot take (a crop larger than the image) must be refused in every way of running. */
static dr_loader_options plain_options(const random_graph *r, bool planar, int workers)
{
    dr_loader_options o = options_of(5, workers);
    o.shuffle = true;
    o.seed = 11;
    o.on_bad_sample = DR_BAD_SKIP;
    o.outputs = r->outputs;
    o.collate = r->collate;
    o.layout = planar ? "NCHW" : "NHWC";
    return o;
}

static tape run_fetched(dr_dataset *set, const random_graph *r, bool planar, int workers, int readers)
{
    tape t = { 0 };
    dr_loader_options o = plain_options(r, planar, workers);
    dr_loader *l = open_loader(set, r->graph, &o);
    assert_ok(dr_loader_set(l, "readers", readers, &err));
    tape_read(&t, l, -1);
    dr_loader_close(&l);
    return t;
}

static tape run(dr_dataset *set, const random_graph *r, bool planar, bool reference, int workers, int level, int lanes)
{
    tape t = { 0 };
    static dr__kernels kernels;
    dr_loader_options o = plain_options(r, planar, workers);
    o.reference = reference;
    o.lanes = lanes != NO_LANES;
    dr_loader *l = open_loader(set, r->graph, &o);
    if (lanes == ALL_SLOW)
        atomic_store(&l->exec.lanes.predict.slow_units, 0);
    if (level >= 0) {
        dr__kernels_fill(&kernels, (dr__cpu_level)level);
        l->exec.program->kernels = &kernels;
    }
    tape_read(&t, l, -1);
    dr_loader_close(&l);
    return t;
}

static void compare(dr_dataset *set, const random_graph *r)
{
    static const int workers[] = { 0, 1, 2, 3, 8 };
    bool planar = dice(&x, 2);
    tape want = run(set, r, planar, true, 0, -1, LANES);
    n_asked += dr_dataset_size(set);
    for (size_t i = 0; i < want.n; i++)
        n_delivered += want.batches[i].n;
    const char *text = "";
    char what[4096];
    assert_ok(dr_graph_json(r->graph, &text, &err));
    for (int i = 0; i < 5; i++) {
        tape got = run(set, r, planar, false, workers[i], -1, LANES);
        snprintf(what, sizeof what, "%d workers, %s: %s", workers[i], r->outputs, text);
        assert_same_tape(&want, &got, what);
        tape_free(&got);
    }
    for (int level = DR__CPU_C; level <= (int)dr__cpu_has(); level++) {
        tape got = run(set, r, planar, false, 2, level, LANES);
        snprintf(what, sizeof what, "%s kernels, %s: %s", dr__cpu_name((dr__cpu_level)level), r->outputs, text);
        assert_same_tape(&want, &got, what);
        tape_free(&got);
    }
    for (int lanes = NO_LANES; lanes <= ALL_SLOW; lanes++) {
        tape got = run(set, r, planar, false, 3, -1, lanes);
        snprintf(what, sizeof what, "lanes %s, %s: %s", lanes == ALL_SLOW ? "full" : "off", r->outputs, text);
        assert_same_tape(&want, &got, what);
        tape_free(&got);
    }
    for (int readers = 1; readers <= 4; readers += 3) {
        tape got = run_fetched(set, r, planar, readers / 2, readers);
        snprintf(what, sizeof what, "%d readers, %s: %s", readers, r->outputs, text);
        assert_same_tape(&want, &got, what);
        tape_free(&got);
    }
    tape_free(&want);
}

static void arrays_through_random_graphs(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = { { 33, 41, 3 }, { 24, 24, 1 }, { 40, 17, 3 } };
    for (uint64_t i = 0; i < setting("DRAPPS_TEST_ROUNDS", 24); i++) {
        const int64_t *s = shapes[i % 3];
        dr_dataset *set = array_set(11, s[0], s[1], s[2]);
        random_graph r = random_graph_of(set, 1 + (int)(i % 6), &x, used);
        compare(set, &r);
        dr_graph_free(&r.graph);
        dr_dataset_unref(&set);
    }
}

static void jpegs_through_random_graphs(void **state)
{
    (void)state;
    char folder[64];
    dr_dataset *set = jpeg_set(folder, 9);
    for (uint64_t i = 0; i < setting("DRAPPS_TEST_ROUNDS", 24); i++) {
        random_graph r = random_graph_of(set, 1 + (int)(i % 5), &x, used);
        compare(set, &r);
        dr_graph_free(&r.graph);
    }
    dr_dataset_unref(&set);
    remove_folder(folder);
}

/* The pipelines that people use, with everything fused that can be. */
static void usual_graphs(void **state)
{
    (void)state;
    static const char *const chains[] = {
        "{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"params\":{\"size\":[24,20]}},{\"op\":"
        "\"random_horizontal_flip\"},{\"op\":\"to_dtype\",\"params\":{\"scale\":true}},{\"op\":\"normalize\","
        "\"params\":{"
        "\"mean\":[0.485,0.456,0.406],\"std\":[0.229,0.224,0.225]}}",
        "{\"op\":\"decode\"},{\"op\":\"resize\",\"params\":{\"size\":[40,30]}},{\"op\":\"center_crop\",\"params\":{"
        "\"size\":"
        "[24,20]}},{\"op\":\"to_dtype\",\"params\":{\"dtype\":\"float16\",\"scale\":true}}",
        "{\"op\":\"decode\",\"params\":{\"mode\":\"L\"}},{\"op\":\"random_crop\",\"params\":{\"size\":[24,20]}},{"
        "\"op\":"
        "\"random_horizontal_flip\"},{\"op\":\"to_dtype\",\"params\":{\"dtype\":\"bfloat16\"}}",
        "{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"params\":{\"size\":[24,20]}},{\"op\":"
        "\"random_horizontal_flip\"}",
        "{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"params\":{\"size\":[24,20]}},{\"op\":\"to_dtype\","
        "\"params\":{"
        "\"dtype\":\"float16\",\"scale\":true}},{\"op\":\"normalize\",\"params\":{\"mean\":[0.485,0.456,0.406],\"std\":"
        "[0.229,0.224,0.225]}}",
        /* each order of the resizing's passes, alpha, borders, a smaller decoding */
        "{\"op\":\"decode\"},{\"op\":\"resize\",\"params\":{\"size\":[9,60],\"interpolation\":\"lanczos\"}}",
        "{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"params\":{\"size\":[90,20],\"interpolation\":"
        "\"nearest\"}},{\"op\":\"random_horizontal_flip\"}",
        "{\"op\":\"decode\",\"params\":{\"mode\":\"RGBA\"}},{\"op\":\"random_resized_crop\",\"params\":{\"size\":"
        "[24,20],\"interpolation\":\"bicubic\"}},{\"op\":\"random_horizontal_flip\"}",
        "{\"op\":\"decode\"},{\"op\":\"random_crop\",\"params\":{\"size\":[50,60],\"pad_if_needed\":true,"
        "\"padding_mode\":\"reflect\"}}",
        "{\"op\":\"decode\",\"params\":{\"exif_orientation\":true}},{\"op\":\"center_crop\",\"params\":{\"size\":"
        "[50,60]}},{\"op\":\"to_dtype\",\"params\":{\"scale\":true}}",
    };
    char folder[64];
    dr_dataset *set = jpeg_set(folder, 12);
    for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
        random_graph r = { graph_of(chains[i]), "image", "image=stack" };
        compare(set, &r);
        dr_graph_free(&r.graph);
    }
    dr_dataset_unref(&set);
    remove_folder(folder);
}

/* Volumes and their masks, in memory. */
static void volumes_through_a_chain(void **state)
{
    enum { N = 7, VOXELS = N * 12 * 14 * 10 };
    static float volumes[VOXELS];
    static uint8_t masks[VOXELS];
    (void)state;
    for (int i = 0; i < VOXELS; i++) {
        volumes[i] = (float)dice(&x, 1000);
        masks[i] = dice(&x, 40) ? 0 : (uint8_t)dice(&x, 4);
    }
    dr_array arrays[] = {
        { "image", { .kind = DR_KIND_VOLUME, .dtype = DR_F32, .n_dims = 4, .dims = { N, 12, 14, 10 } }, volumes },
        { "mask", { .kind = DR_KIND_VOLUME_MASK, .dtype = DR_U8, .n_dims = 4, .dims = { N, 12, 14, 10 } }, masks },
    };
    dr_dataset *set = NULL;
    assert_ok(dr_dataset_from_arrays(arrays, 2, NULL, NULL, &set, &err));
    random_graph r = {
        graph_of("{\"op\":\"resample_volume\",\"params\":{\"size\":[9,17,10]},\"fields\":[\"image\",\"mask\"]},"
                 "{\"op\":\"normalize_intensity\",\"params\":{\"clip\":[100,800],\"mean\":500,\"std\":99},"
                 "\"fields\":[\"image\",\"mask\"]},"
                 "{\"op\":\"pad_volume\",\"params\":{\"size\":11},\"fields\":[\"image\",\"mask\"]},"
                 "{\"op\":\"random_balanced_crop\",\"params\":{\"size\":8},\"fields\":[\"image\",\"mask\"]},"
                 "{\"op\":\"random_flip_volume\",\"fields\":[\"image\",\"mask\"]},"
                 "{\"op\":\"random_brightness\",\"params\":{\"p\":0.5}},"
                 "{\"op\":\"random_gaussian_noise\",\"params\":{\"p\":0.5}},"
                 "{\"op\":\"to_dtype\",\"params\":{\"dtype\":\"float16\"}}"),
        "image,mask", "image=stack"
    };
    compare(set, &r);
    dr_graph_free(&r.graph);
    dr_dataset_unref(&set);
}

/* The graphs were drawn from the whole table: no op was refused each time. */
static void every_op_took_part(void **state)
{
    (void)state;
    for (int i = 0; dr__op_table[i]; i++) {
        const dr_op_def *def = dr__op_table[i];
        if (def->flags & (DR_OP_BATCH | DR_OP_DECODE) || used[i])
            continue;
        print_message("%s stood in no graph this time\n", def->name);
    }
    unsigned rows = 0;
    for (int i = 0; dr__op_table[i]; i++)
        rows += used[i] > 0;
    assert_true(rows >= 15);
    assert_true(n_delivered * 10 > n_asked * 6); /* most settings suit most images */
}

int main(void)
{
    x = setting("DRAPPS_TEST_SEED", 1);
    print_message("seed %llu\n", (unsigned long long)x);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usual_graphs),
        cmocka_unit_test(arrays_through_random_graphs),
        cmocka_unit_test(volumes_through_a_chain),
        cmocka_unit_test(jpegs_through_random_graphs),
        cmocka_unit_test(every_op_took_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
