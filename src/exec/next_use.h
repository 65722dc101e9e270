/* next_use.h: when a sample is wanted again on this node, for caches.
 *
 * Points in time are epoch * places + position + 1, the same for all ranks.  The order of later epochs is known: a
 * place of the data set stands in epoch e at the position that the inverse of the epoch's permutation says.
 */
#ifndef DR_EXEC_NEXT_USE_H
#define DR_EXEC_NEXT_USE_H

#include "exec/exec.h"

/* Is the order of later epochs known?  Not where the caller pushes it, nor where a mixture draws it anew. */
bool dr__next_use_is_known(const dr__exec *e);

/* When the sample that stands at `position` of the running epoch is used next by a rank of this node, which has
 * `local_world` of them.  0: not within the next 16 epochs. */
uint64_t dr__next_use(const dr__exec *e, uint64_t position, uint64_t local_world);

#endif
