/* test_chain: ops that hold ops: shapes, streams, scratch and draws of what is nested. */
#include "op_expect.h"
#include "op/chain.h"

#define FLIP "{\"op\": \"random_horizontal_flip\", \"params\": {\"p\": 1}}"
#define CROP(h, w) "{\"op\": \"center_crop\", \"params\": {\"size\": [" #h ", " #w "]}}"
#define PAD(...) "{\"op\": \"pad\", \"params\": {\"padding\": " #__VA_ARGS__ ", \"fill\": 7}}"
#define JITTER "{\"op\": \"color_jitter\", \"params\": {\"brightness\": 0.5, \"hue\": 0.3}}"
#define GREY "{\"op\": \"grayscale\"}"
#define FLOAT "{\"op\": \"to_dtype\", \"params\": {\"dtype\": \"float32\", \"scale\": true}}"

static void shapes_follow(void **state)
{
    uint8_t row[] = { 1, 2, 3, 4 };
    dr_view in = image_of(row, 1, 4, 1);
    (void)state;
    expect_bytes("random_apply", "{\"p\": 1, \"transforms\": [" CROP(1, 2) ", " FLIP "]}", &in, (uint8_t[]){ 3, 2 }, 2);
    expect_bytes("random_apply", "{\"p\": 0, \"transforms\": [" CROP(1, 2) ", " FLIP "]}", &in, row, 4);
    expect_bytes("random_apply", "{\"p\": 1, \"transforms\": [" FLIP "]}", &in, (uint8_t[]){ 4, 3, 2, 1 }, 4);
    expect_bytes("random_apply",
                 "{\"p\": 1, \"transforms\": [" PAD([ 1, 0 ]) ", " FLIP
                                                              ", " CROP(1, 4) ", " PAD([ 2, 0 ]) ", " CROP(1, 6) "]}",
                 &in, (uint8_t[]){ 7, 4, 3, 2, 1, 7 }, 6);
    expect_bytes("random_choice", "{\"p\": [0, 1], \"transforms\": [" FLIP ", " CROP(1, 2) "]}", &in,
                 (uint8_t[]){ 2, 3 }, 2);
}

/* A list inside random_apply draws what its ops draw from child streams of the same name. */
static void streams_are_children(void **state)
{
    dr_view in = harness_image(DR_U8, 20, 30, 3);
    dr__rng_name name = { .seed = 11, .sample = 5 };
    struct op_run whole, part;
    (void)state;
    assert_int_equal(harness_open(&whole, "random_apply", "{\"p\": 1, \"transforms\": [" FLIP ", " JITTER "]}"), DR_OK);
    assert_int_equal(harness_draw(&whole, &name, &in.desc), DR_OK);
    json_t *draws = dr__op_draws_json(&whole.op, whole.par);
    json_t *nested = json_array_get(json_object_get(draws, "transforms"), 1);
    assert_string_equal(json_string_value(json_object_get(nested, "op")), "color_jitter");

    assert_int_equal(harness_open(&part, "color_jitter", "{\"brightness\": 0.5, \"hue\": 0.3}"), DR_OK);
    dr_rng rng = dr__rng_open(&name, 1), child = dr__rng_child(&rng, 1);
    part.par = dr__alloc_zero(1, dr__op_par_bytes(&part.op));
    assert_int_equal(part.op.def->draw(part.op.conf, &child, &in.desc, part.par, NULL), DR_OK);
    json_t *alone = dr__op_draws_json(&part.op, part.par);
    json_object_set_new(alone, "op", json_string("color_jitter"));
    assert_true(json_equal(nested, alone));
    json_decref(draws);
    json_decref(alone);
    harness_close(&whole);
    harness_close(&part);
    dr__free(in.data);
}

static void deep_lists(void **state)
{
    uint8_t row[] = { 1, 2, 3, 4 };
    dr_view in = image_of(row, 1, 4, 1);
    (void)state;
    expect_bytes("random_apply",
                 "{\"p\": 1, \"transforms\": [{\"op\": \"random_choice\", \"params\": {\"transforms\": [{\"op\": "
                 "\"random_order\", \"params\": {\"transforms\": [" FLIP ", " CROP(1, 2) "]}}]}}, " PAD([ 1, 0 ]) "]}",
                 &in, (uint8_t[]){ 7, 3, 2, 7 }, 4);
}

/* Whatever order is drawn, each op has its own draws, and the result is that of the order. */
static void orders(void **state)
{
    uint8_t row[] = { 1, 2, 3 };
    dr_view in = image_of(row, 1, 3, 1);
    const uint8_t flipped_then_padded[] = { 7, 3, 2, 1 }, padded_then_flipped[] = { 3, 2, 1, 7 };
    int seen[2] = { 0 };
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct op_run r;
        do_op(&r, "random_order", "{\"transforms\": [" PAD([ 1, 0, 0, 0 ]) ", " FLIP "]}", seed, &in);
        json_t *draws = dr__op_draws_json(&r.op, r.par);
        int64_t first = json_integer_value(json_array_get(json_object_get(draws, "order"), 0));
        assert_memory_equal(r.out.data, first ? flipped_then_padded : padded_then_flipped, 4);
        seen[first]++;
        json_decref(draws);
        harness_close(&r);
    }
    assert_true(seen[0] && seen[1]);
}

