/* check_codec.c: the kernels of the array codecs, with every size of element and tails of every length. */
#include <string.h>

#include "checkkernel.h"

enum { ROUNDS = 400, MOST = 1500 };

static const size_t sizes[] = { 1, 2, 3, 4, 8 };

typedef void (*elements)(uint8_t *dst, const uint8_t *src, size_t n, size_t size);

/* `step`: n is a multiple of it. */
static void compare(elements ref, elements simd, size_t step, bool with_3)
{
    for (int i = 0; i < ROUNDS; i++) {
        const size_t size = sizes[rnd_below(DR_COUNT(sizes))], n = rnd_size(MOST) / step * step;
        if (size == 3 && !with_3)
            continue;
        const struct guarded src = guarded_random(n * size);
        struct guarded want = guarded_blank(n * size), got = guarded_blank(n * size);
        ref(want.p, src.p, n, size);
        simd(got.p, src.p, n, size);
        expect_same(&got, &want, "%zu elements of %zu bytes", n, size);
    }
}

/* What `to` makes, `back` undoes. */
static void undo(elements to, elements back, size_t step, bool with_3)
{
    for (int i = 0; i < ROUNDS; i++) {
        const size_t size = sizes[rnd_below(DR_COUNT(sizes))], n = rnd_size(MOST) / step * step;
        if (size == 3 && !with_3)
            continue;
        const struct guarded src = guarded_random(n * size);
        struct guarded made = guarded_blank(n * size), got = guarded_blank(n * size), want = guarded_blank(n * size);
        memcpy(want.p, src.p, n * size);
        to(made.p, src.p, n, size);
        back(got.p, made.p, n, size);
        expect_same(&got, &want, "there and back: %zu elements of %zu bytes", n, size);
    }
}

CHECK_CODEC_KERNEL(shuffle)
{
    compare(ref->shuffle, simd->shuffle, 1, true);
}

CHECK_CODEC_KERNEL(unshuffle)
{
    compare(ref->unshuffle, simd->unshuffle, 1, true);
    undo(ref->shuffle, simd->unshuffle, 1, true);
}

CHECK_CODEC_KERNEL(bitshuffle)
{
    compare(ref->bitshuffle, simd->bitshuffle, 8, true);
}

CHECK_CODEC_KERNEL(bitunshuffle)
{
    compare(ref->bitunshuffle, simd->bitunshuffle, 8, true);
    undo(ref->bitshuffle, simd->bitunshuffle, 8, true);
}

CHECK_CODEC_KERNEL(delta)
{
    compare(ref->delta, simd->delta, 1, false);
}

CHECK_CODEC_KERNEL(undelta)
{
    compare(ref->undelta, simd->undelta, 1, false);
    undo(ref->delta, simd->undelta, 1, false);
}

static void draw_numbers(uint32_t *x, unsigned width)
{
    for (int i = 0; i < DR__PACK_GROUP; i++)
        x[i] = width ? rnd() >> (32 - width) : 0;
}

CHECK_CODEC_KERNEL(pack)
{
    uint32_t x[DR__PACK_GROUP];
    for (unsigned round = 0; round < 5 * 33; round++) {
        const unsigned width = round % 33;
        struct guarded want = guarded_blank(32 * width), got = guarded_blank(32 * width);
        draw_numbers(x, width);
        ref->pack(want.p, x, width);
        simd->pack(got.p, x, width);
        expect_same(&got, &want, "%u bits", width);
    }
}

CHECK_CODEC_KERNEL(unpack)
{
    uint32_t x[DR__PACK_GROUP];
    for (unsigned round = 0; round < 5 * 33; round++) {
        const unsigned width = round % 33;
        const uint32_t base = round % 2 ? rnd() : 0;
        const struct guarded packed = guarded_blank(32 * width);
        struct guarded want = guarded_blank(sizeof x), got = guarded_blank(sizeof x);
        draw_numbers(x, width);
        ref->pack(packed.p, x, width);
        for (int i = 0; i < DR__PACK_GROUP; i++)
            x[i] += base;
        memcpy(want.p, x, sizeof x);
        ref->unpack((uint32_t *)(void *)got.p, packed.p, width, base);
        expect_same(&got, &want, "%u bits in C, base %u", width, base);
        simd->unpack((uint32_t *)(void *)got.p, packed.p, width, base);
        expect_same(&got, &want, "%u bits, base %u", width, base);
    }
}

CHECK_CODEC_KERNEL(svb_decode)
{
    for (int i = 0; i < ROUNDS; i++) {
        const size_t n = rnd_size(MOST), n_control = (n + 3) / 4;
        const struct guarded control = guarded_random(n_control);
        size_t bytes = 0;
        for (size_t k = 0; k < n; k++)
            bytes += 1u + (control.p[k / 4] >> k % 4 * 2 & 3);
        const struct guarded data = guarded_random(bytes);
        struct guarded want = guarded_blank(4 * n), got = guarded_blank(4 * n);
        ref->svb_decode((uint32_t *)(void *)want.p, control.p, data.p, data.p + bytes, n);
        simd->svb_decode((uint32_t *)(void *)got.p, control.p, data.p, data.p + bytes, n);
        expect_same(&got, &want, "%zu numbers", n);
    }
}

CHECK_CODEC_KERNEL(hash)
{
    for (int i = 0; i < ROUNDS; i++) {
        const size_t size = rnd_size(4 * MOST); /* short inputs have ways of their own */
        const struct guarded data = guarded_random(size);
        const uint64_t seed = i % 2 ? rnd() : 0;
        const uint64_t sums[] = { ref->hash(data.p, size, seed), simd->hash(data.p, size, seed) };
        struct guarded want = guarded_blank(8), got = guarded_blank(8);
        memcpy(want.p, &sums[0], 8);
        memcpy(got.p, &sums[1], 8);
        expect_same(&got, &want, "%zu bytes, seed %llu", size, (unsigned long long)seed);
    }
}
