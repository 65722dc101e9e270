/* dense_avx2.c: the product in vectors of eight. */
#include "rl/dense.h"

#include "base/compiler.h"

typedef dr__floats8 dr__rl_vector;
typedef dr__ints8 dr__rl_bits;

#include "rl/dense_tiles.h"

void dr__rl_dense_avx2(const float *a, size_t a_row, size_t a_col, const float *b, float *c, int m, int n, int p)
{
    dr__rl_dense_tiles((dr__rl_factor){ a, a_row, a_col }, b, c, m, n, p);
}

void dr__rl_tanh_all_avx2(float *y, size_t n)
{
    dr__rl_tanh_row(y, n);
}
