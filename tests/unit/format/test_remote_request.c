/* Requests for samples: what is written is read, and nothing else is. */
#include "unit/cm.h"

#include "base/alloc.h"
#include "format/remote_request.h"

static dr_error err;

enum { MOST = 10 };

static dr_status parse(const char *text, dr__remote_request *out)
{
    return dr__remote_request_parse(text, strlen(text), MOST, out, &err);
}

static void requests_are_read(void **state)
{
    (void)state;
    dr__remote_request r;
    assert_ok(
        parse("{\"seed\":\"18446744073709551615\",\"epoch\":3,\"ops\":\"00000000000000ff\",\"outputs\":\"image\","
              "\"graph\":{\"version\":1,\"nodes\":[]},\"samples\":[[17,1,2,\"lz4\"],[4,0,0,null],[4,0,0,\"none\"],"
              "[5,0,0,\"lz4\",[[0,600],[9000,400]]],[6,0,0,\"zstd\",[]],"
              "[7,0,0,null,[[1,2]],\"fedcba9876543210\"],[8,0,0,null,[],\"0000000000000001\"]]}",
              &r));
    assert_true(r.seed == UINT64_MAX);
    assert_int_equal(r.epoch, 3);
    assert_int_equal(r.ops, 255);
    assert_string_equal(r.outputs, "image");
    assert_string_equal(r.graph, "{\"nodes\":[],\"version\":1}");
    assert_int_equal(r.n_entries, 7);
    assert_int_equal(r.entries[0].id, 17);
    assert_int_equal(r.entries[0].occurrence, 1);
    assert_int_equal(r.entries[0].prefix, 2);
    assert_string_equal(r.codecs[r.entries[0].codec], "lz4");
    assert_int_equal(r.entries[1].codec, DR__REMOTE_NO_CODEC);
    assert_int_equal(r.entries[2].codec, DR__REMOTE_NO_CODEC);
    assert_int_equal(r.entries[3].codec, r.entries[0].codec);
    assert_true(r.entries[3].by_ranges && r.entries[4].by_ranges && !r.entries[2].by_ranges);
    assert_int_equal(r.entries[3].n_ranges, 2);
    assert_int_equal(r.ranges[r.entries[3].first_range + 1].offset, 9000);
    assert_int_equal(r.entries[4].n_ranges, 0);
    assert_true(r.entries[3].stamp == 0 && r.entries[5].stamp == 0xfedcba9876543210ull && r.entries[6].stamp == 1);
    assert_int_equal(r.n_codecs, 2);

    dr__text text = { 0 };
    dr__remote_request again;
    dr__remote_request_put(&text, &r);
    assert_false(text.failed);
    assert_ok(parse(text.text, &again));
    assert_true(again.seed == r.seed && again.epoch == r.epoch && again.ops == r.ops);
    assert_string_equal(again.graph, r.graph);
    assert_string_equal(again.outputs, r.outputs);
    assert_int_equal(again.n_entries, r.n_entries);
    for (size_t i = 0; i < r.n_entries; i++)
        assert_memory_equal(&again.entries[i], &r.entries[i], sizeof r.entries[i]);
    assert_memory_equal(again.ranges, r.ranges, r.n_ranges * sizeof *r.ranges);
    assert_memory_equal(again.codecs, r.codecs, sizeof r.codecs);
    dr__remote_request_free(&again);
    dr__remote_request_free(&r);
    dr__free(text.text);
}

#define WITH(samples) "{\"seed\":0,\"epoch\":0,\"graph\":{},\"samples\":[" samples "]}"

