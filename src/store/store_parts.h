/* store_parts.h: the inside of a store, shared by store_files.c (its files), sample_store.c (opening, reading) and
 * store_write.c (writing). */
#ifndef DR_STORE_STORE_PARTS_H
#define DR_STORE_STORE_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include <drapps/store.h>

#include "store/data_file.h"
#include "store/key_table.h"
#include "store/compress_policy.h"

struct dr_store {
    char root[4096]; /* the folder that stores share */
    int folder_fd;   /* this store's own */
    dr_store_key identity;
    unsigned generation; /* of the process that opened it */

    pthread_mutex_t write_lock; /* held while a record is appended; outside `lock` */
    char own_name[64];          /* of the file that this process writes; "": none yet */
    int own;                    /* its number; -1: none.  Set under both locks */
    dr__data_file *own_file;
    uint64_t limit, used;       /* bytes on disk of all stores: allowed, and as last looked at */
    uint64_t since;             /* put since then */
    atomic_uint_fast64_t taken; /* used + since, for readers that must not wait for a lock */

    pthread_mutex_t lock; /* all below */
    dr__key_table table;
    dr__data_file **files; /* owned, and so is each; they stay until the end, their descriptors need not */
    size_t n_files, files_cap;
    size_t n_open, most_open; /* descriptors; those in use at one moment may be more */
    uint64_t uses;
    uint64_t refresh_at_ns;
    dr__compress_policy compress;
    dr_store_stats stats;
};

/* False in the child of a fork. */
bool dr__store_is_ours(const dr_store *store);

/* How much of what stores here may take is taken, 0 .. 1.  Waits for no lock. */
double dr__store_fill(const dr_store *store);

/* --- store_files.c --- */

/* lock: adds a file and takes its descriptor; its number, or -1: out of memory. */
int dr__store_add_file(dr_store *store, const dr__data_file *file);

/* lock: the file with its descriptor, opened again where it was closed; it stays open until it is released.  NULL with
 * errno. */
dr__data_file *dr__store_use(dr_store *store, uint32_t number);
void dr__store_release(dr_store *store, dr__data_file *file);

/* lock: reads the heads of records that are new. */
void dr__store_refresh(dr_store *store);

void dr__store_close_files(dr_store *store);

#endif
