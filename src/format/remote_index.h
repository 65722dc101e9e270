/* remote_index.h: what a drapps server tells of a data set: an index file (index/index_file.h) with these sections.
 *
 *   1 META    JSON: "version", "format", "name", "samples", "places", "fingerprint" and "content" (16 hexadecimal
 *             digits), "classes" (null: none) and "fields": for each its "name", "kind" and "layout" (numbers of the
 *             enums), "dtype", "dims" (null: not known beforehand), and "form", which says where its values are:
 *             "unknown" (only reading tells), "number" (here), "key" (it is the sample's key), "file" (the file whose
 *             path is the key) or "range" (of a file of section 4)
 *   2 KEYS    of all samples, each ended by a zero byte
 *   3 STAMPS  u64 of each sample; 0: not known
 *   4 PATHS   of files, relative to the set's folder, each ended by a zero byte
 *   5 VALUES  field after field, for all samples: i64 of a number; u64 size of a file; of a range u64 offset,
 *             u64 size, u32 path
 *
 * Whoever has it can shuffle, plan and name samples without another request, and read files and ranges by plain ones.
 * Decoding trusts nothing: counts, sizes and paths are checked.
 */
#ifndef DR_FORMAT_REMOTE_INDEX_H
#define DR_FORMAT_REMOTE_INDEX_H

#include "format/dataset_internal.h"
#include "format/names.h"
#include "index/index_file.h"

typedef struct dr__remote_values {
    dr__where_form form;
    bool by_key;       /* of a range: its file's path is the sample's key, and it begins at 0 */
    int64_t *numbers;  /* number: of each sample */
    uint64_t *sizes;   /* range: of each sample */
    uint64_t *offsets; /* range, not by key */
    uint32_t *paths;   /* likewise: which of the index's paths */
} dr__remote_values;

typedef struct dr__remote_index {
    char *format, *name;
    uint64_t n_samples, n_places, fingerprint, content;
    int n_fields;
    dr__field *fields;
    dr__remote_values *values; /* of each field */
    char **classes;
    size_t n_classes;
    dr__names keys, paths;
    uint64_t *stamps;
} dr__remote_index;

/* Makes the index of a data set.
 *
 * @param root  real path of the folder that the paths of section 4 start from.  A field with a file outside it is of
 *              the form "unknown".
 * @param name  of the set, as the server calls it.
 * @param out   receives the bytes; begins as zeros; the caller frees it by dr__sections_free(out, 1). */
dr_status dr__remote_index_encode(const dr_dataset *set, const char *root, const char *name, dr__section *out,
                                  dr_error *err);

/* The same facts without samples: the text of section 1, owned by the caller (dr__free). */
dr_status dr__remote_index_meta(const dr_dataset *set, const char *root, const char *name, char **out, dr_error *err);

/* Reads an index.  The caller frees *out, which a failure leaves empty.  DR_ERR_FORMAT: it is none. */
dr_status dr__remote_index_decode(const void *data, size_t size, dr__remote_index *out, dr_error *err);
void dr__remote_index_free(dr__remote_index *index);

/* The path of a field's file relative to a folder; NULL: it is none below that.  `root` is a real path, and the folder
 * of the set, or its URL without a slash at the end. */
const char *dr__where_below(const dr__where *where, const char *root);

/* Whether a path names something below the folder that it is relative to: "a/b.jpg".  No "..", ".", empty part,
 * backslash or control character. */
bool dr__remote_path_is_plain(const char *path);

#endif