static void everything_else_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        dr_status status;
        const char *why;
    } cases[] = {
        { "", DR_ERR_FORMAT, "it is empty" },
        { "{", DR_ERR_FORMAT, "no JSON" },
        { "[]", DR_ERR_FORMAT, "no JSON object" },
        { "{}", DR_ERR_FORMAT, "\"seed\" and \"epoch\"" },
        { "{\"seed\":-1,\"epoch\":0}", DR_ERR_FORMAT, "\"seed\" and \"epoch\"" },
        { "{\"seed\":0,\"seed\":0,\"epoch\":0}", DR_ERR_FORMAT, "no JSON" },
        { "{\"seed\":\"18446744073709551616\",\"epoch\":0}", DR_ERR_FORMAT, "\"seed\" and \"epoch\"" },
        { "{\"seed\":\"\",\"epoch\":0}", DR_ERR_FORMAT, "\"seed\" and \"epoch\"" },
        { "{\"seed\":1.5,\"epoch\":0}", DR_ERR_FORMAT, "\"seed\" and \"epoch\"" },
        { "{\"seed\":0,\"epoch\":0,\"prefix\":1}", DR_ERR_FORMAT, "\"prefix\" is not known" },
        { "{\"seed\":0,\"epoch\":0,\"ops\":\"ff\"}", DR_ERR_FORMAT, "16 hexadecimal digits" },
        { "{\"seed\":0,\"epoch\":0,\"graph\":[]}", DR_ERR_FORMAT, "\"graph\" is an object" },
        { "{\"seed\":0,\"epoch\":0,\"outputs\":[]}", DR_ERR_FORMAT, "\"outputs\" is a text" },
        { "{\"seed\":0,\"epoch\":0}", DR_ERR_FORMAT, "at least one sample" },
        { WITH(""), DR_ERR_FORMAT, "at least one sample" },
        { WITH("1"), DR_ERR_FORMAT, "a sample is [id" },
        { WITH("[]"), DR_ERR_FORMAT, "a sample is [id" },
        { WITH("[1,0,0]"), DR_ERR_FORMAT, "a sample is [id" },
        { WITH("[-1,0,0,null]"), DR_ERR_FORMAT, "a sample is [id" },
        { WITH("[1,4294967296,0,null]"), DR_ERR_FORMAT, "a sample is [id" },
        { WITH("[1,0,65536,null]"), DR_ERR_FORMAT, "a sample is [id" },
        { WITH("[1,0,0,null,[],\"0123456789abcdef\",0]"), DR_ERR_FORMAT, "a sample is [id" },
        { WITH("[1,0,0,null,[],0]"), DR_ERR_FORMAT, "a stamp has 16 hexadecimal digits" },
        { WITH("[1,0,0,null,[],\"0123456789ABCDEF\"]"), DR_ERR_FORMAT, "a stamp has 16 hexadecimal digits" },
        { WITH("[1,0,0,3]"), DR_ERR_FORMAT, "a codec is null or its spec" },
        { WITH("[1,0,0,\"\"]"), DR_ERR_FORMAT, "a codec is null or its spec" },
        { WITH("[1,0,0,\"lz4\\u0000\"]"), DR_ERR_FORMAT, "no JSON" },
        { WITH("[1,0,0,null,{}]"), DR_ERR_FORMAT, "the ranges of a sample are a list" },
        { WITH("[1,0,0,null,[1]]"), DR_ERR_FORMAT, "a range is [offset, size]" },
        { WITH("[1,0,0,null,[[1,-1]]]"), DR_ERR_FORMAT, "a range is [offset, size]" },
        { WITH("[1,0,2,null,[[1,1]]]"), DR_ERR_FORMAT, "either ranges or a prefix" },
        { "{\"seed\":0,\"epoch\":0,\"samples\":[[1,0,2,null]]}", DR_ERR_FORMAT, "a prefix needs a graph" },
        { WITH("[1,0,0,\"a\"],[1,0,0,\"b\"],[1,0,0,\"c\"],[1,0,0,\"d\"],[1,0,0,\"e\"],[1,0,0,\"f\"],[1,0,0,\"g\"],"
               "[1,0,0,\"h\"],[1,0,0,\"i\"]"),
          DR_ERR_LIMIT, "more than 8 codecs" },
        { WITH("1,1,1,1,1,1,1,1,1,1,1"), DR_ERR_LIMIT, "11 samples; 10 are allowed" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dr__remote_request r;
        if (parse(cases[i].text, &r) != cases[i].status || !strstr(err.text, cases[i].why))
            fail_msg("%s: \"%s\", expected \"%s\"", cases[i].text, err.text, cases[i].why);
        assert_null(r.entries);
    }
}

static void depth_is_limited(void **state)
{
    (void)state;
    static char deep[1 << 20];
    dr__remote_request r;
    memset(deep, '[', sizeof deep - 1);
    assert_int_equal(parse(deep, &r), DR_ERR_FORMAT);
}

static void single_requests_are_read(void **state)
{
    (void)state;
    dr__remote_request r;
    const char *text = "{\"seed\":1,\"epoch\":2,\"prefix\":3,\"occurrence\":4,\"codec\":\"lz4\",\"graph\":{}}";
    assert_ok(dr__remote_request_parse_single(text, strlen(text), &r, &err));
    assert_int_equal(r.n_entries, 1);
    assert_int_equal(r.entries[0].prefix, 3);
    assert_int_equal(r.entries[0].occurrence, 4);
    assert_string_equal(r.codecs[r.entries[0].codec], "lz4");
    dr__remote_request_free(&r);
    static const char *const bad[] = { "{\"seed\":1,\"epoch\":2}", "{\"seed\":1,\"epoch\":2,\"prefix\":1}",
                                       "{\"seed\":1,\"epoch\":2,\"prefix\":0,\"samples\":[]}", "3" };
    for (int i = 0; i < 4; i++)
        assert_int_equal(dr__remote_request_parse_single(bad[i], strlen(bad[i]), &r, &err), DR_ERR_FORMAT);
}

static void failing_allocations_leave_nothing(void **state)
{
    (void)state;
    dr__remote_request r;
    dr_status status = DR_ERR_NOMEM;
    for (long n = 1; status == DR_ERR_NOMEM; n++) {
        dr__alloc_fail_at(n, false);
        status = parse(WITH("[1,0,0,null,[[1,2]]],[1,0,2,\"lz4\"]"), &r);
        dr__alloc_fail_at(0, false);
    }
    assert_int_equal(status, DR_OK);
    dr__remote_request_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_read),
        cmocka_unit_test(everything_else_is_refused),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(single_requests_are_read),
        cmocka_unit_test(failing_allocations_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
