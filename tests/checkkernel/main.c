/* main.c: runs every kernel check for every level of this CPU.  CHECKKERNEL_SEED repeats a run. */
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "checkkernel.h"
#include "kernel/cpu.h"

enum { BLOCK = 1 << 16 };

static _Alignas(64) uint8_t blocks[GUARDED_LIVE][BLOCK + 2 * GUARD];
static unsigned next_block;
static dr_rng rng;
static int n_failed;
static const char *current = "?";

uint32_t rnd(void)
{
    return dr__rng_u32(&rng);
}

size_t rnd_below(size_t n)
{
    return (size_t)dr__rng_below(&rng, n);
}

size_t rnd_size(size_t n)
{
    return rnd_below(4) == 0 ? rnd_below(n < 4 ? n : 4) : rnd_below(n);
}

struct guarded guarded_blank(size_t size)
{
    uint8_t *block = blocks[next_block++ % GUARDED_LIVE];
    if (size > BLOCK) {
        fprintf(stderr, "checkkernel: %zu bytes asked for, %d are the most\n", size, BLOCK);
        exit(2);
    }
    memset(block, 0xa5, size + 2 * GUARD);
    return (struct guarded){ block + GUARD, size };
}

/* One in four is extreme, where rounding and clipping go wrong first. */
struct guarded guarded_random(size_t size)
{
    const struct guarded g = guarded_blank(size);
    const bool extreme = rnd_below(4) == 0;
    for (size_t i = 0; i < size; i++)
        g.p[i] = extreme ? (uint8_t)(rnd() & 1 ? 255 : 0) : (uint8_t)rnd();
    return g;
}

void expect_same(const struct guarded *got, const struct guarded *want, const char *format, ...)
{
    const size_t size = got->size + 2 * GUARD;
    const uint8_t *a = got->p - GUARD, *b = want->p - GUARD;
    size_t at = 0;
    while (at < size && a[at] == b[at])
        at++;
    if (at == size)
        return;
    va_list args;
    va_start(args, format);
    if (n_failed++ < 20) {
        printf("  %s: byte %td is %d, should be %d: ", current, (ptrdiff_t)at - GUARD, a[at], b[at]);
        vprintf(format, args);
        printf("\n");
    }
    va_end(args);
}

struct check {
    const char *name;
    void (*run)(const dr__kernels *ref, const dr__kernels *simd);
};

#define ROW(kernel)                                                                                                    \
    {                                                                                                                  \
#kernel, check_##kernel                                                                                        \
    }

static const struct check checks[] = {
    ROW(hflip_row),      ROW(resample_h),     ROW(resample_v),     ROW(lut_planar_f32),
    ROW(lut_packed_f32), ROW(lut_planar_u16), ROW(lut_packed_u16), ROW(lut_planar_u8),
    ROW(lut_u8),         ROW(blend_u8),       ROW(rgb_to_l),       ROW(idct_8x8),
    ROW(upsample_h2),    ROW(upsample_h2v2),  ROW(upsample_v2),    ROW(ycc_to_rgb),
};

/* A kernel added to the table without a check here shows as a wrong count. */
static_assert(sizeof(dr__kernels) == DR_COUNT(checks) * sizeof(void (*)(void)), "a kernel has no check");

struct codec_check {
    const char *name;
    void (*run)(const dr__codec_kernels *ref, const dr__codec_kernels *simd);
};

static const struct codec_check codec_checks[] = {
    ROW(shuffle), ROW(unshuffle), ROW(bitshuffle), ROW(bitunshuffle), ROW(delta),
    ROW(undelta), ROW(pack),      ROW(unpack),     ROW(svb_decode),   ROW(hash),
};

static_assert(sizeof(dr__codec_kernels) == DR_COUNT(codec_checks) * sizeof(void (*)(void)),
              "a kernel of the array codecs has no check");

static void check_codec_level(dr__cpu_level level)
{
    dr__codec_kernels ref, simd;
    dr__codec_kernels_fill(&ref, DR__CPU_C);
    dr__codec_kernels_fill(&simd, level);
    for (size_t i = 0; i < DR_COUNT(codec_checks); i++) {
        const int before = n_failed;
        current = codec_checks[i].name;
        codec_checks[i].run(&ref, &simd);
        printf("%s %-16s %s\n", dr__cpu_name(level), current, n_failed == before ? "ok" : "FAILED");
    }
}

static void check_level(dr__cpu_level level)
{
    dr__kernels simd;
    dr__kernels_fill(&simd, level);
    for (size_t i = 0; i < DR_COUNT(checks); i++) {
        const int before = n_failed;
        current = checks[i].name;
        checks[i].run(dr__kernels_c(), &simd);
        printf("%s %-16s %s\n", dr__cpu_name(level), current, n_failed == before ? "ok" : "FAILED");
    }
}

int main(void)
{
    const char *given = getenv("CHECKKERNEL_SEED");
    const uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    const dr__rng_name name = { .seed = seed };
    printf("CHECKKERNEL_SEED=%" PRIu64 "\n", seed);
    rng = dr__rng_open(&name, 0);
    if (dr__cpu_has() == DR__CPU_C)
        printf("this CPU has no level above C: nothing to compare\n");
    for (int level = DR__CPU_C + 1; level <= (int)dr__cpu_has(); level++)
        if (dr__cpu_can((dr__cpu_level)level)) {
            check_level((dr__cpu_level)level);
            check_codec_level((dr__cpu_level)level);
        }
    return n_failed ? 1 : 0;
}
