/* dense.c: the product for any CPU, in vectors of four (SSE2, NEON), and the choice between that and AVX2. */
#include "rl/dense.h"

#include <stdbool.h>

#include "base/compiler.h"
#include "kernel/cpu.h"

typedef dr__floats4 dr__rl_vector;
typedef dr__ints4 dr__rl_bits;

#include "rl/dense_tiles.h"

#ifdef DR_HAVE_AVX2
static bool has_avx2(void)
{
    static _Atomic int level; /* 0: not asked yet, 1: any CPU, 2: AVX2 */
    if (!level)
        level = dr__cpu_use() >= DR__CPU_AVX2 ? 2 : 1;
    return level == 2;
}
#endif

void dr__rl_dense(const float *a, size_t a_row, size_t a_col, const float *b, float *c, int m, int n, int p)
{
#ifdef DR_HAVE_AVX2
    if (has_avx2()) {
        dr__rl_dense_avx2(a, a_row, a_col, b, c, m, n, p);
        return;
    }
#endif
    dr__rl_dense_c(a, a_row, a_col, b, c, m, n, p);
}

void dr__rl_tanh_all(float *y, size_t n)
{
#ifdef DR_HAVE_AVX2
    if (has_avx2()) {
        dr__rl_tanh_all_avx2(y, n);
        return;
    }
#endif
    dr__rl_tanh_all_c(y, n);
}

void dr__rl_tanh_all_c(float *y, size_t n)
{
    dr__rl_tanh_row(y, n);
}

void dr__rl_dense_c(const float *a, size_t a_row, size_t a_col, const float *b, float *c, int m, int n, int p)
{
    dr__rl_dense_tiles((dr__rl_factor){ a, a_row, a_col }, b, c, m, n, p);
}

void dr__rl_transpose(const float *from, int rows, int cols, float *to)
{
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++)
            to[(size_t)c * (size_t)rows + (size_t)r] = from[(size_t)r * (size_t)cols + (size_t)c];
}
