/* jpeg_entropy.c: the inner loop of JPEG decoding.
 *
 * The time goes into a chain of three dependent steps for each lookup: shift the window, load the entry, shift out its
 * bits.  Everything else is arranged to run beside it: both symbols of an entry are stored whatever they are (the end
 * of a block and what the table does not hold lead to a place after the block), one branch ends the loop for every
 * reason, and the window is refilled from an address that is known early.
 */
#include "codec/image/jpeg_entropy.h"

#include "base/bytes.h"
#include "base/compiler.h"

enum { LOOKUPS_PER_REFILL = 5 }; /* 56 bits are there then, and a lookup takes up to 11 */

static bool has_ff(uint64_t v)
{
    return (~v - 0x0101010101010101u) & v & 0x8080808080808080u;
}

/* Byte by byte: around stuffed bytes, markers and the end of the data. */
DR_INLINE dr__bits refill_slowly(dr__bits b)
{
    while (b.have < 56) {
        uint64_t byte = 0;
        if (b.at == b.end || (*b.at == 0xff && (b.end - b.at < 2 || b.at[1] != 0))) {
            b.made_up += 8;
        } else {
            byte = *b.at;
            b.at += byte == 0xff ? 2 : 1;
        }
        b.window |= byte << (56 - b.have);
        b.have += 8;
    }
    return b;
}

/* At least 56 bits.  What is loaded beyond the bits that count is right as well, and is loaded again next time. */
DR_INLINE void refill(dr__bits *b)
{
    if (DR_LIKELY(b->end - b->at >= 8)) {
        const uint64_t next = dr__load_be64(b->at);
        if (DR_LIKELY(!has_ff(next))) {
            b->window |= next >> b->have;
            b->at += (63 - b->have) >> 3;
            b->have |= 56;
            return;
        }
    }
    *b = refill_slowly(*b);
}

DR_INLINE void drop(dr__bits *b, int n)
{
    b->window <<= n;
    b->have -= n;
}

/* The number in the next `size` bits (0 to 15): below half of the range it is negative. */
DR_INLINE int take_number(dr__bits *b, int size)
{
    const unsigned bits = (unsigned)(b->window >> 1 >> (63 - size));
    const unsigned below = ~(unsigned)((int64_t)b->window >> 63) & ((1u << size) - 1);
    drop(b, size);
    return (int)(bits - below);
}

DR_INLINE bool read_dc(dr__bits *b, const dr__dc_table *table, int32_t *dc)
{
    refill(b);
    const dr__dc_entry entry = table->entry[b->window >> (64 - DR__DC_BITS)];
    int length = entry.bits, size = entry.size;
    if (DR_UNLIKELY(length == 0)) {
        size = dr__codes_find(&table->codes, (uint32_t)(b->window >> 48), DR__DC_BITS + 1, &length);
        if (length == 0)
            return false;
    }
    drop(b, length);
    *dc = (int32_t)((uint32_t)*dc + (uint32_t)take_number(b, size));
    return true;
}

/* One symbol that the table does not hold whole, after coefficient k.  Returns the coefficient's place, DR__STEP_END
 * after the end of the block, 0 if there is no such symbol. */
DR_INLINE size_t read_rare(dr__bits *b, const dr__codes *codes, const dr__ac_entry *entry, size_t k, int16_t *block)
{
    int symbol = entry->value[0], length = entry->first;
    refill(b);
    if (DR_UNLIKELY(length == 0)) {
        symbol = dr__codes_find(codes, (uint32_t)(b->window >> 48), DR__AC_BITS + 1, &length);
        if (length == 0)
            return 0;
    }
    drop(b, length);
    const int size = symbol & 15;
    if (size == 0 && symbol >> 4 != 15)
        return DR__STEP_END;
    k += (size_t)(symbol >> 4) + 1;
    block[dr__jpeg_zigzag[k]] = (int16_t)take_number(b, size);
    return k <= 63 ? k : 0;
}

