/* jpeg_entropy.h: Huffman-coded data to coefficients.
 *
 * Any irregularity (a code that does not exist, a coefficient beyond the 63rd, a marker where there should be data)
 * ends decoding with false: the caller then leaves the whole image to libjpeg and its ways of recovery.  Nothing is
 * read outside the data, nothing written outside the blocks.
 */
#ifndef DR_CODEC_JPEG_ENTROPY_H
#define DR_CODEC_JPEG_ENTROPY_H

#include "codec/image/jpeg_huffman.h"
#include "codec/image/jpeg_parse.h"
#include "codec/image/jpeg_seek.h"

enum {
    DR__MCU_BLOCKS = 10,

    /* What is written to a block: 64 coefficients, and one after them that means nothing. */
    DR__BLOCK = 64,
};

/* Where reading stands.  Stuffed bytes (FF 00) are taken out on the way; a marker or the end of the data stops it, and
 * zeros follow. */
typedef struct dr__bits {
    const uint8_t *at, *end;
    uint64_t window; /* the next bits, from the top */
    int have;        /* of them, that count */
    int made_up;     /* of those, zeros after the end */
} dr__bits;

/* One scan's blocks in the order in which an MCU has them. */
typedef struct dr__scan {
    bool bmi2; /* this CPU's shifts may be used */
    int n_blocks;
    struct {
        const dr__dc_table *dc;
        const dr__ac_table *ac;
        int component;
    } block[DR__MCU_BLOCKS];
} dr__scan;

/* Where the blocks of consecutive MCUs go: MCU m's block b to at[b] + m * step[b].  Blocks are cleared first. */
typedef struct dr__block_places {
    int16_t *at[DR__MCU_BLOCKS];
    int step[DR__MCU_BLOCKS];
} dr__block_places;

/* Begins reading at a bit of the file (see dr__seek_point). */
dr__bits dr__bits_at(const uint8_t *data, size_t size, uint64_t bit);

/* The place of the next bit in the file; of unread bits before a marker, the first. */
uint64_t dr__bits_tell(const dr__bits *bits, const uint8_t *data);

/* n MCUs; dc: predictors of the components, updated. */
bool dr__scan_mcus(const dr__scan *scan, dr__bits *bits, int32_t dc[DR__JPEG_CHANNELS], int n,
                   const dr__block_places *places);

/* Passes restart marker `number` (0 to 7), which must come now. */
bool dr__bits_restart(dr__bits *bits, int number);

/* Is the image's data over: less than a byte left, and then the end marker? */
bool dr__bits_over(const dr__bits *bits);

#endif
