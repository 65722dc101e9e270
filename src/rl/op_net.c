/* op_net.c: encoder of ops, trunk and op head, put together. */
#include "rl/op_net.h"

#include <math.h>
#include <string.h>

#include "base/compiler.h"

dr__rl_net dr__rl_net_shape(int n_global, int n_ops, int n_op_inputs, int n_out, int n_op_out, const int *hidden,
                            int n_hidden, dr__rl_activation activation)
{
    const int code = n_ops ? hidden[0] : 0;
    dr__rl_net net = { .n_global = n_global,
                       .n_ops = n_ops,
                       .n_op_inputs = n_ops ? n_op_inputs : 0,
                       .n_out = n_out,
                       .n_op_out = n_ops ? n_op_out : 0 };
    net.n_obs = n_global + n_ops * net.n_op_inputs;
    net.n_all_out = n_out + n_ops * net.n_op_out;
    if (n_ops) {
        net.encoder = dr__rl_mlp_shape(n_op_inputs, NULL, 0, code, activation);
        net.encoder.active_output = true;
        if (n_op_out)
            net.op_head = dr__rl_mlp_shape(2 * code + n_global, hidden, 1, n_op_out, activation);
    }
    if (n_out)
        net.trunk = dr__rl_mlp_shape(n_global + code, hidden, n_hidden, n_out, activation);
    net.n_params = net.encoder.n_params + net.trunk.n_params + net.op_head.n_params;
    return net;
}

void dr__rl_net_init(const dr__rl_net *net, float *params, double last_gain, dr_rng *rng)
{
    const double gain = sqrt(2);
    dr__rl_mlp_init(&net->encoder, params, gain, gain, rng);
    dr__rl_mlp_init(&net->trunk, params + net->encoder.n_params, gain, last_gain, rng);
    dr__rl_mlp_init(&net->op_head, params + net->encoder.n_params + net->trunk.n_params, gain, last_gain, rng);
}

void dr__rl_tape_lay_out(const dr__rl_net *net, int rows, dr__rl_arena *arena, dr__rl_tape *tape)
{
    const size_t n = (size_t)rows, n_ops = n * (size_t)net->n_ops;
    const int op_rows = rows * net->n_ops;
    size_t scratch = DR_MAX(dr__rl_mlp_scratch(&net->trunk, rows), dr__rl_mlp_scratch(&net->encoder, op_rows));
    scratch = DR_MAX(scratch, dr__rl_mlp_scratch(&net->op_head, op_rows));
    tape->trunk = dr__rl_take_floats(arena, dr__rl_mlp_acts(&net->trunk, rows));
    tape->scratch = dr__rl_take_floats(arena, scratch);
    if (!net->n_ops)
        return;
    const size_t code = (size_t)net->encoder.sizes[1], joined = (size_t)net->n_global + code;
    tape->op_inputs = dr__rl_take_floats(arena, n_ops * (size_t)net->n_op_inputs);
    tape->codes = dr__rl_take_floats(arena, n_ops * code);
    tape->d_codes = dr__rl_take_floats(arena, n_ops * code);
    tape->trunk_in = dr__rl_take_floats(arena, n * joined);
    tape->d_trunk_in = dr__rl_take_floats(arena, n * joined);
    tape->d_trunk = dr__rl_take_floats(arena, n * (size_t)net->n_out);
    tape->head_in = dr__rl_take_floats(arena, n_ops * (joined + code));
    tape->d_head_in = dr__rl_take_floats(arena, n_ops * (joined + code));
    tape->head = dr__rl_take_floats(arena, dr__rl_mlp_acts(&net->op_head, op_rows));
    tape->d_head = dr__rl_take_floats(arena, n_ops * (size_t)net->n_op_out);
    tape->out = dr__rl_take_floats(arena, n * (size_t)net->n_all_out);
}

/* 1 over the number of ops present; 0 without any. */
static float share(const uint8_t *present, int n)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        count += present[i] != 0;
    return count ? 1.0f / (float)count : 0;
}

/* Codes of the ops of each row, and the trunk's input: the global numbers and the mean code. */
static void encode(const dr__rl_net *net, const float *params, const float *obs, const uint8_t *present, int rows,
                   dr__rl_tape *t)
{
    const size_t code = (size_t)net->encoder.sizes[1], global = (size_t)net->n_global;
    const size_t of_ops = (size_t)net->n_ops * (size_t)net->n_op_inputs;
    for (int r = 0; r < rows; r++)
        memcpy(t->op_inputs + (size_t)r * of_ops, obs + (size_t)r * (size_t)net->n_obs + global, of_ops * sizeof(float));
    dr__rl_mlp_forward(&net->encoder, params, t->op_inputs, rows * net->n_ops, t->codes);
    for (int r = 0; r < rows; r++) {
        const uint8_t *here = present + (size_t)r * (size_t)net->n_ops;
        float *in = t->trunk_in + (size_t)r * (global + code), *mean = in + global;
        const float part = share(here, net->n_ops);
        memcpy(in, obs + (size_t)r * (size_t)net->n_obs, global * sizeof *in);
        memset(mean, 0, code * sizeof *mean);
        for (int i = 0; i < net->n_ops; i++) {
            const float *of = t->codes + ((size_t)r * (size_t)net->n_ops + (size_t)i) * code;
            for (size_t c = 0; here[i] && c < code; c++)
                mean[c] += part * of[c];
        }
    }
}

