/* team.h: threads that do the parts of a task together.
 *
 * What the parts are does not depend on the number of threads, so neither do results that are put together in the order of
 * the parts.
 */
#ifndef DR_RL_TEAM_H
#define DR_RL_TEAM_H

#include "base/error.h"

typedef struct dr__rl_team dr__rl_team;

/* n_threads (at least 1) with the calling one.  DR_ERR_NOMEM: no memory, or no thread. */
dr_status dr__rl_team_new(int n_threads, dr__rl_team **out, dr_error *err);
void dr__rl_team_free(dr__rl_team **team); /* NULL is fine */

/* Calls run(owner, part) for each part below n_parts, from any of the threads, and returns when all are done.  One caller
 * at a time. */
void dr__rl_team_run(dr__rl_team *team, void (*run)(void *owner, int part), void *owner, int n_parts);

#endif
