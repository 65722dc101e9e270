/* A runner gives, sample by sample, what a loader puts into its batches. */
#include "unit/loader/toy.h"

#include "data/desc.h"

static dr_error err;

static const char *const ops =
    "{\"op\":\"random_crop\",\"params\":{\"size\":[5,5]}},{\"op\":\"random_horizontal_flip\"},{\"op\":\"to_dtype\","
    "\"params\":"
    "{\"scale\":true}},{\"op\":\"normalize\",\"params\":{\"mean\":[0.5,0.4,0.3],\"std\":[0.2,0.3,0.4]}}";

static void compare_with_batch(dr_runner *r, const dr_batch *b, uint64_t i)
{
    for (int k = 0; k < dr_runner_outputs(r); k++) {
        dr_view v;
        dr_batch_field f;
        const char *name = dr_runner_output(r, k, &v);
        assert_ok(dr_batch_field_at(b, k, &f, &err));
        assert_string_equal(name, f.name);
        size_t bytes = 0;
        assert_true(dr__desc_bytes_dense(&v.desc, &bytes));
        if (f.collate == DR_COLLATE_LIST) {
            assert_true(dr__desc_equal(&f.items[i].desc, &v.desc));
            assert_memory_equal(f.items[i].data, v.data, bytes);
        } else {
            assert_memory_equal(f.array.data + i * bytes, v.data, bytes);
        }
    }
}

static void equals_the_loader(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 40 });
    dr_graph *g = graph_of(ops);
    for (int mode = 0; mode < 4; mode++) {
        const char *layout = mode & 1 ? "NHWC" : "NCHW";
        dr_runner *r = NULL;
        dr_loader_options o = options_of(16, 2);
        o.shuffle = true;
        o.seed = 9;
        o.last = DR_LAST_PAD; /* repeats have draws of their own */
        o.outputs = "image,label,text,tokens";
        o.collate = "tokens=list";
        o.layout = layout;
        assert_ok(dr_runner_open(set, g, o.outputs, layout, mode & 2, &r, &err));
        dr_loader *l = open_loader(set, g, &o);
        assert_ok(dr_loader_start(l, 4, &err));
        for (dr_batch *b = NULL; dr_loader_next(l, -1, &b, &err) == DR_OK; dr_batch_unref(&b))
            for (uint64_t i = 0; i < dr_batch_samples(b); i++) {
                dr_sample_name name;
                assert_ok(dr_order_sample(set, 9, 4, true, dr_batch_positions(b)[i], &name, &err));
                assert_int_equal(name.id, dr_batch_ids(b)[i]);
                assert_ok(dr_runner_run(r, &name, &err));
                compare_with_batch(r, b, i);
            }
        dr_loader_close(&l);
        dr_runner_free(&r);
        assert_null(r);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* Arrays handed in give the same as the same arrays read from a set. */
static void equals_what_is_fed(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 6 });
    dr_graph *g = graph_of(ops), *none = graph_of(NULL);
    dr_runner *from_set = NULL, *plain = NULL, *fed = NULL;
    dr_field_spec spec = { "image", dr__desc_image(DR_U8, DR_UNKNOWN, DR_UNKNOWN, 3) };
    assert_ok(dr_runner_open(set, g, "image", NULL, false, &from_set, &err));
    assert_ok(dr_runner_open(set, none, "image", "NHWC", false, &plain, &err));
    assert_ok(dr_runner_open_fields(&spec, 1, g, "image", NULL, false, &fed, &err));
    for (uint64_t id = 0; id < 6; id++) {
        dr_sample_name name = { .seed = 3, .id = id };
        dr_view raw, a, b;
        assert_ok(dr_runner_run(plain, &name, &err));
        dr_runner_output(plain, 0, &raw);
        assert_ok(dr_runner_feed(fed, &raw, &name, &err));
        assert_ok(dr_runner_run(from_set, &name, &err));
        dr_runner_output(fed, 0, &a);
        dr_runner_output(from_set, 0, &b);
        size_t bytes = 0;
        assert_true(dr__desc_equal(&a.desc, &b.desc) && dr__desc_bytes_dense(&a.desc, &bytes));
        assert_memory_equal(a.data, b.data, bytes);
    }
    dr_view wrong;
    float pixels[5 * 5 * 3] = { 0 };
    dr_desc desc = dr__desc_image(DR_F32, 5, 5, 3);
    wrong = dr__view_dense(&desc, pixels);
    dr_sample_name name = { 0 };
    assert_fails(dr_runner_feed(fed, &wrong, &name, &err), DR_ERR_ARG, "field \"image\" must be image uint8");
    uint8_t bytes[5 * 5 * 4] = { 0 };
    desc = dr__desc_image(DR_U8, 5, 5, 4); /* four channels where three were promised */
    wrong = dr__view_dense(&desc, bytes);
    assert_fails(dr_runner_feed(fed, &wrong, &name, &err), DR_ERR_ARG, "field \"image\"");
    dr_runner_free(&from_set);
    dr_runner_free(&plain);
    dr_runner_free(&fed);
    dr_graph_free(&g);
    dr_graph_free(&none);
    dr_dataset_unref(&set);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 10, .bad_every = 10, .bad_at = 4 });
    dr_graph *g = graph_of(NULL);
    dr_runner *r = NULL;
    dr_view v;
    dr_sample_name name = { .id = 10 };
    assert_ok(dr_runner_open(set, g, "label", NULL, false, &r, &err));
    assert_fails(dr_runner_run(r, &name, &err), DR_ERR_ARG, "sample id must be below 10, got 10");
    name.id = 4;
    assert_fails(dr_runner_run(r, &name, &err), DR_ERR_FORMAT, "sample \"sample-4\"");
    assert_null(dr_runner_output(r, 1, &v));
    assert_fails(dr_runner_feed(r, &v, &name, &err), DR_ERR_STATE, "reads its samples");
    dr_runner_free(&r);
    assert_fails(dr_runner_open(set, g, "nothing", NULL, false, &r, &err), DR_ERR_NOT_FOUND, "no field \"nothing\"");
    assert_null(r);
    dr_graph *mix =
        graph_of("{\"op\":\"to_dtype\"},{\"op\":\"mixup\",\"params\":{\"num_classes\":9},\"fields\":[\"image\","
                 "\"label\"]}");
    assert_fails(dr_runner_open(set, mix, NULL, NULL, false, &r, &err), DR_ERR_ARG, "mixup");
    assert_null(r);
    dr_graph_free(&mix);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_loader),
        cmocka_unit_test(equals_what_is_fed),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
