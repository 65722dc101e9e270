/* sched_tables.c: the tables of knobs, flow and bounds: rows, names, JSON. */
#include <string.h>

#include "base/error.h"
#include "base/table_text.h"
#include "sched/tables.h"

/* --- knobs --- */

static const dr__knob_row knob_rows[] = {
#define ROW(id, name, unit, least, most, cooldown, doc) { name, unit, doc, least, most, cooldown },
    DR_KNOB_MAP(ROW)
#undef ROW
};

_Static_assert(DR_N_KNOBS <= 32, "a knob is a bit of dr_decision.changed");

static json_t *list_knobs(void)
{
    json_t *list = json_array();
    for (int i = 0; i < DR_N_KNOBS; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:f, s:f, s:i, s:b, s:s}", "name", knob_rows[i].name, "unit",
                                              knob_rows[i].unit, "least", knob_rows[i].least, "most", knob_rows[i].most,
                                              "cooldown_ms", knob_rows[i].cooldown_ms, "whole", dr_knob_is_whole(i),
                                              "doc", knob_rows[i].doc));
    return list;
}

const char *dr_knobs_json(void)
{
    static dr__table_text text;
    return dr__table_text_of(&text, list_knobs);
}

const char *dr_knob_name(int knob)
{
    return knob >= 0 && knob < DR_N_KNOBS ? knob_rows[knob].name : NULL;
}

int dr_knob_find(const char *name)
{
    for (int i = 0; name && i < DR_N_KNOBS; i++)
        if (!strcmp(knob_rows[i].name, name))
            return i;
    return -1;
}

const dr__knob_row *dr__knob_row_of(int knob)
{
    return &knob_rows[knob];
}

dr_status dr__cpu_limit_check(double cpus, dr_error *err)
{
    const double least = 0.01, most = knob_rows[DR_KNOB_CPU_CEILING].most; /* below, a sample takes minutes */
    if (cpus == 0 || (cpus >= least && cpus <= most))
        return DR_OK;
    return dr__fail(err, DR_ERR_ARG, "cpu_limit must be 0 (the limit of the container) or %g to %g, got %g", least,
                    most, cpus);
}

bool dr_knob_is_whole(int knob)
{
    return knob != DR_KNOB_LANE_SHARE && knob != DR_KNOB_LANE_THRESHOLD && knob != DR_KNOB_CPU_CEILING &&
           knob != DR_KNOB_OFFLOAD;
}

/* --- flow --- */

enum kind { SUM, GAUGE };

static const struct {
    const char *name, *unit, *doc;
    enum kind kind;
} flow_rows[] = {
#define ROW(id, name, kind, unit, doc) { name, unit, doc, kind },
    DR_FLOW_MAP(ROW)
#undef ROW
};

static json_t *list_flows(void)
{
    json_t *list = json_array();
    for (int i = 0; i < DR_N_FLOWS; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "name", flow_rows[i].name, "kind",
                                              flow_rows[i].kind == SUM ? "sum" : "gauge", "unit", flow_rows[i].unit,
                                              "doc", flow_rows[i].doc));
    return list;
}

const char *dr_flows_json(void)
{
    static dr__table_text text;
    return dr__table_text_of(&text, list_flows);
}

bool dr__flow_is_sum(int flow)
{
    return flow_rows[flow].kind == SUM;
}

/* --- bounds --- */

static const char *const bound_names[] = {
#define ROW(id, name, doc) name,
    DR_BOUND_MAP(ROW)
#undef ROW
};

const char *dr_bound_name(int bound)
{
    return bound >= 0 && bound < DR_N_BOUNDS ? bound_names[bound] : NULL;
}
