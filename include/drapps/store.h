/* store.h: a cache of samples on disk and in memory, so that later epochs and runs need not make them again.
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
 * Every process writes to a file of its own, and every read is checked against a checksum.  A process that is killed
 * while it writes, a full disk, a damaged or deleted file, and other processes that use the same store cost no more
 * than a sample that is made again.  The folder may be deleted at any time.
 *
 * Any number of threads may use a store at once.  The child of a fork must open its own: in a store of its parent it
 * finds nothing, and puts nothing.
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

/* Most fields of a stored sample. */
enum { DR_STORE_FIELDS = 32 };

typedef struct dr_store dr_store;

/* The key of a sample: a 128-bit hash, made by dr_store_key_of. */
typedef struct dr_store_key {
    uint64_t low, high;
} dr_store_key;

/* A sample that was found: its fields, and the memory that it takes. */
typedef struct dr_stored {
    int n_fields;
    dr_desc fields[DR_STORE_FIELDS];
    size_t at[DR_STORE_FIELDS]; /* byte offset of each field in the memory that dr_store_read fills; a multiple of 64 */
    size_t bytes;               /* size of that memory */

    /* private to the store */
    dr_store_key key;
    uint32_t file, codec;
    uint64_t record_at, payload_at, payload_bytes, payload_sum;
    uint64_t stamp;
    bool in_memory;
} dr_stored;

/**
 * Open the store of one kind of result.
 *
 * @param folder   The folder that holds stores; made where it is missing.  "auto": $XDG_CACHE_HOME/drapps/samples or
 *                 ~/.cache/drapps/samples.
 * @param identity A text that names the data and all that was done with them, versions included.  Samples that were put
 *                 under another identity are never found.
 * @param limit    Bytes that all stores below the folder may take together; 0: what they take now, and half of the free
 *                 space.
 * @param out      The store, which the caller closes by dr_store_close.  NULL after a failure.
 * @param err      The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG where an argument is missing, or where other users of the machine may write to the store or
 *         could have made it (docs/cache.md); DR_ERR_NOT_FOUND where the user has no cache folder; DR_ERR_LIMIT for a
 *         path that is too long; DR_ERR_IO or DR_ERR_NOMEM.
 *
 * @note May be called from any thread.
 */
DR_API dr_status dr_store_open(const char *folder, const char *identity, uint64_t limit, dr_store **out, dr_error *err);

/**
 * Open a store with a tier in memory, in front of the one on disk or without it.
 *
 * The tier in memory is shared by all processes of this user on the machine that open the same identity; it lasts as
 * long as one of them has it open.  It is a file in /dev/shm, or in the folder that the variable DRAPPS_SHM names.
 *
 * @param folder   As in dr_store_open.  NULL: nothing is kept on disk.
 * @param identity As in dr_store_open.
 * @param limit    As in dr_store_open.
 * @param memory   Bytes of the tier in memory for all its users together, at least 1 MiB; the first user's counts.  0:
 *                 none.
 * @param out      As in dr_store_open.
 * @param err      The reason of a failure.  May be NULL.
 *
 * @return As dr_store_open; DR_ERR_ARG where there is neither a folder nor memory.
 *
 * @note May be called from any thread.
 */
DR_API dr_status dr_store_open_tiers(const char *folder, const char *identity, uint64_t limit, uint64_t memory,
                                     dr_store **out, dr_error *err);

/**
 * Close a store.  Its samples stay on disk.
 *
 * @param store The store, which no other thread may be using; set to NULL.  A pointer to NULL is allowed.
 */
DR_API void dr_store_close(dr_store **store);

/**
 * Choose how the samples are compressed that are put from now on.
 *
 * @param store    The store.
 * @param adaptive true (the default): each sample by the codec of this build, or none, that is measured to suit data
 *                 and machine best (docs/cache.md); false: always by the default codec, LZ4, if this build has it.
 */
DR_API void dr_store_adapt(dr_store *store, bool adaptive);

/**
 * Make the key of a sample.
 *
 * @param store The store.
 * @param name  Bytes that name the sample among those of the store's identity.
 * @param size  Their number.
 *
 * @return The key.
 */
DR_API dr_store_key dr_store_key_of(const dr_store *store, const void *name, size_t size);

/**
 * Look for a sample.  From time to time this also looks for samples that other processes have put.
 *
 * @param store The store.
 * @param key   The key.
 * @param out   Receives what dr_store_read needs.
 *
 * @return Whether there is such a sample.
 */
DR_API bool dr_store_find(dr_store *store, const dr_store_key *key, dr_stored *out);

/**
 * Read a sample that was found.
 *
 * @param store  The store.
 * @param found  What dr_store_find gave.
 * @param memory Room for found->bytes bytes.
 *
 * @return false where the sample is damaged or gone, or where memory or file descriptors ran out; the memory then holds
 *         garbage, and the sample has to be made again.
 */
DR_API bool dr_store_read(dr_store *store, const dr_stored *found, void *memory);

/**
 * Keep a sample.
 *
 * @param store    The store.
 * @param key      The key.  A sample that is there already is kept as it is.
 * @param fields   Dense arrays, borrowed for the call.
 * @param n_fields Their number, 0 .. DR_STORE_FIELDS.
 *
 * @return Whether the sample is kept.  If not, this is no error; dr_store_stats.stopped has the reason.
 */
DR_API bool dr_store_put(dr_store *store, const dr_store_key *key, const dr_view *fields, int n_fields);

/**
 * Delete the samples that this process has put, and keep no more.
 *
 * @param store The store.
 * @param why   The reason, for dr_store_stats.stopped; copied.
 */
DR_API void dr_store_discard(dr_store *store, const char *why);

/* What a store holds and has done since it was opened. */
typedef struct dr_store_stats {
    uint64_t records;                 /* samples that can be found */
    uint64_t hits, misses;            /* samples that were read, and that were not found or could not be read */
    uint64_t damaged;                 /* found, but damaged or gone */
    uint64_t written;                 /* samples that this process has put */
    uint64_t written_bytes;           /* of these, on disk */
    uint64_t raw_bytes;               /* of these, before compression */
    uint64_t unpack_ns;               /* time for checking and decompressing samples that were read */
    uint64_t read_ns, read_bytes;     /* time for reading samples, unpack_ns included, and their bytes on disk */
    uint64_t disk_bytes, limit_bytes; /* of all stores below the folder: bytes taken, and allowed */
    char codec[480];                  /* how samples are compressed, and why */
    char stopped[160];                /* why no more samples are kept on disk; "": they are */
    uint64_t memory_hits;             /* of the hits, from the tier in memory */
    uint64_t memory_records, memory_bytes, memory_limit_bytes; /* of all users of the tier: now, and allowed */
    uint64_t memory_evicted;                                   /* by all users */
    uint64_t memory_written, memory_raw_bytes; /* samples that this process has put there, before compression */
    uint64_t memory_refused;                   /* samples of this process that were not kept there */
    char memory_codec[480];                    /* how they are compressed there, and why; "": no tier in memory */
} dr_store_stats;

/**
 * Get the statistics of a store.
 *
 * @param store The store.
 * @param out   Receives the statistics; all zero in the child of a fork.
 */
DR_API void dr_store_get_stats(dr_store *store, dr_store_stats *out);

#ifdef __cplusplus
}
#endif
#endif
