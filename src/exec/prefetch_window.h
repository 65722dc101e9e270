/* prefetch_window.h: how many batches of a loader may be in flight: opened, and not yet delivered.
 *
 * The only place that decides this: for claims, the unordered window, the flow that a policy sees, and callers that
 * push batches.  The knob `prefetch` is the window that the user or a policy wants; memory may allow less.
 */
#ifndef DR_EXEC_PREFETCH_WINDOW_H
#define DR_EXEC_PREFETCH_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dr__exec;

/* The default of the knob `prefetch`.  e->program, e->budget and e->knobs.workers must be set. */
int dr__prefetch_first(const struct dr__exec *e);

/* pool lock: the window in batches: the knob, limited by the memory budget and prefetch_bytes; at least 1. */
uint64_t dr__prefetch_window(const struct dr__exec *e);

/* pool lock: bytes of one batch: its stacked fields, and the largest size so far of the others. */
size_t dr__prefetch_batch_bytes(const struct dr__exec *e);

/* pool lock: pushed order: how many batches the caller should keep pushed.
 *
 * @param wanted   the caller's own window.
 * @param by_user  the user has set the knob.  Else the result is at least the knob + 1, so that the executor never runs
 *                 out of pushed batches while a policy raises it. */
uint64_t dr__prefetch_to_push(const struct dr__exec *e, uint64_t wanted, bool by_user);

#endif
