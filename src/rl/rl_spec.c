/* rl_spec.c: schemas checked, compared, and laid out as rows. */
#include "rl/rl_spec.h"

#include <string.h>

#include "base/compiler.h"

/* A name of one word: printable, without a space or a quote. */
static bool is_name(const char *name)
{
    size_t n = 0;
    for (; n < DR__RL_NAME && name[n]; n++)
        if (name[n] <= ' ' || name[n] > '~' || name[n] == '"' || name[n] == '\\')
            return false;
    return n > 0 && n < DR__RL_NAME;
}

static dr_status check_count(const char *what, int n, int least, int most, dr_error *err)
{
    if (n < least || n > most)
        return dr__fail(err, DR_ERR_ARG, "%s must be between %d and %d, got %d", what, least, most, n);
    return DR_OK;
}

static dr_status check_names(const char *what, const char (*names)[DR__RL_NAME], int n, dr_error *err)
{
    for (int i = 0; i < n; i++)
        if (!is_name(names[i]))
            return dr__fail(err, DR_ERR_ARG, "%s %d must have a name of 1 to %d printable characters, got '%.*s'",
                            what, i, DR__RL_NAME - 1, DR__RL_NAME - 1, names[i]);
    return DR_OK;
}

static dr_status check_choices(const char *what, const dr__rl_choice *choices, int n, dr_error *err)
{
    for (int i = 0; i < n; i++) {
        DR_TRY(check_names(what, &choices[i].name, 1, err));
        if (choices[i].n < 2 || choices[i].n > DR__RL_OPTIONS)
            return dr__fail(err, DR_ERR_ARG, "%s '%s' must have between 2 and %d options, got %d", what,
                            choices[i].name, DR__RL_OPTIONS, choices[i].n);
    }
    return DR_OK;
}

dr_status dr__rl_spec_check(const dr__rl_spec *s, dr_error *err)
{
    if (!is_name(s->name))
        return dr__fail(err, DR_ERR_ARG, "a schema must have a name of 1 to %d printable characters",
                        DR__RL_NAME - 1);
    DR_TRY(check_count("the version of a schema", s->version, 1, 1 << 30, err));
    DR_TRY(check_count("the number of inputs", s->n_inputs, 1, DR__RL_INPUTS, err));
    DR_TRY(check_count("the number of choices", s->n_choices, 0, DR__RL_CHOICES, err));
    DR_TRY(check_count("the number of continuous actions", s->n_continuous, 0, DR__RL_CONTINUOUS, err));
    DR_TRY(check_count("the number of ops", s->n_ops, 0, DR__RL_OPS, err));
    DR_TRY(check_count("the number of inputs of an op", s->n_op_inputs, s->n_ops > 0, s->n_ops ? DR__RL_OP_INPUTS : 0,
                       err));
    DR_TRY(check_count("the number of choices of an op", s->n_op_choices, s->n_ops > 0, s->n_ops ? DR__RL_OP_CHOICES : 0,
                       err));
    if (s->n_choices + s->n_continuous + s->n_ops == 0)
        return dr__fail(err, DR_ERR_ARG, "schema '%s' must have an action, got none", s->name);
    DR_TRY(check_names("input", s->inputs, s->n_inputs, err));
    DR_TRY(check_names("continuous action", s->continuous, s->n_continuous, err));
    DR_TRY(check_names("input of an op", s->op_inputs, s->n_op_inputs, err));
    DR_TRY(check_choices("choice", s->choices, s->n_choices, err));
    return check_choices("choice of an op", s->op_choices, s->n_op_choices, err);
}

static dr_status other_count(const char *what, const char *of, int have, int want, dr_error *err)
{
    if (have == want)
        return DR_OK;
    return dr__fail(err, DR_ERR_FORMAT, "%s: must have %d %s, got %d", what, want, of, have);
}

static dr_status other_name(const char *what, const char *of, int i, const char *have, const char *want, dr_error *err)
{
    if (!strcmp(have, want))
        return DR_OK;
    return dr__fail(err, DR_ERR_FORMAT, "%s: %s %d must be '%s', got '%s'", what, of, i, want, have);
}

static dr_status other_choices(const char *what, const char *of, const dr__rl_choice *have, const dr__rl_choice *want,
                               int n, dr_error *err)
{
    for (int i = 0; i < n; i++) {
        DR_TRY(other_name(what, of, i, have[i].name, want[i].name, err));
        if (have[i].n != want[i].n)
            return dr__fail(err, DR_ERR_FORMAT, "%s: %s '%s' must have %d options, got %d", what, of, want[i].name,
                            want[i].n, have[i].n);
    }
    return DR_OK;
}

