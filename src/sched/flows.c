/* flows.c: the table of what a pipeline tells, as JSON. */
#include <jansson.h>
#include <pthread.h>

#include "sched/tables.h"

enum kind { SUM, GAUGE };

static const struct {
    const char *name, *unit, *doc;
    enum kind kind;
} rows[] = {
#define ROW(id, name, kind, unit, doc) { name, unit, doc, kind },
    DR_FLOW_MAP(ROW)
#undef ROW
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char *text; /* made once, kept for the life of the process */

static void make_text(void)
{
    json_t *list = json_array();
    for (int i = 0; i < DR_N_FLOWS; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "name", rows[i].name, "kind",
                                              rows[i].kind == SUM ? "sum" : "gauge", "unit", rows[i].unit, "doc",
                                              rows[i].doc));
    text = json_dumps(list, JSON_COMPACT);
    json_decref(list);
}

const char *dr_flows_json(void)
{
    pthread_once(&once, make_text);
    return text ? text : "[]";
}

bool dr__flow_is_sum(int flow)
{
    return rows[flow].kind == SUM;
}
