/* seek_file.c: reading index files of seek points. */
#include "codec/image/seek_file.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "codec/image/seek_layout.h"
#include "index/index_stamp.h"
#include "source/file.h"

enum { BLOCK = 1 << 20, ON_STACK = 4096 };

int dr__seek_key_order(const dr__seek_key *a, const dr__seek_key *b)
{
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return a->size < b->size ? -1 : a->size > b->size;
}

/* --- opening --- */

static bool read_exactly(int fd, void *data, size_t size, uint64_t offset)
{
    size_t got;
    return !dr__file_pread(fd, data, size, offset, &got) && got == size;
}

/* Turns the lengths of the buckets into places. */
static bool place_buckets(dr__seek_file *f, dr_cursor *c)
{
    uint64_t at = dr__seek_buckets_start(f->n_buckets);
    uint32_t length;
    for (uint32_t i = 0; i < f->n_buckets; i++) {
        if (dr__cursor_u32(c, &length, NULL) != DR_OK)
            return false;
        f->starts[i] = at;
        at += length;
    }
    f->starts[f->n_buckets] = at;
    return true;
}

static bool read_directory(dr__seek_file *f, uint8_t *head, size_t size)
{
    dr_cursor c = dr__cursor(head + DR__SEEK_HEAD_BYTES, size - DR__SEEK_HEAD_BYTES, "seek index");
    dr_cursor end = dr__cursor(head + size - 8, 8, "seek index");
    uint64_t sum;
    return read_exactly(f->fd, head, size, 0) && dr__cursor_u64(&end, &sum, NULL) == DR_OK &&
           sum == XXH3_64bits(head, size - 8) && place_buckets(f, &c);
}

static bool load_directory(dr__seek_file *f)
{
    uint64_t size = dr__seek_buckets_start(f->n_buckets);
    if (size > f->bytes) /* before anything is allocated for it */
        return false;
    uint8_t *head = dr__alloc(size);
    f->starts = dr__alloc_zero((size_t)f->n_buckets + 1, sizeof *f->starts);
    bool good = head && f->starts && read_directory(f, head, size);
    dr__free(head);
    return good;
}

static bool load_head(dr__seek_file *f)
{
    uint8_t head[DR__SEEK_HEAD_BYTES];
    uint32_t version;
    if (!read_exactly(f->fd, head, sizeof head, 0) || memcmp(head, dr__seek_magic, sizeof dr__seek_magic))
        return false;
    dr_cursor c = dr__cursor(head + sizeof dr__seek_magic, sizeof head - sizeof dr__seek_magic, "seek index");
    return dr__cursor_u32(&c, &version, NULL) == DR_OK && version == DR__SEEK_VERSION &&
           dr__cursor_u32(&c, &f->n_buckets, NULL) == DR_OK && f->n_buckets &&
           dr__cursor_u64(&c, &f->n_images, NULL) == DR_OK && load_directory(f);
}

dr__seek_file *dr__seek_file_open(const char *path)
{
    struct stat st;
    uint64_t bytes;
    int fd = dr__index_open(path, &st, &bytes);
    if (fd < 0)
        return NULL;
    dr__seek_file *f = dr__alloc_zero(1, sizeof *f);
    if (!f) {
        close(fd);
        return NULL;
    }
    f->fd = fd;
    f->device = (uint64_t)st.st_dev;
    f->inode = (uint64_t)st.st_ino;
    f->bytes = bytes;
    if (!load_head(f))
        dr__seek_file_close(&f);
    return f;
}

void dr__seek_file_close(dr__seek_file **file)
{
    if (!*file)
        return;
    close((*file)->fd);
    dr__free((*file)->starts);
    dr__free(*file);
    *file = NULL;
}

size_t dr__seek_file_memory(const dr__seek_file *f)
{
    return sizeof *f + ((size_t)f->n_buckets + 1) * sizeof *f->starts;
}

/* --- buckets --- */

/* The entries of a bucket that is whole; none, if it is not. */
static dr_cursor bucket_entries(const uint8_t *bucket, size_t size)
{
    dr_cursor c = dr__cursor(bucket, size, "seek index");
    uint64_t sum;
    if (dr__cursor_u64(&c, &sum, NULL) != DR_OK || sum != XXH3_64bits(c.at, dr__cursor_left(&c)))
        return dr__cursor(bucket, 0, "seek index");
    return c;
}

