/* dataset.h: data sets (ordered collections of samples with named fields) and ways to open them.
 *
 * A data set never changes once it is open; any number of threads may use it at once.  It is reference counted: a call
 * that makes one returns it with one reference, which the caller gives back by dr_dataset_unref.
 *
 * Samples have ids, 0 .. dr_dataset_size - 1, which randomness is keyed by.  An epoch goes over places,
 * 0 .. dr_dataset_places - 1.  Place i is sample i, except in subsets and mixtures.
 */
#ifndef DRAPPS_DATASET_H
#define DRAPPS_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drapps/data.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dr_dataset dr_dataset;

/* --- opening a path --- */

/* How to read a path.  Fill it with dr_read_defaults, then change what differs.  Texts are borrowed for the call that
 * takes the struct. */
typedef struct dr_read_options {
    size_t size;                   /* sizeof(dr_read_options), so that it can grow */
    const char *format;            /* "auto", or a name of dr_formats_json: "folder", "flat", "list", "tar" */
    const char *root;              /* lists: the folder that relative paths start from; NULL: the list's own folder */
    const char *const *extensions; /* folders: files to take, with the dot, NULL-ended; NULL: those of torchvision's
                                      ImageFolder */
    const char *path_column;       /* lists: the column of files; NULL: "path", "file", "filename" or "image" */
    const char *label_column; /* lists: the column of labels; NULL: "label", "class" or "target", if there is one */
    bool use_index;           /* keep and use listings and tar indexes, beside the data or in the cache folder; default
                                 true */
    const char *mask_column;  /* lists: a second column of files; NULL: "mask" or "label_file", if there is one */
    const char *name;         /* of the data set, for messages; NULL: its path */
    double timeout_s;         /* of one request to a remote source, in seconds; 0: the source's own.  Local files ignore
                                 it */
    const char *credentials;  /* for a remote source; NULL: none.  Local files refuse them: DR_ERR_UNSUPPORTED */
    bool (*interrupted)(void *user); /* called now and then while opening waits for a server; if it returns true,
                                        opening fails with DR_ERR_CANCELLED.  NULL: never interrupted */
    void *user;                      /* argument of `interrupted` */
} dr_read_options;

/**
 * Set all options to their defaults.
 *
 * @param options The options to fill, `size` included.
 */
DR_API void dr_read_defaults(dr_read_options *options);

/**
 * Open a folder, a list, a tar shard or a set of shards.
 *
 * @param path    A folder, a list (.txt, .lst, .csv, .tsv, .jsonl) or a .tar file.  Shards may be given by a shell
 *                pattern or a brace range ("train-{000..099}.tar"), or by the folder that holds them.
 * @param options How to read it.  NULL: the defaults.
 * @param out     The data set.  The caller owns one reference.  NULL after a failure.
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_NOT_FOUND where there is no such path, column or image; DR_ERR_UNSUPPORTED where no format or
 *         source fits; DR_ERR_FORMAT for a damaged list or shard; DR_ERR_LIMIT where it has more than 1024 fields or
 *         does not fit into memory; DR_ERR_IO, DR_ERR_ARG or DR_ERR_NOMEM.
 *
 * @note May be called from any thread.
 */
DR_API dr_status dr_dataset_open(const char *path, const dr_read_options *options, dr_dataset **out, dr_error *err);

/* --- data sets of the caller's arrays and files --- */

/* One field of a data set in memory. */
typedef struct dr_array {
    const char *name; /* of the field; copied */
    dr_desc desc;     /* of all samples together: dims[0] is their number */
    const void *data; /* dense; borrowed until release is called */
} dr_array;

/**
 * Make a data set of arrays in memory: sample i is row i of each.
 *
 * An array of shape (n, H, W, C) or (n, H, W) and kind DR_KIND_IMAGE holds images, one of shape (n, D, H, W) or
 * (n, C, D, H, W) and kind DR_KIND_VOLUME volumes.  Where no array is called "key", each sample gets that field, its
 * number as text.
 *
 * @param arrays   The arrays.  All have the same dims[0], which is above 0.  The structs and names are copied, the data
 *                 is not.
 * @param n_arrays Their number, 1 .. 1023.
 * @param release  Called once when the data set is gone, by the thread that gives back the last reference, so that the
 *                 caller can free the arrays.  NULL: nothing is called.  After a failure it is not called.
 * @param user     Passed to release.
 * @param out      The data set.  The caller owns one reference.
 * @param err      The reason of a failure.  May be NULL.
 *
 * @return DR_OK, DR_ERR_ARG, DR_ERR_LIMIT or DR_ERR_NOMEM.
 *
 * @note May be called from any thread.  The arrays must not change while the data set exists.
 */
