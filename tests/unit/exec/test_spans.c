/* A loader's trace: each sample once, from its reading to its place in a batch. */
#include "unit/loader/toy.h"

#include <drapps/trace.h>
#include <math.h>
#include <unistd.h>

static dr_error err;

typedef struct counts {
    uint64_t read[64], work[64], of_kind[DR_N_SPANS], starts, sets, bad, ops, ends;
} counts;

/* The sample is in the batch and slot that the trace says. */
static void check_place(const tape *t, const dr_span *s)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->batches[i].number == s->batch) {
            assert_true(s->slot < t->batches[i].n);
            assert_int_equal(t->batches[i].positions[s->slot], s->position);
            assert_int_equal(t->batches[i].ids[s->slot], s->id);
            return;
        }
    fail_msg("a span of batch %llu, which was not delivered", (unsigned long long)s->batch);
}

static void take_span(const dr_span *s, counts *c, const tape *t, int workers, bool skipped)
{
    c->of_kind[s->kind]++;
    assert_true(s->begin_ns > 0 && s->end_ns >= s->begin_ns);
    if (s->kind == DR_SPAN_FINISH || s->kind == DR_SPAN_BATCH)
        assert_true(s->thread <= workers && (s->thread > 0) == (workers > 0));
    if (s->kind != DR_SPAN_READ && s->kind != DR_SPAN_WORK)
        return;
    assert_true(s->position < 64);
    assert_true(s->thread <= workers && (s->thread == 0) == (workers == 0));
    assert_false(s->slow); /* all are alike */
    assert_true((s->cpu_ns > 0) == (s->kind == DR_SPAN_WORK));
    char key[64];
    snprintf(key, sizeof key, "sample-%llu", (unsigned long long)s->id);
    assert_string_equal(s->key, key);
    (s->kind == DR_SPAN_READ ? c->read : c->work)[s->position]++;
    if (!skipped) /* else later slots move up */
        check_place(t, s);
}

static void take_record(const dr_trace_record *r, counts *c, const tape *t, int workers, bool skipped)
{
    assert_true(r->time_ns > 0);
    if (r->kind == DR_TRACE_SPAN)
        take_span(r->span, c, t, workers, skipped);
    if (r->kind != DR_TRACE_TEXT)
        return;
    c->starts += strstr(r->text, "\"event\":\"start\"") != NULL;
    c->sets += strstr(r->text, "{\"event\":\"set\",\"knob\":\"prefetch\",\"value\":5}") != NULL;
    c->bad += strstr(r->text, "{\"event\":\"bad\",\"epoch\":0,") && strstr(r->text, "\"key\":\"sample-");
    c->ops += strstr(r->text, "{\"event\":\"ops\",\"profile\":{") && strstr(r->text, "random_horizontal_flip");
    c->ends += strstr(r->text, "{\"event\":\"end\",\"reason\":\"closed\"}") != NULL;
}

static counts read_trace(const char *path, const tape *t, int workers, bool skipped)
{
    counts c = { 0 };
    dr_trace_reader *r;
    dr_trace_record rec;
    dr_status status;
    assert_ok(dr_trace_open_reader(path, &r, &err));
    while ((status = dr_trace_next(r, &rec, &err)) == DR_OK)
        take_record(&rec, &c, t, workers, skipped);
    assert_int_equal(status, DR_END);
    dr_trace_close_reader(&r);
    return c;
}

