/* open_each.h: opens many shards, several at a time where each waits for a network. */
#ifndef DR_FORMAT_OPEN_EACH_H
#define DR_FORMAT_OPEN_EACH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Calls `open` for 0 .. n - 1, each once: in this thread one after the other, or, with `together`, from several threads
 * at a time, of which this is one.  After a failure no further one is begun, and transfers of the other threads end.
 *
 * @return DR_OK, or the status and error of a call that failed. */
dr_status dr__open_each(size_t n, bool together, dr_status (*open)(void *user, size_t i, dr_error *err), void *user,
                        dr_error *err);

#endif
