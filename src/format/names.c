/* names.c: a block of texts, and their order. */
#include "format/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"

static bool make_room(dr__names *s, size_t len)
{
    size_t need;
    if (!dr__add_size(s->used, len, &need) || !dr__add_size(need, 1, &need))
        return false;
    char *block = dr__grow(s->block, &s->cap, need, 1);
    if (!block)
        return false;
    s->block = block;
    uint32_t *offsets = dr__grow(s->offsets, &s->n_cap, s->n + 1, sizeof *offsets);
    if (!offsets)
        return false;
    s->offsets = offsets;
    size_t *chunks = dr__grow(s->chunks, &s->chunks_cap, s->n / DR__NAMES_CHUNK + 1, sizeof *chunks);
    if (!chunks)
        return false;
    s->chunks = chunks;
    return true;
}

bool dr__names_add(dr__names *s, const char *text, size_t len)
{
    if (!make_room(s, len))
        return false;
    if (s->n % DR__NAMES_CHUNK == 0)
        s->chunks[s->n / DR__NAMES_CHUNK] = s->used;
    size_t offset = s->used - s->chunks[s->n / DR__NAMES_CHUNK];
    if (offset > UINT32_MAX)
        return false;
    s->offsets[s->n++] = (uint32_t)offset;
    if (len)
        memcpy(s->block + s->used, text, len);
    s->block[s->used + len] = 0;
    s->used += len + 1;
    return true;
}

void dr__names_shrink(dr__names *s)
{
    char *block = s->used ? dr__realloc(s->block, s->used, 1) : NULL;
    if (block) {
        s->block = block;
        s->cap = s->used;
    }
    uint32_t *offsets = s->n ? dr__realloc(s->offsets, s->n, sizeof *offsets) : NULL;
    if (offsets) {
        s->offsets = offsets;
        s->n_cap = s->n;
    }
}

void dr__names_free(dr__names *s)
{
    dr__free(s->block);
    dr__free(s->offsets);
    dr__free(s->chunks);
    *s = (dr__names){ 0 };
}

size_t dr__names_bytes(const dr__names *s)
{
    return s->cap + s->n_cap * sizeof *s->offsets + s->chunks_cap * sizeof *s->chunks;
}

/* Bytes of the UTF-8 sequence at p (terminated text), 0 when it is none: as strict as Python's decoder. */
static int sequence(const unsigned char *p, uint32_t *code)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    int n = p[0] < 0x80 ? 1 : p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : p[0] < 0xF5 ? 4 : 0;
    if (n < 2) {
        *code = p[0];
        return n;
    }
    uint32_t c = p[0] & (0x7Fu >> n);
    for (int i = 1; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3Fu);
    }
    if (c < least[n] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
        return 0;
    *code = c;
    return n;
}

static uint32_t next_code(const unsigned char **p)
{
    uint32_t code;
    int n = sequence(*p, &code);
    if (!n)
        code = 0xDC00u + **p;
    *p += n ? n : 1;
    return code;
}

int dr__name_compare(const char *a, const char *b)
{
    const unsigned char *x = (const unsigned char *)a, *y = (const unsigned char *)b;
    size_t i = 0;
    while (x[i] && x[i] == y[i])
        i++;
    if (x[i] < 0x80 && y[i] < 0x80)
        return (x[i] > y[i]) - (x[i] < y[i]);
    for (;;) { /* the first different byte may lie within a sequence: decode from the start */
        uint32_t c = next_code(&x), d = next_code(&y);
        if (c != d)
            return c < d ? -1 : 1;
        if (!c)
            return 0;
    }
}

/* Names of one folder often begin alike: eight bytes after what all share decide most comparisons. */
struct item {
    uint64_t head;
    const char *text;
};

static size_t common_prefix(const char **texts, size_t n, bool *ascii)
{
    size_t common = strlen(texts[0]);
    *ascii = true;
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < common && texts[i][k] == texts[0][k])
            k++;
        common = k;
        for (const char *p = texts[i]; *p && *ascii; p++)
            *ascii = (unsigned char)*p < 0x80;
    }
    return common;
}

static uint64_t head_of(const char *p)
{
    uint64_t head = 0;
    for (int i = 0; i < 8; i++) {
        head = head << 8 | (unsigned char)*p;
        p += *p != 0;
    }
    return head;
}

static int compare_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->head != y->head)
        return x->head < y->head ? -1 : 1;
    return strcmp(x->text, y->text);
}

static int compare_texts(const void *a, const void *b)
{
    return dr__name_compare(*(const char *const *)a, *(const char *const *)b);
}

bool dr__names_sort(const char **texts, size_t n)
{
    bool ascii;
    if (n < 2)
        return true;
    size_t common = common_prefix(texts, n, &ascii);
    if (!ascii) {
        qsort(texts, n, sizeof *texts, compare_texts);
        return true;
    }
    struct item *items = dr__realloc(NULL, n, sizeof *items);
    if (!items)
        return false;
    for (size_t i = 0; i < n; i++)
        items[i] = (struct item){ head_of(texts[i] + common), texts[i] };
    qsort(items, n, sizeof *items, compare_items);
    for (size_t i = 0; i < n; i++)
        texts[i] = items[i].text;
    dr__free(items);
    return true;
}
