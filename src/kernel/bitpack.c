/* bitpack.c: groups of 256 numbers of the same width. */
#include "kernel/codec_kernel.h"

#include <string.h>

static void pack(uint8_t *dst, const uint32_t *src, unsigned width)
{
    uint32_t word[DR__PACK_LANES] = { 0 };
    unsigned fill = 0;
    for (unsigned i = 0; i < DR__PACK_GROUP / DR__PACK_LANES && width; i++) {
        const uint32_t *in = src + i * DR__PACK_LANES;
        for (unsigned k = 0; k < DR__PACK_LANES; k++)
            word[k] |= in[k] << fill;
        fill += width;
        if (fill < 32)
            continue;
        memcpy(dst, word, sizeof word);
        dst += sizeof word;
        fill -= 32;
        for (unsigned k = 0; k < DR__PACK_LANES; k++)
            word[k] = fill ? in[k] >> (width - fill) : 0;
    }
}

static void unpack(uint32_t *dst, const uint8_t *src, unsigned width, uint32_t base)
{
    const uint32_t mask = width ? UINT32_MAX >> (32 - width) : 0;
    for (unsigned i = 0; i < DR__PACK_GROUP / DR__PACK_LANES; i++) {
        const unsigned bit = i * width, shift = bit % 32;
        uint32_t word[DR__PACK_LANES] = { 0 }, next[DR__PACK_LANES] = { 0 };
        if (width)
            memcpy(word, src + bit / 32 * sizeof word, sizeof word);
        if (shift + width > 32)
            memcpy(next, src + (bit / 32 + 1) * sizeof next, sizeof next);
        for (unsigned k = 0; k < DR__PACK_LANES; k++)
            dst[i * DR__PACK_LANES + k] = ((word[k] >> shift | (shift ? next[k] << (32 - shift) : 0)) & mask) + base;
    }
}

void dr__bitpack_c(dr__codec_kernels *k)
{
    k->pack = pack;
    k->unpack = unpack;
}
