/* Programs: what compiling checks and decides, what explain says, and fused runs against plain ones. */
#include "unit/cm.h"

#include <drapps/sample.h>

#include "data/desc.h"
#include "graph/program.h"

static dr_error err;

static dr_graph *graph_of(const char *nodes)
{
    dr_graph *g = NULL;
    char text[4096];
    snprintf(text, sizeof text, "{\"version\":1,\"nodes\":[%s]}", nodes);
    assert_ok(dr_graph_from_json(text, &g, &err));
    return g;
}

/* Compiles over the usual fields: image (bytes, or `pixels` of a fixed size), mask, label, key. */
static dr_status compile(const char *nodes, bool pixels, dr__program_options o, dr__program **out)
{
    dr__field fields[4] = { { "image" }, { "mask" }, { "label" }, { "key" } };
    fields[0].desc = pixels ? dr__desc_image(DR_U8, 20, 16, 3) : dr__desc_bytes(DR_UNKNOWN);
    fields[1].desc = dr__desc_image(DR_U8, 20, 16, 1);
    fields[1].desc.kind = DR_KIND_MASK;
    fields[2].desc = dr__desc_scalar(DR_I64);
    fields[3].desc = dr__desc_text(DR_UNKNOWN);
    dr_graph *g = graph_of(nodes);
    *out = NULL;
    dr_status status = dr__program_compile(g, fields, 4, &o, out, &err);
    dr_graph_free(&g);
    assert_true((status == DR_OK) == (*out != NULL));
    return status;
}

#define DECODE "{\"op\":\"decode\"}"
#define CROP "{\"op\":\"random_resized_crop\",\"params\":{\"size\":[8,6]}}"
#define CROP_TO(out) "{\"op\":\"random_resized_crop\",\"params\":{\"size\":[8,6]},\"outputs\":[\"" out "\"]}"
#define FLIP "{\"op\":\"random_horizontal_flip\"}"
#define FLOAT "{\"op\":\"to_dtype\",\"params\":{\"scale\":true}}"
#define NORMALIZE "{\"op\":\"normalize\",\"params\":{\"mean\":[0.5,0.4,0.3],\"std\":[0.2,0.3,0.4]}}"
#define MIXUP "{\"op\":\"mixup\",\"params\":{\"num_classes\":10},\"fields\":[\"image\",\"label\"]}"

static void unknown_names(void **state)
{
    (void)state;
    dr__program *p;
    dr__program_options none = { 0 };
    assert_fails(
        compile(DECODE "," CROP ",{\"op\":\"random_horizontal_flip\",\"fields\":[\"picture\"]}", false, none, &p),
        DR_ERR_NOT_FOUND, "random_horizontal_flip: no field \"picture\"; there are label, key, image, mask");
    assert_fails(compile(DECODE "," CROP, false, (dr__program_options){ .outputs = "image,lable" }, &p),
                 DR_ERR_NOT_FOUND, "outputs: no field \"lable\"");
    assert_fails(compile(DECODE "," CROP, false, (dr__program_options){ .outputs = "image,,label" }, &p),
                 DR_ERR_NOT_FOUND, "no field \"\"");
}

static void wrong_kinds(void **state)
{
    (void)state;
    dr__program *p;
    dr__program_options none = { 0 };
    assert_fails(compile(FLIP, false, none, &p), DR_ERR_ARG, "field \"image\": random_horizontal_flip");
    assert_fails(compile(DECODE "," DECODE, false, none, &p), DR_ERR_ARG, "field \"image\": decode");
    assert_fails(
        compile(DECODE "," CROP ",{\"op\":\"normalize\",\"params\":{\"mean\":[1,2],\"std\":[1,2]}}", false, none, &p),
        DR_ERR_ARG, "normalize: mean must have 1 value or 3, one for each channel, got 2");
}

static void unknown_shapes(void **state)
{
    (void)state;
    dr__program *p;
    dr__program_options none = { 0 };
    assert_fails(
        compile(DECODE, false, none, &p), DR_ERR_ARG,
        "field \"image\" is image uint8 HWC (?, ?, 3): samples of different shape cannot be stacked; end with an "
        "op that fixes the size (random_resized_crop, or resize and center_crop), or collate image=list");
    assert_ok(compile(DECODE, false, (dr__program_options){ .collate = "image=list" }, &p));
    assert_int_equal(p->outputs[0].collate, DR_COLLATE_LIST);
    dr__program_free(&p);
    assert_ok(compile(DECODE, false, (dr__program_options){ .collate = "image=pad,label=stack" }, &p));
    assert_int_equal(p->outputs[0].collate, DR_COLLATE_PAD);
    assert_int_equal(p->outputs[1].collate, DR_COLLATE_STACK);
    dr__program_free(&p);
    assert_ok(compile(DECODE, false, (dr__program_options){ .any_shape = true }, &p));
    assert_int_equal(p->outputs[0].collate, DR_COLLATE_LIST);
    dr__program_free(&p);
}

