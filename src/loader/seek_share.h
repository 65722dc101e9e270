/* seek_share.h: the seek points of a data set, shared by all loaders of the process that read it. */
#ifndef DR_LOADER_SEEK_SHARE_H
#define DR_LOADER_SEEK_SHARE_H

#include "codec/image/seek_store.h"
#include "format/dataset_internal.h"

typedef struct dr__seek_share dr__seek_share;

/* Whether mode is "auto", "memory" or "off". */
bool dr__seek_mode_is_known(const char *mode);

/* Takes a reference to the store of a data set, which the first loader opens.
 *
 * @param mode   "auto"; or "memory": without an index file.
 * @param limit  bytes of memory; used if this call opens the store. */
dr_status dr__seek_share_open(const dr_dataset *set, const char *mode, size_t limit, dr__seek_share **out,
                              dr_error *err);

/* Releases a reference; the last one saves and closes the store. */
void dr__seek_share_close(dr__seek_share **share);

dr__seek_store *dr__seek_share_store(dr__seek_share *share);

/* Saves the store in a thread of its own, unless such a thread is running. */
void dr__seek_share_save(dr__seek_share *share);

#endif
