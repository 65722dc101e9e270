/* block_jpeg.h: JPEGs of a few grey blocks whose Huffman symbols are chosen one by one.
 *
 * An encoder ends every block properly.  Here one may end at its last coefficient, pass it by one, or go on after it.
 */
#ifndef DR_TESTS_BLOCK_JPEG_H
#define DR_TESTS_BLOCK_JPEG_H

#include "unit/codec/image/make_image.h"

/* One to three blocks of random symbols, most of which come to their end around coefficient 63. */
struct blob make_blocks(enum jpeg_huffman huffman, uint64_t *seed);

#endif
