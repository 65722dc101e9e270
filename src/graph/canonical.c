/* canonical.c: JSON with one spelling for each value (RFC 8785).
 *
 * Members sorted by name, no blanks, numbers as ECMAScript prints them: the shortest digits that read back as the same
 * double.  Names here are ASCII, for which sorting by bytes equals sorting by UTF-16 units.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/graph.h"

typedef struct text {
    char *at;
    size_t used, cap;
    bool failed;
} text;

static void put(text *t, const char *s, size_t n)
{
    if (t->failed)
        return;
    if (t->used + n + 1 > t->cap) {
        size_t cap = (t->used + n + 1) * 2;
        char *grown = dr__realloc(t->at, cap, 1);
        if (!grown) {
            t->failed = true;
            return;
        }
        t->at = grown;
        t->cap = cap;
    }
    memcpy(t->at + t->used, s, n);
    t->used += n;
    t->at[t->used] = 0;
}

static void put_text(text *t, const char *s)
{
    put(t, s, strlen(s));
}

static void put_string(text *t, const char *s)
{
    put(t, "\"", 1);
    for (; *s; s++) {
        char escape[8];
        unsigned char c = (unsigned char)*s;
        const char *short_form = strchr("\bb\tt\nn\ff\rr\"\"\\\\", c);
        if (c < 0x20 || c == '"' || c == '\\') {
            if (short_form && (c < 0x20 || short_form[1] == (char)c))
                snprintf(escape, sizeof escape, "\\%c", short_form[1]);
            else
                snprintf(escape, sizeof escape, "\\u%04x", c);
            put_text(t, escape);
        } else {
            put(t, s, 1);
        }
    }
    put(t, "\"", 1);
}

/* Decimal digits and exponent of the shortest form that reads back equal: v = 0.d1d2d3... * 10^point. */
static int shortest(double v, char digits[20], int *point)
{
    char e[40];
    for (int precision = 0; precision < 17; precision++) {
        snprintf(e, sizeof e, "%.*e", precision, v);
        if (strtod(e, NULL) == v)
            break;
    }
    int n = 0;
    char *p = e;
    for (; *p != 'e'; p++)
        if (*p != '.')
            digits[n++] = *p;
    *point = atoi(p + 1) + 1;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    digits[n] = 0;
    return n;
}

static void put_number(text *t, double v)
{
    char digits[20], out[64];
    int point;
    if (v == 0.0) {
        put_text(t, "0");
        return;
    }
    if (v < 0) {
        put_text(t, "-");
        v = -v;
    }
    int n = shortest(v, digits, &point);
    if (point > 0 && point <= 21 && n <= point)
        snprintf(out, sizeof out, "%s%.*s", digits, point - n, "000000000000000000000");
    else if (point > 0 && point <= 21)
        snprintf(out, sizeof out, "%.*s.%s", point, digits, digits + point);
    else if (point > -6 && point <= 0)
        snprintf(out, sizeof out, "0.%.*s%s", -point, "000000", digits);
    else
        snprintf(out, sizeof out, "%.1s%s%se%+d", digits, n > 1 ? "." : "", digits + 1, point - 1);
    put_text(t, out);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void put_value(text *t, const json_t *value);

static void put_object(text *t, const json_t *object)
{
    size_t n = json_object_size(object), i = 0;
    const char **names = dr__alloc_zero(n, sizeof *names);
    if (!names) {
        t->failed = true;
        return;
    }
    for (void *it = json_object_iter((json_t *)object); it; it = json_object_iter_next((json_t *)object, it))
        names[i++] = json_object_iter_key(it);
    qsort(names, n, sizeof *names, by_name);
    put_text(t, "{");
    for (i = 0; i < n; i++) {
        if (i)
            put_text(t, ",");
        put_string(t, names[i]);
        put_text(t, ":");
        put_value(t, json_object_get(object, names[i]));
    }
    put_text(t, "}");
    dr__free(names);
}

static void put_array(text *t, const json_t *array)
{
    put_text(t, "[");
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (i)
            put_text(t, ",");
        put_value(t, json_array_get(array, i));
    }
    put_text(t, "]");
}

static void put_value(text *t, const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        put_object(t, value);
        break;
    case JSON_ARRAY:
        put_array(t, value);
        break;
    case JSON_STRING:
        put_string(t, json_string_value(value));
        break;
    case JSON_INTEGER:
    case JSON_REAL:
        put_number(t, json_number_value(value));
        break;
    case JSON_TRUE:
        put_text(t, "true");
        break;
    case JSON_FALSE:
        put_text(t, "false");
        break;
    case JSON_NULL:
        put_text(t, "null");
        break;
    }
}

char *dr__canonical(const json_t *value)
{
    text t = { 0 };
    put_value(&t, value);
    if (t.failed) {
        dr__free(t.at);
        return NULL;
    }
    return t.at;
}
