/* jpeg_huffman.h: Huffman tables made for speed.
 *
 * AC: 11 bits of the stream find up to two symbols at once, their values included: most symbols with their extra bits
 * take six bits.  Eight bytes an entry and 2048 entries leave room beside two such tables in the first cache; 12 bits
 * were slower.  DC: 8 bits find a code; its extra bits are taken without a branch.
 */
#ifndef DR_CODEC_JPEG_HUFFMAN_H
#define DR_CODEC_JPEG_HUFFMAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DR__AC_BITS = 11,
    DR__DC_BITS = 8,

    /* Steps that lead out of the block: its end, and a symbol that the table does not hold whole. */
    DR__STEP_END = 128,
    DR__STEP_MISS = 192,
};

/* One lookup.  A single symbol has the same place and value twice; for a miss value[0] is the symbol, if its code is
 * known. */
typedef struct dr__ac_entry {
    int16_t value[2];
    uint8_t step;  /* from the last coefficient to the first of these: zeros + 1, or a step out of the block */
    uint8_t steps; /* to the second: both steps together */
    uint8_t bits;  /* of both symbols */
    uint8_t first; /* of the first symbol; with a miss: bits of the code if it is known, else 0 */
} dr__ac_entry;

/* Codes by their length, for those that no table holds. */
typedef struct dr__codes {
    uint32_t end[18];   /* one past the last code of this length, shifted to 16 bits; [17]: above all */
    int32_t offset[17]; /* symbol number = offset + code */
    uint8_t symbol[256];
} dr__codes;

typedef struct dr__ac_table {
    _Alignas(64) dr__ac_entry entry[1 << DR__AC_BITS];
    dr__codes codes;
    uint8_t made_of[16 + 256]; /* what the file said: tables are often the same as before */
    bool valid;
} dr__ac_table;

typedef struct dr__dc_entry {
    uint8_t bits; /* of the code; 0: longer than DR__DC_BITS */
    uint8_t size; /* how many extra bits follow */
} dr__dc_entry;

typedef struct dr__dc_table {
    dr__dc_entry entry[1 << DR__DC_BITS];
    dr__codes codes;
    uint8_t made_of[16 + 256];
    bool valid;
} dr__dc_table;

/* From 16 counts and their symbols.  False for codes that no prefix code can have, or (DC) sizes above 15: libjpeg
 * refuses those. */
bool dr__ac_table_make(dr__ac_table *table, const uint8_t *counts);
bool dr__dc_table_make(dr__dc_table *table, const uint8_t *counts);

/* The symbol and length of the code that the next 16 bits begin with; length 0: there is none. */
static inline int dr__codes_find(const dr__codes *codes, uint32_t next16, int from, int *length)
{
    int n = from;
    while (next16 >= codes->end[n])
        n++;
    *length = n > 16 ? 0 : n;
    return n > 16 ? 0 : codes->symbol[(uint8_t)(codes->offset[n] + (int32_t)(next16 >> (16 - n)))];
}

#endif
