/* knobs.c: the table of knobs as JSON, their names and ranges. */
#include <string.h>

#include "base/error.h"
#include "base/table_text.h"
#include "sched/tables.h"

static const dr__knob_row rows[] = {
#define ROW(id, name, unit, least, most, cooldown, doc) { name, unit, doc, least, most, cooldown },
    DR_KNOB_MAP(ROW)
#undef ROW
};

_Static_assert(DR_N_KNOBS <= 32, "a knob is a bit of dr_decision.changed");

static json_t *list_rows(void)
{
    json_t *list = json_array();
    for (int i = 0; i < DR_N_KNOBS; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:f, s:f, s:i, s:b, s:s}", "name", rows[i].name, "unit",
                                              rows[i].unit, "least", rows[i].least, "most", rows[i].most, "cooldown_ms",
                                              rows[i].cooldown_ms, "whole", dr_knob_is_whole(i), "doc", rows[i].doc));
    return list;
}

const char *dr_knobs_json(void)
{
    static dr__table_text text;
    return dr__table_text_of(&text, list_rows);
}

const char *dr_knob_name(int knob)
{
    return knob >= 0 && knob < DR_N_KNOBS ? rows[knob].name : NULL;
}

int dr_knob_find(const char *name)
{
    for (int i = 0; name && i < DR_N_KNOBS; i++)
        if (!strcmp(rows[i].name, name))
            return i;
    return -1;
}

const dr__knob_row *dr__knob_row_of(int knob)
{
    return &rows[knob];
}

dr_status dr__cpu_limit_check(double cpus, dr_error *err)
{
    const double least = 0.01, most = rows[DR_KNOB_CPU_CEILING].most; /* below, a sample takes minutes */
    if (cpus == 0 || (cpus >= least && cpus <= most))
        return DR_OK;
    return dr__fail(err, DR_ERR_ARG, "cpu_limit is %g, allowed are 0 (what the container allows) and %g to %g", cpus,
                    least, most);
}

bool dr_knob_is_whole(int knob)
{
    return knob != DR_KNOB_LANE_SHARE && knob != DR_KNOB_LANE_THRESHOLD && knob != DR_KNOB_CPU_CEILING;
}
