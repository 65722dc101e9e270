/* store_parts.h: the inside of a store, shared by store_files.c (its files), sample_store.c (opening, reading) and
 * store_write.c (writing), store_probe.c (how fast it will be read). */
#ifndef DR_STORE_STORE_PARTS_H
#define DR_STORE_STORE_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include <drapps/store.h>

#include "store/data_file.h"
#include "store/key_table.h"
#include "store/memory_tier.h"
#include "store/sample_pack.h"

/* What the user of a store knows: of the samples, and of what may be used for them. */
typedef struct dr__store_facts {
    double cores;       /* threads that read samples; 0: 1 */
    uint64_t n_samples; /* that could be kept; 0: not known */
    double make_s;      /* time of one thread for a raw byte that is made, not read; 0: not known */
} dr__store_facts;

/* Is called for each choice of a codec, by the thread that puts a sample and without a lock.  text: members of a JSON
 * object, as of dr__codec_choice_json. */
typedef void dr__store_choice_fn(void *user, const char *tier, const dr__packed *packed, const char *text);

struct dr_store {
    dr__store_choice_fn *on_choice; /* NULL: none; set before the store is shared */
    void *on_choice_user;
    dr__memory_tier *memory; /* NULL: none; set before the store is shared */
    atomic_bool disk_off, memory_off;
    char root[4096]; /* the folder that stores share; "": nothing on disk */
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
    dr__codec_manager codecs;
    dr__codec_choice chosen;         /* the latest; n is 0: none yet */
    double page_cache;               /* bytes of it that the system may keep in memory */
    unsigned reading;                /* threads that read from it now */
    uint64_t probe_at_ns;            /* when the next probe may begin; UINT64_MAX: one is going on */
    dr__codec_manager memory_codecs; /* of the tier in memory */
    dr__codec_choice memory_chosen;
    dr__store_facts facts;
    dr_store_stats stats;
};

/* False in the child of a fork. */
bool dr__store_is_ours(const dr_store *store);

/* From now on; later facts replace earlier ones. */
void dr__store_tell(dr_store *store, const dr__store_facts *facts);

/* Obeys a codec, by its wire id, for samples that are put from now on, or chooses (DR__CODEC_AUTO).  false: this build
 * has no such codec, and nothing has changed. */
bool dr__store_force_codec(dr_store *store, int wire_id);

/* dr_store_read and dr_store_put by callers that know when the sample is used next. */
bool dr__store_read(dr_store *store, const dr_stored *found, void *memory, const dr__use *use);
bool dr__store_put(dr_store *store, const dr_store_key *key, const dr_view *fields, int n_fields, const dr__use *use);

/* Which tiers are used from now on, of those that there are. */
void dr__store_use_tiers(dr_store *store, bool disk, bool memory);

/* --- store_probe.c --- */

/* Now and then reads what was just written, to know how fast it will be read; `location`: of its record. */
void dr__store_probe(dr_store *store, const dr_stored *sample, dr__key_location location);

/* --- store_memory.c: the tier in memory, of stores that have one --- */

bool dr__store_memory_is_on(dr_store *store);
bool dr__store_memory_find(dr_store *store, const dr_store_key *key, dr_stored *out);
bool dr__store_memory_read(dr_store *store, const dr_stored *found, void *memory, const dr__use *use);

/* Keeps a sample, of which the fields lie in `raw` as dr__data_layout places them.  false: it is not kept. */
bool dr__store_memory_put(dr_store *store, const dr_stored *sample, const void *raw, const dr__use *use);

/* Calls on_choice with a choice. */
void dr__store_tell_choice(dr_store *store, const char *tier, const dr__codec_manager *manager,
                           const dr__packed *packed);

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
