/* seek_write.c: writing index files of seek points, entry by entry.
 *
 * The directory stands before the buckets but is known after them: its place is left free and filled at the end.
 */
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "codec/image/seek_file.h"
#include "codec/image/seek_layout.h"

enum { BUCKET = 1024, OUT = 1 << 18, MOST_BUCKETS = 1 << 24 };

void dr__seek_writer_open(dr__seek_writer *w, int fd, uint64_t expected_bytes)
{
    uint64_t n = DR_MAX(expected_bytes / BUCKET, 1);
    *w = (dr__seek_writer){ .fd = fd, .n_buckets = (uint32_t)DR_MIN(n, MOST_BUCKETS) };
    w->lengths = dr__alloc_zero(w->n_buckets, sizeof *w->lengths);
    w->failed = !w->lengths || lseek(fd, (off_t)dr__seek_buckets_start(w->n_buckets), SEEK_SET) < 0;
}

static void flush_out(dr__seek_writer *w)
{
    w->failed |= w->out.failed || !dr__write_all(w->fd, w->out.data, w->out.size);
    w->out.size = 0;
}

static void end_bucket(dr__seek_writer *w)
{
    if (!w->failed && w->filling.size) {
        dr__put_u64(&w->out, XXH3_64bits(w->filling.data, w->filling.size));
        dr__put_bytes(&w->out, w->filling.data, w->filling.size);
        w->lengths[w->bucket] = (uint32_t)w->filling.size + 8;
        w->failed |= w->filling.failed || w->filling.size > UINT32_MAX - 8;
        w->filling.size = 0;
    }
    if (w->out.size >= OUT)
        flush_out(w);
}

void dr__seek_writer_add(dr__seek_writer *w, const dr__seek_entry *e)
{
    uint32_t bucket = dr__seek_bucket_of(e->key.hash, w->n_buckets);
    if (bucket != w->bucket)
        end_bucket(w);
    w->bucket = bucket;
    dr__put_u64(&w->filling, e->key.hash);
    dr__put_u32(&w->filling, (uint32_t)e->key.size);
    dr__put_u32(&w->filling, (uint32_t)e->size);
    dr__put_bytes(&w->filling, e->packed, e->size);
    w->n_images += !dr__seek_is_note(&e->key);
}

static void write_directory(dr__seek_writer *w)
{
    dr__section head = { 0 };
    dr__put_bytes(&head, dr__seek_magic, sizeof dr__seek_magic);
    dr__put_u32(&head, DR__SEEK_VERSION);
    dr__put_u32(&head, w->n_buckets);
    dr__put_u64(&head, w->n_images);
    for (uint32_t i = 0; i < w->n_buckets; i++)
        dr__put_u32(&head, w->lengths[i]);
    if (!head.failed)
        dr__put_u64(&head, XXH3_64bits(head.data, head.size));
    w->failed |= head.failed || lseek(w->fd, 0, SEEK_SET) < 0 || !dr__write_all(w->fd, head.data, head.size);
    dr__free(head.data);
}

bool dr__seek_writer_close(dr__seek_writer *w)
{
    end_bucket(w);
    flush_out(w);
    if (!w->failed)
        write_directory(w);
    bool good = !w->failed;
    dr__free(w->lengths);
    dr__free(w->filling.data);
    dr__free(w->out.data);
    *w = (dr__seek_writer){ .fd = -1 };
    return good;
}
