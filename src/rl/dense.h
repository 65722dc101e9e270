/* dense.h: products of small matrices of floats, and tanh of many.
 *
 * Each element of a product is summed in the order of its terms, whatever the number of rows and the CPU, so splitting
 * the rows among calls or threads does not change a bit.
 */
#ifndef DR_RL_DENSE_H
#define DR_RL_DENSE_H

#include <stddef.h>

/* C[m][n] += sum over p of A(m, p) * B[p][n], where A(m, p) is a[m * a_row + p * a_col].  B and C are dense. */
void dr__rl_dense(const float *a, size_t a_row, size_t a_col, const float *b, float *c, int m, int n, int p);

/* y[i] = dr__rl_tanh(y[i]) */
void dr__rl_tanh_all(float *y, size_t n);

/* The same, of one level; AVX2's is there where the build has it. */
void dr__rl_dense_c(const float *a, size_t a_row, size_t a_col, const float *b, float *c, int m, int n, int p);
void dr__rl_dense_avx2(const float *a, size_t a_row, size_t a_col, const float *b, float *c, int m, int n, int p);
void dr__rl_tanh_all_c(float *y, size_t n);
void dr__rl_tanh_all_avx2(float *y, size_t n);

/* to[c][r] = from[r][c] */
void dr__rl_transpose(const float *from, int rows, int cols, float *to);

#endif
