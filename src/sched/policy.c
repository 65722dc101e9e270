/* policy.c: the table of policies: by name, as JSON. */
#include "sched/policy.h"

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

static json_t *list_rows(void)
{
    json_t *list = json_array();
    for (size_t i = 0; i < DR_COUNT(table); i++)
        json_array_append_new(list, json_pack("{s:s, s:s}", "name", table[i]->name, "doc", table[i]->doc));
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
