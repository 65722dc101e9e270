/* The trace: one line an event, each sample once, from its reading to its place in a batch. */
#include "unit/loader/toy.h"

#include <jansson.h>
#include <unistd.h>

static dr_error err;

typedef struct counts {
    uint64_t samples[64], batches, delivered, starts, sets, bad;
} counts;

static uint64_t number(json_t *o, const char *name)
{
    json_t *v = json_object_get(o, name);
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        fail_msg("an event has no number \"%s\"", name);
    return (uint64_t)json_integer_value(v);
}

static void take_event(json_t *o, counts *c, const tape *t, int workers)
{
    const char *event = json_string_value(json_object_get(o, "event"));
    assert_true(number(o, "t") > 0);
    if (!strcmp(event, "sample")) {
        uint64_t position = number(o, "position"), batch = number(o, "batch"), slot = number(o, "slot");
        assert_true(position < 64 && batch < t->n && slot < 8);
        assert_true(number(o, "worker") <= (uint64_t)workers);
        assert_int_equal(number(o, "worker") == 0, workers == 0);
        assert_true(number(o, "read_ns") + number(o, "work_ns") > 0);
        number(o, "id");
        number(o, "bytes");
        number(o, "cost");
        assert_string_equal(json_string_value(json_object_get(o, "lane")), "fast"); /* all are alike */
        c->samples[position]++;
        bool found = false; /* it is where the trace says */
        for (size_t i = 0; i < t->n; i++)
            for (uint64_t k = 0; t->batches[i].number == batch && k < t->batches[i].n; k++)
                found |= t->batches[i].positions[k] == position && t->batches[i].ids[k] == number(o, "id");
        assert_true(found);
    }
    c->batches += !strcmp(event, "batch");
    c->delivered += !strcmp(event, "deliver");
    c->starts += !strcmp(event, "start");
    c->sets += !strcmp(event, "set");
    c->bad += !strcmp(event, "bad");
}

static void check(int workers, bool in_order)
{
    char path[] = "/tmp/drapps-test-XXXXXX", line[2048];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    dr_dataset *set = toy_set(&(toy){ .n = 50, .bad_every = 25, .bad_at = 7 });
    dr_graph *g = graph_of("{\"op\":\"random_horizontal_flip\"}");
    dr_loader_options o = options_of(8, workers);
    o.trace = path;
    o.on_bad = DR_BAD_SKIP;
    o.in_order = in_order;
    dr_loader *l = open_loader(set, g, &o);
    tape t = { 0 };
    tape_read(&t, l, -1);
    assert_ok(dr_loader_set(l, "prefetch", 5, &err));
    dr_loader_close(&l);
    counts c = { 0 };
    FILE *f = fopen(path, "r");
    while (fgets(line, sizeof line, f)) {
        json_t *event = json_loads(line, 0, NULL);
        assert_non_null(event);
        take_event(event, &c, &t, workers);
        json_decref(event);
    }
    fclose(f);
    unlink(path);
    for (uint64_t i = 0; i < 50; i++)
        assert_int_equal(c.samples[i], i % 25 != 7);
    assert_int_equal(c.batches, t.n);
    assert_int_equal(c.delivered, t.n);
    assert_int_equal(c.starts, 1);
    assert_int_equal(c.sets, 1);
    assert_int_equal(c.bad, 2);
    tape_free(&t);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void each_sample_once(void **state)
{
    (void)state;
    for (int workers = 0; workers < 4; workers++) {
        check(workers, true);
        check(workers, false);
    }
}

static void unwritable_paths_are_named(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 5 });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(2, 0);
    dr_loader *l = NULL;
    o.trace = "/nowhere/at/all.jsonl";
    assert_fails(dr_loader_open(set, g, &o, &l, &err), DR_ERR_IO, "/nowhere/at/all.jsonl: No such file or directory");
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
        cmocka_unit_test(each_sample_once),
        cmocka_unit_test(unwritable_paths_are_named),
        cmocka_unit_test(a_full_disk_ends_the_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
