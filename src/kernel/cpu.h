/* cpu.h: the instruction sets of this machine. */
#ifndef DR_KERNEL_CPU_H
#define DR_KERNEL_CPU_H

#include <stdbool.h>

#include "kernel/kernel.h"

/* The highest level of the CPU and the build, without regard to the environment. */
dr__cpu_level dr__cpu_has(void);

/* Whether the CPU and the build have this level: levels of x86 contain those before them, NEON only C. */
bool dr__cpu_can(dr__cpu_level level);

/* dr__cpu_has, capped by DRAPPS_CPU=c|avx2|avx512|neon; a name that is unknown or that this CPU lacks caps nothing. */
dr__cpu_level dr__cpu_use(void);

/* Whether BMI2's shifts may be used: the CPU has them, and DRAPPS_CPU does not say c. */
bool dr__cpu_bmi2(void);

/* "c", "avx2", "avx512", "neon". */
const char *dr__cpu_name(dr__cpu_level level);

#endif
