/* cursor.h: a read position in bytes that are not to be trusted.
 *
 * Every parser of stored data reads through one, so that no length in a file can lead outside it.  Numbers are
 * little-endian.  A read that does not fit fails, names what was being read, and leaves the position where it was.
 */
#ifndef DR_BASE_CURSOR_H
#define DR_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct dr_cursor {
    const uint8_t *at, *end;
    const char *what; /* for messages; borrowed */
} dr_cursor;

static inline dr_cursor dr__cursor(const void *data, size_t size, const char *what)
{
    const uint8_t *at = data;
    return (dr_cursor){ .at = at, .end = size ? at + size : at, .what = what };
}

static inline size_t dr__cursor_left(const dr_cursor *c)
{
    return (size_t)(c->end - c->at);
}

dr_status dr__cursor_u8(dr_cursor *c, uint8_t *out, dr_error *err);
dr_status dr__cursor_u32(dr_cursor *c, uint32_t *out, dr_error *err);
dr_status dr__cursor_u64(dr_cursor *c, uint64_t *out, dr_error *err);

/* The next `size` bytes, borrowed. */
dr_status dr__cursor_bytes(dr_cursor *c, size_t size, const uint8_t **out, dr_error *err);

/* The next text that ends with a zero byte, borrowed; *len without it. */
dr_status dr__cursor_text(dr_cursor *c, const char **out, size_t *len, dr_error *err);

/* The next byte without taking it; -1 at the end. */
static inline int dr__cursor_peek(const dr_cursor *c)
{
    return c->at < c->end ? *c->at : -1;
}

/* The next line, borrowed, without its end ("\n" or "\r\n"); false when nothing is left. */
bool dr__cursor_line(dr_cursor *c, const char **line, size_t *len);

#endif
