/* dense.c: tiles of four rows and eight columns, whose sums stay in registers.
 *
 * The loops over a tile have constant bounds, so compilers unroll and vectorise them.
 */
#include "rl/dense.h"

#include "base/compiler.h"

enum { ROWS = 4, COLS = 8 };

/* A whole tile; n is the row length of B and C. */
static void full_tile(const float *restrict a, size_t a_row, size_t a_col, const float *restrict b, float *restrict c,
                      size_t n, int p)
{
    dr__floats sum[ROWS];
    for (int r = 0; r < ROWS; r++)
        sum[r] = *(const dr__floats *)(c + (size_t)r * n);
    for (int k = 0; k < p; k++) {
        const dr__floats line = *(const dr__floats *)(b + (size_t)k * n);
        const float *at = a + (size_t)k * a_col;
        for (int r = 0; r < ROWS; r++)
            sum[r] += line * at[(size_t)r * a_row];
    }
    for (int r = 0; r < ROWS; r++)
        *(dr__floats *)(c + (size_t)r * n) = sum[r];
}

static void row_tile(const float *restrict a, size_t a_col, const float *restrict b, float *restrict c, size_t n, int p)
{
    dr__floats sum = *(const dr__floats *)c;
    for (int k = 0; k < p; k++)
        sum += *(const dr__floats *)(b + (size_t)k * n) * a[(size_t)k * a_col];
    *(dr__floats *)c = sum;
}

/* What is left of a row of less than eight columns. */
static void row_rest(const float *restrict a, size_t a_col, const float *restrict b, float *restrict c, size_t n, int p,
                     int cols)
{
    float sum[COLS];
    for (int j = 0; j < cols; j++)
        sum[j] = c[j];
    for (int k = 0; k < p; k++)
        for (int j = 0; j < cols; j++)
            sum[j] += b[(size_t)k * n + (size_t)j] * a[(size_t)k * a_col];
    for (int j = 0; j < cols; j++)
        c[j] = sum[j];
}

void dr__rl_dense(const float *a, size_t a_row, size_t a_col, const float *b, float *c, int m, int n, int p)
{
    const size_t width = (size_t)n;
    int i = 0;
    for (; i + ROWS <= m; i += ROWS)
        for (int j = 0; j + COLS <= n; j += COLS)
            full_tile(a + (size_t)i * a_row, a_row, a_col, b + j, c + (size_t)i * width + j, width, p);
    for (; i < m; i++)
        for (int j = 0; j + COLS <= n; j += COLS)
            row_tile(a + (size_t)i * a_row, a_col, b + j, c + (size_t)i * width + j, width, p);
    const int done = n - n % COLS;
    for (i = 0; i < m && done < n; i++)
        row_rest(a + (size_t)i * a_row, a_col, b + done, c + (size_t)i * width + done, width, p, n - done);
}

void dr__rl_transpose(const float *from, int rows, int cols, float *to)
{
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++)
            to[(size_t)c * (size_t)rows + (size_t)r] = from[(size_t)r * (size_t)cols + (size_t)c];
}
