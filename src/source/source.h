/* source.h: bytes by name and range, and the names below a directory.
 *
 * Every read of a data set goes through a source.  A source is one file that ends in a `const dr_source_def`, and one
 * row in source_table.c.  A name with a scheme ("s3://bucket/x.tar") goes to the row with that scheme, any other name
 * to the file system.
 *
 * There are two ways to read.  dr__source_open opens one object, of which ranges are read: a tar shard.  A directory
 * handle (dr__source_dir) reads many small objects below it, each whole and by one call: the images of a folder.  Both
 * may be used by many threads at once.
 *
 * A name below a directory is a path with slashes.  Absolute paths, and names with a scheme, do not depend on the
 * directory.
 */
#ifndef DR_SOURCE_SOURCE_H
#define DR_SOURCE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "data/byte_ranges.h"

typedef struct dr__source dr__source;
typedef struct dr__source_dir dr__source_dir;

/* How to reach a source.  Zeros are the defaults.  A source refuses with DR_ERR_UNSUPPORTED what it cannot honour,
 * except that local files ignore the timeout. */
typedef struct dr__source_options {
    uint64_t timeout_ns;     /* of one request; 0: the source's own */
    const char *credentials; /* a token, or the name of a profile, as the source documents; NULL: none */
} dr__source_options;

typedef enum dr__source_kind {
    DR__SOURCE_FILE,
    DR__SOURCE_DIR,
    DR__SOURCE_OTHER, /* a pipe, socket or device: it cannot be read */
} dr__source_kind;

/* What is known of an object without reading it. */
typedef struct dr__source_facts {
    dr__source_kind kind;
    uint64_t size;    /* bytes */
    int64_t mtime_ns; /* of the last modification, since 1970; 0: not known */
    uint64_t version; /* changes whenever the content does.  Of a local file: a hash of inode, size, mtime and ctime
                         (the last cannot be set, so that rsync -a, tar -p and touch -r are noticed).  Of a remote
                         object: a hash of its entity tag.  0: not known */
    uint64_t id[2];   /* tells a directory from others (device, inode); 0, 0: not known */
} dr__source_facts;

/* Memory that a whole object is read into.  Callers put their own struct around it. */
typedef struct dr__source_target {
    /* Returns memory for `size` bytes, of which the first `keep` bytes hold what was read so far, and are moved with
     * it. NULL: refused, with the reason in err and the status in *status. */
    uint8_t *(*reserve)(struct dr__source_target *target, size_t size, size_t keep, dr_status *status, dr_error *err);
} dr__source_target;

/* One entry of a directory, borrowed for the call that it is handed to. */
typedef struct dr__source_entry {
    const char *name; /* a single component, terminated */
    bool is_dir;      /* a directory, or a link to one */
    bool by_link;     /* of directories: perhaps reached through a link */
} dr__source_entry;

/* Receives the entries of a directory.  Callers put their own struct around it. */
typedef struct dr__source_lister {
    /* Optional: called before the first entry with the facts of the directory.  False: its entries are not wanted. */
    bool (*begin)(struct dr__source_lister *lister, const dr__source_facts *facts);

    /* Called for each entry, in no particular order.  DR_END ends the listing without an error. */
    dr_status (*take)(struct dr__source_lister *lister, const dr__source_entry *entry, dr_error *err);
} dr__source_lister;

typedef struct dr_source_def {
    const char *scheme; /* "s3" for "s3://..."; NULL: plain paths */
    const char *summary;
    bool remote; /* a request crosses a network: it is slow to answer, and nothing can be kept beside the data */

    /* --- one object --- */

    /* Opens an object.  Fills *out but for def and name, and its facts. */
    dr_status (*open)(const char *name, const dr__source_options *options, dr__source **out, dr_error *err);

    /* Its size at the moment. */
    dr_status (*size)(dr__source *source, uint64_t *size, dr_error *err);

    /* Reads `size` bytes from `offset`; fewer only where the object ends. */
    dr_status (*read_at)(dr__source *source, void *buf, size_t size, uint64_t offset, size_t *got, dr_error *err);

    void (*close)(dr__source *source);

    /* --- a directory; NULL where the source has none --- */

    /* In get, get_range and stat of a remote source, and in stat of local files, `dir` may be NULL: `path` is then a
     * whole name, which depends on no directory.  It may be one, too, where there is a directory. */

    /* Opens a directory.  Fills *out but for def and name.  A NULL name stands for no directory: relative paths then
     * start where the process is at the moment of each call. */
    dr_status (*open_dir)(const char *name, const dr__source_options *options, dr__source_dir **out, dr_error *err);

    /* Reads a whole object into memory of the target.  The object is as long as it turns out to be, whatever it was
     * announced to be. */
    dr_status (*get)(dr__source_dir *dir, const char *path, dr__source_target *target, size_t *size, dr_error *err);

    /* Optional: as get; *version: of the object that was read, as its facts say it; 0: not known. */
    dr_status (*get_versioned)(dr__source_dir *dir, const char *path, dr__source_target *target, size_t *size,
                               uint64_t *version, dr_error *err);

    /* Reads `size` bytes from `offset` of an object; fewer only where it ends.  version: what its facts said; an
     * object that has another one now is DR_ERR_STATE, and nothing is to be used.  0: whatever is there. */
    dr_status (*get_range)(dr__source_dir *dir, const char *path, uint64_t version, uint64_t offset, size_t size,
                           dr__source_target *target, size_t *got, dr_error *err);

    /* Optional: reads several ranges of an object, one behind the other, to `to`.  An object that ends before the last
     * of them does is DR_ERR_FORMAT.  Version as for get_range. */
    dr_status (*get_ranges)(dr__source_dir *dir, const char *path, uint64_t version, const dr__byte_ranges *ranges,
                            uint8_t *to, dr_error *err);

    /* The facts of what is at `path` ("": the directory itself); links are followed. */
    dr_status (*stat)(dr__source_dir *dir, const char *path, dr__source_facts *facts, dr_error *err);

    /* Lists one level below `path` ("": the directory itself).  DR_ERR_NOT_FOUND where there is no directory. */
    dr_status (*list)(dr__source_dir *dir, const char *path, dr__source_lister *lister, dr_error *err);

    void (*close_dir)(dr__source_dir *dir);
} dr_source_def;