static void collate_rules(void **state)
{
    (void)state;
    dr__program *p;
    assert_fails(compile(CROP, true, (dr__program_options){ .collate = "image=heap" }, &p), DR_ERR_ARG,
                 "collate: a rule must be stack, pad, ragged or list, got \"heap\"");
    assert_fails(compile(CROP, true, (dr__program_options){ .collate = "image=list,image=heap" }, &p), DR_ERR_ARG,
                 "heap");
    assert_fails(compile(CROP, true, (dr__program_options){ .collate = "imgae=list" }, &p), DR_ERR_NOT_FOUND,
                 "collate: no field \"imgae\"");
    assert_fails(compile(CROP, true, (dr__program_options){ .collate = "image" }, &p), DR_ERR_ARG, "field=rule");
    assert_fails(compile(CROP, true, (dr__program_options){ .collate = "image=" }, &p), DR_ERR_ARG,
                 "must be stack, pad");
    assert_ok(
        compile(CROP, true, (dr__program_options){ .outputs = "image,key", .collate = "image=list,key=ragged" }, &p));
    assert_int_equal(p->outputs[0].collate, DR_COLLATE_LIST);
    assert_int_equal(p->outputs[1].collate, DR_COLLATE_RAGGED);
    dr__program_free(&p);
}

static void outputs_and_layout(void **state)
{
    (void)state;
    dr__program *p;
    assert_ok(compile(CROP, true, (dr__program_options){ 0 }, &p)); /* image and label, planar, and the mask */
    assert_int_equal(p->n_outputs, 3);
    assert_string_equal(p->outputs[1].name, "label");
    assert_string_equal(p->outputs[2].name, "mask");
    assert_int_equal(p->outputs[0].desc.layout, DR_LAYOUT_CHW);
    assert_int_equal(p->outputs[0].desc.dims[0], 3);
    assert_int_equal(p->outputs[0].desc.dims[1], 8);
    dr__program_free(&p);
    assert_ok(compile(CROP, true, (dr__program_options){ .outputs = "mask,image", .layout = "NHWC" }, &p));
    assert_string_equal(p->outputs[0].name, "mask");
    assert_int_equal(p->outputs[1].desc.layout, DR_LAYOUT_HWC);
    assert_int_equal(p->outputs[1].desc.dims[0], 8);
    dr__program_free(&p);
    assert_fails(compile(CROP, true, (dr__program_options){ .layout = "nchw" }, &p), DR_ERR_ARG,
                 "layout must be NCHW or NHWC, got \"nchw\"");
    /* the same field twice is two outputs */
    assert_ok(compile(CROP "," FLOAT, true, (dr__program_options){ .outputs = "image,image" }, &p));
    assert_int_equal(p->n_outputs, 2);
    dr__program_free(&p);
}

static void batch_ops(void **state)
{
    (void)state;
    dr__program *p;
    dr__program_options none = { .outputs = "image,label" };
    assert_ok(compile(CROP "," FLOAT "," MIXUP, true, none, &p));
    assert_int_equal(p->n_batch_nodes, 1);
    dr__program_free(&p);
    assert_fails(compile(CROP "," FLOAT "," MIXUP "," FLIP, true, none, &p), DR_ERR_ARG,
                 "random_horizontal_flip stands after mixup, which works on whole batches and must come last");
    assert_fails(compile(CROP "," MIXUP, true, none, &p), DR_ERR_ARG, "mixup: needs float32 images");
    assert_fails(compile(CROP "," FLOAT "," MIXUP, true, (dr__program_options){ .outputs = "image" }, &p), DR_ERR_ARG,
                 "mixup: field \"label\" must be a stacked output");
    assert_fails(compile(CROP "," FLOAT "," MIXUP, true,
                         (dr__program_options){ .outputs = "image,label", .collate = "image=list" }, &p),
                 DR_ERR_ARG, "mixup: field \"image\" must be a stacked output");
    assert_fails(compile(CROP "," FLOAT ",{\"op\":\"mixup\",\"params\":{\"num_classes\":10},\"fields\":[\"image\"]}",
                         true, none, &p),
                 DR_ERR_ARG, "mixup: fields must be 2 names, got 1");
    assert_fails(compile(CROP "," FLOAT
                              ",{\"op\":\"mixup\",\"params\":{\"num_classes\":10},\"fields\":[\"image\",\"label\"],"
                              "\"outputs\":[\"a\",\"b\"]}",
                         true, none, &p),
                 DR_ERR_ARG, "mixup: works in place, \"image\" cannot become \"a\"");
    /* the second sees what the first makes of the labels: ten weights */
    assert_ok(
        compile(CROP "," FLOAT "," MIXUP ",{\"op\":\"cutmix\",\"fields\":[\"image\",\"label\"]}", true, none, &p));
    dr__program_free(&p);
    assert_fails(compile(CROP "," FLOAT "," MIXUP
                              ",{\"op\":\"cutmix\",\"params\":{\"num_classes\":7},\"fields\":[\"image\","
                              "\"label\"]}",
                         true, none, &p),
                 DR_ERR_ARG, "cutmix: label must be");
}