static void head_inputs(const dr__rl_net *net, int rows, dr__rl_tape *t)
{
    const size_t code = (size_t)net->encoder.sizes[1], joined = (size_t)net->n_global + code;
    for (int k = 0; k < rows * net->n_ops; k++) {
        float *in = t->head_in + (size_t)k * (joined + code);
        memcpy(in, t->codes + (size_t)k * code, code * sizeof *in);
        memcpy(in + code, t->trunk_in + (size_t)(k / net->n_ops) * joined, joined * sizeof *in);
    }
}

const float *dr__rl_net_forward(const dr__rl_net *net, const float *params, const float *obs, const uint8_t *present,
                                int rows, dr__rl_tape *t)
{
    const float *trunk = params + net->encoder.n_params, *head = trunk + net->trunk.n_params;
    if (!net->n_ops)
        return dr__rl_mlp_forward(&net->trunk, trunk, obs, rows, t->trunk);
    encode(net, params, obs, present, rows, t);
    const float *out = NULL, *op_out = NULL;
    if (net->n_out)
        out = dr__rl_mlp_forward(&net->trunk, trunk, t->trunk_in, rows, t->trunk);
    if (net->n_op_out) {
        head_inputs(net, rows, t);
        op_out = dr__rl_mlp_forward(&net->op_head, head, t->head_in, rows * net->n_ops, t->head);
    }
    const size_t n_out = (size_t)net->n_out, n_ops_out = (size_t)(net->n_ops * net->n_op_out);
    for (int r = 0; r < rows; r++) {
        float *to = t->out + (size_t)r * (size_t)net->n_all_out;
        if (n_out)
            memcpy(to, out + (size_t)r * n_out, n_out * sizeof *to);
        if (n_ops_out)
            memcpy(to + n_out, op_out + (size_t)r * n_ops_out, n_ops_out * sizeof *to);
    }
    return t->out;
}

/* The gradient by the op head's inputs goes to the codes and to the trunk's inputs. */
static void head_back(const dr__rl_net *net, const float *head, int rows, dr__rl_tape *t, float *grads)
{
    const size_t code = (size_t)net->encoder.sizes[1], joined = (size_t)net->n_global + code;
    dr__rl_mlp_backward(&net->op_head, head, t->head_in, rows * net->n_ops, t->head, t->d_head, grads, t->d_head_in,
                        t->scratch);
    for (int k = 0; k < rows * net->n_ops; k++) {
        const float *d = t->d_head_in + (size_t)k * (joined + code);
        float *shared = t->d_trunk_in + (size_t)(k / net->n_ops) * joined;
        memcpy(t->d_codes + (size_t)k * code, d, code * sizeof *d);
        for (size_t i = 0; i < joined; i++)
            shared[i] += d[code + i];
    }
}

/* The gradient by the mean code goes to the codes of the ops present. */
static void mean_back(const dr__rl_net *net, const uint8_t *present, int rows, dr__rl_tape *t)
{
    const size_t code = (size_t)net->encoder.sizes[1], joined = (size_t)net->n_global + code;
    for (int r = 0; r < rows; r++) {
        const uint8_t *here = present + (size_t)r * (size_t)net->n_ops;
        const float *d = t->d_trunk_in + (size_t)r * joined + net->n_global;
        const float part = share(here, net->n_ops);
        for (int i = 0; i < net->n_ops; i++) {
            float *to = t->d_codes + ((size_t)r * (size_t)net->n_ops + (size_t)i) * code;
            for (size_t c = 0; here[i] && c < code; c++)
                to[c] += part * d[c];
        }
    }
}

void dr__rl_net_backward(const dr__rl_net *net, const float *params, const float *obs, const uint8_t *present, int rows,
                         dr__rl_tape *t, const float *d_out, float *grads)
{
    const float *trunk = params + net->encoder.n_params, *head = trunk + net->trunk.n_params;
    float *trunk_grads = grads + net->encoder.n_params;
    if (!net->n_ops) {
        dr__rl_mlp_backward(&net->trunk, trunk, obs, rows, t->trunk, d_out, trunk_grads, NULL, t->scratch);
        return;
    }
    const size_t code = (size_t)net->encoder.sizes[1], joined = (size_t)net->n_global + code;
    const size_t n_out = (size_t)net->n_out, n_ops_out = (size_t)(net->n_ops * net->n_op_out);
    for (int r = 0; r < rows; r++) {
        const float *d = d_out + (size_t)r * (size_t)net->n_all_out;
        memcpy(t->d_trunk + (size_t)r * n_out, d, n_out * sizeof *d);
        memcpy(t->d_head + (size_t)r * n_ops_out, d + n_out, n_ops_out * sizeof *d);
    }
    memset(t->d_trunk_in, 0, (size_t)rows * joined * sizeof(float));
    memset(t->d_codes, 0, (size_t)rows * (size_t)net->n_ops * code * sizeof(float));
    if (n_out)
        dr__rl_mlp_backward(&net->trunk, trunk, t->trunk_in, rows, t->trunk, t->d_trunk, trunk_grads, t->d_trunk_in,
                            t->scratch);
    if (net->n_op_out)
        head_back(net, head, rows, t, trunk_grads + net->trunk.n_params);
    mean_back(net, present, rows, t);
    dr__rl_mlp_backward(&net->encoder, params, t->op_inputs, rows * net->n_ops, t->codes, t->d_codes, grads, NULL,
                        t->scratch);
}
