/* integers.h: integers of 1, 2, 4 and 8 bytes at any address, one at a time and some hundred at a time. */
#ifndef DR_CODEC_INTEGERS_H
#define DR_CODEC_INTEGERS_H

#include <string.h>

#include "codec/array/array_stage.h"

static inline bool dr__is_integer(dr__elem e)
{
    return (e.kind == DR__ELEM_UINT || e.kind == DR__ELEM_INT) && e.size != 3;
}

/* An element as 64 bits: signed ones extended by their sign. */
static inline uint64_t dr__integer_at(const uint8_t *at, dr__elem e)
{
    uint8_t b;
    uint16_t h;
    uint32_t w;
    uint64_t d;
    const bool is_signed = e.kind == DR__ELEM_INT;
    switch (e.size) {
    case 1:
        memcpy(&b, at, 1);
        return is_signed ? (uint64_t)(int64_t)(int8_t)b : b;
    case 2:
        memcpy(&h, at, 2);
        return is_signed ? (uint64_t)(int64_t)(int16_t)h : h;
    case 4:
        memcpy(&w, at, 4);
        return is_signed ? (uint64_t)(int64_t)(int32_t)w : w;
    default:
        memcpy(&d, at, 8);
        return d;
    }
}

/* Writes n numbers plus `base` as elements of `size` bytes, modulo 2^bits. */
static inline void dr__integers_put(uint8_t *out, const uint32_t *x, size_t n, unsigned size, uint64_t base)
{
    for (size_t i = 0; size == 8 && i < n; i++) {
        const uint64_t v = x[i] + base;
        memcpy(out + i * 8, &v, 8);
    }
    for (size_t i = 0; size == 4 && i < n; i++) {
        const uint32_t v = x[i] + (uint32_t)base;
        memcpy(out + i * 4, &v, 4);
    }
    for (size_t i = 0; size == 2 && i < n; i++) {
        const uint16_t v = (uint16_t)(x[i] + base);
        memcpy(out + i * 2, &v, 2);
    }
    for (size_t i = 0; size == 1 && i < n; i++)
        out[i] = (uint8_t)(x[i] + base);
}

#endif