static void what_is_fused(void **state)
{
    (void)state;
    dr__program *p;
    assert_ok(compile(DECODE "," CROP "," FLIP "," FLOAT "," NORMALIZE, false,
                      (dr__program_options){ .outputs = "image,label" }, &p));
    assert_true(p->steps[0].windowed);
    assert_int_equal(p->n_tails, 1);
    assert_int_equal(p->tails[0].rows_step, 1);
    assert_int_equal(p->tails[0].flip_step, 2);
    assert_true(p->tails[0].has_lut);
    dr__program_free(&p);
    /* both views of one decoded image read windows of it */
    assert_ok(compile(DECODE "," CROP_TO("a") "," CROP_TO("b"), false, (dr__program_options){ .outputs = "a,b" }, &p));
    assert_true(p->steps[0].windowed);
    assert_int_equal(p->n_tails, 2);
    dr__program_free(&p);
    /* the decoded image leaves too, or is blurred: then all of it is needed */
    assert_ok(compile(DECODE "," CROP_TO("a"), false,
                      (dr__program_options){ .outputs = "image,a", .collate = "image=list" }, &p));
    assert_false(p->steps[0].windowed);
    dr__program_free(&p);
    assert_ok(compile(DECODE
                      "," CROP_TO("a") ",{\"op\":\"gaussian_blur\",\"params\":{\"kernel_size\":3},\"outputs\":[\"b\"]}",
                      false, (dr__program_options){ .outputs = "a,b", .any_shape = true }, &p));
    assert_false(p->steps[0].windowed);
    dr__program_free(&p);
    /* a value that two ops read is made once, in memory */
    assert_ok(compile(CROP "," FLOAT
                           ",{\"op\":\"random_horizontal_flip\",\"outputs\":[\"a\"]},{\"op\":\"random_vertical_flip\","
                           "\"outputs\":[\"b\"]}",
                      true, (dr__program_options){ .outputs = "a,b" }, &p));
    assert_int_equal(p->steps[0].tail, -1);
    assert_int_equal(p->steps[1].tail, -1);
    dr__program_free(&p);
    assert_ok(compile(DECODE "," CROP "," FLOAT, false, (dr__program_options){ .reference = true }, &p));
    assert_false(p->steps[0].windowed);
    assert_int_equal(p->n_tails, 0);
    assert_true(p->kernels == dr__kernels_c());
    dr__program_free(&p);
}

static void streams_what_one_tail_reads(void **state)
{
    (void)state;
    dr__program *p;
    assert_ok(compile(DECODE "," CROP "," FLIP "," FLOAT, false, (dr__program_options){ .outputs = "image" }, &p));
    assert_int_equal(p->tails[0].rows_step, 1);
    assert_int_equal(p->tails[0].decode_step, 0);
    dr__program_free(&p);
    assert_ok(compile(DECODE "," CROP "," FLIP "," FLOAT, false,
                      (dr__program_options){ .outputs = "image", .late_store = true }, &p));
    assert_true(p->steps[0].windowed);
    assert_int_equal(p->tails[0].rows_step, 1);
    assert_int_equal(p->tails[0].decode_step, -1);
    dr__program_free(&p);
    /* two views of one image: it is decoded once, into memory */
    assert_ok(compile(DECODE "," CROP_TO("a") "," CROP_TO("b"), false, (dr__program_options){ .outputs = "a,b" }, &p));
    assert_true(p->steps[0].windowed);
    assert_int_equal(p->n_tails, 2);
    assert_int_equal(p->tails[0].decode_step, -1);
    assert_int_equal(p->tails[1].decode_step, -1);
    dr__program_free(&p);
    /* pixels that were not decoded */
    assert_ok(compile(CROP "," FLOAT, true, (dr__program_options){ .outputs = "image" }, &p));
    assert_int_equal(p->tails[0].rows_step, 0);
    assert_int_equal(p->tails[0].decode_step, -1);
    dr__program_free(&p);
}

