/* Files as a reader finds them: cut at every byte, with every byte changed, of another version, with unknown kinds. */
#include "unit/trace/some_records.h"

#include <fcntl.h>
#include <math.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "trace/wire.h"

static dr_error err;

enum { N = 6 };

/* One record of each kind; META is 0. */
static void write_some(const char *path)
{
    dr_trace *t;
    dr_rng rng = random_of(4);
    const dr_trace_options o = { .size = sizeof o, .spans_per_s = HUGE_VAL };
    assert_ok(dr_trace_open(path, "{\"data\":\"toys\"}", &o, &t, &err));
    const dr_snapshot snapshot = random_snapshot(&rng, 5000);
    const dr_decision decision = random_decision(&rng, 6000);
    const dr_span span = random_span(&rng, 2000000000);
    const double flow[] = { 1, 2.5, 1e9 };
    dr_trace_snapshot(t, &snapshot);
    dr_trace_flow(t, 5500, flow, 3);
    dr_trace_decision(t, &decision);
    dr_trace_span(t, &span);
    dr_trace_text(t, 7000, "{\"event\":\"mark\",\"name\":\"here\"}");
    dr_trace_close(&t);
}

/* Reads all that can be read; returns how it ended. */
static dr_status count(const char *path, int *n)
{
    dr_trace_reader *r;
    dr_trace_record rec;
    *n = 0;
    dr_status status = dr_trace_open_reader(path, &r, &err);
    while (status == DR_OK && (status = dr_trace_next(r, &rec, &err)) == DR_OK)
        ++*n;
    dr_trace_close_reader(&r);
    return status;
}

static void kinds_come_back_in_order(void **state)
{
    (void)state;
    char path[64];
    dr_trace_reader *r;
    dr_trace_record rec;
    make_path(path);
    write_some(path);
    dr_rng rng = random_of(4);
    const dr_snapshot snapshot = random_snapshot(&rng, 5000);
    const dr_decision decision = random_decision(&rng, 6000);
    const dr_span span = random_span(&rng, 2000000000);
    assert_ok(dr_trace_open_reader(path, &r, &err));
    assert_ok(dr_trace_next(r, &rec, &err));
    assert_int_equal(rec.kind, DR_TRACE_META);
    assert_non_null(strstr(rec.text, "\"data\":\"toys\""));
    assert_ok(dr_trace_next(r, &rec, &err));
    assert_int_equal(rec.kind, DR_TRACE_SNAPSHOT);
    assert_snapshot(rec.snapshot, &snapshot);
    assert_ok(dr_trace_next(r, &rec, &err));
    assert_int_equal(rec.kind, DR_TRACE_FLOW);
    assert_true(rec.time_ns == 5500 && rec.n_flow == DR_N_FLOWS && rec.flow[1] == 2.5 && rec.flow[3] == 0);
    assert_ok(dr_trace_next(r, &rec, &err));
    assert_int_equal(rec.kind, DR_TRACE_DECISION);
    assert_decision(rec.decision, &decision);
    assert_ok(dr_trace_next(r, &rec, &err));
    assert_int_equal(rec.kind, DR_TRACE_SPAN);
    assert_span(rec.span, &span);
    assert_ok(dr_trace_next(r, &rec, &err));
    assert_int_equal(rec.kind, DR_TRACE_TEXT);
    assert_true(rec.time_ns == 7000);
    assert_string_equal(rec.text, "{\"event\":\"mark\",\"name\":\"here\"}");
    assert_ok(dr_trace_next(r, &rec, &err));
    assert_string_equal(rec.text, "{\"event\":\"end\",\"reason\":\"closed\"}");
    assert_int_equal(dr_trace_next(r, &rec, &err), DR_END);
    assert_int_equal(dr_trace_next(r, &rec, &err), DR_END);
    dr_trace_close_reader(&r);
    remove_file(path);
}

