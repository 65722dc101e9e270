/* array_stage.h: stages of a chain that know about elements.
 *
 * An array stage is one `const dr__array_stage` in a file of this folder, and one row in array_stage_table.c.  Stages
 * keep no state: every function may be called by many threads at once.  They see one block of an array at a time, never
 * an empty one.  Memory has any alignment; in memory, all numbers are little-endian.
 */
#ifndef DR_CODEC_ARRAY_STAGE_H
#define DR_CODEC_ARRAY_STAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Wire ids stand in frames, beside those of byte_codec.h.  A number never changes its meaning and is never reused. */
enum {
    DR__STAGE_SHUFFLE = 64,
    DR__STAGE_BITSHUFFLE = 65,
    DR__STAGE_DELTA = 66,
    DR__STAGE_BF16 = 67,
    DR__STAGE_FP16 = 68,
    DR__STAGE_INT8 = 69,
    DR__STAGE_U16 = 70,
    DR__STAGE_U24 = 71,
    DR__STAGE_BITPACK = 72,
    DR__STAGE_SVB = 73,
    DR__STAGE_LAST = DR__STAGE_SVB
};

typedef enum dr__elem_kind { DR__ELEM_UINT, DR__ELEM_INT, DR__ELEM_FLOAT, DR__ELEM_BFLOAT } dr__elem_kind;

/* What passes between stages: elements of one type.  Bytes without a meaning are DR__ELEM_UINT of size 1. */
typedef struct dr__elem {
    dr__elem_kind kind;
    uint8_t size; /* in bytes: 1, 2, 3, 4, 8 */
} dr__elem;

#define DR__ELEM_BYTES ((dr__elem){ DR__ELEM_UINT, 1 })

/* What a lossy stage tells of a block. */
typedef struct dr__stage_note {
    double abs_error, rel_error; /* |decoded - original| <= max(abs_error, rel_error * |original|) */
    size_t bad;                  /* number of the element that it cannot keep within that */
} dr__stage_note;

typedef enum dr__stage_kind { DR__STAGE_FILTER, DR__STAGE_TOKEN, DR__STAGE_LOSSY } dr__stage_kind;

typedef struct dr__array_stage {
    const char *name; /* "shuffle" */
    const char *summary;
    const char *error;  /* of lossy stages: the error bound, in words */
    const char *reason; /* of lossy stages: why it refuses a value, after "..., which" */
    uint8_t wire_id;
    dr__stage_kind kind;
    bool fixed;     /* bound() is the exact size */
    uint32_t ratio; /* most bytes that one encoded byte decodes to */

    bool (*takes)(dr__elem in);
    dr__elem (*makes)(dr__elem in);

    /* The most bytes that n elements become. */
    size_t (*bound)(size_t n, dr__elem in);

    /* Encodes n elements into `out`, which has room for bound() bytes.  Returns the bytes written; 0: there are values
     * that it cannot take (lossy stages: `note->bad`).  Lossy stages fill `note`; others leave it alone. */
    size_t (*encode)(const uint8_t *data, size_t n, dr__elem in, uint8_t *out, dr__stage_note *note);

    /* Decodes `size` bytes of `data`, which may be damaged, to exactly n elements.  Returns false where that is not
     * what they are; `out` then holds garbage. */
    bool (*decode)(const uint8_t *data, size_t size, uint8_t *out, size_t n, dr__elem in);
} dr__array_stage;

extern const dr__array_stage *const dr__array_stages[]; /* NULL ends it */

/* Returns the stage with this wire id, or NULL. */
const dr__array_stage *dr__array_stage_find(unsigned wire_id);

#endif
