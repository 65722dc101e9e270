/* pack_internal.h: a packing at work.
 *
 *   workers: claim the next sample, make it, leave it in its slot of the ring
 *   the caller of dr_pack_run: takes the slots in order, writes shards
 *
 * Where shards end depends on the samples alone, not on the threads.
 */
#ifndef DR_PACK_PACK_INTERNAL_H
#define DR_PACK_PACK_INTERNAL_H

#include <drapps/pack.h>

#include "base/thread.h"
#include "graph/prefix.h"
#include "pack/shard_writer.h"

enum { DR__PACK_BAD_NAMED = 1000, DR__PACK_WORKERS = 64, DR__PACK_RING = 4 * DR__PACK_WORKERS };

struct dr_pack {
    dr_pack_options o; /* texts and graph: not to be used after opening */
    char *folder, name[128];
    int folder_fd, lock_fd;    /* the folder; its file DR__SET_LOCK, locked against other packers; -1: none */
    unsigned generation;       /* of the process */
    dr_dataset *set, *present; /* present: the packed set that is added to; NULL: none */
    dr__prefix prefix;
    dr__recipe recipe;
    dr__manifest m;
    int n_codecs;          /* recipe.codecs */
    uint64_t first_sample; /* of this source in the packed set */
    bool finished;
    dr_error error; /* status != 0: it failed */
    dr__shard_writer writer;
    uint64_t estimated; /* bytes of all shards of this source */

    pthread_mutex_t lock; /* all below */
    dr__cond work, ready;
    uint64_t next, written; /* samples that were claimed, and that are in shards */
    uint64_t resumed, bytes, bad, held_bytes;
    struct dr__pack_bad {
        char *key, *why;
    } * bad_list; /* the first DR__PACK_BAD_NAMED of them; owned */
    size_t n_bad_list, bad_list_cap;
    bool stop;
    int n_workers;
    pthread_t workers[DR__PACK_WORKERS];
    struct dr__pack_slot {
        dr__made made;
        bool is_ready;
        dr_error error; /* status != 0: it could not be made */
    } ring[DR__PACK_RING];
    int ring_size;
};

/* --- pack_plan.c --- */

/* Everything up to the first sample: fields, ops, names, what an interrupted run left, room on the disk. */
dr_status dr__pack_plan(dr_pack *pack, const dr_pack_options *options, dr_error *err);

/* Canonical JSON of what a packing does, owned by the caller (dr__free); NULL: out of memory (plan_text.c). */
char *dr__plan_text(const dr_pack *pack);

/* Checks that `then`, the plan in the folder, is that of this packing.  The plan of a packing that stopped at bad
 * samples also fits one that keeps them.  DR_ERR_STATE: it is another; the message has `what`, each argument that
 * differs with both values, and `advice`. */
dr_status dr__plan_check(const dr_pack *pack, const char *then, const char *what, const char *advice, dr_error *err);

/* Whether the ops would store decoded images of unchanged size that take more bytes than their files.  Each epoch would
 * then read several times the bytes, while a crop decodes little of a file anyway, so the files are stored instead.
 * Estimated from a few samples, always the same ones (pack_worth.c). */
dr_status dr__ops_only_grow(dr_pack *pack, bool *out, dr_error *err);

/* Gives fields their codecs, by dr_pack_options.codec (pack_codecs.c). */
dr_status dr__pack_choose_codecs(dr_pack *pack, const char *codec, dr_error *err);

/* The journal of what is done, or, when all is, the manifest. */
dr_status dr__pack_save_journal(const dr_pack *pack, dr_error *err);
dr_status dr__pack_save_manifest(dr_pack *pack, dr_error *err);

#endif