/* Where the records of a file end. */
static int ends_of(const uint8_t *data, size_t size, size_t *ends)
{
    int n = 0, kind;
    size_t at = DR__TRACE_HEADER, length;
    while (at < size && dr__frame_read(data + at, &kind, &length))
        ends[n++] = at += DR__FRAME + length;
    return n;
}

/* As a killed process leaves it: what is whole is read, the rest is no error. */
static void cut_at_every_byte(void **state)
{
    (void)state;
    char path[64];
    size_t size, ends[16];
    int n;
    make_path(path);
    write_some(path);
    uint8_t *data = read_whole(path, &size);
    const int whole = ends_of(data, size, ends);
    assert_int_equal(whole, N + 1);
    for (size_t cut = size; cut-- > 0;) {
        assert_int_equal(truncate(path, (off_t)cut), 0);
        const dr_status status = count(path, &n);
        int want = 0;
        while (want < whole && ends[want] <= cut)
            want++;
        assert_int_equal(status, cut < DR__TRACE_HEADER ? DR_ERR_FORMAT : DR_END);
        assert_int_equal(n, want);
    }
    free(data);
    remove_file(path);
}

static void change_byte(const char *path, size_t at, uint8_t value)
{
    const int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, &value, 1, (off_t)at), 1);
    close(fd);
}

/* Any byte that changes is told of, by its record's place; what stands before it is read. */
static void every_byte_changed(void **state)
{
    (void)state;
    char path[64], place[64];
    size_t size, ends[16];
    int n;
    make_path(path);
    write_some(path);
    uint8_t *data = read_whole(path, &size);
    const int whole = ends_of(data, size, ends);
    for (size_t i = 0; i < size; i++) {
        change_byte(path, i, (uint8_t)(data[i] ^ 1u << i % 8));
        int record = 0;
        while (record < whole && ends[record] <= i)
            record++;
        const size_t begin = record ? ends[record - 1] : DR__TRACE_HEADER;
        snprintf(place, sizeof place, i < DR__TRACE_HEADER ? "byte" : "damaged: byte %zu:", begin);
        assert_fails(count(path, &n), DR_ERR_FORMAT, place);
        assert_int_equal(n, i < DR__TRACE_HEADER ? 0 : record);
        change_byte(path, i, data[i]);
    }
    free(data);
    remove_file(path);
}

/* --- files made by hand --- */

typedef struct made {
    uint8_t data[4096];
    size_t size;
} made;

static void add(made *m, int kind, const void *payload, size_t length)
{
    dr__frame_write(kind, payload, length, m->data + m->size);
    memcpy(m->data + m->size + DR__FRAME, payload, length);
    m->size += DR__FRAME + length;
}

static made begin_made(void)
{
    made m = { .size = DR__TRACE_HEADER };
    dr__header_write(1000, m.data);
    return m;
}

static dr_status count_made(const made *m, int *n)
{
    char path[64];
    make_path(path);
    write_whole(path, m->data, m->size);
    dr_status status = count(path, n);
    remove_file(path);
    return status;
}

static void other_files(void **state)
{
    (void)state;
    int n;
    made m = { .size = 0 };
    assert_fails(count_made(&m, &n), DR_ERR_FORMAT, "not a trace: it ends at byte 0");
    strcpy((char *)m.data, "{\"t\": 1, \"event\": \"start\"}\n{\"t\": 2}\n");
    m.size = strlen((char *)m.data);
    assert_fails(count_made(&m, &n), DR_ERR_FORMAT, "not a trace of drapps: its first bytes are not those of one");
    assert_fails(count("/nowhere/at/all", &n), DR_ERR_NOT_FOUND, "/nowhere/at/all");
    assert_fails(count("/tmp", &n), DR_ERR_IO, "/tmp: cannot read");
}

