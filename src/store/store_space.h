/* store_space.h: the folder that stores share: its path, and the space taken and free there. */
#ifndef DR_STORE_STORE_SPACE_H
#define DR_STORE_STORE_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The path of the folder for "auto"; false when the user has no cache folder. */
bool dr__space_default_folder(char *path, size_t size);

/* Makes a folder and those above it, where they are missing. */
dr_status dr__space_make_folder(const char *path, dr_error *err);

/* Bytes on disk of the data files of all stores in a folder. */
uint64_t dr__space_used(const char *path);

/* Bytes that are free there. */
uint64_t dr__space_free(const char *path);

bool dr__is_data_name(const char *name);

#endif
