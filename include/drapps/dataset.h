/* dataset.h: data sets: an ordered collection of samples with named fields, and ways to open one.
 *
 * A data set never changes once it is open; any number of threads may use it at once.  It is counted: dr_dataset_ref
 * and dr_dataset_unref.
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

/* How to read a path.  Fill with dr_read_defaults, then change what differs. */
typedef struct dr_read_options {
    size_t size;        /* sizeof(dr_read_options), so that it can grow */
    const char *format; /* "auto", or a name of dr_formats_json: "folder", "flat", "list", "tar" */
    const char *root;   /* for lists: the folder that relative paths start from; NULL: the list's own folder */
    const char *const *extensions; /* NULL-ended, with the dot; NULL: those of torchvision's ImageFolder */
    const char *path_column;       /* for lists: NULL finds "path", "file", "filename", "image" */
    const char *label_column;      /* for lists: NULL finds "label", "class", "target" */
    bool use_index; /* keep and use listings and tar indexes (beside the data or in the cache folder); default true */
    const char *mask_column; /* for lists: a second column of files; NULL finds "mask", "label_file" */
    const char *name;        /* of the data set, for messages; NULL: its path */
    double timeout_s;        /* of one request to a remote source; 0: the source's own.  Local files ignore it */
    const char *credentials; /* for remote sources; NULL: none.  Local files refuse them: DR_ERR_UNSUPPORTED */
} dr_read_options;

DR_API void dr_read_defaults(dr_read_options *options);

/* Opens a folder, list, tar or set of tars.  Tars may be given by a shell pattern or a brace range
 * ("train-{000..099}.tar"), in their order.  On success *out is owned by the caller. */
DR_API dr_status dr_dataset_open(const char *path, const dr_read_options *options, dr_dataset **out, dr_error *err);

/* One field of a data set in memory. */
typedef struct dr_array {
    const char *name;
    dr_desc desc;     /* of all samples together: dims[0] is the number of samples */
    const void *data; /* dense */
} dr_array;

/* A data set over arrays that the caller keeps: all have the same dims[0].  An array of uint8 with shape (n, H, W, C)
 * or (n, H, W) and kind DR_KIND_IMAGE is a set of images, one of any type with shape (n, D, H, W) or (n, C, D, H, W)
 * and kind DR_KIND_VOLUME one of volumes.  Takes the arrays' memory in the sense that `release(user)` is called once
 * when the set is gone (release may be NULL). */
DR_API dr_status dr_dataset_from_arrays(const dr_array *arrays, int n_arrays, void (*release)(void *user), void *user,
                                        dr_dataset **out, dr_error *err);

/* Files that the caller has listed. */
typedef struct dr_files {
    const char *const *paths; /* n of them; relative ones start from the folder the process is in when they are read */
    const int64_t *labels;    /* a number each, the field "label"; NULL: none */
    size_t n;
    const char *const
        *extensions;  /* NULL-ended, with the dot: a path with none of them is DR_ERR_UNSUPPORTED; NULL: any */
    const char *root; /* a name for messages, and for what is learnt of the files; NULL: nothing is kept */
} dr_files;

/* A data set of single files with the fields "image" (bytes), "label" and "key".  Copies what it is given. */
DR_API dr_status dr_dataset_from_files(const dr_files *files, dr_dataset **out, dr_error *err);

/* A mixture: each epoch has `length` places (0: as many as the sets have together) of which set i fills
 * weights[i] / sum.  A set that is asked for more than it has repeats; one asked for less continues in the next epoch
 * where it stopped.  All sets have the same fields.  Refs the sets. */
DR_API dr_status dr_dataset_mix(dr_dataset *const *sets, const double *weights, int n_sets, uint64_t length,
                                dr_dataset **out, dr_error *err);

/* Several sets one after the other.  The samples of the first keep their ids, those of the others follow.  All have the
 * same fields and classes.  Refs the sets. */
DR_API dr_status dr_dataset_concat(dr_dataset *const *sets, int n_sets, dr_dataset **out, dr_error *err);

/* Some samples of a set.  In the three calls, samples keep their ids, and with them what is drawn for them; the set is
 * reffed; it may be a subset itself, but no mixture (DR_ERR_UNSUPPORTED), whose samples change each epoch.
 *
 * n places: first, first + step, ...; step may be below 0.  Takes no memory per sample. */
DR_API dr_status dr_dataset_slice(dr_dataset *set, uint64_t first, int64_t step, uint64_t n, dr_dataset **out,
                                  dr_error *err);

/* The places that n indices name, in their order.  Copies them: 8 bytes a sample.  One that comes several times is
 * drawn for anew each time. */
DR_API dr_status dr_dataset_select(dr_dataset *set, const int64_t *indices, uint64_t n, dr_dataset **out,
                                   dr_error *err);

/* All places in a random order that the seed decides and that stays the same in each epoch.  Slices of it are a random
 * split.  Takes no memory per sample. */
DR_API dr_status dr_dataset_shuffled(dr_dataset *set, uint64_t seed, dr_dataset **out, dr_error *err);

DR_API dr_dataset *dr_dataset_ref(dr_dataset *set);
DR_API void dr_dataset_unref(dr_dataset **set);

DR_API const char *dr_dataset_name(const dr_dataset *set);
DR_API const char *dr_dataset_format(const dr_dataset *set);
DR_API uint64_t dr_dataset_size(const dr_dataset *set);   /* distinct samples */
DR_API uint64_t dr_dataset_places(const dr_dataset *set); /* samples of an epoch */

/* A number that tells the set from others: of names, sizes and labels, and of which samples were selected.  The state
 * of a loader keeps it. */
DR_API uint64_t dr_dataset_fingerprint(const dr_dataset *set);

/* The key of sample `id`: its path below the root, or its key in a tar. */
DR_API dr_status dr_dataset_key(const dr_dataset *set, uint64_t id, char *text, size_t size, dr_error *err);

/* Fields: their number, and name and description of each.  Extents that depend on the sample are DR_UNKNOWN. */
DR_API int dr_dataset_fields(const dr_dataset *set);
DR_API const char *dr_dataset_field(const dr_dataset *set, int i, dr_desc *desc);

/* Names of the classes, where labels stand for folders; n = 0 without. */
DR_API size_t dr_dataset_classes(const dr_dataset *set);
DR_API const char *dr_dataset_class(const dr_dataset *set, size_t i);

#ifdef __cplusplus
}
#endif
#endif
