/* knobs.c: the table of knobs as JSON, their names and ranges. */
#include <jansson.h>
#include <pthread.h>
#include <string.h>

#include "sched/tables.h"

static const dr__knob_row rows[] = {
#define ROW(id, name, unit, least, most, dwell, doc) { name, unit, doc, least, most, dwell },
    DR_KNOB_MAP(ROW)
#undef ROW
};

_Static_assert(DR_N_KNOBS <= 32, "a knob is a bit of dr_decision.changed");

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char *text; /* made once, kept for the life of the process */

static void make_text(void)
{
    json_t *list = json_array();
    for (int i = 0; i < DR_N_KNOBS; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:f, s:f, s:i, s:s}", "name", rows[i].name, "unit",
                                              rows[i].unit, "least", rows[i].least, "most", rows[i].most, "dwell_ms",
                                              rows[i].dwell_ms, "doc", rows[i].doc));
    text = json_dumps(list, JSON_COMPACT);
    json_decref(list);
}

const char *dr_knobs_json(void)
{
    pthread_once(&once, make_text);
    return text ? text : "[]";
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

bool dr__knob_is_whole(int knob)
{
    return knob != DR_KNOB_LANE_SHARE && knob != DR_KNOB_LANE_THRESHOLD && knob != DR_KNOB_CPU_CEILING;
}
