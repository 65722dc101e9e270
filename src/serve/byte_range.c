/* byte_range.c: parses a Range header.  Numbers that are too large stand for "as far as it goes". */
#include "serve/byte_range.h"

#include <string.h>
#include <strings.h>

/* Digits at *text, at least one; moves behind them. */
static bool take_digits(const char **text, uint64_t *out)
{
    const char *c = *text;
    *out = 0;
    for (; *c >= '0' && *c <= '9'; c++) {
        const uint64_t digit = (uint64_t)(*c - '0');
        *out = *out > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *out * 10 + digit;
    }
    const bool any = c > *text;
    *text = c;
    return any;
}

static const char *skip_blanks(const char *c)
{
    return c + strspn(c, " \t");
}

dr__range_kind dr__range_parse(const char *header, uint64_t size, uint64_t *offset, uint64_t *n)
{
    uint64_t first, last = UINT64_MAX;
    if (!header || strncasecmp(header, "bytes", 5) != 0 || *skip_blanks(header + 5) != '=')
        return DR__RANGE_ALL;
    const char *c = skip_blanks(skip_blanks(header + 5) + 1);
    const bool has_first = take_digits(&c, &first);
    if (*c++ != '-')
        return DR__RANGE_ALL;
    const bool has_last = take_digits(&c, &last);
    if (*skip_blanks(c) || (!has_first && !has_last) || (has_first && has_last && last < first))
        return DR__RANGE_ALL;
    if (!has_first) { /* the last bytes */
        *n = last < size ? last : size;
        *offset = size - *n;
        return *n ? DR__RANGE_PART : DR__RANGE_UNSATISFIED;
    }
    if (first >= size)
        return DR__RANGE_UNSATISFIED;
    *offset = first;
    *n = has_last && last - first < size - first ? last - first + 1 : size - first;
    return DR__RANGE_PART;
}
