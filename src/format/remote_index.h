/* remote_index.h: what a client must know of a data set on a server, and how that is sent.
 *
 * An index is a container of index/index_file.h:
 *
 *   section 1  JSON: {"protocol", "format", "samples", "fingerprint", "content", "fields": [{"name", "kind", "dtype",
 *              "layout", "dims", "from"}], "classes": [...]}
 *   section 2  the key of each sample, each with a zero byte
 *   section 3  the path of each sample's file below the root of the set; empty where it is the key
 *   section 4  u64 stamp of each sample; empty where the set has none
 *   section 5  u64 bytes of each sample as it is stored; empty where that is not known
 *
 * "from" says what a client can make of a field by itself: "file": the bytes of the sample's file, which it may read
 * by its path; "key": the key; "class": the number of the class that the key begins with.  Missing: only the server
 * has it.  Unknown sections and members are ignored, so that an index can grow.
 */
#ifndef DR_FORMAT_REMOTE_INDEX_H
#define DR_FORMAT_REMOTE_INDEX_H

#include "format/dataset_internal.h"
#include "format/names.h"
#include "index/index_file.h"

typedef enum dr__remote_from {
    DR__REMOTE_FROM_SERVER = 0,
    DR__REMOTE_FROM_FILE,
    DR__REMOTE_FROM_KEY,
    DR__REMOTE_FROM_CLASS,
} dr__remote_from;

typedef struct dr__remote_index {
    char format[32];
    uint64_t n_samples, fingerprint, content;
    int n_fields;
    dr__field *fields;     /* owned */
    dr__remote_from *from; /* one a field; owned */
    char **classes;        /* owned, with its texts */
    size_t n_classes;
    dr__names keys, files; /* files.n is 0 where they are the keys */
    uint64_t *stamps;      /* NULL: none; owned */
    uint64_t *sizes;       /* NULL: not known; owned */
} dr__remote_index;

/* Makes the index of a data set.
 *
 * @param size_of  the bytes of a sample as it is stored; NULL: not known.
 * @param out      the container, owned by the caller (dr__sections_free).
 * @return DR_OK; DR_ERR_UNSUPPORTED: its places are not its samples; DR_ERR_LIMIT: a key is too long; DR_ERR_NOMEM. */
dr_status dr__remote_index_encode(const dr_dataset *set, uint64_t (*size_of)(const dr_dataset *set, uint64_t id),
                                  dr__section *out, dr_error *err);

/* Parses an index, which may be anything.  name: for messages.  *out is freed by dr__remote_index_free, in any case. */
dr_status dr__remote_index_decode(const void *data, size_t size, const char *name, dr__remote_index *out,
                                  dr_error *err);
void dr__remote_index_free(dr__remote_index *index);

/* The path of a sample's file, and the number of the class that a key begins with (-1: none of them). */
const char *dr__remote_index_file(const dr__remote_index *index, uint64_t id);
int64_t dr__remote_index_class(const dr__remote_index *index, uint64_t id);

#endif
