/* flows.c: the table of what a pipeline tells, as JSON. */
#include "base/table_text.h"
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

static json_t *list_rows(void)
{
    json_t *list = json_array();
    for (int i = 0; i < DR_N_FLOWS; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "name", rows[i].name, "kind",
                                              rows[i].kind == SUM ? "sum" : "gauge", "unit", rows[i].unit, "doc",
                                              rows[i].doc));
    return list;
}

const char *dr_flows_json(void)
{
    static dr__table_text text;
    return dr__table_text_of(&text, list_rows);
}

bool dr__flow_is_sum(int flow)
{
    return rows[flow].kind == SUM;
}
