/* What a profile says of ops is what they took: the clock moves in reads and in one kernel alone. */
#include "unit/loader/toy.h"

#include "kernel/cpu.h"
#include "loader/loader_internal.h"
#include "unit/stopped_clock.h"

enum { READ_NS = 5000, PIXEL_NS = 100, PIXELS = 8 * 6 };

static dr_error err;
static dr__kernels kernels;
static void (*plain_rgb_to_l)(uint8_t *dst, const uint8_t *src, size_t n);

static void read_one(uint64_t id)
{
    (void)id;
    move_clock(READ_NS);
}

static void slow_rgb_to_l(uint8_t *dst, const uint8_t *src, size_t n)
{
    move_clock(n * PIXEL_NS);
    plain_rgb_to_l(dst, src, n);
}

static json_t *profile_of(dr_loader *l, uint64_t samples)
{
    char *text = NULL;
    stop_clock();
    assert_ok(dr_loader_profile(l, samples, &text, &err));
    start_clock();
    json_t *facts = json_loads(text, 0, NULL);
    dr_text_free(&text);
    assert_non_null(facts);
    return facts;
}

static void assert_number(const json_t *o, const char *key, double value)
{
    const double found = json_number_value(json_object_get(o, key));
    if (found - value > 1e-9 || value - found > 1e-9)
        fail_msg("%s is %g, wanted %g", key, found, value);
}

static void times_are_those_of_the_ops(void **state)
{
    (void)state;
    const double read = READ_NS / 1e3, gray = PIXELS * PIXEL_NS / 1e3;
    dr_dataset *set = toy_set(&(toy){ .n = 10, .bad_every = 5, .bad_at = 2, .on_read = read_one });
    dr_graph *g = graph_of("{\"op\":\"grayscale\"},{\"op\":\"random_horizontal_flip\"}");
    dr_loader_options o = options_of(2, 0);
    dr_loader *l = open_loader(set, g, &o);
    dr__kernels_fill(&kernels, DR__CPU_C);
    plain_rgb_to_l = kernels.rgb_to_l;
    kernels.rgb_to_l = slow_rgb_to_l;
    l->exec.program->kernels = &kernels;
    json_t *facts = profile_of(l, 2); /* the third is bad */
    const json_t *ops = json_object_get(facts, "ops"), *first = json_array_get(ops, 0);
    assert_number(facts, "samples", 2);
    assert_number(facts, "bad", 0);
    assert_number(facts, "read_us", read);
    assert_number(facts, "store_us", 0);
    assert_number(facts, "sum_us", read + gray);
    assert_number(facts, "cpu_us", read + gray);
    assert_number(facts, "fused_us", read + gray);
    assert_int_equal(json_array_size(ops), 2);
    assert_number(first, "us", gray);
    assert_number(first, "in_bytes", 3 * PIXELS);
    assert_number(first, "out_bytes", PIXELS);
    assert_number(json_array_get(ops, 1), "us", 0);
    json_decref(facts);
    facts = profile_of(l, 10);
    assert_number(facts, "samples", 8);
    assert_number(facts, "bad", 2);
    json_decref(facts);
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(times_are_those_of_the_ops) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
