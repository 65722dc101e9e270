/* Records to bytes and back, with random content; tables of another version; numbers that make no sense. */
#include "unit/trace/some_records.h"

#include <jansson.h>
#include <math.h>

#include "base/alloc.h"
#include "trace/wire.h"

enum { ROUNDS = 2000 };

static dr_error err;
static const uint64_t start_ns = 123456789012345;

static dr__tables own_tables(void)
{
    char *text;
    dr__tables t;
    dr_trace_options o;
    dr_trace_defaults(&o);
    assert_ok(dr__meta_make(NULL, &o, start_ns, &text, &err));
    assert_ok(dr__meta_tables(text, strlen(text), &t, &err));
    dr__free(text);
    return t;
}

/* Also before the trace began: a span may have. */
static uint64_t any_time(dr_rng *rng)
{
    return start_ns - 1000000000 + dr__rng_below(rng, 4000000000000);
}

static void there_and_back(void **state)
{
    (void)state;
    const dr__tables t = own_tables();
    dr_rng rng = random_of(1);
    uint8_t bytes[DR__MAX_RECORD];
    for (int i = 0; i < ROUNDS; i++) {
        dr_snapshot snapshot = random_snapshot(&rng, any_time(&rng)), snapshot_back;
        dr_cursor c = dr__cursor(bytes, dr__pack_snapshot(start_ns, &snapshot, bytes), "snapshot");
        assert_ok(dr__unpack_snapshot(&c, start_ns, &t, &snapshot_back, &err));
        assert_snapshot(&snapshot_back, &snapshot);
        assert_int_equal(dr__cursor_left(&c), 0);

        dr_decision decision = random_decision(&rng, any_time(&rng)), decision_back;
        c = dr__cursor(bytes, dr__pack_decision(start_ns, &decision, bytes), "decision");
        assert_true(dr__cursor_left(&c) + DR__FRAME <= 1024);
        assert_ok(dr__unpack_decision(&c, start_ns, &t, &decision_back, &err));
        assert_decision(&decision_back, &decision);
        assert_int_equal(dr__cursor_left(&c), 0);

        dr_span span = random_span(&rng, any_time(&rng)), span_back;
        c = dr__cursor(bytes, dr__pack_span(start_ns, &span, bytes), "span");
        assert_ok(dr__unpack_span(&c, start_ns, &t, &span_back, &err));
        assert_span(&span_back, &span);
        assert_int_equal(dr__cursor_left(&c), 0);
    }
}

/* As files had it before a span told its CPU time. */
static void spans_without_cpu_time(void **state)
{
    (void)state;
    const dr__tables t = own_tables();
    dr_rng rng = random_of(7);
    uint8_t bytes[DR__MAX_RECORD];
    dr_span span = random_span(&rng, start_ns), back;
    span.cpu_ns = 0; /* a single byte, the last one */
    dr_cursor c = dr__cursor(bytes, dr__pack_span(start_ns, &span, bytes) - 1, "span");
    assert_ok(dr__unpack_span(&c, start_ns, &t, &back, &err));
    assert_span(&back, &span);
}

static void flow_there_and_back(void **state)
{
    (void)state;
    const dr__tables t = own_tables();
    dr_rng rng = random_of(2);
    uint8_t bytes[DR__MAX_RECORD];
    for (int i = 0; i < ROUNDS; i++) {
        double flow[DR_N_FLOWS], back[DR_N_FLOWS];
        const uint64_t time = any_time(&rng);
        uint64_t time_back;
        for (int k = 0; k < DR_N_FLOWS; k++)
            flow[k] = random_number(&rng);
        const int n = (int)dr__rng_below(&rng, DR_N_FLOWS + 1);
        dr_cursor c = dr__cursor(bytes, dr__pack_flow(start_ns, time, flow, n, bytes), "flow");
        assert_ok(dr__unpack_flow(&c, start_ns, &t, &time_back, back, &err));
        assert_true(time == time_back);
        for (int k = 0; k < DR_N_FLOWS; k++)
            assert_same_double(back[k], k < n ? flow[k] : 0);
    }
}

/* A decision whose every number is as long as it gets. */
static void a_decision_takes_a_kilobyte_at_most(void **state)
{
    (void)state;
    dr_decision d = { .time_ns = 1, .number = UINT64_MAX, .bound = DR_N_BOUNDS - 1, .changed = UINT32_MAX };
    for (int i = 0; i < DR_N_KNOBS; i++)
        d.before[i] = d.after[i] = 0.1;
    for (int i = 0; i < DR_N_TERMS; i++)
        d.term[i] = d.weight[i] = -1e300;
    d.reward = 1.0 / 3;
    memset(d.reason, 'x', sizeof d.reason - 1);
    uint8_t bytes[DR__MAX_RECORD];
    const size_t n = dr__pack_decision(UINT64_MAX / 2, &d, bytes);
    assert_true(n + DR__FRAME <= 1024);
}

/* Bytes short of each length are refused, none is read past. */
static void short_payloads(void **state)
{
    (void)state;
    const dr__tables t = own_tables();
    dr_rng rng = random_of(3);
    for (int round = 0; round < 20; round++) {
        uint8_t bytes[DR__MAX_RECORD];
        dr_decision d = random_decision(&rng, start_ns);
        const size_t n = dr__pack_decision(start_ns, &d, bytes);
        for (size_t cut = 0; cut < n; cut++) {
            uint8_t *exact = malloc(cut + 1); /* for AddressSanitizer */
            memcpy(exact, bytes, cut);
            dr_cursor c = dr__cursor(exact, cut, "decision");
            assert_int_equal(dr__unpack_decision(&c, start_ns, &t, &d, &err), DR_ERR_FORMAT);
            free(exact);
        }
    }
}

