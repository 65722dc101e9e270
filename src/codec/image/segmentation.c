/* segmentation.c: COCO's masks.
 *
 * A shape is first marked by toggles: a plane has a 1 where, going down a column, inside and outside change.  An
 * exclusive or of each row with the one above then fills it.  Columns are independent, because what enters a column's
 * pixels also leaves them.
 *
 * Where a polygon crosses a column is decided as pycocotools does it: corners are put on a grid of five points to a
 * pixel, edges become chains of grid points, and a step from grid column 5x + 2 to 5x + 3, or back, is a crossing of
 * pixel column x.
 */
#include "codec/image/segmentation.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"

enum { GRID = 5 };
static const double farthest = 1e6; /* coordinate: keeps the grid within an int */

/* --- the text --- */

struct text {
    const char *at, *end;
    const char *begin;
    int64_t object; /* at work, for messages; -1: none */
    dr_error *err;
};

static dr_status wrong(const struct text *t, const char *what)
{
    const long long at = (long long)(t->at - t->begin);
    if (t->object < 0)
        return dr__fail(t->err, DR_ERR_FORMAT, "segmentation: %s at byte %lld", what, at);
    return dr__fail(t->err, DR_ERR_FORMAT, "segmentation: object %lld: %s at byte %lld", (long long)t->object, what,
                    at);
}

static void skip_spaces(struct text *t)
{
    while (t->at < t->end && (*t->at == ' ' || *t->at == '\n' || *t->at == '\t' || *t->at == '\r'))
        t->at++;
}

static bool next_is(struct text *t, char c)
{
    skip_spaces(t);
    return t->at < t->end && *t->at == c;
}

static bool take(struct text *t, char c)
{
    if (!next_is(t, c))
        return false;
    t->at++;
    return true;
}

/* "name": */
static bool take_name(struct text *t, const char *name)
{
    const size_t n = strlen(name);
    if (!take(t, '"') || (size_t)(t->end - t->at) <= n || memcmp(t->at, name, n) || t->at[n] != '"')
        return false;
    t->at += n + 1;
    return take(t, ':');
}

static dr_status take_number(struct text *t, double *value)
{
    skip_spaces(t);
    const char *start = t->at;
    while (t->at < t->end && strchr("+-.0123456789eE", *t->at) && *t->at)
        t->at++;
    if (t->at == start || !dr__parse_f64(start, (size_t)(t->at - start), value) || !isfinite(*value))
        return wrong(t, "a number is missing");
    return DR_OK;
}

/* "size":[height,width] */
static dr_status take_size(struct text *t, int64_t *height, int64_t *width)
{
    double h = 0, w = 0;
    if (!take_name(t, "size") || !take(t, '['))
        return wrong(t, "\"size\":[height,width] is missing");
    DR_TRY(take_number(t, &h));
    if (!take(t, ','))
        return wrong(t, "a comma is missing");
    DR_TRY(take_number(t, &w));
    if (!take(t, ']'))
        return wrong(t, "a bracket is missing");
    if (!(h >= 1 && w >= 1 && h <= DR__SEGMENTATION_SIDE && w <= DR__SEGMENTATION_SIDE) || h != floor(h) ||
        w != floor(w))
        return wrong(t, "height and width must be whole numbers from 1 to 65535");
    *height = (int64_t)h;
    *width = (int64_t)w;
    return DR_OK;
}

static dr_status open_text(struct text *t, const char *text, size_t size, dr__segmentation *info, dr_error *err)
{
    *t = (struct text){ text, text + size, text, -1, err };
    if (!take(t, '{'))
        return wrong(t, "must be {\"size\":[height,width],\"objects\":[...]}, which it is not");
    DR_TRY(take_size(t, &info->height, &info->width));
    if (!take(t, ',') || !take_name(t, "objects") || !take(t, '['))
        return wrong(t, "\"objects\":[...] is missing");
    return DR_OK;
}

/* Behind a string whose opening quote was taken. */
static void skip_string(struct text *t)
{
    while (t->at < t->end && *t->at != '"')
        t->at += *t->at == '\\' && t->at + 1 < t->end ? 2 : 1;
    t->at += t->at < t->end;
}

dr_status dr__segmentation_header(const char *text, size_t size, dr__segmentation *info, dr_error *err)
{
    struct text t;
    int depth = 0;
    DR_TRY(open_text(&t, text, size, info, err));
    info->n = next_is(&t, ']') ? 0 : 1;
    while (t.at < t.end && depth >= 0) {
        const char c = *t.at++;
        if (c == '"')
            skip_string(&t);
        depth += (c == '[' || c == '{') - (c == ']' || c == '}');
        info->n += c == ',' && !depth;
    }
    return depth < 0 ? DR_OK : wrong(&t, "the text ends early");
}

