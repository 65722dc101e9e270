/* dataset_internal.h: an ordered collection of samples and how to read one.
 *
 * A format is one file that ends in a `const dr_format_def`, and one row in format_table.c.  It opens a path as a
 * dataset and reads its bytes through a source (source/source.h).  A dataset is immutable once open and may be read by
 * many threads at once; the state of reading is in the caller's dr__record.
 *
 * Memory per sample stays under 100 bytes: names are kept in one block, not one allocation each.
 */
#ifndef DR_FORMAT_DATASET_INTERNAL_H
#define DR_FORMAT_DATASET_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drapps/data.h>
#include <drapps/dataset.h>

#include "base/error.h"
#include "codec/image/jpeg_note.h"
#include "source/source.h"

enum { DR__MAX_FIELDS = 1024, DR__FIELD_NAME = 64 };

/* A field that every sample of a dataset has: its name and what is known of its shape beforehand. */
typedef struct dr__field {
    char name[DR__FIELD_NAME];
    dr_desc desc;
} dr__field;

/* Asked while a sample is read, by formats that can read ranges of its image.  Callers put their own struct around it.
 * See dr__ranged. */
typedef struct dr__ranger {
    /* Bytes that are to stand for those of the image by this name, *size of them, borrowed until the next call.  NULL:
     * read them all. */
    const uint8_t *(*stand_in)(struct dr__ranger *ranger, uint64_t name, size_t *size);
} dr__ranger;

/* What a format says of the field "image" of a sample that was read with a ranger. */
typedef struct dr__ranged {
    const struct dr_dataset *set; /* whose read_ranges to call; NULL: it cannot read ranges of this sample */
    uint64_t id;                  /* in that set */
    const void *data;             /* tells the field: that of its view */
    uint64_t name;                /* a hash: of what leads to the bytes, or of the bytes */
    uint64_t version;             /* of the bytes read; 0: the name says it all, or it is not known */
    bool known;                   /* name and version together say what the bytes are */
    bool by_content;              /* the name is that of `content` */
    bool remote;                  /* bytes cross a network */
    bool wanted, noted;           /* of the ranger's owner: to be noted; its note is up to date */
    uint64_t gap;                 /* bytes between two ranges that are read together; 0: by `remote` */
    bool stood_in;                /* the field has the ranger's bytes, and none of the image's were read */
    dr__seek_key content;         /* by_content */
} dr__ranged;

/* Ranges of an image in place of all of it. */
typedef struct dr__record_part {
    bool on;       /* false: all fields are whole */
    int field;     /* whose view has the head of a JPEG */
    uint64_t size; /* bytes that the field stands for */
    uint64_t scan; /* as in dr__jpeg_partial */
    int orientation;
    dr__seek_key content; /* by which its seek points are found */
    int n;
    dr__byte_piece *pieces; /* n of them, at the beginning of `bytes`, which has their data, too */
    uint8_t *bytes;         /* owned */
    size_t bytes_cap;
} dr__record_part;

/* What tells of a sample, without reading it, that it has changed. */
typedef struct dr__stamp {
    uint64_t version;  /* of names and dr__source_facts.version: tells it from any other sample, too */
    uint64_t modified; /* of sizes and times of modification: a copy that kept its times has the same.  Of a remote
                          object: as version.  0: not known */
} dr__stamp;

/* One sample as read: the values of the dataset's fields, in their order.  Owned by a worker and reused: memory grows
 * to what large samples need and stays warm.  A value borrows from the record or from the dataset, and is valid
 * until the record's next read. */
typedef struct dr__record {
    int n_fields;
    dr_view *fields; /* room for fields_cap of them; owned */
    size_t fields_cap;
    dr_view *reordered; /* room for as many, or NULL: where data sets made of others put them in order; owned */
    size_t reordered_cap;
    uint8_t *block; /* memory for what was read; 64-byte aligned, with 64 zero bytes after the used part */
    size_t block_cap, block_used;
    unsigned n_small;   /* see dr__should_shrink */
    size_t max_bytes;   /* of what is read of one sample; 0: 4 GiB, which is the most in any case */
    dr__ranger *ranger; /* NULL: fields are read whole */
    dr__ranged ranged;  /* of the last read with a ranger */
    dr__record_part part;
} dr__record;

