/* stage_narrow.c: integers of 4 and 8 bytes as 2 or 3 bytes: tokens of a vocabulary of that size. */
#include "codec/array/integers.h"

static bool takes(dr__elem in)
{
    return dr__is_integer(in) && in.size >= 4;
}

static dr__elem makes_u16(dr__elem in)
{
    (void)in;
    return (dr__elem){ DR__ELEM_UINT, 2 };
}

static dr__elem makes_u24(dr__elem in)
{
    (void)in;
    return (dr__elem){ DR__ELEM_UINT, 3 };
}

static size_t bound_u16(size_t n, dr__elem in)
{
    (void)in;
    return n * 2;
}

static size_t bound_u24(size_t n, dr__elem in)
{
    (void)in;
    return n * 3;
}

/* `seen` collects the bits above the narrow type, so that the loop has no branch. */
#define NARROW(type, bytes, limit)                                                                                     \
    {                                                                                                                  \
        type seen = 0;                                                                                                 \
        for (size_t i = 0; i < n; i++) {                                                                               \
            type x;                                                                                                    \
            memcpy(&x, data + i * sizeof x, sizeof x);                                                                 \
            seen |= x;                                                                                                 \
            for (unsigned b = 0; b < (bytes); b++)                                                                     \
                out[i * (bytes) + b] = (uint8_t)(x >> 8 * b);                                                          \
        }                                                                                                              \
        return seen < (limit) ? n * (bytes) : 0;                                                                       \
    }

static size_t encode_u16(const uint8_t *data, size_t n, dr__elem in, uint8_t *out, dr__stage_note *note)
{
    (void)note;
    if (in.size == 4)
        NARROW(uint32_t, 2, 1u << 16)
    NARROW(uint64_t, 2, 1u << 16)
}

static size_t encode_u24(const uint8_t *data, size_t n, dr__elem in, uint8_t *out, dr__stage_note *note)
{
    (void)note;
    if (in.size == 4)
        NARROW(uint32_t, 3, 1u << 24)
    NARROW(uint64_t, 3, 1u << 24)
}

#define WIDEN(type, bytes)                                                                                             \
    for (size_t i = 0; i < n; i++) {                                                                                   \
        type x = 0;                                                                                                    \
        for (unsigned b = 0; b < (bytes); b++)                                                                         \
            x |= (type)data[i * (bytes) + b] << 8 * b;                                                                 \
        memcpy(out + i * sizeof x, &x, sizeof x);                                                                      \
    }

static bool decode_u16(const uint8_t *data, size_t size, uint8_t *out, size_t n, dr__elem in)
{
    if (size != n * 2)
        return false;
    if (in.size == 4)
        WIDEN(uint32_t, 2)
    else
        WIDEN(uint64_t, 2)
    return true;
}

static bool decode_u24(const uint8_t *data, size_t size, uint8_t *out, size_t n, dr__elem in)
{
    if (size != n * 3)
        return false;
    if (in.size == 4)
        WIDEN(uint32_t, 3)
    else
        WIDEN(uint64_t, 3)
    return true;
}

const dr__array_stage dr__stage_u16 = {
    .name = "u16",
    .summary = "integers from 0 to 65535 as 2 bytes",
    .wire_id = DR__STAGE_U16,
    .kind = DR__STAGE_TOKEN,
    .fixed = true,
    .ratio = 4,
    .takes = takes,
    .makes = makes_u16,
    .bound = bound_u16,
    .encode = encode_u16,
    .decode = decode_u16,
};

const dr__array_stage dr__stage_u24 = {
    .name = "u24",
    .summary = "integers from 0 to 16777215 as 3 bytes",
    .wire_id = DR__STAGE_U24,
    .kind = DR__STAGE_TOKEN,
    .fixed = true,
    .ratio = 3,
    .takes = takes,
    .makes = makes_u24,
    .bound = bound_u24,
    .encode = encode_u24,
    .decode = decode_u24,
};