static void unknown_kinds_and_longer_records(void **state)
{
    (void)state;
    int n;
    made m = begin_made();
    const char *meta = "{\"tables\":{\"spans\":[\"read\"]}}";
    add(&m, DR_TRACE_META, meta, strlen(meta));
    add(&m, 200, "what is this", 12);
    uint8_t span[DR__MAX_RECORD + 8] = { 0 };
    const dr_span s = { .begin_ns = 1, .end_ns = 2 };
    const size_t length = dr__pack_span(1000, &s, span);
    add(&m, DR_TRACE_SPAN, span, length);
    add(&m, DR_TRACE_SPAN, span, length + 8); /* with something new behind */
    assert_int_equal(count_made(&m, &n), DR_END);
    assert_int_equal(n, 3);
}

static void what_makes_no_sense(void **state)
{
    (void)state;
    int n;
    made m = begin_made();
    add(&m, DR_TRACE_TEXT, "\0{}", 3);
    assert_fails(count_made(&m, &n), DR_ERR_FORMAT, "byte 24: a record before the description");
    m = begin_made();
    add(&m, DR_TRACE_META, "no json", 7);
    assert_fails(count_made(&m, &n), DR_ERR_FORMAT, "byte 24: the description is not a JSON object");
    m = begin_made();
    add(&m, DR_TRACE_META, "{}", 2);
    add(&m, DR_TRACE_TEXT, "\0a\0b", 4);
    assert_fails(count_made(&m, &n), DR_ERR_FORMAT, "byte 35: a zero in a text");
    m = begin_made();
    add(&m, DR_TRACE_META, "{}", 2);
    add(&m, DR_TRACE_FLOW, "\0\x7F", 2);
    assert_fails(count_made(&m, &n), DR_ERR_FORMAT, "a count must be at most 64, got 127");
}

/* A later version says which it is. */
static void a_later_version(void **state)
{
    (void)state;
    int n;
    uint64_t start;
    made m = begin_made();
    assert_ok(dr__header_read(m.data, &start, &err));
    assert_true(start == 1000);
    m.data[8] = 2;
    assert_fails(count_made(&m, &n), DR_ERR_FORMAT, "damaged between bytes 8 and 24");
    const uint32_t sum = (uint32_t)XXH3_64bits(m.data, 20);
    for (int i = 0; i < 4; i++)
        m.data[20 + i] = (uint8_t)(sum >> 8 * i);
    assert_fails(count_made(&m, &n), DR_ERR_FORMAT, "a trace of version 2; this program reads version 1");
}

/* What is being written can be followed. */
static void a_file_that_grows(void **state)
{
    (void)state;
    char path[64];
    dr_trace_reader *r;
    dr_trace_record rec;
    size_t size, ends[16];
    make_path(path);
    write_some(path);
    uint8_t *data = read_whole(path, &size);
    const int whole = ends_of(data, size, ends);
    write_whole(path, data, ends[0] + 3);
    assert_ok(dr_trace_open_reader(path, &r, &err));
    assert_ok(dr_trace_next(r, &rec, &err));
    assert_int_equal(dr_trace_next(r, &rec, &err), DR_END);
    write_whole(path, data, size);
    for (int i = 1; i < whole; i++)
        assert_ok(dr_trace_next(r, &rec, &err));
    assert_int_equal(dr_trace_next(r, &rec, &err), DR_END);
    dr_trace_close_reader(&r);
    free(data);
    remove_file(path);
}

static void no_memory(void **state)
{
    (void)state;
    char path[64];
    int n;
    make_path(path);
    write_some(path);
    long failed = 0;
    for (long i = 1; i < 100; i++) {
        dr__alloc_fail_at(i, true);
        const dr_status status = count(path, &n);
        dr__alloc_fail_at(0, false);
        assert_true(status == DR_END || status == DR_ERR_NOMEM);
        failed += status == DR_ERR_NOMEM;
    }
    assert_true(failed >= 3 && failed < 50);
    remove_file(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_come_back_in_order),
        cmocka_unit_test(cut_at_every_byte),
        cmocka_unit_test(every_byte_changed),
        cmocka_unit_test(other_files),
        cmocka_unit_test(unknown_kinds_and_longer_records),
        cmocka_unit_test(what_makes_no_sense),
        cmocka_unit_test(a_later_version),
        cmocka_unit_test(a_file_that_grows),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