/* The coefficients after the first.  Both symbols of each entry are stored; see the top of this file. */
DR_INLINE bool read_ac(dr__bits *b, const dr__ac_table *table, int16_t *block)
{
    size_t k = 0;
    for (;;) {
        const dr__ac_entry *entry;
        size_t first, second;
        refill(b);
        DR_NO_UNROLL /* a fixed number of turns is predicted; copies of the loop's exit are not */
            for (int i = 0; i < LOOKUPS_PER_REFILL; i++)
        {
            entry = &table->entry[b->window >> (64 - DR__AC_BITS)];
            first = k + entry->step;
            second = k + entry->steps;
            block[dr__jpeg_zigzag[first]] = entry->value[0];
            block[dr__jpeg_zigzag[second]] = entry->value[1];
            if (DR_UNLIKELY(second >= 63))
                goto leave;
            drop(b, entry->bits);
            k = second;
        }
        continue;
    leave:
        if (entry->step == DR__STEP_MISS) {
            k = read_rare(b, &table->codes, entry, k, block);
            if (k - 1 < 62)
                continue;
            return k != 0;
        }
        if (first == 63) { /* what follows belongs to the next block */
            drop(b, entry->first);
            return true;
        }
        drop(b, entry->bits);
        return first - 64 >= DR__STEP_END - 64 && second - 64 >= DR__STEP_END - 64;
    }
}

DR_INLINE bool read_block(dr__bits *b, const dr__dc_table *dc_table, const dr__ac_table *ac_table, int32_t *dc,
                          int16_t *block)
{
    dr__clear_128(block);
    if (!read_dc(b, dc_table, dc))
        return false;
    block[0] = (int16_t)*dc;
    return read_ac(b, ac_table, block);
}

DR_INLINE bool read_mcus(const dr__scan *scan, dr__bits *bits, int32_t dc[DR__JPEG_CHANNELS], int n,
                         const dr__block_places *places)
{
    dr__bits b = *bits;
    for (int m = 0; m < n; m++) {
        for (int i = 0; i < scan->n_blocks; i++)
            if (!read_block(&b, scan->block[i].dc, scan->block[i].ac, &dc[scan->block[i].component],
                            places->at[i] + (ptrdiff_t)m * places->step[i]))
                return false;
        if (b.have < b.made_up)
            return false;
    }
    *bits = b;
    return true;
}

#ifdef DR_HAVE_BMI2
static DR_BMI2 bool read_mcus_bmi2(const dr__scan *scan, dr__bits *bits, int32_t dc[DR__JPEG_CHANNELS], int n,
                                   const dr__block_places *places)
{
    return read_mcus(scan, bits, dc, n, places);
}
#endif

bool dr__scan_mcus(const dr__scan *scan, dr__bits *bits, int32_t dc[DR__JPEG_CHANNELS], int n,
                   const dr__block_places *places)
{
#ifdef DR_HAVE_BMI2
    if (scan->bmi2)
        return read_mcus_bmi2(scan, bits, dc, n, places);
#endif
    return read_mcus(scan, bits, dc, n, places);
}

dr__bits dr__bits_at(const uint8_t *data, size_t size, uint64_t bit)
{
    dr__bits b = { .at = data + bit / 8, .end = data + size };
    b = refill_slowly(b);
    drop(&b, (int)(bit % 8));
    return b;
}

uint64_t dr__bits_tell(const dr__bits *bits, const uint8_t *data)
{
    const uint8_t *at = bits->at;
    const int left = bits->have - bits->made_up;
    for (int i = 0; i < left; i += 8) {
        at--;
        if (*at == 0 && at > data && at[-1] == 0xff)
            at--;
    }
    return (uint64_t)(at - data) * 8 + (unsigned)(-left & 7);
}

/* The rest of the last byte is filled up with anything. */
static bool at_marker(const dr__bits *bits)
{
    return bits->have - bits->made_up < 8 && bits->have >= bits->made_up && bits->end - bits->at >= 2 &&
           bits->at[0] == 0xff;
}

bool dr__bits_restart(dr__bits *bits, int number)
{
    *bits = refill_slowly(*bits);
    if (!at_marker(bits) || bits->at[1] != 0xd0 + number)
        return false;
    *bits = (dr__bits){ .at = bits->at + 2, .end = bits->end };
    return true;
}

bool dr__bits_over(const dr__bits *bits)
{
    const dr__bits b = refill_slowly(*bits);
    return at_marker(&b) && b.at[1] == 0xd9;
}