DR_API dr_status dr_dataset_from_arrays(const dr_array *arrays, int n_arrays, void (*release)(void *user), void *user,
                                        dr_dataset **out, dr_error *err);

/* Files that the caller has listed. */
typedef struct dr_files {
    const char *const *paths; /* n of them; relative ones start from the folder the process is in when they are read */
    const int64_t *labels;    /* n of them, for the field "label"; NULL: no such field */
    size_t n;                 /* number of files, above 0 */
    const char *const *extensions; /* with the dot, NULL-ended: a path with none of them is DR_ERR_UNSUPPORTED; NULL:
                                      any */
    const char *root;              /* a name for messages, and for what is learnt of the files; NULL: nothing is kept */
} dr_files;

/**
 * Make a data set of single files, with the fields "image" (encoded bytes), "label" and "key" (the path).
 *
 * @param files The files.  Everything is copied.
 * @param out   The data set.  The caller owns one reference.
 * @param err   The reason of a failure.  May be NULL.
 *
 * @return DR_OK, DR_ERR_ARG, DR_ERR_UNSUPPORTED or DR_ERR_NOMEM.  The files are not opened yet: a missing file is a bad
 *         sample later.
 *
 * @note May be called from any thread.
 */
DR_API dr_status dr_dataset_from_files(const dr_files *files, dr_dataset **out, dr_error *err);

/* --- data sets of data sets --- */

/**
 * Mix several data sets: each fills its share of every epoch.
 *
 * A data set that is asked for more samples than it has repeats them; one that is asked for fewer continues in the next
 * epoch where it stopped.
 *
 * @param sets    The data sets, which have the same fields and classes.  The mixture holds a reference to each.
 * @param weights One for each set, 0 or more: set i fills weights[i] / sum of the places.
 * @param n_sets  Their number, 1 or more.
 * @param length  Places of an epoch; 0: as many as the sets have together.
 * @param out     The mixture.  The caller owns one reference.
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK, DR_ERR_ARG, DR_ERR_UNSUPPORTED (one of the sets is a mixture) or DR_ERR_NOMEM.
 *
 * @note May be called from any thread.
 */
DR_API dr_status dr_dataset_mix(dr_dataset *const *sets, const double *weights, int n_sets, uint64_t length,
                                dr_dataset **out, dr_error *err);

/**
 * Concatenate data sets.  The samples of the first keep their ids, those of the others follow.
 *
 * @param sets   The data sets, which have the same fields and classes.  The result holds a reference to each.
 * @param n_sets Their number, 1 or more.
 * @param out    The data set.  The caller owns one reference.  NULL after a failure.
 * @param err    The reason of a failure.  May be NULL.
 *
 * @return DR_OK, DR_ERR_ARG, DR_ERR_UNSUPPORTED (one of the sets is a mixture) or DR_ERR_NOMEM.
 *
 * @note May be called from any thread.
 */
DR_API dr_status dr_dataset_concat(dr_dataset *const *sets, int n_sets, dr_dataset **out, dr_error *err);

/**
 * Take every step-th place of a data set.  Samples keep their ids, and with them what is drawn for them.
 *
 * @param set   The data set, to which the result holds a reference.  A subset is allowed, a mixture is not.
 * @param first The first place.
 * @param step  From one place to the next; may be negative.
 * @param n     Number of places.
 * @param out   The subset, which takes no memory per sample.  The caller owns one reference.
 * @param err   The reason of a failure.  May be NULL.
 *
 * @return DR_OK, DR_ERR_ARG, DR_ERR_UNSUPPORTED (a mixture) or DR_ERR_NOMEM.
 *
 * @note May be called from any thread.
 */
DR_API dr_status dr_dataset_slice(dr_dataset *set, uint64_t first, int64_t step, uint64_t n, dr_dataset **out,
                                  dr_error *err);

/**
 * Take the places of a data set that a list names, in its order.  Samples keep their ids; one that is listed several
 * times gets new draws each time.
 *
 * @param set     The data set, to which the result holds a reference.  A subset is allowed, a mixture is not.
 * @param indices Places of the set; copied, 8 bytes each.
 * @param n       Their number.
 * @param out     The subset.  The caller owns one reference.
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK, DR_ERR_ARG, DR_ERR_UNSUPPORTED (a mixture) or DR_ERR_NOMEM.
 *
 * @note May be called from any thread.
 */
DR_API dr_status dr_dataset_select(dr_dataset *set, const int64_t *indices, uint64_t n, dr_dataset **out,
                                   dr_error *err);

