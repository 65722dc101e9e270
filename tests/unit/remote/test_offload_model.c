/* What is learnt of samples, as points of a plan. */
#include "remote/offload_model.h"

#include "unit/cm.h"

#include <math.h>

#include "base/alloc.h"

static dr_error err;

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-5 * fabs(b);
}

static dr__offload_model made(void)
{
    dr__offload_model m;
    assert_ok(dr__offload_model_make(&m, 100, 3, &err));
    return m;
}

static void samples_are_known_by_what_they_took(void **state)
{
    (void)state;
    dr__offload_model m = made();
    assert_true(dr__offload_model_seconds(&m, 5) == 0);
    for (uint64_t i = 0; i < 10; i++)
        dr__offload_model_run(&m, i, 1000.0 * (double)(i + 1), 1e-3 + 1e-6 * 1000.0 * (double)(i + 1), 0);
    assert_true(near(dr__offload_model_seconds(&m, 9), 11e-3));
    assert_true(near(dr__offload_model_bytes(&m, 50), 5500));     /* unknown: the mean */
    assert_true(near(dr__offload_model_seconds(&m, 50), 6.5e-3)); /* likewise */
    m.bytes[60] = 20000;                                          /* of an index */
    assert_true(near(dr__offload_model_seconds(&m, 60), 21e-3));  /* on the line */
    m.bytes[61] = 1;
    assert_true(dr__offload_model_seconds(&m, 61) > 0);
    dr__offload_model_free(&m);
}

static void a_line_that_falls_is_none(void **state)
{
    (void)state;
    dr__offload_model m = made();
    dr__offload_model_run(&m, 0, 1000, 2e-3, 0);
    dr__offload_model_run(&m, 1, 2000, 1e-3, 0);
    m.bytes[2] = 1e9f;
    assert_true(near(dr__offload_model_seconds(&m, 2), 1.5e-3));
    dr__offload_model_free(&m);
}

static void cuts_are_shares(void **state)
{
    (void)state;
    dr__offload_model m = made();
    dr__offload_point p[3];
    dr__offload_model_run(&m, 0, 1000, 10e-3, 0);
    dr__offload_model_run(&m, 1, 3000, 30e-3, 0);
    dr__offload_model_cut(&m, 0, 2, 500, 20e-3, 1e-3); /* the server is twice as slow */
    dr__offload_model_points(&m, 1, p);
    assert_true(near(p[0].bytes, 3000) && near(p[0].client_s, 30e-3) && p[0].server_s == 0);
    assert_true(isinf(p[1].bytes)); /* never tried */
    assert_true(near(p[2].bytes, 500) && near(p[2].server_s, 60e-3) && near(p[2].client_s, 3e-3));
    dr__offload_model_free(&m);
}

/* A draw of twice the predicted cost takes twice the time, and the segments are those of the draw. */
static void draws_are_known_beforehand(void **state)
{
    (void)state;
    dr__offload_model m = made();
    dr__offload_point p[3];
    dr__offload_model_run(&m, 0, 1000, 10e-3, 50);
    dr__offload_model_run(&m, 1, 1000, 10e-3, 50);
    dr__offload_model_run(&m, 2, 1000, 10e-3, 0); /* nothing was predicted */
    dr__offload_model_cut(&m, 0, 2, 500, 20e-3, 1e-3);
    dr__offload_drawn *drawn = dr__alloc_zero(100, sizeof *drawn);
    assert_non_null(drawn);
    drawn[1] = (dr__offload_drawn){ .bytes = 300, .cost = 100 };
    drawn[2] = (dr__offload_drawn){ .bytes = 400, .cost = 100 };
    drawn[3] = (dr__offload_drawn){ .bytes = 0, .cost = 0 };
    dr__offload_model_draw(&m, drawn);
    assert_true(near(dr__offload_model_seconds(&m, 0), 10e-3));
    assert_true(near(dr__offload_model_seconds(&m, 1), 20e-3));
    assert_true(near(dr__offload_model_seconds(&m, 2), 10e-3));
    dr__offload_model_points(&m, 1, p);
    assert_true(near(p[0].bytes, 1000) && near(p[0].segments, 300) && near(p[0].client_s, 20e-3));
    assert_true(near(p[2].bytes, 500) && near(p[2].server_s, 40e-3) && near(p[2].client_s, 2e-3));
    assert_true(dr__offload_model_segments(&m, 0) == 0 && near(dr__offload_model_segments(&m, 2), 400));
    drawn[1].cost = 1e9f; /* no crop is so much dearer than another one */
    assert_true(dr__offload_model_seconds(&m, 1) < 1);
    dr__offload_model_draw(&m, NULL);
    assert_true(near(dr__offload_model_seconds(&m, 1), 10e-3) && dr__offload_model_segments(&m, 1) == 0);
    dr__offload_model_free(&m);
}

static void memory_may_be_short(void **state)
{
    (void)state;
    for (long n = 1; n <= 3; n++) {
        dr__offload_model m;
        dr__alloc_fail_at(n, false);
        assert_fails(dr__offload_model_make(&m, 10, 2, &err), DR_ERR_NOMEM, "10 samples");
        dr__alloc_fail_at(0, false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_known_by_what_they_took),
        cmocka_unit_test(a_line_that_falls_is_none),
        cmocka_unit_test(cuts_are_shares),
        cmocka_unit_test(draws_are_known_beforehand),
        cmocka_unit_test(memory_may_be_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
