/* seek_save.h: what is new, and what files have, as one new file. */
#ifndef DR_CODEC_SEEK_SAVE_H
#define DR_CODEC_SEEK_SAVE_H

#include "codec/image/seek_table.h"

/* Writes the file at `path`: the entries of the file that is there now, of `known` (NULL: none) and of the table; of
 * one key those of the highest rank.  Processes that save to one folder wait for each other, so that none loses what
 * another has found.  False: it was not possible; the file is as it was and nothing is left behind. */
bool dr__seek_save(const char *path, bool beside, const dr__seek_file *known, dr__seek_table *table);

#endif
