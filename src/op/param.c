/* param.c: op settings from and to JSON, by their tables. */
#include "op/param.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "op/op.h"

static dr_status check_range(const dr_param *p, double v, const char *op_name, dr_error *err)
{
    if (v >= p->min && v <= p->max)
        return DR_OK;
    return dr__fail(err, DR_ERR_ARG, "%s: %s must be %g to %g, got %g", op_name, p->name, p->min, p->max, v);
}

static dr_status wrong_type(const dr_param *p, const json_t *value, const char *want, const char *op_name,
                            dr_error *err)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    dr_status status =
        dr__fail(err, DR_ERR_ARG, "%s: %s must be %s, got %.60s", op_name, p->name, want, text ? text : "?");
    free(text);
    return status;
}

static bool is_whole(const json_t *value)
{
    if (json_is_integer(value))
        return true;
    return json_is_real(value) && fabs(json_real_value(value)) < 9e15 &&
           json_real_value(value) == (double)(int64_t)json_real_value(value);
}

static dr_status read_real(const dr_param *p, const json_t *value, const char *op_name, double *out, dr_error *err)
{
    if (!json_is_number(value))
        return wrong_type(p, value, "a number", op_name, err);
    *out = json_number_value(value);
    return check_range(p, *out, op_name, err);
}

static dr_status read_int(const dr_param *p, const json_t *value, const char *op_name, int64_t *out, dr_error *err)
{
    if (!is_whole(value))
        return wrong_type(p, value, "an int", op_name, err);
    *out = json_is_integer(value) ? json_integer_value(value) : (int64_t)json_real_value(value);
    return check_range(p, (double)*out, op_name, err);
}

static dr_status read_enum(const dr_param *p, const json_t *value, const char *op_name, int *out, dr_error *err)
{
    const char *text = json_string_value(value);
    char allowed[256];
    size_t n = 0;
    for (int i = 0; p->choices[i]; i++) {
        if (text && !strcmp(text, p->choices[i])) {
            *out = i;
            return DR_OK;
        }
        if (n < sizeof allowed)
            n += (size_t)snprintf(allowed + n, sizeof allowed - n, "%s\"%s\"", i ? ", " : "one of ", p->choices[i]);
    }
    return wrong_type(p, value, allowed, op_name, err);
}

/* The length of a list value: a bare number counts as one, null as none; -1: neither. */
static int list_length(const json_t *value)
{
    if (json_is_null(value))
        return 0;
    if (json_is_number(value))
        return 1;
    return json_is_array(value) ? (int)json_array_size(value) : -1;
}

static dr_status check_length(const dr_param *p, const json_t *value, const char *op_name, dr_error *err)
{
    int n = list_length(value);
    int most = DR_MIN(p->n_max, DR_PARAM_LIST);
    if (n >= p->n_min && n <= most)
        return DR_OK;
    char want[64];
    if (p->n_min == most)
        snprintf(want, sizeof want, "a list of %d numbers", most);
    else
        snprintf(want, sizeof want, "a number or a list of %d to %d numbers", p->n_min, most);
    return wrong_type(p, value, want, op_name, err);
}

static const json_t *entry(const json_t *value, int i)
{
    return json_is_array(value) ? json_array_get(value, (size_t)i) : value;
}

static dr_status read_reals(const dr_param *p, const json_t *value, const char *op_name, dr_reals *out, dr_error *err)
{
    DR_TRY(check_length(p, value, op_name, err));
    out->n = list_length(value);
    for (int i = 0; i < out->n; i++)
        DR_TRY(read_real(p, entry(value, i), op_name, &out->v[i], err));
    return DR_OK;
}

static dr_status read_ints(const dr_param *p, const json_t *value, const char *op_name, dr_ints *out, dr_error *err)
{
    DR_TRY(check_length(p, value, op_name, err));
    out->n = list_length(value);
    for (int i = 0; i < out->n; i++)
        DR_TRY(read_int(p, entry(value, i), op_name, &out->v[i], err));
    return DR_OK;
}

static dr_status read_nested(const dr_param *p, const json_t *value, const char *op_name, dr__op *out, dr_error *err)
{
    const char *name = json_string_value(json_object_get(value, "op"));
    if (!name)
        return wrong_type(p, value, "a list of {\"op\": name, \"params\": {...}}", op_name, err);
    const dr_op_def *def = dr__op_find(name);
    if (!def)
        return dr__fail(err, DR_ERR_NOT_FOUND, "%s: no op \"%s\"", op_name, name);
    if (def->flags & (DR_OP_BATCH | DR_OP_DECODE) || def->inspect)
        return dr__fail(err, DR_ERR_ARG, "%s: %s cannot stand inside another op", op_name, name);
    return dr__op_open(def, json_object_get(value, "params"), out, err);
}

static dr_status read_ops(const dr_param *p, const json_t *value, const char *op_name, dr_op_list *out, dr_error *err)
{
    if (!json_is_array(value) || !json_array_size(value) || (int)json_array_size(value) > p->n_max)
        return wrong_type(p, value, "a list of ops", op_name, err);
    size_t n = json_array_size(value);
    out->ops = dr__alloc_zero(n, sizeof *out->ops);
    if (!out->ops)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", op_name);
    for (size_t i = 0; i < n; i++, out->n++)
        DR_TRY(read_nested(p, json_array_get(value, i), op_name, &out->ops[i], err));
    return DR_OK;
}

