/* store.h: samples kept on disk as they are first made, so that later epochs and runs need not make them again.
 *
 *   dr_store *s = NULL;
 *   dr_store_open("/scratch/cache", "what was done with the data, version 1", 0, &s, &err);
 *   dr_store_key key = dr_store_key_of(s, name, strlen(name));
 *   dr_stored found;
 *   if (dr_store_find(s, &key, &found) && dr_store_read(s, &found, memory_of(found.bytes)))
 *       ... field i is found.fields[i], at memory + found.at[i]
 *   else
 *       dr_store_put(s, &key, fields, n_fields);
 *   dr_store_close(&s);
 *
 * A store is a cache.  Every process writes to a file of its own, and what is read is compared with its checksum: a
 * process that is killed while it writes, a full disk, a damaged or deleted file, and other processes that write or
 * read at the same time cost no more than a sample made again.  The folder may be deleted at any time.
 *
 * Any number of threads may use a store.  The child of a fork opens its own: there nothing is found and nothing put.
 */
#ifndef DRAPPS_STORE_H
#define DRAPPS_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drapps/data.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DR_STORE_FIELDS = 32 };

typedef struct dr_store dr_store;

typedef struct dr_store_key {
    uint64_t low, high;
} dr_store_key;

/* A sample that was found: what it is, and how much memory it takes. */
typedef struct dr_stored {
    int n_fields;
    dr_desc fields[DR_STORE_FIELDS];
    size_t at[DR_STORE_FIELDS]; /* where each field begins in the memory that dr_store_read fills; a multiple of 64 */
    size_t bytes;               /* of that memory */

    /* the store's own */
    dr_store_key key;
    uint32_t file, codec;
    uint64_t record_at, payload_at, payload_bytes, payload_sum;
} dr_stored;

/* Opens the store of one kind of result below `folder`, which is made where it is missing; "auto": the user's cache
 * folder ($XDG_CACHE_HOME/drapps/samples, ~/.cache/drapps/samples).  identity: a text that names the data and all that
 * was done with them, versions included; what was put under another identity is never found.  limit: bytes that all
 * stores below the folder may take together; 0: what they take now and half of what is free there.  DR_ERR_ARG: every
 * user of the machine may write to the store, or could have made it (docs/cache.md). */
DR_API dr_status dr_store_open(const char *folder, const char *identity, uint64_t limit, dr_store **out, dr_error *err);
DR_API void dr_store_close(dr_store **store);

/* Samples that are put from now on are compressed by LZ4 where that is measured to pay (true, as a store begins), or
 * always, if this build has LZ4 (false). */
DR_API void dr_store_adapt(dr_store *store, bool adaptive);

/* The key of what these bytes name. */
DR_API dr_store_key dr_store_key_of(const dr_store *store, const void *name, size_t size);

/* Is there a sample under the key?  Looks now and then for what other processes have put meanwhile. */
DR_API bool dr_store_find(dr_store *store, const dr_store_key *key, dr_stored *out);

/* Its bytes into memory of found->bytes bytes; false: they are damaged or gone, or memory or descriptors ran short, and
 * what is in memory is worth nothing. */
DR_API bool dr_store_read(dr_store *store, const dr_stored *found, void *memory);

/* Keeps a sample: dense arrays.  False: it is not kept, and dr_store_stats says why; that is never an error. */
DR_API bool dr_store_put(dr_store *store, const dr_store_key *key, const dr_view *fields, int n_fields);

/* Deletes what this process has put: keeping it turned out not to pay.  Nothing more is kept; `why` is for the stats.
 */
DR_API void dr_store_discard(dr_store *store, const char *why);

typedef struct dr_store_stats {
    uint64_t records;                  /* that can be found */
    uint64_t hits, misses;             /* of dr_store_find */
    uint64_t damaged;                  /* found, but not whole */
    uint64_t written;                  /* by this process */
    uint64_t written_bytes, raw_bytes; /* of those: on disk, and before compression */
    uint64_t unpack_ns;                /* of samples that were read: checking and decompressing them */
    uint64_t read_ns, read_bytes;      /* of samples that were read: time for that and all else, bytes on disk */
    uint64_t disk_bytes, limit_bytes;  /* of all stores below the folder */
    char codec[160];                   /* how samples are kept, and why */
    char stopped[160];                 /* why nothing more is kept; "" */
} dr_store_stats;

DR_API void dr_store_get_stats(dr_store *store, dr_store_stats *out);

#ifdef __cplusplus
}
#endif
#endif
