/* The edges of graphs, and why samples must not be stored at some of them. */
#include "unit/cm.h"

#include <jansson.h>

#include <drapps/graph.h>

static dr_error err;

#define DECODE "{\"op\":\"decode\"}"
#define FAST "{\"op\":\"decode\",\"params\":{\"fast_decode\":true}}"
#define RESIZE "{\"op\":\"resize\",\"params\":{\"size\":[8,6]}}"
#define RESIZE_TO(out) "{\"op\":\"resize\",\"params\":{\"size\":[8,6]},\"outputs\":[\"" out "\"]}"
#define FLIP "{\"op\":\"random_horizontal_flip\"}"
#define FLOAT "{\"op\":\"to_dtype\",\"params\":{\"scale\":true}}"
#define MIXUP "{\"op\":\"mixup\",\"params\":{\"num_classes\":10},\"fields\":[\"image\",\"label\"]}"

static json_t *cuts_of(const char *nodes)
{
    static const char *const paths[] = { "a.jpg", "b.jpg" };
    static const int64_t labels[] = { 0, 1 };
    char graph_text[4096], *text = NULL;
    dr_dataset *set = NULL;
    dr_graph *graph = NULL;
    snprintf(graph_text, sizeof graph_text, "{\"version\":1,\"nodes\":[%s]}", nodes);
    assert_ok(dr_dataset_from_files(&(dr_files){ .paths = paths, .labels = labels, .n = 2 }, &set, &err));
    assert_ok(dr_graph_from_json(graph_text, &graph, &err));
    assert_ok(dr_graph_cuts(graph, set, &text, &err));
    json_t *edges = json_loads(text, 0, NULL);
    assert_non_null(edges);
    dr_text_free(&text);
    dr_graph_free(&graph);
    dr_dataset_unref(&set);
    return edges;
}

static const char *why(json_t *edges, size_t i)
{
    return json_string_value(json_object_get(json_array_get(edges, i), "why"));
}

static void edges_are_legal_up_to_what_must_not_be_stored(void **state)
{
    (void)state;
    static const struct {
        const char *nodes;
        size_t n;
        const char *why[5]; /* part of the reason of each edge; "": legal */
    } cases[] = {
        { "", 1, { "" } },
        { DECODE "," RESIZE "," FLOAT, 4, { "", "", "", "" } },
        { DECODE "," RESIZE "," FLIP "," FLOAT, 5, { "", "", "", "flip draws at random", "flip draws at random" } },
        { DECODE "," RESIZE "," FLOAT "," MIXUP, 5, { "", "", "", "", "mixup draws at random" } },
        { FAST "," RESIZE "," FLIP, 4, { "", "fraction of the size", "", "flip draws" } },
        { DECODE "," RESIZE_TO("small") "," FLIP, 4, { "", "", "", "flip draws" } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *edges = cuts_of(cases[i].nodes);
        assert_int_equal(json_array_size(edges), cases[i].n);
        for (size_t k = 0; k < cases[i].n; k++)
            if (*cases[i].why[k] ? !strstr(why(edges, k), cases[i].why[k]) : *why(edges, k))
                fail_msg("case %zu, edge %zu: \"%s\", expected \"%s\"", i, k, why(edges, k), cases[i].why[k]);
        json_decref(edges);
    }
}

static void an_edge_says_what_would_be_stored(void **state)
{
    (void)state;
    json_t *edges = cuts_of(DECODE "," RESIZE "," FLIP), *edge = json_array_get(edges, 2);
    assert_string_equal(json_string_value(json_object_get(edge, "after")), "resize");
    assert_int_equal(json_integer_value(json_object_get(edge, "nodes")), 2);
    bool seen = false;
    json_t *field;
    size_t i;
    json_array_foreach(json_object_get(edge, "fields"), i, field)
    {
        if (strcmp(json_string_value(json_object_get(field, "name")), "image"))
            continue;
        seen = true;
        assert_string_equal(json_string_value(json_object_get(field, "form")), "image uint8 HWC (8, 6, 3)");
        assert_int_equal(json_integer_value(json_object_get(field, "bytes")), 8 * 6 * 3);
    }
    assert_true(seen);
    assert_null(json_object_get(json_array_get(json_object_get(json_array_get(edges, 0), "fields"), 0), "bytes"));
    json_decref(edges);
}

static void a_graph_that_does_not_fit_the_data_fails(void **state)
{
    (void)state;
    static const char *const paths[] = { "a.jpg" };
    char *text = NULL;
    dr_dataset *set = NULL;
    dr_graph *graph = NULL;
    assert_ok(dr_dataset_from_files(&(dr_files){ .paths = paths, .n = 1 }, &set, &err));
    assert_ok(
        dr_graph_from_json("{\"version\":1,\"nodes\":[{\"op\":\"decode\",\"fields\":[\"depth\"]}]}", &graph, &err));
    assert_fails(dr_graph_cuts(graph, set, &text, &err), DR_ERR_NOT_FOUND, "depth");
    assert_null(text);
    dr_graph_free(&graph);
    dr_dataset_unref(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges_are_legal_up_to_what_must_not_be_stored),
        cmocka_unit_test(an_edge_says_what_would_be_stored),
        cmocka_unit_test(a_graph_that_does_not_fit_the_data_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
