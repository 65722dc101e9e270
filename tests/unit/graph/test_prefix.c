/* Cutting programs: where, what crosses the cut, and what is never kept. */
#include "unit/cm.h"

#include "data/desc.h"
#include "graph/prefix.h"

static dr_error err;

#define DECODE "{\"op\":\"decode\"}"
#define FAST "{\"op\":\"decode\",\"params\":{\"fast_decode\":true}}"
#define RESIZE "{\"op\":\"resize\",\"params\":{\"size\":[8,6]}}"
#define RESIZE_TO(out) "{\"op\":\"resize\",\"params\":{\"size\":[8,6]},\"outputs\":[\"" out "\"]}"
#define FLIP "{\"op\":\"random_horizontal_flip\"}"
#define FLIP_BOTH "{\"op\":\"random_horizontal_flip\",\"fields\":[\"image\",\"mask\"]}"
#define FLOAT "{\"op\":\"to_dtype\",\"params\":{\"scale\":true}}"
#define NORMALIZE "{\"op\":\"normalize\",\"params\":{\"mean\":[0.5,0.4,0.3],\"std\":[0.2,0.3,0.4]}}"
#define APPLY "{\"op\":\"random_apply\",\"params\":{\"transforms\":[{\"op\":\"resize\",\"params\":{\"size\":[8,6]}}]}}"
#define MIXUP "{\"op\":\"mixup\",\"params\":{\"num_classes\":10},\"fields\":[\"image\",\"label\"]}"

#define FLIP_MASK "{\"op\":\"random_horizontal_flip\",\"fields\":[\"mask\"]}"
#define CLAMP "{\"op\":\"clamp_bounding_boxes\",\"fields\":[\"image\",\"boxes\"]}"

enum { N_FIELDS = 5 };

static void make_fields(dr__field fields[N_FIELDS])
{
    static const char *const names[N_FIELDS] = { "image", "mask", "label", "key", "boxes" };
    for (int i = 0; i < N_FIELDS; i++)
        strcpy(fields[i].name, names[i]);
    fields[0].desc = dr__desc_bytes(DR_UNKNOWN);
    fields[1].desc = dr__desc_image(DR_U8, 20, 16, 1);
    fields[1].desc.kind = DR_KIND_MASK;
    fields[2].desc = dr__desc_scalar(DR_I64);
    fields[3].desc = dr__desc_text(DR_UNKNOWN);
    fields[4].desc = (dr_desc){ .kind = DR_KIND_BOXES, .dtype = DR_F32, .n_dims = 2, .dims = { 2, 4 } };
}

/* Splits a graph over the usual fields.  want: the status. */
static dr__prefix split_at(const char *nodes, const char *outputs, const char *layout, const char *at, dr_status want)
{
    char text[4096];
    dr_graph *g = NULL;
    dr__program *whole = NULL;
    dr__prefix out;
    dr__field fields[N_FIELDS];
    dr__program_options o = { .outputs = outputs, .part = true, .any_shape = true };
    make_fields(fields);
    snprintf(text, sizeof text, "{\"version\":1,\"nodes\":[%s]}", nodes);
    assert_ok(dr_graph_from_json(text, &g, &err));
    assert_ok(dr__program_compile(g, fields, N_FIELDS, &o, &whole, &err));
    o.layout = layout;
    assert_int_equal(dr__prefix_split(whole, fields, N_FIELDS, &o, at, &out, &err), want);
    if (out.head) { /* the second part ends where the whole does */
        assert_int_equal(out.rest->n_outputs, whole->n_outputs);
        for (int i = 0; i < whole->n_outputs; i++) {
            assert_string_equal(out.rest->outputs[i].name, whole->outputs[i].name);
            assert_true(dr__desc_equal(&out.rest->outputs[i].desc, &whole->outputs[i].desc));
            assert_true(dr__desc_equal(&out.rest->outputs[i].delivered, &whole->outputs[i].delivered));
            assert_int_equal(out.rest->outputs[i].collate, whole->outputs[i].collate);
        }
        assert_int_equal(out.head->graph->n_nodes + out.rest->graph->n_nodes, whole->graph->n_nodes);
    }
    dr__program_free(&whole);
    dr_graph_free(&g);
    return out;
}

static dr__prefix split_with(const char *nodes, const char *outputs, const char *layout)
{
    return split_at(nodes, outputs, layout, NULL, DR_OK);
}