static void explain_says_it(void **state)
{
    (void)state;
    dr__program *p;
    assert_ok(compile(DECODE "," CROP "," FLIP "," FLOAT "," MIXUP, false,
                      (dr__program_options){ .outputs = "image,label" }, &p));
    char *text = dr__program_explain(p);
    static const char *const parts[] = {
        "fields of a sample:\n",
        "image: bytes",
        "1   decode -> image uint8 HWC (?, ?, 3); JPEG by drapps baseline decoder (",
        "; decodes only what is read, JPEG row by row into the batch\n",
        "2   random_resized_crop{\"size\":[8,6]} -> image uint8 HWC (8, 6, 3); fused, row by row, into the batch\n",
        "4   to_dtype{\"scale\":true} -> image float32 HWC (8, 6, 3); fused",
        "5   mixup on whole batches\n",
        "image: image float32 CHW (3, 8, 6), stack\n",
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strstr(text, parts[i]))
            fail_msg("explain lacks \"%s\":\n%s", parts[i], text);
    dr_text_free(&text);
    dr__program_free(&p);
}

#define FIELDS_OF(name) ",\"fields\":[" name "]}"
#define ON_IMAGE(op) "{\"op\":\"" op "\",\"params\":{\"size\":[8,6]}" FIELDS_OF("\"image\"")

/* An op that moves pixels acts on all that tells places in them. */
static void masks_follow(void **state)
{
    (void)state;
    dr__program *p;
    assert_ok(compile(CROP "," FLOAT "," FLIP, true, (dr__program_options){ .outputs = "image,mask" }, &p));
    assert_int_equal(p->graph->nodes[0].n_fields, 2);
    assert_string_equal(p->graph->nodes[0].in[1], "mask");
    assert_int_equal(p->graph->nodes[1].n_fields, 1); /* a matter of images alone */
    assert_int_equal(p->values[p->outputs[1].value].dims[0], 8);
    dr__program_free(&p);
    /* nobody asks for the mask: it is left alone */
    assert_ok(compile(CROP "," FLIP, true, (dr__program_options){ .outputs = "image" }, &p));
    assert_int_equal(p->n_steps, 2);
    assert_int_equal(p->graph->nodes[0].n_fields, 1);
    dr__program_free(&p);
}

/* What was left behind must not be delivered; the message names op, field and remedy. */
static void what_is_left_behind_is_refused(void **state)
{
    (void)state;
    dr__program *p;
    const dr__program_options both = { .outputs = "image,mask" }, image = { .outputs = "image" };
    assert_fails(compile(ON_IMAGE("random_resized_crop"), true, both, &p), DR_ERR_ARG,
                 "random_resized_crop: moves \"image\" but not \"mask\", which is delivered: add \"mask\" to its "
                 "fields, leave its fields out (all that belongs together follows), or leave \"mask\" out of outputs");
    assert_ok(compile(ON_IMAGE("random_resized_crop"), true, image, &p));
    dr__program_free(&p);
    assert_fails(compile("{\"op\":\"rand_augment\"}", true, both, &p), DR_ERR_ARG,
                 "rand_augment: moves \"image\" but cannot move masks, and \"mask\" is delivered");
    assert_fails(
        compile("{\"op\":\"random_apply\",\"params\":{\"transforms\":[{\"op\":\"rand_augment\"}]}}", true, both, &p),
        DR_ERR_ARG, "random_apply: moves \"image\" but cannot move masks");
    assert_ok(compile("{\"op\":\"random_apply\",\"params\":{\"transforms\":[" FLIP "]}}", true, both, &p));
    dr__program_free(&p);
    assert_fails(compile(FLOAT "," MIXUP, true, (dr__program_options){ .outputs = "image,label,mask" }, &p), DR_ERR_ARG,
                 "mixup: mixes images but cannot mix masks");
    /* moved by another op than the image: not the same */
    assert_fails(compile("{\"op\":\"random_horizontal_flip\"" FIELDS_OF(
                             "\"image\"") ",{\"op\":\"random_horizontal_flip\"" FIELDS_OF("\"mask\""),
                         true, both, &p),
                 DR_ERR_ARG, "random_horizontal_flip: moves \"image\" but not \"mask\"");
    /* one of two images is enough */
    assert_ok(compile(CROP_TO("a"), true, (dr__program_options){ .outputs = "image,a,mask" }, &p));
    dr__program_free(&p);
    assert_fails(compile(CROP_TO("a"), true, (dr__program_options){ .outputs = "a,mask" }, &p), DR_ERR_ARG,
                 "moves \"a\" but not \"mask\"");
    assert_fails(compile(CROP, true, (dr__program_options){ .outputs = "image", .collate = "mask=list" }, &p),
                 DR_ERR_ARG, "collate: field \"mask\" is not delivered, only image");
}

