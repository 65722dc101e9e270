/* codec_kernel.c: the table of the array codecs' kernels: C first, then what the CPU's level replaces. */
#include "kernel/codec_kernel.h"

#include <pthread.h>

#include "kernel/cpu.h"

static dr__codec_kernels best;
static pthread_once_t once = PTHREAD_ONCE_INIT;

void dr__codec_kernels_fill(dr__codec_kernels *k, dr__cpu_level level)
{
    dr__shuffle_c(k);
    dr__bitshuffle_c(k);
    dr__delta_c(k);
    dr__bitpack_c(k);
    dr__svb_c(k);
    dr__hash_c(k);
#ifdef DR_HAVE_AVX2
    if (level == DR__CPU_AVX2 || level == DR__CPU_AVX512) {
        dr__shuffle_avx2(k);
        dr__bitshuffle_avx2(k);
        dr__delta_avx2(k);
        dr__bitpack_avx2(k);
        dr__svb_avx2(k);
        dr__hash_avx2(k);
    }
    if (level == DR__CPU_AVX512)
        dr__hash_avx512(k);
#endif
#ifdef DR_HAVE_NEON
    if (level == DR__CPU_NEON) {
        dr__shuffle_neon(k);
        dr__bitpack_neon(k);
    }
#endif
    (void)level;
}

static void fill_once(void)
{
    dr__codec_kernels_fill(&best, dr__cpu_use());
}

const dr__codec_kernels *dr__codec_kernels_best(void)
{
    pthread_once(&once, fill_once);
    return &best;
}