dr_status dr__rl_spec_same(const dr__rl_spec *have, const dr__rl_spec *want, const char *what, dr_error *err)
{
    if (strcmp(have->name, want->name) != 0 || have->version != want->version)
        return dr__fail(err, DR_ERR_FORMAT, "%s: must be for schema '%s' version %d, got '%s' version %d", what,
                        want->name, want->version, have->name, have->version);
    DR_TRY(other_count(what, "inputs", have->n_inputs, want->n_inputs, err));
    DR_TRY(other_count(what, "choices", have->n_choices, want->n_choices, err));
    DR_TRY(other_count(what, "continuous actions", have->n_continuous, want->n_continuous, err));
    DR_TRY(other_count(what, "ops", have->n_ops, want->n_ops, err));
    DR_TRY(other_count(what, "inputs of an op", have->n_op_inputs, want->n_op_inputs, err));
    DR_TRY(other_count(what, "choices of an op", have->n_op_choices, want->n_op_choices, err));
    for (int i = 0; i < want->n_inputs; i++)
        DR_TRY(other_name(what, "input", i, have->inputs[i], want->inputs[i], err));
    for (int i = 0; i < want->n_continuous; i++)
        DR_TRY(other_name(what, "continuous action", i, have->continuous[i], want->continuous[i], err));
    for (int i = 0; i < want->n_op_inputs; i++)
        DR_TRY(other_name(what, "input of an op", i, have->op_inputs[i], want->op_inputs[i], err));
    DR_TRY(other_choices(what, "choice", have->choices, want->choices, want->n_choices, err));
    return other_choices(what, "choice of an op", have->op_choices, want->op_choices, want->n_op_choices, err);
}

static void add_categorical(dr__rl_heads *h, int n, int *out)
{
    const int k = h->n_categoricals++;
    h->cat[k].out = *out;
    h->cat[k].mask = h->n_mask;
    h->cat[k].n = n;
    h->n_mask += n;
    *out += n;
}

void dr__rl_heads_of(const dr__rl_spec *s, dr__rl_heads *h)
{
    int out = 0;
    *h = (dr__rl_heads){ .n_obs = s->n_inputs + s->n_ops * s->n_op_inputs,
                         .n_continuous = s->n_continuous,
                         .n_ops = s->n_ops };
    for (int i = 0; i < s->n_choices; i++)
        add_categorical(h, s->choices[i].n, &out);
    h->mean_at = out;
    h->std_at = out + s->n_continuous;
    out += 2 * s->n_continuous;
    h->op_mask_at = h->n_mask;
    for (int op = 0; op < s->n_ops; op++)
        for (int i = 0; i < s->n_op_choices; i++)
            add_categorical(h, s->op_choices[i].n, &out);
    h->op_mask = s->n_ops ? (h->n_mask - h->op_mask_at) / s->n_ops : 0;
    h->n_out = out;
    h->action_at = h->n_categoricals;
    h->n_action = h->n_categoricals + s->n_continuous;
}

dr__rl_net dr__rl_actor_shape(const dr__rl_spec *s, const int *hidden, int n_hidden, dr__rl_activation activation)
{
    int n_out = 2 * s->n_continuous, n_op_out = 0;
    for (int i = 0; i < s->n_choices; i++)
        n_out += s->choices[i].n;
    for (int i = 0; i < s->n_op_choices; i++)
        n_op_out += s->op_choices[i].n;
    return dr__rl_net_shape(s->n_inputs, s->n_ops, s->n_op_inputs, n_out, n_op_out, hidden, n_hidden, activation);
}

dr__rl_net dr__rl_critic_shape(const dr__rl_spec *s, const int *hidden, int n_hidden, dr__rl_activation activation)
{
    return dr__rl_net_shape(s->n_inputs, s->n_ops, s->n_op_inputs, 1, 0, hidden, n_hidden, activation);
}

void dr__rl_present(const dr__rl_heads *h, const uint8_t *mask, int rows, uint8_t *present)
{
    for (int r = 0; r < rows; r++)
        for (int op = 0; op < h->n_ops; op++) {
            const uint8_t *of = mask + (size_t)r * (size_t)h->n_mask + h->op_mask_at + (size_t)op * (size_t)h->op_mask;
            uint8_t any = 0;
            for (int i = 0; i < h->op_mask; i++)
                any |= of[i];
            present[(size_t)r * (size_t)h->n_ops + (size_t)op] = any != 0;
        }
}
