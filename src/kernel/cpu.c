/* cpu.c: the instruction sets of this machine, and those that the environment allows. */
#include "kernel/cpu.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

static const char *const names[] = {
    [DR__CPU_C] = "c", [DR__CPU_AVX2] = "avx2", [DR__CPU_AVX512] = "avx512", [DR__CPU_NEON] = "neon"
};

#ifdef DR_HAVE_AVX512
static bool has_avx512(void)
{
    return DR_CPU_SUPPORTS("avx512f") && DR_CPU_SUPPORTS("avx512bw") && DR_CPU_SUPPORTS("avx512vl") &&
           DR_CPU_SUPPORTS("avx512vbmi") && DR_CPU_SUPPORTS("avx512vnni");
}
#endif

dr__cpu_level dr__cpu_has(void)
{
#ifdef DR_HAVE_AVX512
    if (has_avx512())
        return DR__CPU_AVX512;
#endif
#ifdef DR_HAVE_AVX2
    if (DR_CPU_SUPPORTS("avx2"))
        return DR__CPU_AVX2;
#endif
#ifdef DR_HAVE_NEON
    return DR__CPU_NEON; /* every 64-bit ARM */
#else
    return DR__CPU_C;
#endif
}

bool dr__cpu_can(dr__cpu_level level)
{
    const dr__cpu_level has = dr__cpu_has();
    return level == DR__CPU_C || level == has || (level < has && has != DR__CPU_NEON);
}

dr__cpu_level dr__cpu_use(void)
{
    const dr__cpu_level has = dr__cpu_has();
    const char *cap = getenv("DRAPPS_CPU");
    for (int level = DR__CPU_C; cap && level < (int)has; level++) {
        if (dr__cpu_can((dr__cpu_level)level) && strcmp(cap, names[level]) == 0)
            return (dr__cpu_level)level;
    }
    return has;
}

bool dr__cpu_bmi2(void)
{
#ifdef DR_HAVE_BMI2
    return DR_CPU_SUPPORTS("bmi2") && DR_CPU_SUPPORTS("bmi") && dr__cpu_use() != DR__CPU_C;
#else
    return false;
#endif
}

const char *dr__cpu_name(dr__cpu_level level)
{
    return (size_t)level < DR_COUNT(names) ? names[level] : "?";
}