static void plan_early(struct op_run *r, const char *op, const char *params, const dr_desc *in, dr_plan *plan)
{
    *plan = (dr_plan){ 0 };
    if (harness_open(r, op, params) != DR_OK || r->op.def->plan(r->op.conf, NULL, in, plan, &r->err) != DR_OK)
        fail_msg("%s %s: %s", op, params, r->err.text);
}

/* When the graph is built, what may differ is unknown and the rest is certain. */
static void early_shapes(void **state)
{
    const dr_desc in = dr__desc_image(DR_U8, 50, 40, 3);
    struct op_run r;
    dr_plan plan;
    (void)state;
    plan_early(&r, "random_apply", "{\"transforms\": [" CROP(20, 40) "]}", &in, &plan);
    assert_int_equal(plan.desc.dims[0], DR_UNKNOWN);
    assert_int_equal(plan.desc.dims[1], 40);
    assert_int_equal(plan.desc.dims[2], 3);
    harness_close(&r);
    plan_early(&r, "random_choice", "{\"transforms\": [" CROP(20, 20) ", " CROP(20, 30) "]}", &in, &plan);
    assert_int_equal(plan.desc.dims[0], 20);
    assert_int_equal(plan.desc.dims[1], DR_UNKNOWN);
    harness_close(&r);
    plan_early(&r, "random_choice", "{\"transforms\": [" FLOAT ", " FLOAT "]}", &in, &plan);
    assert_int_equal(plan.desc.dtype, DR_F32);
    harness_close(&r);
}

static void refuse_early(const char *op, const char *params, const char *text)
{
    const dr_desc in = dr__desc_image(DR_U8, DR_UNKNOWN, DR_UNKNOWN, 3);
    dr_plan plan = { 0 };
    struct op_run r;
    dr_status status = harness_open(&r, op, params);
    if (status == DR_OK)
        status = r.op.def->plan(r.op.conf, NULL, &in, &plan, &r.err);
    if (status >= 0 || !strstr(r.err.text, text))
        fail_msg("%s %s: wanted \"%s\", got %d \"%s\"", op, params, text, (int)status, r.err.text);
    harness_close(&r);
}

static void refusals(void **state)
{
    (void)state;
    refuse_early("random_apply", "{\"transforms\": [" FLOAT "]}", "must keep type");
    refuse_early("random_choice", "{\"transforms\": [" FLOAT ", " FLIP "]}", "must keep type");
    refuse_early("random_apply", "{\"transforms\": [" FLOAT ", " JITTER "]}", "color_jitter");
    refuse_early("random_apply", "{\"transforms\": []}", "transforms");
    refuse_early("random_apply", "{\"transforms\": [{\"op\": \"nothing\"}]}", "nothing");
    refuse_early("random_apply", "{\"transforms\": [{\"op\": \"decode\"}]}", "decode");
    refuse_early("random_choice", "{\"transforms\": [" FLIP "], \"p\": [1, 2]}", "one for each transform, got 2");
    refuse_early("random_choice", "{\"transforms\": [" FLIP "], \"p\": 0}", "must have a sum above 0");
}

/* random_apply of one op costs what the op costs. */
static void costs(void **state)
{
    const dr_desc in = dr__desc_image(DR_U8, 100, 100, 3);
    struct op_run whole, part;
    (void)state;
    assert_int_equal(harness_open(&whole, "random_apply", "{\"p\": 1, \"transforms\": [" JITTER "]}"), DR_OK);
    assert_int_equal(harness_draw(&whole, &(dr__rng_name){ 0 }, &in), DR_OK);
    assert_int_equal(harness_open(&part, "color_jitter", "{\"brightness\": 0.5, \"hue\": 0.3}"), DR_OK);
    assert_int_equal(harness_draw(&part, &(dr__rng_name){ 0 }, &in), DR_OK);
    double want = part.op.def->cost(part.op.conf, part.par, &in);
    assert_true(want > 0 && whole.op.def->cost(whole.op.conf, whole.par, &in) == want);
    harness_close(&whole);
    harness_close(&part);
}

/* Channels change on the way: each result in between has room. */
static void channels_change(void **state)
{
    dr_view in = harness_image(DR_U8, 33, 47, 3);
    struct op_run r;
    (void)state;
    do_op(&r, "random_apply", "{\"p\": 1, \"transforms\": [" PAD(5) ", " JITTER ", " GREY ", " FLIP ", " FLOAT "]}", 1,
          &in);
    assert_int_equal(r.plan.desc.dtype, DR_F32);
    assert_int_equal(dr__channels(&r.plan.desc), 1);
    assert_int_equal(r.out_bytes, 43 * 57 * sizeof(float));
    harness_close(&r);
    dr__free(in.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_follow), cmocka_unit_test(streams_are_children), cmocka_unit_test(deep_lists),
        cmocka_unit_test(orders),        cmocka_unit_test(early_shapes),         cmocka_unit_test(refusals),
        cmocka_unit_test(costs),         cmocka_unit_test(channels_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
