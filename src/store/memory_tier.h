/* memory_tier.h: samples kept in memory, for all loaders and ranks of a node that want the same ones.
 *
 * A tier is a file in /dev/shm with a limit that holds for all its users together; where that cannot be, it is a file
 * in memory of this process alone.  The first user makes it, the last one deletes it, and a later user deletes the
 * files that killed users have left.  It may be deleted at any time: its users keep what they have.
 *
 *   memory_file.c   the file, its users and its parts
 *   memory_order.c  which sample is evicted
 *   memory_tier.c   looking up, reading and keeping samples
 *
 * A record is as in a data file (data_file.h), cut into blocks that need not lie side by side.  Lookups take no lock:
 * an entry has a stamp that changes with its use, which is compared before and after, and the record has its checksums.
 * What changes entries holds the tier's lock for microseconds.  Nobody waits for it: who does not get it does not keep
 * the sample.  When its owner is killed, the next one empties the tier.  A process that is killed while it writes a
 * record leaves an entry that counts as gone after DR__MEMORY_STALE_NS.
 *
 * Which sample goes: that whose next use is furthest away, if it is further than the new one's (Belady's rule; that is
 * optimal for samples of one size).  Uses are points in time that callers give: epoch * positions + position.  Callers
 * that do not know the order say nothing, and the sample that was used least recently goes.
 */
#ifndef DR_STORE_MEMORY_TIER_H
#define DR_STORE_MEMORY_TIER_H

#include <drapps/store.h>

#include "base/error.h"

enum { DR__MEMORY_LEAST = 1 << 20 };
#define DR__MEMORY_STALE_NS UINT64_C(10000000000)

typedef struct dr__memory_tier dr__memory_tier;

/* A use of a sample now. */
typedef struct dr__use {
    uint64_t next;  /* when it is used next, from 1 to 2^63 - 1; 0: not known */
    uint64_t since; /* with next = 0: only samples that were used before this tick give way; 0: any */
} dr__use;

/* Opens the tier of an identity, or makes it with that limit in bytes, its tables included.  Where it is there, the
 * limit is its own.  DR_ERR_ARG: the limit is below DR__MEMORY_LEAST; DR_ERR_IO: there is not so much memory. */
dr_status dr__memory_open(const dr_store_key *identity, uint64_t limit, dr__memory_tier **out, dr_error *err);
void dr__memory_close(dr__memory_tier **tier);

/* Looks for a sample; *out is for the calls below. */
bool dr__memory_find(dr__memory_tier *tier, const dr_store_key *key, dr_stored *out);

/* Copies the stored bytes of a sample (found->payload_bytes); false: it has gone meanwhile. */
bool dr__memory_read(dr__memory_tier *tier, const dr_stored *found, void *payload);

/* It was read, and the checksum was right: notes its next use. */
void dr__memory_touch(dr__memory_tier *tier, const dr_stored *found, const dr__use *use);

/* Its checksum was wrong. */
void dr__memory_drop(dr__memory_tier *tier, const dr_stored *found);

/* Whether a sample of this size would be kept now.  Does not wait; saves callers from preparing a sample in vain. */
bool dr__memory_may_keep(const dr__memory_tier *tier, uint64_t bytes, const dr__use *use);

typedef enum dr__memory_kept {
    DR__MEMORY_KEPT,
    DR__MEMORY_THERE,   /* by somebody else */
    DR__MEMORY_LATER,   /* all that is kept is used before it */
    DR__MEMORY_BUSY,    /* somebody else has the lock */
    DR__MEMORY_TOO_BIG, /* more than a quarter of the tier */
    DR__MEMORY_FAILED,  /* the system has no more memory */
} dr__memory_kept;

/* Keeps a sample: key, fields, codec and payload_bytes say what it is. */
dr__memory_kept dr__memory_put(dr__memory_tier *tier, dr_stored *sample, const void *payload, const dr__use *use);

/* The tick of the latest use of any sample. */
uint64_t dr__memory_tick(const dr__memory_tier *tier);

typedef struct dr__memory_stats {
    uint64_t records, bytes, limit; /* now: samples, memory that they take, and may take */
    uint64_t evicted;               /* by all users, since the tier was made */
    bool shared;                    /* other processes of this user can find it */
    bool short_of;                  /* the system had less memory than the limit */
} dr__memory_stats;

void dr__memory_get_stats(dr__memory_tier *tier, dr__memory_stats *out);

#endif