static dr_status read_one(const dr_param *p, const json_t *value, const char *op_name, void *at, dr_error *err)
{
    switch (p->type) {
    case DR_P_REAL:
        return read_real(p, value, op_name, at, err);
    case DR_P_INT:
        return read_int(p, value, op_name, at, err);
    case DR_P_BOOL:
        if (!json_is_boolean(value))
            return wrong_type(p, value, "true or false", op_name, err);
        *(bool *)at = json_is_true(value);
        return DR_OK;
    case DR_P_ENUM:
        return read_enum(p, value, op_name, at, err);
    case DR_P_REALS:
        return read_reals(p, value, op_name, at, err);
    case DR_P_INTS:
        return read_ints(p, value, op_name, at, err);
    case DR_P_OPS:
        return read_ops(p, value, op_name, at, err);
    case DR_P_TEXT:
        if (!json_is_string(value) || json_string_length(value) >= DR_PARAM_TEXT)
            return wrong_type(p, value, "a short text", op_name, err);
        memcpy(at, json_string_value(value), json_string_length(value) + 1);
        return DR_OK;
    }
    return dr__fail(err, DR_ERR_ARG, "%s: %s has no type", op_name, p->name);
}

static dr_status check_names(const dr_param *params, const json_t *object, const char *op_name, dr_error *err)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        const dr_param *p = params;
        while (p && p->name && strcmp(p->name, name))
            p++;
        if (!p || !p->name)
            return dr__fail(err, DR_ERR_ARG, "%s: has no parameter \"%s\"", op_name, name);
    }
    return DR_OK;
}

dr_status dr__params_read(const dr_param *params, const json_t *object, const char *op_name, void *out, dr_error *err)
{
    if (object && !json_is_null(object) && !json_is_object(object))
        return dr__fail(err, DR_ERR_ARG, "%s: parameters must be a JSON object", op_name);
    DR_TRY(check_names(params, object, op_name, err));
    for (const dr_param *p = params; p && p->name; p++) {
        const json_t *given = json_object_get(object, p->name);
        void *at = (char *)out + p->offset;
        if (given) {
            DR_TRY(read_one(p, given, op_name, at, err));
            continue;
        }
        if (!p->fallback)
            return dr__fail(err, DR_ERR_ARG, "%s: %s must be given", op_name, p->name);
        json_t *value = json_loads(p->fallback, JSON_DECODE_ANY, NULL);
        if (!value)
            return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", op_name);
        dr_status status = read_one(p, value, op_name, at, err);
        json_decref(value);
        DR_TRY(status);
    }
    return DR_OK;
}

static json_t *real_json(double v)
{
    /* A whole number has one spelling in canonical JSON, whichever way it was given. */
    if (v == (double)(int64_t)v && fabs(v) < 9e15)
        return json_integer((json_int_t)v);
    return json_real(v);
}

static json_t *list_json(const dr_param *p, const void *at)
{
    json_t *list = json_array();
    const dr_reals *reals = at;
    const dr_ints *ints = at;
    int n = p->type == DR_P_REALS ? reals->n : ints->n;
    for (int i = 0; i < n; i++)
        json_array_append_new(list, p->type == DR_P_REALS ? real_json(reals->v[i]) : json_integer(ints->v[i]));
    return list;
}

static json_t *ops_json(const dr_op_list *list)
{
    json_t *out = json_array();
    for (int i = 0; i < list->n; i++) {
        const dr__op *op = &list->ops[i];
        json_t *o = json_pack("{s:s, s:i}", "op", op->def->name, "version", op->def->version);
        json_t *params = dr__params_write(op->def->params, op->conf, 0);
        if (params && json_object_size(params))
            json_object_set(o, "params", params);
        json_decref(params);
        json_array_append_new(out, o);
    }
    return out;
}

static json_t *write_one(const dr_param *p, const void *at)
{
    switch (p->type) {
    case DR_P_REAL:
        return real_json(*(const double *)at);
    case DR_P_INT:
        return json_integer(*(const int64_t *)at);
    case DR_P_BOOL:
        return json_boolean(*(const bool *)at);
    case DR_P_ENUM:
        return json_string(p->choices[*(const int *)at]);
    case DR_P_REALS:
    case DR_P_INTS:
        return list_json(p, at);
    case DR_P_OPS:
        return ops_json(at);
    case DR_P_TEXT:
        return json_string(at);
    }
    return NULL;
}

/* The default in the spelling that write_one gives, so that the two can be compared. */
static json_t *normal_fallback(const dr_param *p)
{
    union {
        dr_reals reals;
        dr_ints ints;
        double real;
        char text[DR_PARAM_TEXT];
    } at = { 0 };
    json_t *value = p->fallback ? json_loads(p->fallback, JSON_DECODE_ANY, NULL) : NULL;
    json_t *normal = value && read_one(p, value, "", &at, NULL) == DR_OK ? write_one(p, &at) : NULL;
    json_decref(value);
    return normal;
}

json_t *dr__params_write(const dr_param *params, const void *in, int all)
{
    json_t *object = json_object();
    for (const dr_param *p = params; object && p && p->name; p++) {
        json_t *value = write_one(p, (const char *)in + p->offset);
        json_t *fallback = all ? NULL : normal_fallback(p);
        if (value && (!fallback || !json_equal(value, fallback)))
            json_object_set(object, p->name, value);
        json_decref(value);
        json_decref(fallback);
    }
    return object;
}

void dr__params_free(const dr_param *params, void *conf)
{
    for (const dr_param *p = params; p && p->name; p++) {
        if (p->type != DR_P_OPS)
            continue;
        dr_op_list *list = (dr_op_list *)((char *)conf + p->offset);
        for (int i = 0; i < list->n; i++)
            dr__op_close(&list->ops[i]);
        dr__free(list->ops);
    }
}
