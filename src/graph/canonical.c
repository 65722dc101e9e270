/* canonical.c: writes canonical JSON (RFC 8785), in which each value has one spelling.
 *
 * Members are sorted by name; there is no white space; numbers are printed as by ECMAScript: the shortest digits that
 * read back as the same double.  Names are ASCII here, so sorting by bytes equals sorting by UTF-16 units.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "graph/graph_internal.h"

static void put_string(dr__text *t, const char *s)
{
    dr__text_add(t, "\"", 1);
    for (; *s; s++) {
        char escape[8];
        unsigned char c = (unsigned char)*s;
        const char *short_form = strchr("\bb\tt\nn\ff\rr\"\"\\\\", c);
        if (c < 0x20 || c == '"' || c == '\\') {
            if (short_form && (c < 0x20 || short_form[1] == (char)c))
                snprintf(escape, sizeof escape, "\\%c", short_form[1]);
            else
                snprintf(escape, sizeof escape, "\\u%04x", c);
            dr__text_say(t, escape);
        } else {
            dr__text_add(t, s, 1);
        }
    }
    dr__text_add(t, "\"", 1);
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

static void put_number(dr__text *t, double v)
{
    char digits[20], out[64];
    int point;
    if (v == 0.0) {
        dr__text_say(t, "0");
        return;
    }
    if (v < 0) {
        dr__text_say(t, "-");
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
    dr__text_say(t, out);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void put_value(dr__text *t, const json_t *value);

static void put_object(dr__text *t, const json_t *object)
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
    dr__text_say(t, "{");
    for (i = 0; i < n; i++) {
        if (i)
            dr__text_say(t, ",");
        put_string(t, names[i]);
        dr__text_say(t, ":");
        put_value(t, json_object_get(object, names[i]));
    }
    dr__text_say(t, "}");
    dr__free(names);
}

static void put_array(dr__text *t, const json_t *array)
{
    dr__text_say(t, "[");
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (i)
            dr__text_say(t, ",");
        put_value(t, json_array_get(array, i));
    }
    dr__text_say(t, "]");
}

static void put_value(dr__text *t, const json_t *value)
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
        dr__text_say(t, "true");
        break;
    case JSON_FALSE:
        dr__text_say(t, "false");
        break;
    case JSON_NULL:
        dr__text_say(t, "null");
        break;
    }
}

char *dr__canonical(const json_t *value)
{
    dr__text t = { 0 };
    put_value(&t, value);
    if (t.failed) {
        dr__free(t.text);
        return NULL;
    }
    return t.text;
}
