/* listing.h: the image files of a folder tree, in the order of torchvision's ImageFolder.
 *
 * A listing keeps, for each folder, its path below the root and the number of its first file; for each file its name
 * alone.  Files of a folder stand together, so a file's folder is found by bisection and costs a file nothing.
 */
#ifndef DR_FORMAT_LISTING_H
#define DR_FORMAT_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "format/names.h"
#include "source/source.h"

typedef struct dr__listing_dir {
    uint64_t first;   /* number of its first file; the next folder's `first` ends it */
    int64_t mtime_ns; /* before it was read */
    uint32_t label;   /* which class it belongs to; UINT32_MAX: none */
} dr__listing_dir;

typedef struct dr__listing {
    dr__source_dir *root; /* owned */
    bool by_class;        /* one class per folder in the root, else everything below the root is one set */
    dr__names dirs;       /* paths below the root; number 0 is the root, "" */
    dr__listing_dir *dir;
    size_t dir_cap;
    dr__names files;
    size_t n_classes;
    uint64_t root_hash; /* of the names in the root, whatever their order */
    uint64_t root_entries;
} dr__listing;

/* Lists what is below `root`, or takes the listing from an index that still holds (and keeps one for large folders)
 * when use_index is set.  `extensions` is NULL-ended.  On success the caller frees it. */
dr_status dr__listing_open(const char *root, const dr__source_options *options, bool by_class,
                           const char *const *extensions, bool use_index, dr__listing *out, dr_error *err);
void dr__listing_free(dr__listing *listing);

/* Lists by reading the folders, never an index.  `out` has its root and by_class set. */
dr_status dr__listing_walk(const char *const *extensions, dr__listing *out, dr_error *err);

/* Is there a file with one of these extensions in a folder below root? */
bool dr__listing_any_below(const char *root, const char *const *extensions);

/* The same from the index of a flat listing; false when none holds.  Looking for a folder among a million files would
 * read them all. */
bool dr__listing_known_below(const char *root, const char *const *extensions, bool *below);

/* Hash and number of the names in an open folder, without those of index files. */
dr_status dr__listing_hash_names(dr__source_dir *dir, uint64_t *hash, uint64_t *n);

/* The folder of file i. */
size_t dr__listing_dir_of(const dr__listing *listing, uint64_t i);

/* The path of file i below the root, cut to size and always terminated; returns its full length. */
size_t dr__listing_path(const dr__listing *listing, uint64_t i, char *text, size_t size);

/* Adds a folder or, to the last folder, a file.  False: out of memory. */
bool dr__listing_add_dir(dr__listing *listing, const char *path, size_t len, int64_t mtime_ns);
bool dr__listing_add_file(dr__listing *listing, const char *name, size_t len);

/* Gives a name to the class names: pointers into the listing, n_classes of them; NULL when out of memory. */
const char **dr__listing_classes(const dr__listing *listing);

/* xxh3 of all paths. */
uint64_t dr__listing_fingerprint(const dr__listing *listing);

/* Heap in use, for tests of the memory a sample costs. */
size_t dr__listing_bytes(const dr__listing *listing);

/* listing_index.c: a listing from the bytes of an index; `what` is dr__listing_what of what is wanted.  Checks the
 * bytes, not whether the folders have changed since. */
dr_status dr__listing_decode(const void *data, size_t size, const char *what, dr__listing *out, dr_error *err);
dr_status dr__listing_load(const char *root, const char *const *extensions, dr__listing *out, dr_error *err);
void dr__listing_save(const char *root, const char *const *extensions, const dr__listing *listing, int64_t started_ns);

#endif
