/* rl_spec_json.h: a schema and a shape as JSON, as they stand in a policy file. */
#ifndef DR_RL_RL_SPEC_JSON_H
#define DR_RL_RL_SPEC_JSON_H

#include <jansson.h>

#include "rl/rl_policy.h"

/* A new object; NULL when memory is short. */
json_t *dr__rl_spec_json(const dr__rl_spec *spec);
json_t *dr__rl_shape_json(const dr__rl_shape *shape);

/* DR_ERR_FORMAT: `what`: which member is wrong.  Numbers are only checked so far that they fit into the struct; the rest is
 * for dr__rl_policy_new. */
dr_status dr__rl_spec_from_json(const json_t *from, const char *what, dr__rl_spec *out, dr_error *err);
dr_status dr__rl_shape_from_json(const json_t *from, const char *what, dr__rl_shape *out, dr_error *err);

#endif