static void check(int workers, bool in_order, int bad_every)
{
    char path[] = "/tmp/drapps-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    dr_dataset *set = toy_set(&(toy){ .n = 50, .bad_every = bad_every, .bad_at = 7 });
    dr_graph *g = graph_of("{\"op\":\"random_horizontal_flip\"}");
    dr_loader_options o = options_of(8, workers);
    o.trace = path;
    o.trace_spans = HUGE_VAL;
    o.on_bad_sample = DR_BAD_SKIP;
    o.in_order = in_order;
    dr_loader *l = open_loader(set, g, &o);
    tape t = { 0 };
    tape_read(&t, l, -1);
    assert_ok(dr_loader_set(l, "prefetch", 5, &err));
    dr_loader_close(&l);
    counts c = read_trace(path, &t, workers, bad_every > 0);
    unlink(path);
    for (uint64_t i = 0; i < 50; i++) {
        assert_int_equal(c.read[i], bad_every ? i % 25 != 7 : 1);
        assert_int_equal(c.work[i], c.read[i]);
    }
    for (int kind = DR_SPAN_FINISH; kind < DR_N_SPANS; kind++)
        assert_int_equal(c.of_kind[kind], t.n);
    assert_int_equal(c.starts, 1);
    assert_int_equal(c.sets, 1);
    assert_int_equal(c.bad, bad_every ? 2 : 0);
    assert_int_equal(c.ops, 1);
    assert_int_equal(c.ends, 1);
    tape_free(&t);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void each_sample_once(void **state)
{
    (void)state;
    for (int workers = 0; workers < 4; workers++) {
        check(workers, true, 0);
        check(workers, true, 25);
        check(workers, false, 0);
        check(workers, false, 25);
    }
}

/* What a consumer does between two epochs is no step, also where the first was given up. */
static void no_step_goes_over_a_start(void **state)
{
    (void)state;
    char path[] = "/tmp/drapps-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    dr_dataset *set = toy_set(&(toy){ .n = 50 });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(8, 0);
    o.trace = path;
    o.trace_spans = HUGE_VAL;
    dr_loader *l = open_loader(set, g, &o);
    tape t = { 0 };
    tape_read(&t, l, 2);
    assert_ok(dr_loader_start(l, 1, &err));
    tape_read(&t, l, -1);
    dr_loader_close(&l);
    const counts c = read_trace(path, &t, 0, true);
    unlink(path);
    assert_int_equal(c.of_kind[DR_SPAN_WAIT], 2 + 7);
    assert_int_equal(c.of_kind[DR_SPAN_STEP], 1 + 7);
    tape_free(&t);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* What the caller has to say is in the trace; without one, it is not. */
static void notes_of_the_caller(void **state)
{
    (void)state;
    char path[] = "/tmp/drapps-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    static const char note[] = "{\"event\":\"pass\",\"pass\":3}";
    dr_dataset *set = toy_set(&(toy){ .n = 8 });
    dr_graph *g = graph_of(NULL);
    for (int traced = 0; traced < 2; traced++) {
        dr_loader_options o = options_of(8, 1);
        o.trace = traced ? path : NULL;
        dr_loader *l = open_loader(set, g, &o);
        dr_loader_note(l, note);
        dr_loader_note(l, NULL);
        dr_loader_close(&l);
    }
    int found = 0;
    dr_trace_reader *r;
    dr_trace_record rec;
    assert_ok(dr_trace_open_reader(path, &r, &err));
    while (dr_trace_next(r, &rec, &err) == DR_OK)
        found += rec.kind == DR_TRACE_TEXT && !strcmp(rec.text, note) && rec.time_ns > 0;
    dr_trace_close_reader(&r);
    unlink(path);
    assert_int_equal(found, 1);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void unwritable_paths_are_named(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 5 });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(2, 0);
    dr_loader *l = NULL;
    o.trace = "/nowhere/at/all.drtrace";
    assert_fails(dr_loader_open(set, g, &o, &l, &err), DR_ERR_IO, "/nowhere/at/all.drtrace: No such file or directory");
    assert_null(l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* A disk that fills ends the trace, not the training. */
static void a_full_disk_ends_the_trace(void **state)
{
    (void)state;
    if (access("/dev/full", W_OK) != 0)
        skip();
    dr_dataset *set = toy_set(&(toy){ .n = 2000 });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(10, 2);
    o.trace = "/dev/full";
    tape t = epoch_of(set, g, &o);
    assert_each_once(&t, 2000);
    tape_free(&t);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_sample_once),           cmocka_unit_test(no_step_goes_over_a_start),
        cmocka_unit_test(notes_of_the_caller),        cmocka_unit_test(unwritable_paths_are_named),
        cmocka_unit_test(a_full_disk_ends_the_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
