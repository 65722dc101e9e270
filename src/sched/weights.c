/* weights.c: what is wanted, as text: a preset, then "name=number" over it.
 *
 * "draadp" and "drapps" have the terms of the two formulas that name throughput, latency, balance and energy, and
 * throughput, latency, idle time and imbalance.  Balance is weighed lightly: by itself it would reward the use of what
 * nobody needs.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sched/tables.h"

enum { MAX_PART = 64 };

static const char *const names[] = {
#define ROW(id, name, doc) name,
    DR_TERM_MAP(ROW)
#undef ROW
};

static const double signs[] = {
    [DR_TERM_THROUGHPUT] = 1, [DR_TERM_LATENCY] = -1, [DR_TERM_BALANCE] = 1, [DR_TERM_ENERGY] = -1,
    [DR_TERM_IDLE] = -1,      [DR_TERM_HOST] = -1,    [DR_TERM_CHANGE] = -1,
};

_Static_assert(DR_COUNT(signs) == DR_N_TERMS, "each term has a sign");

static const struct {
    const char *name;
    dr_weights weights;
} presets[] = {
    { "step", { { [DR_TERM_THROUGHPUT] = 1, [DR_TERM_IDLE] = 1, [DR_TERM_HOST] = 0.1, [DR_TERM_CHANGE] = 0.01 } } },
    { "draadp",
      { { [DR_TERM_THROUGHPUT] = 1, [DR_TERM_LATENCY] = 0.2, [DR_TERM_BALANCE] = 0.05, [DR_TERM_ENERGY] = 0.3 } } },
    { "drapps",
      { { [DR_TERM_THROUGHPUT] = 1, [DR_TERM_LATENCY] = 0.2, [DR_TERM_IDLE] = 1, [DR_TERM_BALANCE] = 0.05 } } },
};

const char *dr__term_name(int term)
{
    return term >= 0 && term < DR_N_TERMS ? names[term] : NULL;
}

double dr__term_sign(int term)
{
    return signs[term];
}

static int find_term(const char *name)
{
    for (int i = 0; i < DR_N_TERMS; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

static dr_status set_preset(const char *name, dr_weights *out, dr_error *err)
{
    for (size_t i = 0; i < DR_COUNT(presets); i++)
        if (!strcmp(presets[i].name, name)) {
            *out = presets[i].weights;
            return DR_OK;
        }
    return dr__fail(err, DR_ERR_ARG, "weights: preset must be step, draadp or drapps, got \"%s\"", name);
}

/* "name=number" over what is there. */
static dr_status set_term(char *part, char *equals, dr_weights *out, dr_error *err)
{
    *equals = 0;
    int term = find_term(part);
    if (term < 0)
        return dr__fail(err, DR_ERR_ARG,
                        "weights: term must be throughput, latency, balance, energy, idle, host or change, "
                        "got \"%s\"",
                        part);
    char *end;
    double weight = strtod(equals + 1, &end);
    if (end == equals + 1 || *end || !isfinite(weight) || weight < 0)
        return dr__fail(err, DR_ERR_ARG, "weights: %s must be a number from 0, got \"%s\"", part, equals + 1);
    out->of[term] = weight;
    return DR_OK;
}

dr_status dr__weights_change(const char *text, bool preset, dr_weights *out, dr_error *err)
{
    dr_weights w = *out;
    bool first = preset;
    for (const char *at = text ? text : ""; *at; first = false) {
        char part[MAX_PART];
        size_t n = strcspn(at, ",");
        if (n == 0 || n >= sizeof part)
            return dr__fail(err, DR_ERR_ARG, "weights: \"%.*s\" is neither a preset nor name=number",
                            (int)DR_MIN(n, 80), at);
        memcpy(part, at, n);
        part[n] = 0;
        char *equals = strchr(part, '=');
        if (!equals && !first)
            return dr__fail(err, DR_ERR_ARG, "weights: \"%s\": a preset comes first, then name=number", part);
        DR_TRY(equals ? set_term(part, equals, &w, err) : set_preset(part, &w, err));
        at += n + (at[n] == ',');
    }
    *out = w;
    return DR_OK;
}

dr_status dr_weights_parse(const char *text, dr_weights *out, dr_error *err)
{
    dr_weights w = presets[0].weights;
    DR_TRY(dr__weights_change(text, true, &w, err));
    *out = w;
    return DR_OK;
}
