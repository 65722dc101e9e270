/* jpeg_parse.h: the header of a JPEG that the own decoder can decode.
 *
 * Sequential Huffman-coded, 8 bits, grey or three channels in one interleaved scan, chroma at full or half resolution.
 * Everything else, and everything odd (missing tables, garbage between segments, contradictions), is left to libjpeg:
 * it then gives the pixels or the error, and no rule of it has to be imitated here.
 */
#ifndef DR_CODEC_JPEG_PARSE_H
#define DR_CODEC_JPEG_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DR__JPEG_TABLES = 4, DR__JPEG_CHANNELS = 3 };

typedef struct dr__jpeg_component {
    int id;
    int h, v;              /* blocks of an MCU across and down: 1 or 2 */
    int half_x, half_y;    /* 1: stored at half the resolution of the image, 0: at full */
    int quant, dc, ac;     /* numbers of its tables */
    int64_t width, height; /* in samples */
} dr__jpeg_component;

typedef struct dr__jpeg_frame {
    int64_t width, height;
    int n_components; /* 1 or 3 */
    dr__jpeg_component component[DR__JPEG_CHANNELS];
    bool rgb;                      /* the channels are red, green and blue, not YCbCr */
    int64_t mcu_width, mcu_height; /* pixels */
    int64_t mcus_across, mcu_rows;
    int64_t restart; /* MCUs between restart markers; 0: none */

    /* In the file: 16 counts of codes by length, then the symbols; [0] DC, [1] AC.  NULL: not there. */
    const uint8_t *huffman[2][DR__JPEG_TABLES];
    int orientation; /* EXIF, 1 to 8; 1 when it was not asked for */
    size_t scan;     /* where entropy-coded data begins */
    bool has_quant[DR__JPEG_TABLES];
    _Alignas(64) int16_t quant[DR__JPEG_TABLES][64]; /* natural order */
} dr__jpeg_frame;

/* Natural place of the i-th coefficient of the zigzag order; from 64 on it is the place after the block. */
extern const uint8_t dr__jpeg_zigzag[256];

/* False: not for the own decoder.  `orient`: look for the EXIF orientation. */
bool dr__jpeg_parse(const uint8_t *data, size_t size, bool orient, dr__jpeg_frame *frame);

/* The orientation that one APP1 segment adds to those before it (0: none yet): EXIF first, XMP only where no EXIF says
 * anything, as Pillow. */
typedef struct dr__jpeg_turn {
    int exif, xmp;
} dr__jpeg_turn;

void dr__jpeg_turn_add(dr__jpeg_turn *turn, const uint8_t *app1, size_t size);
int dr__jpeg_turn_of(const dr__jpeg_turn *turn); /* 1 to 8 */

/* "YCbCr 4:2:0", ...: for people.  Sampling factors of the first component and of the two chroma components. */
const char *dr__jpeg_sampling_name(const int h[3], const int v[3]);

#endif