static dr__prefix split(const char *nodes, const char *outputs)
{
    return split_with(nodes, outputs, NULL);
}

static void it_cuts_before_the_first_random_op(void **state)
{
    (void)state;
    static const struct {
        const char *nodes, *outputs, *kept; /* NULL: nothing */
    } cases[] = {
        { DECODE "," RESIZE "," FLIP, "image,label",
          "decode, resize -> label int64 (), image image uint8 HWC (8, 6, 3)" },
        { DECODE "," RESIZE "," FLIP, "image", "decode, resize -> image image uint8 HWC (8, 6, 3)" },
        { DECODE "," FLIP "," RESIZE, "image", "decode -> image image uint8 HWC (?, ?, 3)" },
        /* all of it, but for what is a look-up in a table */
        { DECODE "," RESIZE "," FLOAT "," NORMALIZE, "image", "decode, resize -> image image uint8 HWC (8, 6, 3)" },
        { DECODE "," RESIZE "," FLOAT "," FLIP, "image", "decode, resize -> image image uint8 HWC (8, 6, 3)" },
        /* what a later op or the user wants crosses the cut, whoever made it */
        { DECODE "," RESIZE "," FLIP_BOTH, "image,mask",
          "decode, resize -> image image uint8 HWC (8, 6, 3), mask mask uint8 HWC (8, 6, 1)" },
        { DECODE "," RESIZE_TO("small") "," FLIP, "image,small",
          "decode, resize -> image image uint8 HWC (?, ?, 3), small image uint8 HWC (8, 6, 3)" },
        { DECODE "," RESIZE_TO("small") "," FLIP, "small,key",
          "decode, resize -> key text uint8 (?), image image uint8 HWC (?, ?, 3), small image uint8 HWC (8, 6, 3)" },
        { DECODE "," RESIZE "," FLOAT "," MIXUP, "image,label",
          "decode, resize -> label int64 (), image image uint8 HWC (8, 6, 3)" },
        /* also what a later op only looks at */
        { DECODE "," RESIZE "," FLIP_MASK "," CLAMP, "boxes,mask",
          "decode, resize -> image image uint8 HWC (8, 6, 3), mask mask uint8 HWC (8, 6, 1), "
          "boxes boxes float32 (2, 4)" },
        /* a decode that depends on what reads it */
        { FAST "," RESIZE "," FLIP, "image", "decode, resize -> image image uint8 HWC (8, 6, 3)" },
        { FAST "," APPLY, "image", NULL },
        { FAST "," FLIP, "image", NULL },
        { DECODE "," RESIZE_TO("small"), "label", NULL },
        { "", "image", NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        dr__prefix p = split(cases[i].nodes, cases[i].outputs);
        assert_int_equal(p.head != NULL, cases[i].kept != NULL);
        if (p.head)
            assert_string_equal(dr__prefix_explain(&p, text, sizeof text), cases[i].kept);
        else
            assert_non_null(strstr(p.why, "no op before the first random one"));
        dr__prefix_free(&p);
    }
}

#define FLIP_OTHER "{\"op\":\"random_vertical_flip\",\"fields\":[\"mask\"]}"

static void it_cuts_where_it_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *nodes, *outputs, *at, *kept; /* kept: or a part of the error */
        bool fails;
    } cases[] = {
        { DECODE "," RESIZE "," FLOAT "," FLIP, "image", "decode", "decode -> image image uint8 HWC (?, ?, 3)" },
        { DECODE "," RESIZE "," FLOAT "," FLIP, "image", "0", "decode -> image image uint8 HWC (?, ?, 3)" },
        { DECODE "," RESIZE "," FLOAT "," FLIP, "image", "resize",
          "decode, resize -> image image uint8 HWC (8, 6, 3)" },
        { DECODE "," RESIZE "," FLOAT "," FLIP, "image", "to_dtype",
          "decode, resize, to_dtype -> image image float32 HWC (8, 6, 3)" },
        /* branches before it are kept with it */
        { DECODE "," RESIZE_TO("small") "," FLIP, "image,small", "resize",
          "decode, resize -> image image uint8 HWC (?, ?, 3), small image uint8 HWC (8, 6, 3)" },
        { DECODE "," RESIZE_TO("small") "," FLIP, "image,small", "decode",
          "decode -> image image uint8 HWC (?, ?, 3)" },
        /* behind a random op on another branch: what it depends on */
        { FLIP_OTHER "," DECODE "," RESIZE, "image", "resize",
          "decode, resize -> mask mask uint8 HWC (20, 16, 1), image image uint8 HWC (8, 6, 3)" },
        { DECODE "," FLIP_OTHER "," RESIZE_TO("small") "," FLIP_BOTH, "image,small,mask", "resize",
          "decode, resize -> mask mask uint8 HWC (20, 16, 1), image image uint8 HWC (?, ?, 3), "
          "small image uint8 HWC (8, 6, 3)" },
        { DECODE "," FLIP "," RESIZE, "image", "resize", "op 1 (random_horizontal_flip) is random", true },
        { DECODE "," FLIP "," RESIZE, "image", "1", "op 1 (random_horizontal_flip) is random", true },
        { DECODE "," RESIZE "," FLOAT "," MIXUP, "image,label", "mixup", "op 3 (mixup) ", true },
        { FAST "," RESIZE "," FLIP, "image", "decode", "op 0 (decode) with fast_decode depends on", true },
        { FAST "," RESIZE "," FLIP, "image", "resize", "decode, resize -> image image uint8 HWC (8, 6, 3)" },
        { DECODE "," RESIZE "," FLIP, "image", "3", "an op, 0 to 2, got", true },
        { DECODE "," RESIZE "," FLIP, "image", "-1", "an op, 0 to 2, got", true },
        { DECODE "," RESIZE "," FLIP, "image", "crop", "no such op", true },
        { DECODE "," RESIZE "," RESIZE, "image", "resize", "give a number: 1, 2", true },
        { DECODE "," RESIZE "," RESIZE, "image", "2", "decode, resize, resize -> image image uint8 HWC (8, 6, 3)" },
        { DECODE "," RESIZE_TO("small"), "label", "resize", "none of its results is used", true },
        /* a field is read as it was before, or written in another order */
        { DECODE
          "," RESIZE_TO("small") "," FLIP_OTHER ","
                                 "{\"op\":\"random_horizontal_flip\",\"fields\":[\"image\"],\"outputs\":[\"small\"]},"
                                 "{\"op\":\"center_crop\",\"params\":{\"size\":[4,4]},\"fields\":[\"image\"],"
                                 "\"outputs\":[\"small\"]}",
          "small,image,mask", "center_crop", "a random op before it writes to one of its fields", true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        dr__prefix p =
            split_at(cases[i].nodes, cases[i].outputs, NULL, cases[i].at, cases[i].fails ? DR_ERR_ARG : DR_OK);
        if (cases[i].fails && !strstr(err.text, cases[i].kept))
            fail_msg("\"%s\" is not in \"%s\"", cases[i].kept, err.text);
        if (!cases[i].fails)
            assert_string_equal(dr__prefix_explain(&p, text, sizeof text), cases[i].kept);
        dr__prefix_free(&p);
    }
}