/* --- tables --- */

static dr__tables tables_of(const char *json)
{
    dr__tables t;
    assert_ok(dr__meta_tables(json, strlen(json), &t, &err));
    return t;
}

/* A file whose writer knew other knobs, in another order. */
static void names_not_numbers(void **state)
{
    (void)state;
    const dr__tables t = tables_of("{\"tables\": {\"knobs\": [\"prefetch\", \"steam\", \"workers\"], \"terms\": "
                                   "[\"idle\"], \"bounds\": [\"frost\", \"cpu\"], \"spans\": [\"nap\", \"work\"]}}");
    dr_decision d = { .time_ns = start_ns, .changed = 7, .bound = 1 }, back;
    for (int i = 0; i < DR_N_KNOBS; i++)
        d.before[i] = i + 1, d.after[i] = 10 * (i + 1);
    d.term[0] = 0.5, d.weight[0] = 2;
    uint8_t bytes[DR__MAX_RECORD];
    dr_cursor c = dr__cursor(bytes, dr__pack_decision(start_ns, &d, bytes), "decision");
    assert_ok(dr__unpack_decision(&c, start_ns, &t, &back, &err));
    assert_int_equal(back.bound, DR_BOUND_CPU);
    assert_int_equal(back.changed, 1u << DR_KNOB_PREFETCH | 1u << DR_KNOB_WORKERS);
    assert_same_double(back.before[DR_KNOB_PREFETCH], 1);
    assert_same_double(back.after[DR_KNOB_WORKERS], 30);
    assert_same_double(back.after[DR_KNOB_READERS], 0);
    assert_same_double(back.term[DR_TERM_IDLE], 0.5);
    assert_same_double(back.weight[DR_TERM_IDLE], 2);

    dr_span s = { .kind = 0, .begin_ns = start_ns, .end_ns = start_ns + 1 }, span_back;
    c = dr__cursor(bytes, dr__pack_span(start_ns, &s, bytes), "span");
    assert_int_equal(dr__unpack_span(&c, start_ns, &t, &span_back, &err), DR_AGAIN); /* naps are not known */
    s.kind = 1;
    c = dr__cursor(bytes, dr__pack_span(start_ns, &s, bytes), "span");
    assert_ok(dr__unpack_span(&c, start_ns, &t, &span_back, &err));
    assert_int_equal(span_back.kind, DR_SPAN_WORK);
}

static void unknown_sensors_are_passed_over(void **state)
{
    (void)state;
    const dr__tables t = tables_of("{\"tables\": {\"sensors\": [\"moon\", \"power\"]}}");
    dr_snapshot s = { .time_ns = start_ns, .number = 7, .present = 7, .n_cpus = 2, .cpu = { 1, 0 } }, back;
    s.value[0] = 1, s.value[1] = 2, s.value[2] = 3, s.level[1] = 1;
    uint8_t bytes[DR__MAX_RECORD];
    dr_cursor c = dr__cursor(bytes, dr__pack_snapshot(start_ns, &s, bytes), "snapshot");
    assert_ok(dr__unpack_snapshot(&c, start_ns, &t, &back, &err));
    assert_true(back.present == (uint64_t)1 << DR_SENSOR_POWER);
    assert_same_double(back.value[DR_SENSOR_POWER], 2);
    assert_same_double(back.level[DR_SENSOR_POWER], 1);
    assert_int_equal(back.n_cpus, 2);
    assert_same_double((double)back.cpu[0], 1);
}

static void meta_says_what_it_must(void **state)
{
    (void)state;
    char *text;
    dr_trace_options o;
    dr_trace_defaults(&o);
    o.spans_per_s = HUGE_VAL;
    assert_ok(dr__meta_make("{\"data\": \"cats\", \"pid\": \"mine\"}", &o, start_ns, &text, &err));
    json_t *meta = json_loads(text, 0, NULL);
    dr__free(text);
    assert_string_equal(json_string_value(json_object_get(meta, "data")), "cats");
    assert_true(json_integer_value(json_object_get(meta, "pid")) > 0);
    const json_t *clock = json_object_get(meta, "clock"), *tables = json_object_get(meta, "tables");
    assert_true((uint64_t)json_integer_value(json_object_get(clock, "start_ns")) == start_ns);
    assert_true(json_integer_value(json_object_get(clock, "unix_ns")) > 0);
    assert_int_equal(json_array_size(json_object_get(tables, "sensors")), DR_N_SENSORS);
    assert_int_equal(json_array_size(json_object_get(tables, "flow")), DR_N_FLOWS);
    json_decref(meta);
    assert_fails(dr__meta_make("[1]", &o, start_ns, &text, &err), DR_ERR_ARG, "meta must be a JSON object");
    assert_fails(dr__meta_make("{", &o, start_ns, &text, &err), DR_ERR_ARG, "meta must be a JSON object");
}

static void numbers_that_never_end(void **state)
{
    (void)state;
    uint8_t bytes[16];
    uint64_t time;
    memset(bytes, 0xFF, sizeof bytes);
    dr_cursor c = dr__cursor(bytes, sizeof bytes, "record");
    assert_fails(dr__unpack_time(&c, start_ns, &time, &err), DR_ERR_FORMAT, "more than ten bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(spans_without_cpu_time),
        cmocka_unit_test(flow_there_and_back),
        cmocka_unit_test(a_decision_takes_a_kilobyte_at_most),
        cmocka_unit_test(short_payloads),
        cmocka_unit_test(names_not_numbers),
        cmocka_unit_test(unknown_sensors_are_passed_over),
        cmocka_unit_test(meta_says_what_it_must),
        cmocka_unit_test(numbers_that_never_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
