/* Graphs: building, JSON both ways, mistakes named. */
#include "unit/cm.h"

#include <drapps/graph.h>

#include "base/alloc.h"
#include "graph/graph_internal.h"
#include "op/batch.h"
#include "op/op.h"

static dr_error err;

static dr_graph *fresh(void)
{
    dr_graph *g = NULL;
    assert_ok(dr_graph_new(&g, &err));
    return g;
}

static void json_goes_both_ways(void **state)
{
    (void)state;
    dr_graph *g = fresh(), *again = NULL;
    assert_ok(dr_graph_add(g, "decode", "{}", NULL, NULL, &err));
    assert_ok(dr_graph_add(g, "random_resized_crop", "{\"size\": 32, \"scale\": [0.5, 1]}", "image", "a", &err));
    assert_ok(dr_graph_add(g, "random_horizontal_flip", "{\"p\": 0.5}", "a", NULL, &err));
    const char *text, *second;
    assert_ok(dr_graph_json(g, &text, &err));
    assert_non_null(strstr(text, "\"scale\":[0.5,1]"));
    assert_null(strstr(text, "\"p\"")); /* a default is not written */
    assert_ok(dr_graph_from_json(text, &again, &err));
    assert_ok(dr_graph_json(again, &second, &err));
    assert_string_equal(text, second);
    dr_graph_free(&g);
    dr_graph_free(&again);
    assert_null(g);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    dr_graph *g = fresh();
    assert_fails(dr_graph_add(g, "no_such_op", NULL, NULL, NULL, &err), DR_ERR_NOT_FOUND, "no_such_op");
    assert_fails(dr_graph_add(g, "random_horizontal_flip", "{\"p\": 2}", NULL, NULL, &err), DR_ERR_ARG,
                 "random_horizontal_flip: p must be 0 to 1, got 2");
    assert_fails(dr_graph_add(g, "random_horizontal_flip", "{\"q\": 1}", NULL, NULL, &err), DR_ERR_ARG, "\"q\"");
    assert_fails(dr_graph_add(g, "random_horizontal_flip", "{\"p\": \"x\"}", NULL, NULL, &err), DR_ERR_ARG, "a number");
    assert_fails(dr_graph_add(g, "random_horizontal_flip", "{p", NULL, NULL, &err), DR_ERR_ARG, "must be JSON");
    assert_fails(dr_graph_add(g, "random_resized_crop", "{}", NULL, NULL, &err), DR_ERR_ARG, "size must be given");
    assert_fails(dr_graph_add(g, "decode", NULL, "a,b", "c", &err), DR_ERR_ARG, "as many names as fields (2), got 1");
    assert_fails(dr_graph_add(g, "decode", NULL, "a,,b", NULL, &err), DR_ERR_ARG,
                 "a field name must have 1 to 63 characters");
    const char *text;
    assert_ok(dr_graph_json(g, &text, &err));
    assert_string_equal(text, "{\"nodes\":[],\"version\":1}");
    dr_graph_free(&g);
}

static void foreign_json_is_refused(void **state)
{
    (void)state;
    dr_graph *g = NULL;
    assert_fails(dr_graph_from_json("{\"nodes\": 3}", &g, &err), DR_ERR_FORMAT, "version");
    assert_fails(dr_graph_from_json("[", &g, &err), DR_ERR_FORMAT, "graph");
    assert_fails(dr_graph_from_json("{\"version\":1,\"nodes\":[{\"op\":\"decode\",\"version\":77}]}", &g, &err),
                 DR_ERR_UNSUPPORTED, "version 77");
    assert_fails(dr_graph_from_json("{\"version\":1,\"nodes\":[{\"op\":\"decode\",\"id\":-4}]}", &g, &err),
                 DR_ERR_FORMAT, "id");
    assert_fails(dr_graph_from_json("{\"version\":1,\"nodes\":[{\"op\":\"decode\",\"id\":\"4\"}]}", &g, &err),
                 DR_ERR_FORMAT, "id must be an int");
    assert_fails(dr_graph_from_json("{\"version\":1,\"nodes\":[{\"op\":\"decode\",\"fields\":3}]}", &g, &err),
                 DR_ERR_FORMAT, "lists of names");
    assert_fails(dr_graph_from_json("{\"version\":1,\"nodes\":[{\"op\":\"decode\",\"outputs\":\"x\"}]}", &g, &err),
                 DR_ERR_FORMAT, "lists of names");
    assert_null(g);
}

static void survives_failing_allocations(void **state)
{
    (void)state;
    for (long n = 1; n < 40; n++) {
        dr_graph *g = NULL;
        dr__alloc_fail_at(n, false);
        dr_status status = dr_graph_new(&g, &err);
        if (status == DR_OK)
            status = dr_graph_add(g, "random_resized_crop", "{\"size\": 32}", NULL, NULL, &err);
        const char *text;
        if (status == DR_OK)
            status = dr_graph_json(g, &text, &err);
        dr__alloc_fail_at(0, false);
        assert_true(status == DR_OK || status == DR_ERR_NOMEM);
        dr_graph_free(&g);
    }
}

/* Every op of the table: its defaults are within its own ranges, and its texts are there. */
static void table_is_sound(void **state)
{
    (void)state;
    for (const dr_op_def *const *d = dr__op_table; *d; d++) {
        assert_ptr_equal(dr__op_find((*d)->name), *d);
        assert_true(strlen((*d)->summary) > 0);
        assert_true((*d)->version > 0);
        assert_true(d[1] == NULL || strcmp((*d)->name, d[1]->name) < 0);
        if ((*d)->flags & DR_OP_BATCH)
            assert_true((*d)->batch->draw && (*d)->batch->plan && (*d)->batch->run);
        else if ((*d)->flags & DR_OP_RANDOM)
            assert_true((*d)->draw && ((*d)->draws || (*d)->draws_json));
        for (const dr_param *p = (*d)->params; p && p->name; p++)
            assert_true(p->doc && strlen(p->doc) > 0);
    }
    json_t *ops = json_loads(dr_ops_json(), 0, NULL);
    assert_true(json_array_size(ops) > 20);
    json_decref(ops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_goes_both_ways),     cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(foreign_json_is_refused), cmocka_unit_test(survives_failing_allocations),
        cmocka_unit_test(table_is_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
