/* sim_tables.c: the simulator's tables as JSON. */
#include <pthread.h>

#include <jansson.h>

#include "base/compiler.h"
#include "sched/features.h"
#include "sim/twin.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char *text, *env_text; /* never freed; NULL: memory was short */

static json_t *fields(void)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < DR__SIM_N_FIELDS; i++) {
        const dr__sim_field_row *r = &dr__sim_field_rows[i];
        json_array_append_new(rows,
                              json_pack("{ssssss sf sf sf ss}", "name", r->name, "group", r->group, "unit", r->unit,
                                        "least", r->least, "most", r->most, "default", r->standard, "doc", r->doc));
    }
    return rows;
}

static json_t *signals(void)
{
    static const char *const docs[] = {
#define DOC(id, name, rest, doc) doc,
        DR__SIGNAL_MAP(DOC)
#undef DOC
    };
    json_t *rows = json_array();
    for (int i = 0; i < DR__N_SIGNALS; i++)
        json_array_append_new(rows, json_pack("{ssss}", "name", dr__signal_names[i], "doc", docs[i]));
    return rows;
}

static json_t *presets(const dr__sim_preset *r)
{
    json_t *rows = json_array();
    for (; r->name; r++)
        json_array_append_new(rows, json_pack("{ssssss}", "name", r->name, "doc", r->doc, "set", r->set));
    return rows;
}

static json_t *scenarios(void)
{
    json_t *rows = json_array();
    for (const dr__sim_scenario *r = dr__sim_scenarios; r->name; r++)
        json_array_append_new(
            rows, json_pack("{ssssss sb}", "name", r->name, "doc", r->doc, "weights", r->weights, "varied", r->varied));
    return rows;
}

static json_t *observation(void)
{
    static const char *const rows_of[][2] = {
#define ROW(name, doc) { #name, doc },
        DR__FEATURE_MAP(ROW)
#undef ROW
    };
    json_t *rows = json_array();
    for (size_t i = 0; i < DR_COUNT(rows_of); i++)
        json_array_append_new(rows, json_pack("{ssss}", "name", rows_of[i][0], "doc", rows_of[i][1]));
    return rows;
}

static json_t *actions(void)
{
    enum { CAP = 32 };
    int choices[CAP];
    json_t *rows = json_array();
    const size_t n = dr_sim_env_actions(choices, CAP);
    for (size_t i = 0; i < n; i++) {
        const char *name = NULL;
        json_t *texts = json_array();
        for (int c = 0; c < choices[i]; c++)
            json_array_append_new(texts, json_string(dr__sim_action(i, c, &name)));
        json_array_append_new(rows, json_pack("{ssso}", "name", name, "choices", texts));
    }
    return rows;
}

static void make(void)
{
    json_t *env = json_object();
    json_object_set_new(env, "observation", observation());
    json_object_set_new(env, "actions", actions());
    env_text = json_dumps(env, JSON_COMPACT);
    json_decref(env);
    json_t *all = json_object();
    json_object_set_new(all, "fields", fields());
    json_object_set_new(all, "signals", signals());
    json_object_set_new(all, "machines", presets(dr__sim_machines));
    json_object_set_new(all, "workloads", presets(dr__sim_workloads));
    json_object_set_new(all, "models", presets(dr__sim_models));
    json_object_set_new(all, "scenarios", scenarios());
    text = json_dumps(all, JSON_COMPACT);
    json_decref(all);
}

const char *dr_sim_json(void)
{
    pthread_once(&once, make);
    return text;
}

const char *dr_sim_env_json(void)
{
    pthread_once(&once, make);
    return env_text;
}