static char *identity_of(const char *nodes, dr__program_options options)
{
    dr__program *p;
    assert_ok(compile(nodes, true, options, &p));
    char *text = dr__graph_identity(p->graph);
    dr__program_free(&p);
    return text;
}

/* Saved states and stored data compare this text: the same work has the same, however the fields were said. */
static void one_identity_for_the_same_work(void **state)
{
    (void)state;
    static const struct {
        const char *nodes, *outputs, *text;
    } cases[] = {
        { FLIP, "image", "{\"nodes\":[{\"id\":1,\"op\":\"random_horizontal_flip\",\"version\":1}],\"version\":1}" },
        { "{\"op\":\"random_horizontal_flip\"" FIELDS_OF("\"image\""), "image",
          "{\"nodes\":[{\"id\":1,\"op\":\"random_horizontal_flip\",\"version\":1}],\"version\":1}" },
        { FLIP, "image,mask",
          "{\"nodes\":[{\"fields\":[\"image\",\"mask\"],\"id\":1,\"op\":\"random_horizontal_flip\",\"version\":1}],"
          "\"version\":1}" },
        { "{\"op\":\"random_horizontal_flip\"" FIELDS_OF("\"image\",\"mask\""), "image,mask",
          "{\"nodes\":[{\"fields\":[\"image\",\"mask\"],\"id\":1,\"op\":\"random_horizontal_flip\",\"version\":1}],"
          "\"version\":1}" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = identity_of(cases[i].nodes, (dr__program_options){ .outputs = cases[i].outputs });
        assert_string_equal(text, cases[i].text);
        dr_text_free(&text);
    }
}

/* --- runs --- */

static dr_dataset *pixels_set(int64_t n)
{
    static uint8_t images[4 * 20 * 16 * 3], masks[4 * 20 * 16];
    for (size_t i = 0; i < sizeof images; i++)
        images[i] = (uint8_t)(i * i / 7 + i);
    for (size_t i = 0; i < sizeof masks; i++)
        masks[i] = images[i * 3]; /* so that a mask shows which pixels were taken */
    dr_array arrays[] = {
        { "image", { .kind = DR_KIND_IMAGE, .dtype = DR_U8, .n_dims = 4, .dims = { n, 20, 16, 3 } }, images },
        { "mask", { .kind = DR_KIND_MASK, .dtype = DR_U8, .n_dims = 3, .dims = { n, 20, 16 } }, masks },
    };
    dr_dataset *set = NULL;
    assert_ok(dr_dataset_from_arrays(arrays, 2, NULL, NULL, &set, &err));
    return set;
}

static dr_runner *runner_of(dr_dataset *set, const char *nodes, const char *outputs, bool reference)
{
    dr_graph *g = graph_of(nodes);
    dr_runner *r = NULL;
    assert_ok(dr_runner_open(set, g, outputs, "NHWC", reference, &r, &err));
    dr_graph_free(&g);
    return r;
}

static void views_have_draws_of_their_own(void **state)
{
    (void)state;
    dr_dataset *set = pixels_set(4);
    dr_runner *r = runner_of(set, CROP_TO("a") "," CROP_TO("b"), "a,b", false);
    int equal = 0;
    for (uint64_t id = 0; id < 4; id++) {
        dr_view a, b;
        dr_sample_name name = { .seed = 1, .id = id };
        assert_ok(dr_runner_run(r, &name, &err));
        dr_runner_output(r, 0, &a);
        dr_runner_output(r, 1, &b);
        equal += !memcmp(a.data, b.data, 8 * 6 * 3);
    }
    assert_int_equal(equal, 0);
    dr_runner_free(&r);
    dr_dataset_unref(&set);
}

/* Image and mask of one node: the same pixels of both (the mask is the image's first channel). */
static void fields_share_a_draw(void **state)
{
    (void)state;
    dr_dataset *set = pixels_set(4);
    dr_runner *r =
        runner_of(set,
                  "{\"op\":\"random_crop\",\"params\":{\"size\":[9,7]},\"fields\":[\"image\",\"mask\"]},{\"op\":"
                  "\"random_horizontal_flip\",\"fields\":[\"image\",\"mask\"]}",
                  "image,mask", false);
    for (uint64_t id = 0; id < 4; id++)
        for (uint64_t epoch = 0; epoch < 8; epoch++) {
            dr_view image, mask;
            dr_sample_name name = { .epoch = epoch, .id = id };
            assert_ok(dr_runner_run(r, &name, &err));
            dr_runner_output(r, 0, &image);
            dr_runner_output(r, 1, &mask);
            for (int i = 0; i < 9 * 7; i++)
                assert_int_equal(image.data[i * 3], mask.data[i]);
        }
    dr_runner_free(&r);
    dr_dataset_unref(&set);
}

static void fused_equals_plain(void **state)
{
    (void)state;
    static const char *const chains[] = {
        CROP "," FLIP "," FLOAT "," NORMALIZE,
        FLIP "," FLOAT,
        CROP,
        FLIP,
        CROP "," FLIP ",{\"op\":\"to_dtype\",\"params\":{\"dtype\":\"bfloat16\",\"scale\":true}}," NORMALIZE,
        CROP
        ",{\"op\":\"to_dtype\",\"params\":{\"dtype\":\"float16\",\"scale\":true}},{\"op\":\"to_dtype\",\"params\":{"
        "\"dtype\":\"uint8\",\"scale\":true}}",
        "{\"op\":\"center_crop\",\"params\":{\"size\":[30,30]}}," FLIP "," FLOAT,
        CROP "," FLOAT "," FLIP "," NORMALIZE, /* the mirror between the tables */
        CROP "," FLIP "," FLIP "," FLOAT,
    };
    dr_dataset *set = pixels_set(4);
    for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
        dr_runner *fused = runner_of(set, chains[i], "image", false), *plain = runner_of(set, chains[i], "image", true);
        for (uint64_t id = 0; id < 4; id++) {
            dr_view a, b;
            size_t bytes = 0;
            dr_sample_name name = { .seed = i, .id = id };
            assert_ok(dr_runner_run(fused, &name, &err));
            assert_ok(dr_runner_run(plain, &name, &err));
            dr_runner_output(fused, 0, &a);
            dr_runner_output(plain, 0, &b);
            assert_true(dr__desc_equal(&a.desc, &b.desc) && dr__desc_bytes_dense(&a.desc, &bytes));
            if (memcmp(a.data, b.data, bytes))
                fail_msg("other bytes: %s", chains[i]);
        }
        dr_runner_free(&fused);
        dr_runner_free(&plain);
    }
    dr_dataset_unref(&set);
}

