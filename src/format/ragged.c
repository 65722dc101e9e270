/* ragged.c: reading lists of numbers. */
#include "format/ragged.h"

#include <string.h>

#include "base/parse.h"

/* The number that begins at *at, and *at behind it.  False: none. */
static bool number(const char **at, const char *end, const char **text, size_t *len)
{
    const char *start = *at;
    while (*at < end && **at != ',' && **at != ']' && **at != '[')
        ++*at;
    *text = start;
    *len = (size_t)(*at - start);
    return *len > 0;
}

static bool take(const char **at, const char *end, char c)
{
    if (*at == end || **at != c)
        return false;
    ++*at;
    return true;
}

/* A list of numbers; *n of them. */
static bool plain_list(const char **at, const char *end, bool *whole, int64_t *n)
{
    const char *text;
    size_t len;
    int64_t i;
    double d;
    *n = 0;
    if (!take(at, end, '['))
        return false;
    if (take(at, end, ']'))
        return true;
    do {
        if (!number(at, end, &text, &len) || !dr__parse_f64(text, len, &d))
            return false;
        *whole = *whole && dr__parse_i64(text, len, &i);
        ++*n;
    } while (take(at, end, ','));
    return take(at, end, ']');
}

/* A list of lists, all as long as the first that was ever noted. */
static bool nested_list(const char **at, const char *end, dr__ragged *form)
{
    do {
        int64_t n;
        if (!plain_list(at, end, &form->whole, &n) || !n || (form->width >= 0 && form->width != n))
            return false;
        form->width = n;
    } while (take(at, end, ','));
    return take(at, end, ']');
}

bool dr__ragged_note(dr__ragged *form, const char *text, size_t len)
{
    const char *at = text, *end = text + len;
    int64_t n;
    if (!len || (len == 2 && !memcmp(text, "[]", 2)))
        return true;
    if (len > 1 && text[1] == '[') {
        at++;
        return form->width != 0 && nested_list(&at, end, form) && at == end;
    }
    if (form->width > 0 || !plain_list(&at, end, &form->whole, &n) || at != end)
        return false;
    form->width = 0;
    return true;
}

size_t dr__ragged_numbers(const char *text, size_t len)
{
    size_t n = 0;
    for (size_t i = 1; i < len; i++)
        n += (text[i] == ',' || text[i] == ']') && text[i - 1] != ']' && text[i - 1] != '[';
    return n;
}

void dr__ragged_read(const char *text, size_t len, dr_dtype dtype, void *out)
{
    const char *at = text, *end = text + len, *one;
    size_t n, i = 0;
    while (at < end) {
        double real = 0;
        if (!number(&at, end, &one, &n)) {
            at++;
            continue;
        }
        dr__parse_f64(one, n, &real);
        if (dtype == DR_I64)
            dr__parse_i64(one, n, (int64_t *)out + i);
        else if (dtype == DR_F64)
            ((double *)out)[i] = real;
        else
            ((float *)out)[i] = (float)real;
        i++;
    }
}
