/* seek_share.h: the seek points of a data set, shared by all loaders of the process that read it. */
#ifndef DR_LOADER_SEEK_SHARE_H
#define DR_LOADER_SEEK_SHARE_H

#include "codec/image/seek_store.h"
#include "format/dataset_internal.h"

typedef struct dr__seek_share dr__seek_share;

/* Is it a mode: "auto", "memory" or "off"? */
bool dr__seek_mode_is_known(const char *mode);

/* The store of these data, opened when the first loader asks for it.  mode: "auto", or "memory": without a file.
 * `limit`: bytes of memory, where it is opened. */
dr_status dr__seek_share_open(const dr_dataset *set, const char *mode, size_t limit, dr__seek_share **out,
                              dr_error *err);

/* The last one to close it saves. */
void dr__seek_share_close(dr__seek_share **share);

dr__seek_store *dr__seek_share_store(dr__seek_share *share);

/* Saves in a thread of its own, unless one is at it. */
void dr__seek_share_save(dr__seek_share *share);

#endif
