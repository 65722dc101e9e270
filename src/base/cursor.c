/* cursor.c: bounded reads. */
#include "base/cursor.h"

#include <string.h>

static dr_status overrun(const dr_cursor *c, size_t need, dr_error *err)
{
    return dr__fail(err, DR_ERR_FORMAT, "%s: ends too early: %zu bytes needed, %zu left", c->what, need,
                    dr__cursor_left(c));
}

dr_status dr__cursor_bytes(dr_cursor *c, size_t size, const uint8_t **out, dr_error *err)
{
    if (size > dr__cursor_left(c))
        return overrun(c, size, err);
    *out = c->at;
    if (size)
        c->at += size;
    return DR_OK;
}

dr_status dr__cursor_u8(dr_cursor *c, uint8_t *out, dr_error *err)
{
    const uint8_t *p = NULL;
    DR_TRY(dr__cursor_bytes(c, 1, &p, err));
    *out = *p;
    return DR_OK;
}

dr_status dr__cursor_u32(dr_cursor *c, uint32_t *out, dr_error *err)
{
    const uint8_t *p = NULL;
    DR_TRY(dr__cursor_bytes(c, 4, &p, err));
    *out = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    return DR_OK;
}

dr_status dr__cursor_u64(dr_cursor *c, uint64_t *out, dr_error *err)
{
    const uint8_t *p = NULL;
    DR_TRY(dr__cursor_bytes(c, 8, &p, err));
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--)
        v = v << 8 | p[i];
    *out = v;
    return DR_OK;
}

dr_status dr__cursor_text(dr_cursor *c, const char **out, size_t *len, dr_error *err)
{
    size_t left = dr__cursor_left(c);
    const uint8_t *zero = left ? memchr(c->at, 0, left) : NULL;
    if (!zero)
        return overrun(c, left + 1, err);
    *out = (const char *)c->at;
    *len = (size_t)(zero - c->at);
    c->at = zero + 1;
    return DR_OK;
}

bool dr__cursor_line(dr_cursor *c, const char **line, size_t *len)
{
    size_t left = dr__cursor_left(c);
    if (!left)
        return false;
    const uint8_t *end = memchr(c->at, '\n', left);
    *line = (const char *)c->at;
    *len = end ? (size_t)(end - c->at) : left;
    c->at = end ? end + 1 : c->end;
    if (*len && (*line)[*len - 1] == '\r')
        --*len;
    return true;
}