/* The head of every open object; a def puts its own struct around it. */
struct dr__source {
    const dr_source_def *def;
    char *name;             /* for messages; owned */
    dr__source_facts facts; /* when it was opened */
};

/* The head of every directory handle; a def puts its own struct around it. */
struct dr__source_dir {
    const dr_source_def *def;
    char *name; /* for messages; owned.  "." where there is no directory */
};

extern const dr_source_def *const dr__source_table[]; /* NULL ends it */
extern const dr_source_def dr__source_file, dr__source_http, dr__source_https, dr__source_s3;

/* The row that a name goes to; NULL: this build has no source for its scheme. */
const dr_source_def *dr__source_def_of(const char *name);

/* Is the name one of a remote source? */
bool dr__source_is_remote(const char *name);

/* The name by which an object is known wherever the process is: the real path of a local file, a remote name as it is.
 * False: there is no such file, or the text is too long for `size`. */
bool dr__source_real_name(const char *name, char *text, size_t size);

/* Until the next call, calls of this thread that get no options of their own, and read from a remote source, use these
 * (borrowed; NULL: none, as at first): those of the data set that is being opened, while it is found out what it is.
 * What dr__source_stat is told of a remote name is then remembered.  Returns what was set before. */
const dr__source_options *dr__source_assume(const dr__source_options *options);
const dr__source_options *dr__source_assumed(void); /* never NULL */

/* The facts of a name, without a handle of its directory. */
dr_status dr__source_stat(const char *name, dr__source_facts *facts, dr_error *err);

/* Opens an object; options may be NULL.  The caller closes it, which sets the pointer to NULL. */
dr_status dr__source_open(const char *name, const dr__source_options *options, dr__source **out, dr_error *err);
dr_status dr__source_size(dr__source *source, uint64_t *size, dr_error *err);
dr_status dr__source_read_at(dr__source *source, void *buf, size_t size, uint64_t offset, size_t *got, dr_error *err);
void dr__source_close(dr__source **source);

/* Opens a directory (NULL: none, see open_dir); options may be NULL.  The caller closes it, which sets the pointer to
 * NULL.  The other calls are those of dr_source_def. */
dr_status dr__source_dir_open(const char *name, const dr__source_options *options, dr__source_dir **out, dr_error *err);
dr_status dr__source_dir_get(dr__source_dir *dir, const char *path, dr__source_target *target, size_t *size,
                             dr_error *err);
dr_status dr__source_dir_get_range(dr__source_dir *dir, const char *path, uint64_t version, uint64_t offset,
                                   size_t size, dr__source_target *target, size_t *got, dr_error *err);

/* The optional calls, also of sources without them: by facts before and after, and range by range. */
dr_status dr__source_dir_get_versioned(dr__source_dir *dir, const char *path, dr__source_target *target, size_t *size,
                                       uint64_t *version, dr_error *err);
dr_status dr__source_dir_get_ranges(dr__source_dir *dir, const char *path, uint64_t version,
                                    const dr__byte_ranges *ranges, uint8_t *to, dr_error *err);
dr_status dr__source_dir_stat(dr__source_dir *dir, const char *path, dr__source_facts *facts, dr_error *err);
dr_status dr__source_dir_list(dr__source_dir *dir, const char *path, dr__source_lister *lister, dr_error *err);
void dr__source_dir_close(dr__source_dir **dir);

/* A source over memory that the caller keeps for as long as it is open. */
dr_status dr__source_memory(const void *data, size_t size, const char *name, dr__source **out, dr_error *err);

#endif
