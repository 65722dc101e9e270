/* mlp.c: layers of dense products and activations, and back through them.
 *
 * Activations lie layer by layer, [rows][outputs] each.  On the way back the gradient by a layer's outputs is in one of two
 * halves of the scratch, and that by its inputs goes to the other; the third part has transposed weights.
 */
#include "rl/mlp.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "rl/dense.h"

dr__rl_mlp dr__rl_mlp_shape(int n_in, const int *hidden, int n_hidden, int n_out, dr__rl_activation activation)
{
    assert(n_hidden >= 0 && n_hidden < DR__RL_LAYERS);
    dr__rl_mlp mlp = { .n_layers = n_hidden + 1, .activation = activation };
    mlp.sizes[0] = n_in;
    for (int i = 0; i < n_hidden; i++)
        mlp.sizes[i + 1] = hidden[i];
    mlp.sizes[n_hidden + 1] = n_out;
    for (int i = 0; i < mlp.n_layers; i++)
        mlp.n_params += ((size_t)mlp.sizes[i] + 1) * (size_t)mlp.sizes[i + 1];
    for (int i = 0; i <= mlp.n_layers; i++)
        mlp.widest = DR_MAX(mlp.widest, mlp.sizes[i]);
    return mlp;
}

/* Gram and Schmidt over `count` vectors of `length` (at least count) with the given strides, in double. */
static void orthogonal(float *w, int count, int length, size_t vector, size_t element, double gain, dr_rng *rng)
{
    for (int v = 0; v < count; v++) {
        float *at = w + (size_t)v * vector;
        double norm = 0;
        for (int i = 0; i < length; i++)
            at[(size_t)i * element] = (float)dr__rng_normal(rng);
        for (int pass = 0; pass < 2; pass++)
            for (int u = 0; u < v; u++) {
                const float *other = w + (size_t)u * vector;
                double dot = 0;
                for (int i = 0; i < length; i++)
                    dot += (double)at[(size_t)i * element] * other[(size_t)i * element];
                for (int i = 0; i < length; i++)
                    at[(size_t)i * element] -= (float)(dot * other[(size_t)i * element]);
            }
        for (int i = 0; i < length; i++)
            norm += (double)at[(size_t)i * element] * at[(size_t)i * element];
        const double scale = 1 / sqrt(DR_MAX(norm, 1e-30));
        for (int i = 0; i < length; i++)
            at[(size_t)i * element] = (float)(at[(size_t)i * element] * scale);
    }
    for (int v = 0; v < count; v++)
        for (int i = 0; i < length; i++)
            w[(size_t)v * vector + (size_t)i * element] *= (float)gain;
}

void dr__rl_mlp_init(const dr__rl_mlp *mlp, float *params, double gain, double last_gain, dr_rng *rng)
{
    for (int l = 0; l < mlp->n_layers; l++) {
        const int in = mlp->sizes[l], out = mlp->sizes[l + 1];
        const double g = l + 1 < mlp->n_layers ? gain : last_gain;
        if (in < out)
            orthogonal(params, in, out, (size_t)out, 1, g, rng);
        else
            orthogonal(params, out, in, 1, (size_t)out, g, rng);
        params += (size_t)in * (size_t)out;
        memset(params, 0, (size_t)out * sizeof *params);
        params += out;
    }
}

size_t dr__rl_mlp_acts(const dr__rl_mlp *mlp, int rows)
{
    size_t n = 0;
    for (int l = 0; l < mlp->n_layers; l++)
        n += (size_t)mlp->sizes[l + 1];
    return n * (size_t)rows;
}

size_t dr__rl_mlp_scratch(const dr__rl_mlp *mlp, int rows)
{
    return (size_t)mlp->widest * (2 * (size_t)rows + (size_t)mlp->widest);
}

static void activate(dr__rl_activation activation, float *y, size_t n)
{
    if (activation == DR__RL_TANH)
        dr__rl_tanh_all(y, n);
    else
        for (size_t i = 0; i < n; i++)
            y[i] = y[i] > 0 ? y[i] : 0;
}

/* d *= the derivative of the activation, by its output y. */
static void deactivate(dr__rl_activation activation, const float *restrict y, float *restrict d, size_t n)
{
    if (activation == DR__RL_TANH)
        for (size_t i = 0; i < n; i++)
            d[i] *= 1.0f - y[i] * y[i];
    else
        for (size_t i = 0; i < n; i++)
            d[i] = y[i] > 0 ? d[i] : 0;
}

static bool is_active(const dr__rl_mlp *mlp, int layer)
{
    return layer + 1 < mlp->n_layers || mlp->active_output;
}

float *dr__rl_mlp_forward(const dr__rl_mlp *mlp, const float *params, const float *x, int rows, float *acts)
{
    for (int l = 0; l < mlp->n_layers; l++) {
        const int in = mlp->sizes[l], out = mlp->sizes[l + 1];
        const size_t n = (size_t)rows * (size_t)out;
        const float *bias = params + (size_t)in * (size_t)out;
        for (int r = 0; r < rows; r++)
            memcpy(acts + (size_t)r * (size_t)out, bias, (size_t)out * sizeof *acts);
        dr__rl_dense(x, (size_t)in, 1, params, acts, rows, out, in);
        if (is_active(mlp, l))
            activate(mlp->activation, acts, n);
        x = acts;
        acts += n;
        params = bias + out;
    }
    return acts - (size_t)rows * (size_t)mlp->sizes[mlp->n_layers];
}

/* The gradient of one layer's weights and biases. */
static void layer_grads(const float *x, const float *d, int rows, int in, int out, float *grads)
{
    dr__rl_dense(x, 1, (size_t)in, d, grads, in, out, rows);
    float *bias = grads + (size_t)in * (size_t)out;
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < out; o++)
            bias[o] += d[(size_t)r * (size_t)out + (size_t)o];
}

/* d_in = d times the transposed weights. */
static void layer_back(const float *weights, const float *d, int rows, int in, int out, float *transposed, float *d_in)
{
    dr__rl_transpose(weights, in, out, transposed);
    memset(d_in, 0, (size_t)rows * (size_t)in * sizeof *d_in);
    dr__rl_dense(d, (size_t)out, 1, transposed, d_in, rows, in, out);
}

void dr__rl_mlp_backward(const dr__rl_mlp *mlp, const float *params, const float *x, int rows, const float *acts,
                         const float *d_out, float *grads, float *d_x, float *scratch)
{
    const size_t half = (size_t)mlp->widest * (size_t)rows;
    float *d = scratch, *next = scratch + half, *transposed = scratch + 2 * half;
    const float *y = acts + dr__rl_mlp_acts(mlp, rows);
    size_t at = mlp->n_params;
    memcpy(d, d_out, (size_t)rows * (size_t)mlp->sizes[mlp->n_layers] * sizeof *d);
    for (int l = mlp->n_layers - 1; l >= 0; l--) {
        const int in = mlp->sizes[l], out = mlp->sizes[l + 1];
        y -= (size_t)rows * (size_t)out;
        at -= ((size_t)in + 1) * (size_t)out;
        if (is_active(mlp, l))
            deactivate(mlp->activation, y, d, (size_t)rows * (size_t)out);
        const float *input = l ? y - (size_t)rows * (size_t)in : x;
        if (grads)
            layer_grads(input, d, rows, in, out, grads + at);
        if (!l && !d_x)
            return;
        layer_back(params + at, d, rows, in, out, transposed, l ? next : d_x);
        float *swap = d;
        d = next;
        next = swap;
    }
}