void dr__record_init(dr__record *record);
void dr__record_swap(dr__record *a, dr__record *b);
void dr__record_free(dr__record *record);

/* Memory that it holds. */
static inline size_t dr__record_memory(const dr__record *record)
{
    return record->block_cap + record->part.bytes_cap;
}

/* For formats, where the field "image" is to be read: the bytes that stand for it, or NULL: read it whole.  Notes the
 * name for dr__record_ranged, which says where the image then is. */
const uint8_t *dr__record_stand_in(dr__record *record, uint64_t name, size_t *size);
void dr__record_ranged(dr__record *record, const struct dr_dataset *set, uint64_t id, const void *data);

/* Memory for ranges, which become the pieces of the record's part; the data of all, one behind the other, goes to where
 * the result points.  NULL: out of memory. */
uint8_t *dr__record_take_ranges(dr__record *record, const dr__byte_ranges *ranges);

/* Empties the record and makes room for values of `total` bytes together.  Values are aligned and padded: with more
 * than DR__RECORD_VALUES of them, add dr__record_overhead to the total. */
dr_status dr__record_reset(dr__record *record, size_t total, dr_error *err);

/* Takes `size` bytes of that room (and 64 zeroed ones after them), 64-byte aligned, valid until the next
 * dr__record_reset.  NULL: there is not so much left. */
void *dr__record_take(dr__record *record, size_t size);

enum { DR__RECORD_ALIGN = 64, DR__RECORD_TAIL = 64, DR__RECORD_VALUES = 32, DR__RECORD_FILES = 8 };

static inline size_t dr__record_overhead(size_t n_values)
{
    return n_values > DR__RECORD_VALUES ? (n_values - DR__RECORD_VALUES) * (DR__RECORD_ALIGN + DR__RECORD_TAIL) : 0;
}

/* Makes room for n fields; false: out of memory. */
bool dr__record_reserve_fields(dr__record *record, int n);

/* Empties the record and reads a whole file into it, `path` below `dir`; `extra` more bytes may be taken after it. With
 * a ranger the file may be stood in for: it is the image. */
dr_status dr__record_read_file(dr__record *record, dr__source_dir *dir, const char *path, size_t extra, void **data,
                               size_t *size, dr_error *err);

/* The same for n files, one after the other, of which the first is the image; data and sizes have n entries, at most
 * DR__RECORD_FILES. */
dr_status dr__record_read_files(dr__record *record, dr__source_dir *dir, const char *const *paths, int n, size_t extra,
                                void **data, size_t *sizes, dr_error *err);

/* The stamp of such a file, the version with its path.  DR_ERR_UNSUPPORTED where the version is not known. */
dr_status dr__stamp_file(dr__source_dir *dir, const char *path, dr__stamp *out, dr_error *err);

/* A hash of all values: their extents and bytes. */
uint64_t dr__record_hash(const dr__record *record);

/* Adds the next field: any view; a view of bytes or text that lie in the record or the dataset; a copy of a text; a
 * number.  The copies come from room that was reserved. */
dr_status dr__record_view(dr__record *record, const dr_view *view, dr_error *err);
dr_status dr__record_bytes(dr__record *record, dr_kind kind, const void *data, size_t size, dr_error *err);
dr_status dr__record_text(dr__record *record, const char *text, size_t size, dr_error *err);
dr_status dr__record_i64(dr__record *record, int64_t value, dr_error *err);

/* Which sample stands at a virtual place, for data sets that repeat or mix. */
typedef struct dr__sample_ref {
    uint64_t id;         /* 0 .. n_samples - 1: names the sample for read, key and randomness */
    uint32_t occurrence; /* 0 for its first time in the epoch */
} dr__sample_ref;

/* Where the value of a field is, told without reading it. */
typedef enum dr__where_form {
    DR__WHERE_UNKNOWN, /* only reading tells */
    DR__WHERE_NUMBER,  /* `number`, an int64 scalar */
    DR__WHERE_KEY,     /* it is the sample's key */
    DR__WHERE_RANGE,   /* bytes of a file, as they are there */
} dr__where_form;