/* A graph with views only can be explained: what stays behind is a list, not an error. */
static void graphs_of_views_can_be_explained(void **state)
{
    (void)state;
    dr_dataset *set = pixels_set(4);
    dr_graph *g = graph_of("{\"op\":\"random_rotation\",\"params\":{\"degrees\":30,\"expand\":true}}," CROP_TO("a"));
    char *text = NULL;
    assert_ok(dr_graph_explain(g, set, &text, &err));
    assert_non_null(strstr(text, "[image -> a]"));
    dr_text_free(&text);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_names),
        cmocka_unit_test(wrong_kinds),
        cmocka_unit_test(unknown_shapes),
        cmocka_unit_test(collate_rules),
        cmocka_unit_test(outputs_and_layout),
        cmocka_unit_test(batch_ops),
        cmocka_unit_test(what_is_fused),
        cmocka_unit_test(streams_what_one_tail_reads),
        cmocka_unit_test(explain_says_it),
        cmocka_unit_test(masks_follow),
        cmocka_unit_test(what_is_left_behind_is_refused),
        cmocka_unit_test(one_identity_for_the_same_work),
        cmocka_unit_test(views_have_draws_of_their_own),
        cmocka_unit_test(fields_share_a_draw),
        cmocka_unit_test(fused_equals_plain),
        cmocka_unit_test(graphs_of_views_can_be_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