static bool next_entry(dr_cursor *c, dr__seek_entry *e)
{
    uint32_t size, length;
    if (!dr__cursor_left(c) || dr__cursor_u64(c, &e->key.hash, NULL) != DR_OK ||
        dr__cursor_u32(c, &size, NULL) != DR_OK || dr__cursor_u32(c, &length, NULL) != DR_OK ||
        dr__cursor_bytes(c, length, &e->packed, NULL) != DR_OK)
        return false;
    e->key.size = size;
    e->size = length;
    return true;
}

static bool find_in(const uint8_t *bucket, size_t size, const dr__seek_key *key, dr__seek_unpacker *unpack, void *to)
{
    dr_cursor c = bucket_entries(bucket, size);
    dr__seek_entry e;
    while (next_entry(&c, &e))
        if (!dr__seek_key_order(&e.key, key))
            return unpack(to, e.packed, e.size);
    return false;
}

bool dr__seek_unpack_points(void *to, const uint8_t *packed, size_t size)
{
    return dr__seek_unpack(to, packed, size);
}

uint32_t dr__seek_rank(const dr__seek_entry *e)
{
    return dr__seek_is_note(&e->key) ? dr__jpeg_note_when(e->packed, e->size)
                                     : dr__seek_packed_count(e->packed, e->size);
}

bool dr__seek_file_find(const dr__seek_file *f, const dr__seek_key *key, dr__seek_points *points)
{
    dr__seek_clear(points);
    return dr__seek_file_get(f, key, dr__seek_unpack_points, points);
}

bool dr__seek_file_get(const dr__seek_file *f, const dr__seek_key *key, dr__seek_unpacker *unpack, void *to)
{
    uint8_t small[ON_STACK], *large = NULL;
    uint32_t b = dr__seek_bucket_of(key->hash, f->n_buckets);
    uint64_t at = f->starts[b], size = f->starts[b + 1] - at;
    if (at > f->bytes || size > f->bytes - at) /* cut off; and no length in the file makes us ask for more memory */
        return false;
    if (size > sizeof small && !(large = dr__alloc(size)))
        return false;
    uint8_t *bucket = large ? large : small;
    bool found = read_exactly(f->fd, bucket, size, at) && find_in(bucket, size, key, unpack, to);
    dr__free(large);
    return found;
}

/* --- reader --- */

/* Reads as many buckets as fit into a block, one at least. */
static bool load_block(dr__seek_reader *r)
{
    const uint64_t *starts = r->file->starts;
    uint32_t end = r->bucket + 1;
    while (end < r->file->n_buckets && starts[end + 1] - starts[r->bucket] <= BLOCK)
        end++;
    uint64_t size = starts[end] - starts[r->bucket], at = starts[r->bucket];
    if (at > r->file->bytes || size > r->file->bytes)
        return false;
    uint8_t *block = dr__grow(r->block, &r->block_cap, size ? size : 1, 1);
    if (!block)
        return false;
    r->block = block;
    r->block_start = at;
    r->loaded_end = end;
    return !dr__file_pread(r->file->fd, block, size, at, &r->block_size);
}

static bool next_bucket(dr__seek_reader *r)
{
    if (!r->file || r->bucket >= r->file->n_buckets || (r->bucket >= r->loaded_end && !load_block(r)))
        return false;
    uint64_t at = r->file->starts[r->bucket] - r->block_start, end = r->file->starts[r->bucket + 1] - r->block_start;
    r->bucket++;
    r->left = end <= r->block_size ? bucket_entries(r->block + at, end - at) : dr__cursor(r->block, 0, "seek index");
    return true;
}

bool dr__seek_reader_next(dr__seek_reader *r, dr__seek_entry *e)
{
    for (;;) {
        while (next_entry(&r->left, e)) {
            if (r->any && dr__seek_key_order(&e->key, &r->last) <= 0)
                continue; /* out of order: not written by this library; merging relies on the order */
            r->last = e->key;
            r->any = true;
            return true;
        }
        if (!next_bucket(r))
            return false;
    }
}

void dr__seek_reader_free(dr__seek_reader *r)
{
    dr__free(r->block);
    *r = (dr__seek_reader){ 0 };
}
