/* dense_tiles.h: the product of dense.h in tiles of four rows and two vectors, whose sums stay in registers; and tanh.
 *
 * Included by a file for each level of instructions, which defines dr__rl_vector and dr__rl_bits, ints of the same size.  Neighbouring elements of C are
 * summed side by side, each in the order of its terms, so all levels make the same bits.
 */
#ifndef DR_RL_DENSE_TILES_H
#define DR_RL_DENSE_TILES_H

#include <stddef.h>

#include "base/compiler.h"
#include "rl/rl_math.h"

enum { DR__RL_LANES = sizeof(dr__rl_vector) / sizeof(float), DR__RL_TILE = 4 };

/* How A is read: element (m, p) is at[m * row + p * col]. */
typedef struct dr__rl_factor {
    const float *at;
    size_t row, col;
} dr__rl_factor;

/* `rows` (at most 4) rows and `vectors` (at most 2) vectors of C; n is the row length of B and C. */
DR_INLINE void dr__rl_tile(dr__rl_factor a, const float *b, float *c, size_t n, int p, int rows, int vectors)
{
    dr__rl_vector sum[DR__RL_TILE][2];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            sum[r][v] = *(const dr__rl_vector *)(c + (size_t)r * n + v * DR__RL_LANES);
    for (int k = 0; k < p; k++, b += n, a.at += a.col)
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < vectors; v++)
                sum[r][v] += *(const dr__rl_vector *)(b + v * DR__RL_LANES) * a.at[(size_t)r * a.row];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            *(dr__rl_vector *)(c + (size_t)r * n + v * DR__RL_LANES) = sum[r][v];
}

/* One column. */
DR_INLINE void dr__rl_column(dr__rl_factor a, const float *b, float *c, size_t n, int p, int rows)
{
    float sum[DR__RL_TILE];
    for (int r = 0; r < rows; r++)
        sum[r] = c[(size_t)r * n];
    for (int k = 0; k < p; k++, b += n, a.at += a.col)
        for (int r = 0; r < rows; r++)
            sum[r] += b[0] * a.at[(size_t)r * a.row];
    for (int r = 0; r < rows; r++)
        c[(size_t)r * n] = sum[r];
}

/* All columns of `rows` rows. */
DR_INLINE void dr__rl_band(dr__rl_factor a, const float *b, float *c, int n, int p, int rows)
{
    int j = 0;
    for (; j + 2 * DR__RL_LANES <= n; j += 2 * DR__RL_LANES)
        dr__rl_tile(a, b + j, c + j, (size_t)n, p, rows, 2);
    for (; j + DR__RL_LANES <= n; j += DR__RL_LANES)
        dr__rl_tile(a, b + j, c + j, (size_t)n, p, rows, 1);
    for (; j < n; j++)
        dr__rl_column(a, b + j, c + j, (size_t)n, p, rows);
}

DR_INLINE void dr__rl_dense_tiles(dr__rl_factor a, const float *b, float *c, int m, int n, int p)
{
    int i = 0;
    for (; i + DR__RL_TILE <= m; i += DR__RL_TILE, a.at += DR__RL_TILE * a.row, c += (size_t)DR__RL_TILE * (size_t)n)
        dr__rl_band(a, b, c, n, p, DR__RL_TILE);
    for (; i < m; i++, a.at += a.row, c += n)
        dr__rl_band(a, b, c, n, p, 1);
}

/* a where the mask is -1, b where it is 0. */
DR_INLINE dr__rl_vector dr__rl_select(dr__rl_bits mask, dr__rl_vector a, dr__rl_vector b)
{
    return (dr__rl_vector)(((dr__rl_bits)a & mask) | ((dr__rl_bits)b & ~mask));
}

/* As dr__rl_tanh, operation by operation. */
DR_INLINE dr__rl_vector dr__rl_tanh_vector(dr__rl_vector x)
{
    const dr__rl_vector zero = { 0 };
    const dr__rl_bits sign = (dr__rl_bits)x & (int)0x80000000;
    dr__rl_vector a = (dr__rl_vector)((dr__rl_bits)x ^ sign);
    a = dr__rl_select(a > 10.0f, zero + 10.0f, a);
    a *= -2.0f;
    const dr__rl_vector shifted = a * 1.44269504f + 12582912.0f, n = shifted - 12582912.0f;
    const dr__rl_vector r = (a - n * 0.693359375f) + n * 2.12194440e-4f;
    dr__rl_vector y = zero + 1.0f / 5040;
    y = y * r + 1.0f / 720;
    y = y * r + 1.0f / 120;
    y = y * r + 1.0f / 24;
    y = y * r + 1.0f / 6;
    y = y * r + 0.5f;
    y = y * r + 1.0f;
    y = y * r + 1.0f;
    const dr__rl_bits power = ((dr__rl_bits)shifted - 0x4b400000 + 127) << 23;
    const dr__rl_vector e = y * (dr__rl_vector)power, t = (1.0f - e) / (1.0f + e);
    return (dr__rl_vector)((dr__rl_bits)t | sign);
}

DR_INLINE void dr__rl_tanh_row(float *y, size_t n)
{
    size_t i = 0;
    for (; i + DR__RL_LANES <= n; i += DR__RL_LANES)
        *(dr__rl_vector *)(y + i) = dr__rl_tanh_vector(*(const dr__rl_vector *)(y + i));
    for (; i < n; i++)
        y[i] = dr__rl_tanh(y[i]);
}

#endif