/* --- marks and areas --- */

struct plane {
    uint8_t *data;
    int64_t h, w;
    int64_t first, last; /* columns with marks; none: first > last */
    int64_t top;         /* first row with one */
};

static struct plane clear_plane(uint8_t *data, const dr__segmentation *info)
{
    memset(data, 0, (size_t)(info->height * info->width));
    return (struct plane){ data, info->height, info->width, info->width, -1, info->height };
}

static inline void toggle(struct plane *p, int64_t x, int64_t y)
{
    if (y >= p->h)
        return;
    p->data[y * p->w + x] ^= 1;
    p->first = DR_MIN(p->first, x);
    p->last = DR_MAX(p->last, x);
    p->top = DR_MIN(p->top, y);
}

static void fill(const struct plane *p)
{
    for (int64_t y = p->top + 1; y < p->h; y++) {
        uint8_t *row = p->data + y * p->w;
        const uint8_t *above = row - p->w;
        for (int64_t x = p->first; x <= p->last; x++)
            row[x] ^= above[x];
    }
}

/* --- polygons --- */

struct corner {
    int x, y; /* on the grid */
};

static struct corner on_grid(double x, double y)
{
    return (struct corner){ (int)(GRID * x + .5), (int)(GRID * y + .5) };
}

/* A step from one grid point to the next, in another grid column. */
static inline void step(struct plane *p, int u0, int v0, int u, int v)
{
    const int between = DR_MIN(u0, u), lower = DR_MIN(v0, v);
    if (between < 0 || between % GRID != 2 || between / GRID >= p->w)
        return;
    toggle(p, between / GRID, lower <= 2 ? 0 : (lower + 2) / GRID);
}

/* The grid points of an edge, in its direction; rounded from the same end in both. */
static void edge(struct plane *p, struct corner from, struct corner to)
{
    const int dx = abs(to.x - from.x), dy = abs(to.y - from.y);
    const bool flat = dx >= dy, back = flat ? from.x > to.x : from.y > to.y;
    const struct corner a = back ? to : from, b = back ? from : to;
    const int n = flat ? dx : dy;
    if (!dx)
        return;
    const double slope = flat ? (double)(b.y - a.y) / dx : (double)(b.x - a.x) / dy;
    for (int d = 0, u0 = 0, v0 = 0; d <= n; d++) {
        const int t = back ? n - d : d;
        const int u = flat ? t + a.x : (int)(a.x + slope * t + .5);
        const int v = flat ? (int)(a.y + slope * t + .5) : t + a.y;
        if (d && u != u0)
            step(p, u0, v0, u, v);
        u0 = u;
        v0 = v;
    }
}

static dr_status take_coordinate(struct text *t, double *value)
{
    DR_TRY(take_number(t, value));
    if (fabs(*value) > farthest)
        return wrong(t, "a coordinate is beyond 1e6");
    return DR_OK;
}

/* How many numbers the list has that begins here. */
static int64_t count_numbers(const struct text *t)
{
    int64_t n = 1;
    for (const char *at = t->at; at < t->end && *at != ']'; at++)
        n += *at == ',';
    return n;
}

static dr_status polygon(struct text *t, struct plane *p)
{
    struct corner first = { 0 }, last = { 0 };
    int64_t n = 0;
    do {
        double x = 0, y = 0;
        DR_TRY(take_coordinate(t, &x));
        if (!take(t, ','))
            return wrong(t, "a polygon has an odd number of coordinates");
        DR_TRY(take_coordinate(t, &y));
        const struct corner c = on_grid(x, y);
        if (n++)
            edge(p, last, c);
        else
            first = c;
        last = c;
    } while (take(t, ','));
    edge(p, last, first);
    return DR_OK;
}

/* pycocotools takes anything for a polygon that comes after a first one of three points. */
static dr_status polygons(struct text *t, const dr__segmentation *info, uint8_t *room, uint8_t *out)
{
    const size_t bytes = (size_t)(info->height * info->width);
    for (int64_t i = 0; !i || take(t, ','); i++) {
        struct plane p = clear_plane(i ? room : out, info);
        if (!take(t, '['))
            return wrong(t, "a polygon is missing");
        if (!i && count_numbers(t) < 6)
            return wrong(t, "a polygon has fewer than three points");
        DR_TRY(polygon(t, &p));
        if (!take(t, ']'))
            return wrong(t, "a bracket is missing");
        fill(&p);
        for (size_t k = 0; i && k < bytes; k++)
            out[k] |= room[k];
    }
    return take(t, ']') ? DR_OK : wrong(t, "a bracket is missing");
}

