/* policy.c: the table of policies, and the text by which a user chooses one: "name:param=value,...". */
#include "sched/policy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/table_text.h"

static const dr__policy_def *const table[] = {
#define DR_POLICY(name) &dr__policy_##name,
#include "sched/policy_defs.h"
#undef DR_POLICY
};

/* "fixed, rules, ..., " */
static const char names[] = ""
#define DR_POLICY(name) #name ", "
#include "sched/policy_defs.h"
#undef DR_POLICY
    ;

/* --- the table --- */

static json_t *list_params(const dr__policy_def *def)
{
    json_t *list = json_array();
    for (size_t i = 0; i < def->n_params; i++) {
        const dr__policy_param *p = &def->params[i];
        json_array_append_new(list, json_pack("{s:s, s:f, s:f, s:f, s:s}", "name", p->name, "least", p->least, "most",
                                              p->most, "default", p->standard, "doc", p->doc));
    }
    return list;
}

static json_t *list_rows(void)
{
    json_t *list = json_array();
    for (size_t i = 0; i < DR_COUNT(table); i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "name", table[i]->name, "doc", table[i]->doc, "params",
                                              list_params(table[i])));
    return list;
}

const char *dr_policies_json(void)
{
    static dr__table_text text;
    return dr__table_text_of(&text, list_rows);
}

const dr__policy_def *dr__policy_find(const char *name)
{
    if (!strcmp(name, "off"))
        return &dr__policy_fixed;
    for (size_t i = 0; i < DR_COUNT(table); i++)
        if (!strcmp(table[i]->name, name))
            return table[i];
    return NULL;
}

/* --- what the user chose --- */

static dr_status unknown_param(const dr__policy_def *def, const char *what, const char *name, dr_error *err)
{
    char known[400] = "";
    for (size_t i = 0; i < def->n_params; i++) {
        strncat(known, def->params[i].name, sizeof known - strlen(known) - 3);
        strcat(known, ", ");
    }
    return dr__fail(err, DR_ERR_ARG, "%s: %s has no parameter '%s', only %sload", what, def->name, name, known);
}

static dr_status set_param(dr__policy_choice *c, const char *what, const char *name, const char *value, dr_error *err)
{
    if (!strcmp(name, "load")) {
        memcpy(c->load, value, strlen(value) + 1); /* as long as the text at most */
        return *value ? DR_OK : dr__fail(err, DR_ERR_ARG, "%s: load must be a path, got ''", what);
    }
    for (size_t i = 0; i < c->def->n_params; i++) {
        const dr__policy_param *p = &c->def->params[i];
        if (strcmp(p->name, name))
            continue;
        char *end;
        const double x = strtod(value, &end);
        if (end == value || *end || !(x >= p->least && x <= p->most))
            return dr__fail(err, DR_ERR_ARG, "%s: %s must be a number from %g to %g, got '%s'", what, name, p->least,
                            p->most, value);
        c->param[i] = x;
        return DR_OK;
    }
    return unknown_param(c->def, what, name, err);
}

static dr_status set_params(dr__policy_choice *c, const char *what, char *text, dr_error *err)
{
    for (char *next; text; text = next) {
        next = strchr(text, ',');
        if (next)
            *next++ = 0;
        char *equals = strchr(text, '=');
        if (!equals)
            return dr__fail(err, DR_ERR_ARG, "%s: '%s' must be param=value", what, text);
        *equals = 0;
        DR_TRY(set_param(c, what, text, equals + 1, err));
    }
    return DR_OK;
}

/* what: the name of the setting, for messages. */
static dr_status parse(const char *text, const char *what, dr__policy_choice *out, dr_error *err)
{
    char copy[DR_MAX_POLICY];
    *out = (dr__policy_choice){ 0 };
    if (strlen(text) >= sizeof copy)
        return dr__fail(err, DR_ERR_ARG, "%s must be shorter than %zu bytes, got %zu", what, sizeof copy, strlen(text));
    memcpy(copy, text, strlen(text) + 1);
    char *params = strchr(copy, ':');
    if (params)
        *params++ = 0;
    out->def = dr__policy_find(copy);
    if (!out->def)
        return dr__fail(err, DR_ERR_ARG, "%s must be one of %soff, got '%s'", what, names, copy);
    for (size_t i = 0; i < out->def->n_params; i++)
        out->param[i] = out->def->params[i].standard;
    return params ? set_params(out, what, params, err) : DR_OK;
}

static const char *environment(void)
{
    const char *forced = getenv("DRAPPS_POLICY");
    return forced && *forced ? forced : NULL;
}

const char *dr__policy_text(const char *text)
{
    const char *forced = environment();
    return forced ? forced : text ? text : "analytic";
}

dr_status dr__policy_choose(const char *text, dr__policy_choice *out, dr_error *err)
{
    return parse(dr__policy_text(text), environment() ? "DRAPPS_POLICY" : "policy", out, err);
}

dr_status dr_policy_check(const char *text, dr_error *err)
{
    dr__policy_choice choice;
    return text ? parse(text, "policy", &choice, err) : dr__policy_choose(NULL, &choice, err);
}
