/* paths.h: many paths, each kept as folder and name, the folders once: long absolute paths cost little more than
 * their names. */
#ifndef DR_FORMAT_PATHS_H
#define DR_FORMAT_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/names.h"

typedef struct dr__paths {
    dr__names dirs; /* with their last slash, so that "/x" stays what it is */
    dr__names files;
    uint32_t *dir_of; /* of each file */
    size_t dir_of_cap;
    int64_t *slots; /* numbers of folders by the hash of their text; only while paths are added */
    size_t n_slots; /* a power of two, at least twice the number of folders */
} dr__paths;

/* Adds a terminated path; false: out of memory. */
bool dr__paths_add(dr__paths *paths, const char *path, size_t len);

/* Gives back what only adding needs. */
void dr__paths_shrink(dr__paths *paths);
void dr__paths_free(dr__paths *paths);

/* Path i, cut to size (at least 1) and always terminated; returns the length of what was written. */
size_t dr__paths_get(const dr__paths *paths, size_t i, char *text, size_t size);

#endif
