/* rl_spec_json.c: names as arrays of strings, choices as arrays of {name, options}. */
#include "rl/rl_spec_json.h"

#include <stdio.h>
#include <string.h>

static json_t *names_json(const char (*names)[DR__RL_NAME], int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_string(names[i]));
    return list;
}

static json_t *choices_json(const dr__rl_choice *choices, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:s, s:i}", "name", choices[i].name, "options", choices[i].n));
    return list;
}

json_t *dr__rl_spec_json(const dr__rl_spec *s)
{
    return json_pack("{s:s, s:i, s:o, s:o, s:o, s:i, s:o, s:o}", "name", s->name, "version", s->version, "inputs",
                     names_json(s->inputs, s->n_inputs), "choices", choices_json(s->choices, s->n_choices), "continuous",
                     names_json(s->continuous, s->n_continuous), "ops", s->n_ops, "op_inputs",
                     names_json(s->op_inputs, s->n_op_inputs), "op_choices",
                     choices_json(s->op_choices, s->n_op_choices));
}

json_t *dr__rl_shape_json(const dr__rl_shape *s)
{
    json_t *hidden = json_array();
    for (int i = 0; i < s->n_hidden; i++)
        json_array_append_new(hidden, json_integer(s->hidden[i]));
    return json_pack("{s:o, s:s, s:b}", "hidden", hidden, "activation", s->activation == DR__RL_RELU ? "relu" : "tanh",
                     "critic", s->has_critic);
}

static dr_status read_name(const json_t *from, const char *what, const char *member, char *out, dr_error *err)
{
    const char *text = json_string_value(from);
    if (!text || strlen(text) >= DR__RL_NAME)
        return dr__fail(err, DR_ERR_FORMAT, "%s: %s must have names of at most %d characters", what, member,
                        DR__RL_NAME - 1);
    snprintf(out, DR__RL_NAME, "%s", text);
    return DR_OK;
}

static dr_status read_int(const json_t *from, const char *what, const char *member, int *out, dr_error *err)
{
    const json_t *value = json_object_get(from, member);
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > 1 << 30)
        return dr__fail(err, DR_ERR_FORMAT, "%s: %s must be an integer from 0 on", what, member);
    *out = (int)json_integer_value(value);
    return DR_OK;
}

/* An array of at most `most`. */
static dr_status read_list(const json_t *from, const char *what, const char *member, int most, const json_t **list,
                           int *n, dr_error *err)
{
    *list = json_object_get(from, member);
    if (!json_is_array(*list) || json_array_size(*list) > (size_t)most)
        return dr__fail(err, DR_ERR_FORMAT, "%s: %s must be a list of at most %d", what, member, most);
    *n = (int)json_array_size(*list);
    return DR_OK;
}

static dr_status read_names(const json_t *from, const char *what, const char *member, int most,
                            char (*names)[DR__RL_NAME], int *n, dr_error *err)
{
    const json_t *list;
    DR_TRY(read_list(from, what, member, most, &list, n, err));
    for (int i = 0; i < *n; i++)
        DR_TRY(read_name(json_array_get(list, (size_t)i), what, member, names[i], err));
    return DR_OK;
}

static dr_status read_choices(const json_t *from, const char *what, const char *member, int most,
                              dr__rl_choice *choices, int *n, dr_error *err)
{
    const json_t *list;
    DR_TRY(read_list(from, what, member, most, &list, n, err));
    for (int i = 0; i < *n; i++) {
        const json_t *one = json_array_get(list, (size_t)i);
        DR_TRY(read_name(json_object_get(one, "name"), what, member, choices[i].name, err));
        DR_TRY(read_int(one, what, "options", &choices[i].n, err));
    }
    return DR_OK;
}

dr_status dr__rl_spec_from_json(const json_t *from, const char *what, dr__rl_spec *s, dr_error *err)
{
    *s = (dr__rl_spec){ 0 };
    DR_TRY(read_name(json_object_get(from, "name"), what, "schema", s->name, err));
    DR_TRY(read_int(from, what, "version", &s->version, err));
    DR_TRY(read_names(from, what, "inputs", DR__RL_INPUTS, s->inputs, &s->n_inputs, err));
    DR_TRY(read_choices(from, what, "choices", DR__RL_CHOICES, s->choices, &s->n_choices, err));
    DR_TRY(read_names(from, what, "continuous", DR__RL_CONTINUOUS, s->continuous, &s->n_continuous, err));
    DR_TRY(read_int(from, what, "ops", &s->n_ops, err));
    DR_TRY(read_names(from, what, "op_inputs", DR__RL_OP_INPUTS, s->op_inputs, &s->n_op_inputs, err));
    return read_choices(from, what, "op_choices", DR__RL_OP_CHOICES, s->op_choices, &s->n_op_choices, err);
}

dr_status dr__rl_shape_from_json(const json_t *from, const char *what, dr__rl_shape *s, dr_error *err)
{
    const json_t *hidden, *critic = json_object_get(from, "critic");
    const char *activation = json_string_value(json_object_get(from, "activation"));
    *s = (dr__rl_shape){ .has_critic = json_is_true(critic) };
    DR_TRY(read_list(from, what, "hidden", DR__RL_LAYERS - 1, &hidden, &s->n_hidden, err));
    for (int i = 0; i < s->n_hidden; i++) {
        const json_t *width = json_array_get(hidden, (size_t)i);
        if (!json_is_integer(width) || json_integer_value(width) < 1 || json_integer_value(width) > DR__RL_HIDDEN)
            return dr__fail(err, DR_ERR_FORMAT, "%s: hidden layers must be 1 to %d wide", what, DR__RL_HIDDEN);
        s->hidden[i] = (int)json_integer_value(width);
    }
    if (!activation || (strcmp(activation, "tanh") != 0 && strcmp(activation, "relu") != 0))
        return dr__fail(err, DR_ERR_FORMAT, "%s: activation must be 'tanh' or 'relu', got '%.20s'", what,
                        activation ? activation : "");
    s->activation = strcmp(activation, "relu") ? DR__RL_TANH : DR__RL_RELU;
    if (!json_is_boolean(critic))
        return dr__fail(err, DR_ERR_FORMAT, "%s: critic must be true or false", what);
    return DR_OK;
}