/* The ids of nodes key what they draw. */
static void nodes_keep_their_ids(void **state)
{
    (void)state;
    dr__prefix p = split(DECODE "," RESIZE "," FLIP "," APPLY, "image");
    assert_int_equal(p.head->graph->nodes[1].id, 2);
    assert_int_equal(p.rest->graph->nodes[0].id, 3);
    assert_int_equal(p.rest->graph->nodes[1].id, 4);
    assert_non_null(strstr(p.json, "\"resize\""));
    assert_null(strstr(p.json, "flip"));
    dr__prefix_free(&p);
}

/* Whatever prevents it costs the cache, never the run. */
static void parts_that_do_not_compile_keep_nothing(void **state)
{
    (void)state;
    dr__prefix p = split_with(DECODE "," RESIZE "," FLIP, "image", "no such layout");
    assert_null(p.head);
    assert_null(p.rest);
    assert_null(p.json);
    assert_non_null(strstr(p.why, "cannot be split: "));
    assert_non_null(strstr(p.why, "no such layout"));
    dr__prefix_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_cuts_before_the_first_random_op),
        cmocka_unit_test(it_cuts_where_it_is_told),
        cmocka_unit_test(parts_that_do_not_compile_keep_nothing),
        cmocka_unit_test(nodes_keep_their_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
