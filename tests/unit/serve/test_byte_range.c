/* Range headers: what the standard says, and what hostile ones may ask for. */
#include "unit/cm.h"

#include "serve/byte_range.h"

static void ranges_are_as_the_standard_says(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        uint64_t size;
        dr__range_kind kind;
        uint64_t offset, n;
    } cases[] = {
        { NULL, 100, DR__RANGE_ALL, 0, 0 },
        { "bytes=0-9", 100, DR__RANGE_PART, 0, 10 },
        { "bytes=90-", 100, DR__RANGE_PART, 90, 10 },
        { "bytes=-10", 100, DR__RANGE_PART, 90, 10 },
        { "bytes=-1000", 100, DR__RANGE_PART, 0, 100 },
        { "bytes=99-1000", 100, DR__RANGE_PART, 99, 1 },
        { "bytes=0-18446744073709551615", 100, DR__RANGE_PART, 0, 100 },
        { "bytes=0-99999999999999999999999", 100, DR__RANGE_PART, 0, 100 },
        { "bytes=-99999999999999999999999", 100, DR__RANGE_PART, 0, 100 },
        { "BYTES = 1-2", 100, DR__RANGE_PART, 1, 2 },
        { "bytes=1-2 ", 100, DR__RANGE_PART, 1, 2 },
        { "bytes=100-", 100, DR__RANGE_UNSATISFIED, 0, 0 },
        { "bytes=18446744073709551615-18446744073709551615", 100, DR__RANGE_UNSATISFIED, 0, 0 },
        { "bytes=-0", 100, DR__RANGE_UNSATISFIED, 0, 0 },
        { "bytes=0-", 0, DR__RANGE_UNSATISFIED, 0, 0 },
        { "bytes=-5", 0, DR__RANGE_UNSATISFIED, 0, 0 },
        { "bytes=0-18446744073709551615", UINT64_MAX, DR__RANGE_PART, 0, UINT64_MAX },
        { "bytes=2-1", 100, DR__RANGE_ALL, 0, 0 },
        { "bytes=1-2,4-5", 100, DR__RANGE_ALL, 0, 0 },
        { "bytes=-", 100, DR__RANGE_ALL, 0, 0 },
        { "bytes=", 100, DR__RANGE_ALL, 0, 0 },
        { "bytes", 100, DR__RANGE_ALL, 0, 0 },
        { "bytes=1", 100, DR__RANGE_ALL, 0, 0 },
        { "bytes=1-2x", 100, DR__RANGE_ALL, 0, 0 },
        { "bytes=+1-2", 100, DR__RANGE_ALL, 0, 0 },
        { "items=1-2", 100, DR__RANGE_ALL, 0, 0 },
        { "", 100, DR__RANGE_ALL, 0, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t offset = 0, n = 0;
        const dr__range_kind kind = dr__range_parse(cases[i].header, cases[i].size, &offset, &n);
        if (kind != cases[i].kind || (kind == DR__RANGE_PART && (offset != cases[i].offset || n != cases[i].n)))
            fail_msg("\"%s\": kind %d, %llu+%llu", cases[i].header, kind, (unsigned long long)offset,
                     (unsigned long long)n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(ranges_are_as_the_standard_says) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
