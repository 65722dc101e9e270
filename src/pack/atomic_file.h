/* atomic_file.h: files that appear when they are complete and on disk. */
#ifndef DR_PACK_ATOMIC_FILE_H
#define DR_PACK_ATOMIC_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { DR__ATOMIC_PATH = 4300 };

/* Ends the name of a file that is not complete. */
#define DR__PART ".drapps-part"

typedef struct dr__atomic_file {
    int fd; /* -1: closed */
    char path[DR__ATOMIC_PATH], part[DR__ATOMIC_PATH];
} dr__atomic_file;

/* Begins FOLDER/NAME; what another run left under the temporary name is overwritten. */
dr_status dr__atomic_begin(dr__atomic_file *file, const char *folder, const char *name, dr_error *err);
dr_status dr__atomic_write(dr__atomic_file *file, const void *data, size_t size, dr_error *err);

/* Syncs and renames it.  The folder has to be synced afterwards (dr__sync_folder). */
dr_status dr__atomic_commit(dr__atomic_file *file, dr_error *err);

/* Deletes it, if it was not committed. */
void dr__atomic_drop(dr__atomic_file *file);

/* All of that for a file in one piece, the folder included. */
dr_status dr__atomic_save(const char *folder, const char *name, const void *data, size_t size, dr_error *err);

dr_status dr__sync_folder(const char *folder, dr_error *err);

#endif
