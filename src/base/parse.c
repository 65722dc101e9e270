/* parse.c: numbers from text. */
#include "base/parse.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void trim(const char **text, size_t *len)
{
    while (*len && is_space((*text)[0])) {
        ++*text;
        --*len;
    }
    while (*len && is_space((*text)[*len - 1]))
        --*len;
}

bool dr__parse_i64(const char *text, size_t len, int64_t *out)
{
    char copy[24], *end;
    trim(&text, &len);
    if (!len || len >= sizeof copy || memchr(text, 0, len))
        return false;
    memcpy(copy, text, len);
    copy[len] = 0;
    errno = 0;
    long long v = strtoll(copy, &end, 10);
    if (*end || errno)
        return false;
    *out = v;
    return true;
}

bool dr__parse_f64(const char *text, size_t len, double *out)
{
    char copy[64], *end;
    trim(&text, &len);
    if (!len || len >= sizeof copy || memchr(text, 0, len))
        return false;
    memcpy(copy, text, len);
    copy[len] = 0;
    const char *point = localeconv()->decimal_point;
    char *dot = strchr(copy, '.');
    if (dot && point[0] && !point[1])
        *dot = point[0];
    if (strpbrk(copy, "xXpP(")) /* hexadecimal and nan(...) are for C, not for tables */
        return false;
    *out = strtod(copy, &end);
    return !*end;
}
