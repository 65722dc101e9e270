/* slow_net.c: one row at a time, libm, no blocks. */
#include "unit/rl/slow_net.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void slow_mlp(const dr__rl_mlp *mlp, const double *params, const double *x, double *out)
{
    double now[SLOW_WIDEST], next[SLOW_WIDEST];
    memcpy(now, x, (size_t)mlp->sizes[0] * sizeof *now);
    for (int l = 0; l < mlp->n_layers; l++) {
        const int in = mlp->sizes[l], n = mlp->sizes[l + 1];
        for (int o = 0; o < n; o++) {
            double sum = params[(size_t)in * (size_t)n + (size_t)o];
            for (int i = 0; i < in; i++)
                sum += now[i] * params[(size_t)i * (size_t)n + (size_t)o];
            if (l + 1 < mlp->n_layers || mlp->active_output)
                sum = mlp->activation == DR__RL_TANH ? tanh(sum) : fmax(sum, 0);
            next[o] = sum;
        }
        memcpy(now, next, (size_t)n * sizeof *now);
        params += ((size_t)in + 1) * (size_t)n;
    }
    memcpy(out, now, (size_t)mlp->sizes[mlp->n_layers] * sizeof *out);
}

void slow_net(const dr__rl_net *net, const double *params, const double *obs, const uint8_t *present, double *out)
{
    const double *trunk = params + net->encoder.n_params, *head = trunk + net->trunk.n_params;
    const int code = net->n_ops ? net->encoder.sizes[1] : 0, global = net->n_global;
    static double codes[16][SLOW_WIDEST], in[3 * SLOW_WIDEST];
    double *mean = in + code + global;
    int n = 0;
    memset(in, 0, sizeof in);
    memcpy(in + code, obs, (size_t)global * sizeof *in);
    for (int i = 0; i < net->n_ops; i++) {
        slow_mlp(&net->encoder, params, obs + global + i * net->n_op_inputs, codes[i]);
        n += present[i] != 0;
    }
    for (int i = 0; i < net->n_ops; i++)
        for (int c = 0; present[i] && c < code; c++)
            mean[c] += codes[i][c] / n;
    if (net->n_out)
        slow_mlp(&net->trunk, trunk, in + code, out);
    for (int i = 0; i < net->n_ops && net->n_op_out; i++) {
        double *to = out + net->n_out + i * net->n_op_out;
        memcpy(in, codes[i], (size_t)code * sizeof *in);
        slow_mlp(&net->op_head, head, in, to);
        for (int o = 0; o < net->n_op_out && !present[i]; o++)
            to[o] = 0;
    }
}

int slow_differences(double (*function)(void *owner), void *owner, double *params, size_t n, const float *grads)
{
    const double step = 1e-5;
    double largest = 0;
    int wrong = 0;
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(grads[i]));
    for (size_t i = 0; i < n; i++) {
        const double at = params[i];
        params[i] = at + step;
        const double above = function(owner);
        params[i] = at - step;
        const double slope = (above - function(owner)) / (2 * step);
        params[i] = at;
        if (fabs(grads[i] - slope) > 1e-4 * fmax(fabs(slope), largest / 100)) {
            printf("gradient %zu: %.9g, by differences %.9g\n", i, grads[i], slope);
            wrong++;
        }
    }
    return largest > 0 ? wrong : -1;
}