/**
 * Shuffle the places of a data set once, in the same order for every epoch.  Slices of the result are a random split.
 *
 * @param set  The data set, to which the result holds a reference.  A subset is allowed, a mixture is not.
 * @param seed Decides the order.
 * @param out  The data set, which takes no memory per sample.  The caller owns one reference.
 * @param err  The reason of a failure.  May be NULL.
 *
 * @return DR_OK, DR_ERR_ARG, DR_ERR_UNSUPPORTED (a mixture) or DR_ERR_NOMEM.
 *
 * @note May be called from any thread.
 */
DR_API dr_status dr_dataset_shuffled(dr_dataset *set, uint64_t seed, dr_dataset **out, dr_error *err);

/**
 * Give the samples at the places of a data set new ids, from 0 on.  A selection keeps the ids of the data set that it
 * was taken from; renumbered, it can be stored, and has the same ids when it is read again.
 *
 * @param set The data set, to which the result holds a reference.  A subset is allowed, a mixture is not.
 * @param out The data set.  The caller owns one reference.
 * @param err The reason of a failure.  May be NULL.
 *
 * @return DR_OK, DR_ERR_ARG, DR_ERR_UNSUPPORTED (a mixture) or DR_ERR_NOMEM.
 *
 * @note May be called from any thread.
 */
DR_API dr_status dr_dataset_renumbered(dr_dataset *set, dr_dataset **out, dr_error *err);

/* --- references --- */

/**
 * Add a reference.
 *
 * @param set A data set that the caller holds a reference to.
 *
 * @return The same pointer.
 *
 * @note May be called from any thread.
 */
DR_API dr_dataset *dr_dataset_ref(dr_dataset *set);

/**
 * Give back a reference.  The last one closes the data set.
 *
 * @param set The data set; set to NULL.  A pointer to NULL is allowed.
 *
 * @note May be called from any thread.
 */
DR_API void dr_dataset_unref(dr_dataset **set);

/* --- facts --- */

/**
 * Get the name of a data set for messages: its path, or dr_read_options.name.
 *
 * @param set The data set.
 *
 * @return A text that belongs to the data set.
 */
DR_API const char *dr_dataset_name(const dr_dataset *set);

/**
 * Get the format of a data set: "folder", "flat", "list", "tar", "array", "files", "mix", "concat", ...
 *
 * @param set The data set.
 *
 * @return A static text.
 */
DR_API const char *dr_dataset_format(const dr_dataset *set);

/**
 * Get the number of distinct samples.
 *
 * @param set The data set.
 *
 * @return The number of ids.
 */
DR_API uint64_t dr_dataset_size(const dr_dataset *set);

/**
 * Get the length of an epoch.  It equals dr_dataset_size except for mixtures, subsets and what is made of these.
 *
 * @param set The data set.
 *
 * @return The number of places.
 */
DR_API uint64_t dr_dataset_places(const dr_dataset *set);

/**
 * Get a number that tells this data set from others: a hash of names, sizes and labels, and of which samples were
 * selected.  The state of a loader keeps it.
 *
 * @param set The data set.
 *
 * @return The fingerprint.
 */
DR_API uint64_t dr_dataset_fingerprint(const dr_dataset *set);

/**
 * Get the key of a sample: its path below the root, or its key in a tar shard.
 *
 * @param set  The data set.
 * @param id   The sample, below dr_dataset_size.
 * @param text Receives the key, cut to `size` bytes and always terminated.
 * @param size Room in bytes; 0: nothing is written.
 * @param err  The reason of a failure.  May be NULL.
 *
 * @return DR_OK, or DR_ERR_ARG where there is no such sample.
 */
DR_API dr_status dr_dataset_key(const dr_dataset *set, uint64_t id, char *text, size_t size, dr_error *err);

/**
 * Get the number of fields that every sample has.
 *
 * @param set The data set.
 *
 * @return 1 .. 1024.
 */
DR_API int dr_dataset_fields(const dr_dataset *set);

/**
 * Get the name and description of a field.
 *
 * @param set  The data set.
 * @param i    Number of the field, from 0.
 * @param desc Receives the description; extents that depend on the sample are DR_UNKNOWN.  May be NULL.
 *
 * @return The name, which belongs to the data set; NULL where there is no field i.
 */
DR_API const char *dr_dataset_field(const dr_dataset *set, int i, dr_desc *desc);

/**
 * Get the number of classes.
 *
 * @param set The data set.
 *
 * @return Their number, where labels stand for names; 0 otherwise.
 */
DR_API size_t dr_dataset_classes(const dr_dataset *set);

/**
 * Get the name of a class.
 *
 * @param set The data set.
 * @param i   The label.
 *
 * @return The name, which belongs to the data set; NULL where there is no class i.
 */
DR_API const char *dr_dataset_class(const dr_dataset *set, size_t i);

#ifdef __cplusplus
}
#endif
#endif
