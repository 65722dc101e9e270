/* byte_range.h: the Range header of a request (RFC 9110, 14.1 and 14.2). */
#ifndef DR_SERVE_BYTE_RANGE_H
#define DR_SERVE_BYTE_RANGE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum dr__range_kind {
    DR__RANGE_ALL,         /* none, or one that is not understood: the whole object is the answer */
    DR__RANGE_PART,        /* one range */
    DR__RANGE_UNSATISFIED, /* it begins behind the end */
} dr__range_kind;

/* What a header asks for of an object of `size` bytes; NULL: no header.  Of several ranges none is honoured, which
 * the standard permits.
 *
 * @param offset, n  of a part: within the object, and not empty. */
dr__range_kind dr__range_parse(const char *header, uint64_t size, uint64_t *offset, uint64_t *n);

#endif
