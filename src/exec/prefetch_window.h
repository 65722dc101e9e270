/* prefetch_window.h: how many batches of a loader may be in flight: opened, and not yet delivered.
 *
 * Everything that asks this asks here: claims, the unordered window, the flow that a policy sees, and callers that push
 * batches.  The knob `prefetch` is the window that the user or a policy wants; memory may allow less.
 */
#ifndef DR_EXEC_PREFETCH_WINDOW_H
#define DR_EXEC_PREFETCH_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dr__exec;

/* The knob's first value, where the user gives none.  Program, budget and workers are set. */
int dr__prefetch_first(const struct dr__exec *e);

/* pool lock: the window now: the knob, within the memory budget and prefetch_bytes; at least 1. */
uint64_t dr__prefetch_window(const struct dr__exec *e);

/* pool lock: bytes of one batch: its stacked fields, and as much for the others as the largest batch so far needed. */
size_t dr__prefetch_batch_bytes(const struct dr__exec *e);

/* pool lock: pushed order: batches that a caller keeps pushed.  wanted: its own window.  While a policy sets the knob
 * (the user does not), that is at least one more than the knob, so that the engine never runs out of pushed batches. */
uint64_t dr__prefetch_to_push(const struct dr__exec *e, uint64_t wanted, bool by_user);

#endif
