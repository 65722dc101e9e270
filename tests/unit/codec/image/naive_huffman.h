/* naive_huffman.h: JPEG's Huffman codes read bit by bit, as the standard describes it; and random tables of them. */
#ifndef DR_TESTS_NAIVE_HUFFMAN_H
#define DR_TESTS_NAIVE_HUFFMAN_H

#include <stdint.h>

enum { TABLE_BYTES = 16 + 256 };

/* Bits, one a byte; reading past the end sets `ended` and gives zeros. */
struct naive_bits {
    const uint8_t *bits;
    int n, at;
    int ended;
};

/* Fills 16 counts and their symbols: a code that leaves room for at least one more word, each symbol at most
 * `largest`.  At most 256 symbols, at least one. */
void random_table(uint8_t *table, int largest, uint64_t *seed);

/* The next code's symbol; -1: there is no such code. */
int naive_symbol(struct naive_bits *b, const uint8_t *table);

/* The number in the next `size` bits. */
int naive_number(struct naive_bits *b, int size);

#endif