#define DR__WHOLE_FILE UINT64_MAX
enum { DR__WHERE_PATH = 8192 };

typedef struct dr__where {
    dr__where_form form;
    int64_t number;
    uint64_t offset, size;     /* of a range; size DR__WHOLE_FILE: whatever the file has */
    char path[DR__WHERE_PATH]; /* of its file: absolute, or relative to the set's folder (of a list: to its root) */
} dr__where;

typedef struct dr_dataset_def {
    /* Reads sample `id` into record: all fields, in order.  Errors name the file or member. */
    dr_status (*read)(const dr_dataset *set, uint64_t id, dr__record *record, dr_error *err);

    /* The sample's key (path relative to the root, tar key, line): into text, cut to size, always terminated. */
    void (*key)(const dr_dataset *set, uint64_t id, char *text, size_t size);

    /* Optional: tells the sample from itself after a change, without reading it.  DR_ERR_UNSUPPORTED, as without it:
     * only its bytes tell. */
    dr_status (*stamp)(const dr_dataset *set, uint64_t id, dr__stamp *out, dr_error *err);

    /* Optional: some ranges of the image's bytes, one behind the other, to `to`; id and version are those of
     * dr__ranged. DR_ERR_STATE where there is another version now. */
    dr_status (*read_ranges)(const dr_dataset *set, uint64_t id, uint64_t version, const dr__byte_ranges *ranges,
                             uint8_t *to, dr_error *err);

    /* Optional: the name of the file that a field's bytes come from, relative to the root where they have one.
     * DR_ERR_NOT_FOUND: from none. */
    dr_status (*file)(const dr_dataset *set, uint64_t id, int field, char *text, size_t size, dr_error *err);

    /* Optional: fills *out, which begins as zeros.  Default: unknown. */
    void (*where)(const dr_dataset *set, uint64_t id, int field, dr__where *out);

    /* Optional: place 0 .. n_places - 1 of an epoch to a sample.  Default: place i is sample i. */
    dr__sample_ref (*place)(const dr_dataset *set, uint64_t seed, uint64_t epoch, uint64_t place);

    /* `place` depends on neither seed nor epoch: the same samples in every epoch.  The replacement of a bad sample is
     * then one of these, too. */
    bool fixed_places;

    /* Optional: the data set that this one is a selection of, whose ids are its own. */
    const dr_dataset *(*selected_from)(const dr_dataset *set);

    void (*close)(dr_dataset *set);
} dr_dataset_def;

/* The head of every dataset; formats put their own struct around it. */
struct dr_dataset {
    const dr_dataset_def *def;
    const char *format;  /* name of the format, static */
    char *name;          /* path or description, for messages; owned */
    uint64_t n_samples;  /* distinct samples */
    uint64_t n_places;   /* places of an epoch; = n_samples but for mixtures, subsets and what is made of these */
    uint32_t most_times; /* that a sample can stand in an epoch, where places are fixed; mostly 1 */
    int n_fields;
    dr__field *fields; /* owned */
    size_t fields_cap;
    char **classes; /* label names, label i = classes[i]; NULL without; owned */
    size_t n_classes;
    uint64_t fingerprint; /* xxh3 of what identifies the content: names, sizes, labels, and which of it is taken */
    uint64_t content;     /* likewise, whichever samples are taken: ids mean the same; 0: the fingerprint */
    char *keep_beside;    /* path of the seek index beside the data; NULL: none there; owned */
    char *keep_identity;  /* identity of the seek index in the cache folder; NULL: no index is kept; owned */
    long read_delay_us;   /* for experiments: see dr__dataset_read */
    atomic_int refs;
};

/* Reads sample `id` into record by def->read.  For experiments with slow storage it first sleeps for as many
 * microseconds as the environment variable DRAPPS_READ_DELAY_US had when the set was opened (up to a minute). */
dr_status dr__dataset_read(const dr_dataset *set, uint64_t id, dr__record *record, dr_error *err);

/* def->read_ranges of the set that says so in `ranged`. */
dr_status dr__dataset_read_ranges(const dr__ranged *ranged, uint64_t version, const dr__byte_ranges *ranges,
                                  uint8_t *to, dr_error *err);