/* --- run lengths --- */

/* How far the runs have come. */
struct runs {
    int64_t at, total; /* pixels, down the columns */
    int64_t n;
};

static dr_status add_run(const struct text *t, struct runs *r, struct plane *p, int64_t length)
{
    if (length < 0 || length > r->total - r->at)
        return wrong(t, "run lengths are negative or go beyond the last pixel");
    const int64_t from = r->at, to = from + length;
    r->at = to;
    if (r->n++ % 2 == 0 || !length)
        return DR_OK;
    for (int64_t x = from / p->h; x * p->h < to; x++) {
        toggle(p, x, DR_MAX(from - x * p->h, 0));
        toggle(p, x, DR_MIN(to - x * p->h, p->h));
    }
    return DR_OK;
}

static dr_status plain_counts(struct text *t, struct runs *r, struct plane *p)
{
    double length = 0;
    if (take(t, ']'))
        return DR_OK;
    do {
        DR_TRY(take_number(t, &length));
        if (length != floor(length) || fabs(length) > 1e15)
            return wrong(t, "a run length is no whole number");
        DR_TRY(add_run(t, r, p, (int64_t)length));
    } while (take(t, ','));
    return take(t, ']') ? DR_OK : wrong(t, "a bracket is missing");
}

/* Five bits a letter, the lowest first; a sixth says that more follow, and the last of the fifth ones is the sign. */
static dr_status compressed_number(struct text *t, int64_t *value)
{
    uint64_t bits = 0;
    for (unsigned shift = 0; shift < 40; shift += 5) {
        if (t->at < t->end && *t->at == '\\')
            t->at++; /* JSON writes a backslash twice */
        const int c = t->at < t->end ? *t->at - 48 : -1;
        if (c < 0 || c > 63)
            return wrong(t, "compressed run lengths have a wrong letter");
        t->at++;
        bits |= (uint64_t)(c & 31) << shift;
        if (c & 32)
            continue;
        *value = (int64_t)(c & 16 ? bits | ~(uint64_t)0 << (shift + 5) : bits);
        return DR_OK;
    }
    return wrong(t, "a compressed run length is too long");
}

/* From the fourth on, each is the difference to the one before the last. */
static dr_status compressed_counts(struct text *t, struct runs *r, struct plane *p)
{
    int64_t before[2] = { 0 };
    while (t->at < t->end && *t->at != '"') {
        int64_t length = 0;
        DR_TRY(compressed_number(t, &length));
        length += r->n > 2 ? before[r->n % 2] : 0;
        before[r->n % 2] = length;
        DR_TRY(add_run(t, r, p, length));
    }
    return take(t, '"') ? DR_OK : wrong(t, "a quote is missing");
}

static dr_status run_lengths(struct text *t, const dr__segmentation *info, uint8_t *out)
{
    struct plane p = clear_plane(out, info);
    struct runs r = { .total = info->height * info->width };
    int64_t h = 0, w = 0;
    DR_TRY(take_size(t, &h, &w));
    if (h != info->height || w != info->width)
        return wrong(t, "the run lengths are of an image of another size");
    if (!take(t, ',') || !take_name(t, "counts"))
        return wrong(t, "\"counts\" is missing");
    if (take(t, '['))
        DR_TRY(plain_counts(t, &r, &p));
    else if (take(t, '"'))
        DR_TRY(compressed_counts(t, &r, &p));
    else
        return wrong(t, "\"counts\" must be a list or a text, which it is not");
    if (r.at != r.total)
        return wrong(t, "run lengths end before the last pixel");
    fill(&p);
    return take(t, '}') ? DR_OK : wrong(t, "a brace is missing");
}

dr_status dr__segmentation_decode(const char *text, size_t size, const dr__segmentation *info, uint8_t *room,
                                  uint8_t *out, dr_error *err)
{
    const size_t bytes = (size_t)(info->height * info->width);
    dr__segmentation again;
    struct text t;
    DR_TRY(open_text(&t, text, size, &again, err));
    for (t.object = 0; t.object < info->n; t.object++, out += bytes) {
        if (t.object && !take(&t, ','))
            return wrong(&t, "a comma is missing");
        if (take(&t, '['))
            DR_TRY(polygons(&t, info, room, out));
        else if (take(&t, '{'))
            DR_TRY(run_lengths(&t, info, out));
        else
            return wrong(&t, "must be a list of polygons or run lengths, which it is not");
    }
    t.object = -1;
    return take(&t, ']') && take(&t, '}') ? DR_OK : wrong(&t, "more is there than expected");
}
