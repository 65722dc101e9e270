/* naive_huffman.c: no table, no window: one bit after the other. */
#include "unit/codec/image/naive_huffman.h"

#include <stdbool.h>
#include <string.h>

#include "unit/codec/image/blob.h"

/* How many codes of one length, of `most` that there can be.  Dense: so many that few longer ones are left. */
static int random_count(int most, bool dense, bool last, uint64_t *seed)
{
    if (dense)
        return last ? most : most - random_in(seed, 0, most < 3 ? most : 3);
    return random_in(seed, 0, last || most < 6 ? most : 6);
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

void random_table(uint8_t *table, int largest, uint64_t *seed)
{
    int total = 0, room = 1;
    const int longest = random_in(seed, 2, 16);
    const bool dense = random_in(seed, 0, 1);
    memset(table, 0, TABLE_BYTES);
    for (int length = 1; length <= longest; length++) {
        room *= 2;
        const int n = random_count(smaller(room - 1, smaller(255, 256 - total)), dense, length == longest, seed);
        table[length - 1] = (uint8_t)n;
        total += n;
        room -= n;
    }
    if (total == 0)
        table[total++] = 1;
    for (int i = 0; i < total; i++)
        table[16 + i] = (uint8_t)random_in(seed, 0, largest);
}

static int next_bit(struct naive_bits *b)
{
    if (b->at >= b->n) {
        b->ended = 1;
        return 0;
    }
    return b->bits[b->at++];
}

int naive_symbol(struct naive_bits *b, const uint8_t *table)
{
    int code = 0, first = 0, symbols = 0;
    for (int length = 1; length <= 16; length++) {
        const int n = table[length - 1];
        code = 2 * code + next_bit(b);
        first *= 2;
        if (code - first < n)
            return table[16 + symbols + code - first];
        first += n;
        symbols += n;
    }
    return -1;
}

int naive_number(struct naive_bits *b, int size)
{
    int number = 0;
    for (int i = 0; i < size; i++)
        number = 2 * number + next_bit(b);
    return size > 0 && number < 1 << (size - 1) ? number - (1 << size) + 1 : number;
}