/* The sample at a place, whether the set has a `place` or not. */
dr__sample_ref dr__dataset_place(const dr_dataset *set, uint64_t seed, uint64_t epoch, uint64_t place);

/* def->stamp; DR_ERR_UNSUPPORTED where there is none. */
dr_status dr__dataset_stamp(const dr_dataset *set, uint64_t id, dr__stamp *out, dr_error *err);

/* def->file; DR_ERR_NOT_FOUND where there is none; DR_ERR_LIMIT where the name is longer than size. */
dr_status dr__dataset_file(const dr_dataset *set, uint64_t id, int field, char *text, size_t size, dr_error *err);

/* def->where; unknown where there is none. */
void dr__dataset_where(const dr_dataset *set, uint64_t id, int field, dr__where *out);

/* For def->file of a format: it is this path; and: the field comes from no file. */
dr_status dr__dataset_file_is(const dr_dataset *set, const char *path, char *text, size_t size, dr_error *err);
dr_status dr__dataset_no_file(const dr_dataset *set, int field, dr_error *err);

/* The data set that reads the samples of a selection, by the same ids; the set itself where it is none. */
const dr_dataset *dr__dataset_root(const dr_dataset *set);

/* Identifies the content behind the ids, whichever samples are selected. */
uint64_t dr__dataset_content(const dr_dataset *set);

typedef struct dr_format_def {
    const char *name;
    const char *summary;
    const char *uses; /* what the path must be, for people: "a folder with one folder per class" */

    /* Optional: does the path look like this format?  0 no; higher wins. */
    int (*probe)(const char *path);

    dr_status (*open)(const char *path, const dr_read_options *options, dr_dataset **out, dr_error *err);
} dr_format_def;

extern const dr_format_def *const dr__format_table[]; /* NULL ends it */
extern const dr_format_def dr__format_drapps, dr__format_flat, dr__format_folder, dr__format_list, dr__format_tar;

/* The format that a path looks like; NULL: none. */
const dr_format_def *dr__format_probe(const char *path);

/* For formats: a cleared struct of `size` bytes that begins with a dr_dataset, with one reference.  From here on
 * dr_dataset_unref frees it, whatever of it has been filled; def->close must be content with zeros. */
dr_status dr__dataset_new(size_t size, const dr_dataset_def *def, const char *format, const char *name,
                          dr_dataset **out, dr_error *err);

/* Adds a field; an error when the name is taken or too long, or there are too many. */
dr_status dr__dataset_add_field(dr_dataset *set, const char *name, const dr_desc *desc, dr_error *err);

/* Copies the fields of another set to one that has none yet. */
dr_status dr__dataset_copy_fields(dr_dataset *set, const dr_dataset *from, dr_error *err);

/* Takes copies of the class names, in their order. */
dr_status dr__dataset_set_classes(dr_dataset *set, const char *const *names, size_t n, dr_error *err);

/* The classes of another set, if it has any. */
dr_status dr__dataset_copy_classes(dr_dataset *set, const dr_dataset *from, dr_error *err);

/* Sets keep_beside (path + ending; none where ending is NULL) and keep_identity, if the data lies at a path. */
void dr__dataset_keep(dr_dataset *set, const char *path, const char *ending);

/* The index of a field, or -1. */
int dr__dataset_find_field(const dr_dataset *set, const char *name);

/* How the sources of a data set are reached. */
static inline dr__source_options dr__source_options_of(const dr_read_options *options)
{
    return (dr__source_options){ .timeout_ns = (uint64_t)(options->timeout_s * 1e9),
                                 .credentials = options->credentials };
}

/* The extensions to look for: the caller's, or those that torchvision's ImageFolder takes.  NULL-ended. */
const char *const *dr__extensions(const dr_read_options *options);

/* Does a file name end with one of them, whatever the case? */
bool dr__has_extension(const char *name, size_t len, const char *const *extensions);

/* ".jpg, .jpeg, .png", for messages; returns text. */
const char *dr__extensions_text(const char *const *extensions, char *text, size_t size);

#endif
