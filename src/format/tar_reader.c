/* tar_reader.c: headers of tar archives.
 *
 * A header is a block of 512 bytes.  Names longer than its fields come in members of their own before it: type 'L'
 * (GNU) holds the name, type 'x' (pax) records "length key=value\n".  The archive ends with two zero blocks, or
 * simply ends.
 */
#include "format/tar_reader.h"

#include <string.h>

#include "base/cursor.h"

enum { BLOCK = 512 };

/* What the members before a header say about it. */
struct extra {
    bool has_name, has_size, sparse;
    uint64_t size;
};

dr_status dr__tar_open(dr__tar_reader *r, dr__source *source, dr_error *err)
{
    r->source = source;
    r->at = r->window_at = 0;
    r->window_len = 0;
    return dr__source_size(source, &r->size, err);
}

static dr_status truncated(const dr__tar_reader *r, uint64_t need, dr_error *err)
{
    return dr__fail(err, DR_ERR_FORMAT, "%s: truncated: a member needs %llu bytes at %llu, the archive has %llu",
                    r->source->name, (unsigned long long)need, (unsigned long long)r->at, (unsigned long long)r->size);
}

dr_status dr__tar_peek(dr__tar_reader *r, uint64_t offset, size_t size, const uint8_t **out, dr_error *err)
{
    if (size > r->size || offset > r->size - size)
        return truncated(r, size, err);
    if (offset < r->window_at || offset + size > r->window_at + r->window_len) {
        DR_TRY(dr__source_read_at(r->source, r->window, sizeof r->window, offset, &r->window_len, err));
        r->window_at = offset;
    }
    if (offset + size > r->window_at + r->window_len) { /* it has become shorter since it was opened */
        r->size = r->window_at + r->window_len;
        return truncated(r, size, err);
    }
    *out = r->window + (offset - r->window_at);
    return DR_OK;
}

/* Octal text, or a binary number where the first bit is set (GNU, for large files). */
static bool number(const uint8_t *field, size_t n, uint64_t *out)
{
    uint64_t v = 0;
    size_t i = 0;
    if (field[0] & 0x80) {
        for (v = field[0] & 0x7F, i = 1; i < n; i++) {
            if (v >> 55)
                return false;
            v = v << 8 | field[i];
        }
        *out = v;
        return true;
    }
    while (i < n && field[i] == ' ')
        i++;
    for (; i < n && field[i] >= '0' && field[i] <= '7'; i++)
        v = v << 3 | (uint64_t)(field[i] - '0'); /* 12 digits at most: no overflow */
    *out = v;
    return i == n || field[i] == 0 || field[i] == ' ';
}

static bool is_zero(const uint8_t *block)
{
    for (int i = 0; i < BLOCK; i++)
        if (block[i])
            return false;
    return true;
}

/* The sum of all bytes, those of the sum itself counted as spaces; old archivers added signed ones. */
static bool sum_is_right(const uint8_t *h)
{
    uint64_t want;
    int64_t sum = 0, signed_sum = 0;
    for (int i = 0; i < BLOCK; i++) {
        uint8_t b = i >= 148 && i < 156 ? ' ' : h[i];
        sum += b;
        signed_sum += (int8_t)b;
    }
    return number(h + 148, 8, &want) && ((int64_t)want == sum || (int64_t)want == signed_sum);
}

static dr_status set_name(dr__tar_reader *r, dr__tar_member *m, const void *text, size_t len, dr_error *err)
{
    const char *zero = len ? memchr(text, 0, len) : NULL;
    len = zero ? (size_t)(zero - (const char *)text) : len;
    if (len >= sizeof m->name)
        return dr__fail(err, DR_ERR_LIMIT, "%s: a member's name must have at most %zu bytes, got %zu", r->source->name,
                        sizeof m->name - 1, len);
    if (len)
        memcpy(m->name, text, len);
    m->name[len] = 0;
    m->name_len = len;
    return DR_OK;
}

static dr_status header_name(dr__tar_reader *r, const uint8_t *h, dr__tar_member *m, dr_error *err)
{
    char name[256 + 1];
    size_t used = 0, n = strnlen((const char *)h, 100);
    if (!memcmp(h + 257, "ustar\0", 6) && h[345]) { /* GNU's magic differs, and so does its use of this field */
        used = strnlen((const char *)h + 345, 155);
        memcpy(name, h + 345, used);
        name[used++] = '/';
    }
    memcpy(name + used, h, n);
    return set_name(r, m, name, used + n, err);
}

/* One pax record; the value is not terminated. */
static dr_status pax_record(dr__tar_reader *r, dr__tar_member *m, struct extra *x, const char *key, size_t key_len,
                            const char *value, size_t len, dr_error *err)
{
    if (key_len == 4 && !memcmp(key, "path", 4)) {
        x->has_name = true;
        return set_name(r, m, value, len, err);
    }
    if (key_len > 11 && !memcmp(key, "GNU.sparse.", 11))
        x->sparse = true;
    if (key_len == 4 && !memcmp(key, "size", 4)) {
        x->size = 0;
        for (size_t i = 0; i < len; i++) {
            if (value[i] < '0' || value[i] > '9' || x->size > UINT64_MAX / 10 - 1)
                return dr__fail(err, DR_ERR_FORMAT, "%s: a pax record gives a size that is no number", r->source->name);
            x->size = x->size * 10 + (uint64_t)(value[i] - '0');
        }
        x->has_size = true;
    }
    return DR_OK;
}

