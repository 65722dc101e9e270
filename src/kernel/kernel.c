/* kernel.c: the table of kernels: the C reference, then the kernels that the CPU's level replaces. */
#include "kernel/kernel.h"

#include <pthread.h>

#include "kernel/cpu.h"
#include "kernel/level.h"

static dr__kernels reference, best;
static pthread_once_t once = PTHREAD_ONCE_INIT;

void dr__kernels_fill(dr__kernels *k, dr__cpu_level level)
{
    dr__hflip_c(k);
    dr__resample_c(k);
    dr__lut_c(k);
    dr__blend_c(k);
    dr__gray_c(k);
    dr__idct_c(k);
    dr__upsample_c(k);
    dr__ycc_c(k);
#ifdef DR_HAVE_AVX2
    if (level == DR__CPU_AVX2 || level == DR__CPU_AVX512) {
        dr__hflip_avx2(k);
        dr__resample_avx2(k);
        dr__lut_avx2(k);
        dr__blend_avx2(k);
        dr__gray_avx2(k);
        dr__idct_avx2(k);
        dr__upsample_avx2(k);
        dr__ycc_avx2(k);
    }
#endif
#ifdef DR_HAVE_AVX512
    if (level == DR__CPU_AVX512) {
        dr__resample_avx512(k);
        dr__lut_avx512(k);
        dr__idct_avx512(k);
        dr__upsample_avx512(k);
        dr__ycc_avx512(k);
    }
#endif
#ifdef DR_HAVE_NEON
    if (level == DR__CPU_NEON) {
        dr__resample_neon(k);
        dr__lut_neon(k);
        dr__gray_neon(k);
        dr__idct_neon(k);
        dr__upsample_neon(k);
        dr__ycc_neon(k);
    }
#endif
    (void)level;
}

static void fill_once(void)
{
    dr__kernels_fill(&reference, DR__CPU_C);
    dr__kernels_fill(&best, dr__cpu_use());
}

const dr__kernels *dr__kernels_best(void)
{
    pthread_once(&once, fill_once);
    return &best;
}

const dr__kernels *dr__kernels_c(void)
{
    pthread_once(&once, fill_once);
    return &reference;
}
