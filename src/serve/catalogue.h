/* catalogue.h: the data sets that a server offers.
 *
 * A catalogue never changes.  After a reload new requests see another one; requests that began before keep theirs, by a
 * reference.
 */
#ifndef DR_SERVE_CATALOGUE_H
#define DR_SERVE_CATALOGUE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/text.h"
#include "format/dataset_internal.h"
#include "index/index_file.h"

typedef struct dr__served_set {
    char *name;          /* by which clients ask for it */
    char *root;          /* real path or URL of its folder: files are asked for relative to it */
    int root_fd;         /* of a local folder; -1 */
    dr__source_dir *far; /* of one behind a URL; NULL */
    dr_dataset *set;
    dr__section index;     /* format/remote_index.h */
    uint64_t index_tag;    /* hash of it */
    char *meta;            /* the facts of the set, as JSON */
    uint64_t stored_bytes; /* of its samples, as far as the index tells */
    uint64_t number;       /* that no other set of the process has or had */
    int image;             /* the field whose stored bytes are meant by ranges and by files: the first of bytes; -1 */
    pthread_mutex_t lock;  /* of what follows */
    uint32_t *by_path;     /* sample + 1 by the hash of its file's path; made when it is first asked for */
    size_t n_by_path;
} dr__served_set;

typedef struct dr__catalogue {
    atomic_int refs;
    dr__served_set *sets;
    size_t n_sets, cap;
} dr__catalogue;

/* How long a request to the server behind a URL may take, tries included. */
#define DR__SERVE_FAR_TIMEOUT_S 30

/* Opens what is below a folder, or a URL that sources can list (s3://, http://, https://): each sub-folder that drapps
 * can read and that holds more than loose images, and each list; or, where there is none, the folder itself.  What
 * cannot be opened, or leads out of the folder, is left out, and `log` says so.
 *
 * @return DR_OK; DR_ERR_NOT_FOUND: there is no such folder, or no set in it; DR_ERR_NOMEM. */
dr_status dr__catalogue_open(const char *root, void (*log)(void *user, const char *text), void *user,
                             dr__catalogue **out, dr_error *err);
dr__catalogue *dr__catalogue_ref(dr__catalogue *catalogue);
void dr__catalogue_unref(dr__catalogue **catalogue);

/* The set with that name; NULL: none. */
dr__served_set *dr__catalogue_find(dr__catalogue *catalogue, const char *name);

/* The sample whose file has that path; false: there is none, or the set has no file for each sample. */
bool dr__served_sample(dr__served_set *set, const char *path, uint64_t *id);

/* Fails unless all files of a sample lie below the set's folder, links followed. */
dr_status dr__served_check(const dr__served_set *set, uint64_t id, dr__where *where, dr_error *err);

#endif
