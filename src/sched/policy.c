/* policy.c: the table of policies: by name, as JSON. */
#include "sched/policy.h"

#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

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

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char *text; /* made once, kept for the life of the process */

static void make_text(void)
{
    json_t *list = json_array();
    for (size_t i = 0; i < DR_COUNT(table); i++)
        json_array_append_new(list, json_pack("{s:s, s:s}", "name", table[i]->name, "doc", table[i]->doc));
    text = json_dumps(list, JSON_COMPACT);
    json_decref(list);
}

const char *dr_policies_json(void)
{
    pthread_once(&once, make_text);
    return text ? text : "[]";
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

dr_status dr__policy_choose(const char *name, const dr__policy_def **out, dr_error *err)
{
    const char *forced = getenv("DRAPPS_POLICY");
    bool is_forced = forced && *forced;
    const char *wanted = is_forced ? forced : name ? name : "analytic";
    *out = dr__policy_find(wanted);
    if (!*out)
        return dr__fail(err, DR_ERR_ARG, "%s is \"%s\"; there are %soff for fixed",
                        is_forced ? "DRAPPS_POLICY" : "policy", wanted, names);
    return DR_OK;
}
