/* compiler.h: the only place with compiler extensions. */
#ifndef DR_BASE_COMPILER_H
#define DR_BASE_COMPILER_H

#if defined(__GNUC__)
#define DR_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define DR_LIKELY(x) __builtin_expect(!!(x), 1)
#define DR_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define DR_UNUSED __attribute__((unused))
#define DR_MUST_CHECK __attribute__((warn_unused_result))
#define DR_NOINLINE __attribute__((noinline))
#define DR_TYPEOF(x) __typeof__(x)
#define DR_INLINE static inline __attribute__((always_inline)) /* for bodies that fold when an argument is constant */
#define DR_CPU_SUPPORTS(feature) __builtin_cpu_supports(feature)
#if defined(__x86_64__)
#define DR_PAUSE() __builtin_ia32_pause() /* in a loop that waits for another CPU */
#elif defined(__aarch64__)
#define DR_PAUSE() __asm__ volatile("yield")
#else
#define DR_PAUSE() ((void)0)
#endif
#ifdef __x86_64__
#define DR_HAVE_BMI2 1
#define DR_BMI2 __attribute__((target("bmi,bmi2"))) /* shifts by a variable number in one step */
#endif
/* For dr__clear_128: of a memset so short and hot compilers make a slow string instruction. */
typedef long long dr__words __attribute__((vector_size(32), may_alias));
/* Floats at any address, for sums that stay in registers. */
typedef float dr__floats4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef float dr__floats8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int dr__ints4 __attribute__((vector_size(16)));
typedef int dr__ints8 __attribute__((vector_size(32)));
#ifdef __clang__
#define DR_NO_UNROLL _Pragma("clang loop unroll(disable)")
#else
#define DR_NO_UNROLL _Pragma("GCC unroll 1")
#endif
#else
typedef long long dr__words;
#define DR_NO_UNROLL
#define DR_PRINTF(fmt, args)
#define DR_LIKELY(x) (x)
#define DR_UNLIKELY(x) (x)
#define DR_UNUSED
#define DR_MUST_CHECK
#define DR_NOINLINE
#define DR_INLINE static inline
#define DR_CPU_SUPPORTS(feature) 0
#define DR_PAUSE() ((void)0)
#endif

#define DR_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define DR_MIN(a, b) ((a) < (b) ? (a) : (b))
#define DR_MAX(a, b) ((a) > (b) ? (a) : (b))

#endif
