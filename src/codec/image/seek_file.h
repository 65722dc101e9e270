/* seek_file.h: the index file that packed seek points are kept in.
 *
 *   "DRSEK\r\n\x1a"  u32 version  u32 n_buckets  u64 n_images (without notes)
 *   n_buckets times: u32 length of the bucket
 *   u64 xxh3 of everything before
 *   the buckets: u64 xxh3 of the rest of it, then entries: u64 hash  u32 size  u32 length  packed points, or a note
 *   u64 stamp (index/index_stamp.h)
 *
 * Little-endian.  An image with hash h is in bucket h * n_buckets / 2^64, so that all entries of a file are in the
 * order of their hashes and two files are merged in one pass.  Buckets have about a kilobyte: only their places are
 * held in memory, and a lookup reads one of them.  A bucket that is damaged or cut off has no entries.
 */
#ifndef DR_CODEC_SEEK_FILE_H
#define DR_CODEC_SEEK_FILE_H

#include "codec/image/seek_store.h"
#include "index/index_file.h"

/* An image with its packed points, or a name with its note; borrowed. */
typedef struct dr__seek_entry {
    dr__seek_key key;
    const uint8_t *packed;
    size_t size;
} dr__seek_entry;

/* An open file.  It is never written to: a newer one takes its name, and this one can be read until it is closed. */
typedef struct dr__seek_file {
    int fd;
    uint64_t device, inode;
    uint64_t n_images, bytes;
    uint32_t n_buckets;
    uint64_t *starts; /* n_buckets + 1 offsets */
    int users;        /* of the caller: threads that are reading it */
} dr__seek_file;

/* NULL: there is none, it is not trusted (index/index_stamp.h), or it is no file of this format. */
dr__seek_file *dr__seek_file_open(const char *path);
void dr__seek_file_close(dr__seek_file **file);

size_t dr__seek_file_memory(const dr__seek_file *file);

/* Unpacks an entry into `to`, while it is borrowed.  False: it is none of the kind. */
typedef bool dr__seek_unpacker(void *to, const uint8_t *packed, size_t size);

dr__seek_unpacker dr__seek_unpack_points; /* to dr__seek_points */

/* Unpacks the points of an image; false, with points cleared: not in it.  And any entry. */
bool dr__seek_file_find(const dr__seek_file *file, const dr__seek_key *key, dr__seek_points *points);
bool dr__seek_file_get(const dr__seek_file *file, const dr__seek_key *key, dr__seek_unpacker *unpack, void *to);

/* Notes have the name as their hash and no size: files of images are never empty. */
static inline bool dr__seek_is_note(const dr__seek_key *key)
{
    return key->size == 0;
}

/* Of two entries with one key, that with the higher rank is kept: more points, a later note. */
uint32_t dr__seek_rank(const dr__seek_entry *entry);

/* < 0, 0, > 0: the order of entries in a file. */
int dr__seek_key_order(const dr__seek_key *a, const dr__seek_key *b);

/* --- all entries of a file, in order.  Zeros but for the file are a reader at its start. --- */

typedef struct dr__seek_reader {
    const dr__seek_file *file; /* NULL: no entries */
    uint32_t bucket;           /* the next one to look into */
    uint32_t loaded_end;       /* buckets below are in `block` */
    uint64_t block_start;      /* offset of the block in the file */
    uint8_t *block;
    size_t block_cap, block_size;
    dr_cursor left; /* of the bucket at hand */
    dr__seek_key last;
    bool any;
} dr__seek_reader;

/* False: no more of them.  The entry is borrowed until the next call. */
bool dr__seek_reader_next(dr__seek_reader *reader, dr__seek_entry *entry);
void dr__seek_reader_free(dr__seek_reader *reader);

/* --- a new file, entries in order --- */

typedef struct dr__seek_writer {
    int fd;
    uint32_t n_buckets, bucket; /* bucket: the one being filled */
    uint64_t n_images;
    uint32_t *lengths;
    dr__section filling; /* entries of that bucket */
    dr__section out;     /* bytes to be written next */
    bool failed;
} dr__seek_writer;

/* `expected_bytes` of entries decide how many buckets there are. */
void dr__seek_writer_open(dr__seek_writer *writer, int fd, uint64_t expected_bytes);
void dr__seek_writer_add(dr__seek_writer *writer, const dr__seek_entry *entry);

/* The last bucket and the directory; false: the file is not whole.  Frees what the writer has. */
bool dr__seek_writer_close(dr__seek_writer *writer);

#endif
