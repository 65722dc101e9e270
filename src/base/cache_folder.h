/* cache_folder.h: where a user's caches are. */
#ifndef DR_BASE_CACHE_FOLDER_H
#define DR_BASE_CACHE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

/* $XDG_CACHE_HOME/drapps or ~/.cache/drapps; false when the user has neither. */
bool dr__cache_folder(char *text, size_t size);

#endif
