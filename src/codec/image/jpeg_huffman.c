/* jpeg_huffman.c: from a file's code lengths to lookup tables. */
#include "codec/image/jpeg_huffman.h"

#include <string.h>

#include "base/compiler.h"

static size_t count_symbols(const uint8_t *counts)
{
    size_t n = 0;
    for (int i = 0; i < 16; i++)
        n += counts[i];
    return n;
}

/* Canonical codes: of each length consecutive numbers, each length continuing where the shorter one ended. */
static bool make_codes(dr__codes *codes, const uint8_t *counts)
{
    uint32_t code = 0;
    int32_t n = 0;
    memset(codes->symbol, 0, sizeof codes->symbol);
    memcpy(codes->symbol, counts + 16, count_symbols(counts));
    codes->end[0] = 0;
    for (int length = 1; length <= 16; length++) {
        codes->offset[length] = n - (int32_t)code;
        code += counts[length - 1];
        n += counts[length - 1];
        if (code >= 1u << length) /* all ones is not allowed either */
            return false;
        codes->end[length] = code << (16 - length);
        code <<= 1;
    }
    codes->end[17] = UINT32_MAX;
    return true;
}

/* The number that `size` extra bits stand for. */
static int extend(int bits, int size)
{
    return bits < 1 << (size - 1) ? bits - (1 << size) + 1 : bits;
}

/* A symbol whose zeros and value are known from the table alone. */
static dr__ac_entry single(int step, int value, int bits)
{
    return (dr__ac_entry){
        .value = { (int16_t)value, (int16_t)value },
        .step = (uint8_t)step,
        .steps = (uint8_t)step,
        .bits = (uint8_t)bits,
        .first = (uint8_t)bits,
    };
}

static dr__ac_entry miss(int symbol, int length)
{
    return (dr__ac_entry){
        .value = { (int16_t)symbol, 0 }, .step = DR__STEP_MISS, .steps = DR__STEP_MISS, .first = (uint8_t)length
    };
}

static dr__ac_entry *fill(dr__ac_entry *at, dr__ac_entry entry, int bits)
{
    for (int i = 0; i < 1 << (DR__AC_BITS - bits); i++)
        *at++ = entry;
    return at;
}

/* All entries that begin with one code. */
static dr__ac_entry *fill_symbol(dr__ac_entry *at, int symbol, int length)
{
    int zeros = symbol >> 4, size = symbol & 15;
    if (size == 0)
        return fill(at, single(zeros == 15 ? 16 : DR__STEP_END, 0, length), length);
    if (length + size > DR__AC_BITS)
        return fill(at, miss(symbol, length), length);
    for (int bits = 0; bits < 1 << size; bits++)
        at = fill(at, single(zeros + 1, extend(bits, size), length + size), length + size);
    return at;
}

/* Entries whose first symbol leaves enough bits get a second one. */
static void pair_up(dr__ac_table *table, const dr__ac_entry *singles)
{
    for (int i = 0; i < 1 << DR__AC_BITS; i++) {
        dr__ac_entry a = singles[i];
        if (a.step < DR__STEP_END) {
            const dr__ac_entry b = singles[(i << a.bits) & ((1 << DR__AC_BITS) - 1)];
            if (b.step != DR__STEP_MISS && a.bits + b.bits <= DR__AC_BITS) {
                a.value[1] = b.value[0];
                a.steps = (uint8_t)(a.step + b.step);
                a.bits = (uint8_t)(a.bits + b.bits);
            }
        }
        table->entry[i] = a;
    }
}

bool dr__ac_table_make(dr__ac_table *table, const uint8_t *counts)
{
    const size_t bytes = 16 + count_symbols(counts);
    if (table->valid && memcmp(table->made_of, counts, bytes) == 0)
        return true;
    table->valid = false;
    if (!make_codes(&table->codes, counts))
        return false;
    dr__ac_entry singles[1 << DR__AC_BITS], *at = singles;
    const uint8_t *symbol = counts + 16;
    for (int length = 1; length <= DR__AC_BITS; length++)
        for (int i = 0; i < counts[length - 1]; i++)
            at = fill_symbol(at, *symbol++, length);
    while (at < singles + DR_COUNT(singles))
        *at++ = miss(0, 0);
    pair_up(table, singles);
    memcpy(table->made_of, counts, bytes);
    return table->valid = true;
}

bool dr__dc_table_make(dr__dc_table *table, const uint8_t *counts)
{
    const size_t n = count_symbols(counts);
    if (table->valid && memcmp(table->made_of, counts, 16 + n) == 0)
        return true;
    table->valid = false;
    for (size_t i = 0; i < n; i++)
        if (counts[16 + i] > 15)
            return false;
    if (!make_codes(&table->codes, counts))
        return false;
    memset(table->entry, 0, sizeof table->entry);
    const uint8_t *symbol = counts + 16;
    dr__dc_entry *at = table->entry;
    for (int length = 1; length <= DR__DC_BITS; length++)
        for (int i = 0; i < counts[length - 1]; i++, symbol++)
            for (int k = 0; k < 1 << (DR__DC_BITS - length); k++)
                *at++ = (dr__dc_entry){ .bits = (uint8_t)length, .size = *symbol };
    memcpy(table->made_of, counts, 16 + n);
    return table->valid = true;
}
