/* store_room.h: the folder that stores share: where it is, what lies there, and how much may. */
#ifndef DR_STORE_STORE_ROOM_H
#define DR_STORE_STORE_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The path of the folder for "auto"; false when the user has no cache folder. */
bool dr__room_standard(char *path, size_t size);

/* Makes a folder and those above it, where they are missing. */
dr_status dr__room_make(const char *path, dr_error *err);

/* Bytes on disk of the data files of all stores in a folder. */
uint64_t dr__room_used(const char *path);

/* Bytes that are free there. */
uint64_t dr__room_free(const char *path);

bool dr__is_data_name(const char *name);

#endif