static dr_status pax_records(dr__tar_reader *r, dr__tar_member *m, struct extra *x, const uint8_t *data, size_t size,
                             dr_error *err)
{
    dr_cursor c = dr__cursor(data, size, r->source->name);
    const uint8_t *text;
    while (dr__cursor_left(&c) && dr__cursor_peek(&c) != 0) {
        size_t length = 0, digits = 0;
        for (; dr__cursor_peek(&c) >= '0' && dr__cursor_peek(&c) <= '9' && digits < 9; digits++)
            length = length * 10 + (size_t)(*c.at++ - '0');
        if (!digits || dr__cursor_peek(&c) != ' ' || length < digits + 3)
            return dr__fail(err, DR_ERR_FORMAT, "%s: a pax header is damaged", r->source->name);
        DR_TRY(dr__cursor_bytes(&c, length - digits, &text, err)); /* " key=value\n" */
        const uint8_t *equals = memchr(text + 1, '=', length - digits - 1);
        if (!equals)
            return dr__fail(err, DR_ERR_FORMAT, "%s: a pax header is damaged", r->source->name);
        const char *value = (const char *)equals + 1;
        size_t value_len = (size_t)(text + length - digits - 1 - equals - 1);
        if (equals == text + length - digits - 1) /* the line end itself is no value */
            return dr__fail(err, DR_ERR_FORMAT, "%s: a pax header is damaged", r->source->name);
        DR_TRY(pax_record(r, m, x, (const char *)text + 1, (size_t)(equals - text - 1), value, value_len, err));
    }
    return DR_OK;
}

/* Takes a member that describes the next one. */
static dr_status take_extra(dr__tar_reader *r, char type, uint64_t offset, uint64_t size, dr__tar_member *m,
                            struct extra *x, dr_error *err)
{
    const uint8_t *data;
    if (type == 'K' || type == 'g') /* a long link name; defaults for the whole archive, which give no names */
        return DR_OK;
    if (size > DR__TAR_WINDOW)
        return dr__fail(err, DR_ERR_LIMIT, "%s: the extended header at %llu must have at most %d bytes, got %llu",
                        r->source->name, (unsigned long long)offset, DR__TAR_WINDOW, (unsigned long long)size);
    DR_TRY(dr__tar_peek(r, offset, (size_t)size, &data, err));
    if (type == 'L') {
        x->has_name = true;
        return set_name(r, m, data, (size_t)size, err);
    }
    return pax_records(r, m, x, data, (size_t)size, err);
}

/* GNU's sparse files may have more blocks of map between header and data. */
static dr_status skip_sparse_map(dr__tar_reader *r, bool more, dr_error *err)
{
    const uint8_t *block;
    while (more) {
        DR_TRY(dr__tar_peek(r, r->at, BLOCK, &block, err));
        more = block[504];
        r->at += BLOCK;
    }
    return DR_OK;
}

/* Reads the header at r->at, and moves to the member's bytes.  DR_END at the end of the archive. */
static dr_status read_header(dr__tar_reader *r, dr__tar_member *m, struct extra *x, char *type, uint64_t *size,
                             dr_error *err)
{
    const uint8_t *h;
    if (r->at >= r->size)
        return DR_END;
    DR_TRY(dr__tar_peek(r, r->at, BLOCK, &h, err));
    if (is_zero(h))
        return DR_END;
    if (!sum_is_right(h) || !number(h + 124, 12, size))
        return dr__fail(err, DR_ERR_FORMAT, "%s: not a tar header at %llu", r->source->name, (unsigned long long)r->at);
    *type = (char)h[156];
    bool special = strchr("LKxg", *type) && *type;
    if (!special && !x->has_name)
        DR_TRY(header_name(r, h, m, err));
    if (!special && x->has_size)
        *size = x->size;
    bool more = *type == 'S' && h[482];
    r->at += BLOCK;
    DR_TRY(skip_sparse_map(r, more, err));
    if (*type >= '1' && *type <= '6') /* links, devices, folders and pipes have no bytes, whatever they claim */
        *size = 0;
    return *size > r->size - r->at ? truncated(r, *size, err) : DR_OK;
}

dr_status dr__tar_next(dr__tar_reader *r, dr__tar_member *m, dr_error *err)
{
    struct extra x = { 0 };
    uint64_t size = 0;
    char type = 0;
    m->header = r->at;
    for (;;) {
        DR_TRY(read_header(r, m, &x, &type, &size, err));
        uint64_t offset = r->at;
        r->at += size + (BLOCK - size % BLOCK) % BLOCK;
        if (type && strchr("LKxg", type)) {
            DR_TRY(take_extra(r, type, offset, size, m, &x, err));
            continue;
        }
        bool regular = type == '0' || type == 0 || type == '7';
        if (regular && !x.sparse && !(m->name_len && m->name[m->name_len - 1] == '/')) {
            m->offset = offset;
            m->size = size;
            return DR_OK;
        }
        x = (struct extra){ 0 };
        m->header = r->at;
    }
}
