/* fuzz_seek.c: any bytes as packed seek points, as a note, and as an index file of them.
 *
 * The first byte says how the rest is taken: 0 packed points, 1 the file itself; else as the entries of a file with so
 * many buckets, whose checksums are made right: they would keep a fuzzer out.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "codec/image/seek_file.h"
#include "index/index_stamp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 8192 * DR__SEEK_PARTS };

static void check_points(const dr__seek_points *p)
{
    if (p->n > p->total || p->total > MOST || p->n > p->cap)
        abort();
    for (uint32_t i = 1; i < p->n; i++)
        if (p->at[i].bit <= p->at[i - 1].bit)
            abort();
}

/* What could be unpacked is packed into bytes that give the same points, in no more bytes than promised. */
static void unpack(const uint8_t *data, size_t size)
{
    dr__seek_points a = { 0 }, b = { 0 };
    if (dr__seek_unpack(&a, data, size)) {
        check_points(&a);
        if (a.n != dr__seek_packed_count(data, size))
            abort();
        uint8_t *bytes = malloc(dr__seek_pack_bound(&a));
        size_t n = dr__seek_pack(&a, bytes);
        if (n > dr__seek_pack_bound(&a) || !dr__seek_unpack(&b, bytes, n) || a.n != b.n || a.total != b.total)
            abort();
        for (uint32_t i = 0; i < a.n; i++)
            if (a.at[i].bit != b.at[i].bit || memcmp(a.at[i].dc, b.at[i].dc, sizeof a.at[i].dc))
                abort();
        free(bytes);
    }
    dr__seek_free(&a);
    dr__seek_free(&b);
}

static void unpack_note(const uint8_t *data, size_t size)
{
    dr__jpeg_note a, b;
    uint8_t bytes[DR__JPEG_NOTE_MOST];
    if (!dr__jpeg_note_unpack(&a, data, size))
        return;
    const size_t n = dr__jpeg_note_pack(&a, bytes);
    if (n > sizeof bytes || !dr__jpeg_note_unpack(&b, bytes, n) || a.when != b.when || a.version != b.version ||
        a.content.hash != b.content.hash || a.content.size != b.content.size || a.head.size != b.head.size ||
        memcmp(a.head.bytes, b.head.bytes, a.head.size) || dr__jpeg_note_when(bytes, n) != a.when)
        abort();
}

/* Every entry comes once, in order. */
static void read_file(const dr__seek_file *f)
{
    dr__seek_reader r = { .file = f };
    dr__seek_points points = { 0 };
    dr__seek_entry e;
    dr__seek_key last = { 0 };
    for (bool any = false; dr__seek_reader_next(&r, &e); any = true) {
        if (any && dr__seek_key_order(&last, &e.key) >= 0)
            abort();
        last = e.key;
        if (dr__seek_file_find(f, &last, &points))
            check_points(&points);
    }
    dr__seek_file_find(f, &(dr__seek_key){ UINT64_MAX, 1 }, &points);
    dr__seek_free(&points);
    dr__seek_reader_free(&r);
}

static void open_bytes(const void *data, size_t size)
{
    char path[64];
    int fd = memfd_create("seek", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd < 0 || !dr__write_all(fd, data, size) || fchmod(fd, 0600) || !dr__index_stamp(fd))
        abort();
    dr__seek_file *f = dr__seek_file_open(path);
    if (f)
        read_file(f);
    dr__seek_file_close(&f);
    close(fd);
}

/* The bytes as equal buckets, each with its checksum, behind a directory with its own. */
static void put_together(const uint8_t *data, size_t size, uint32_t n_buckets)
{
    dr__section file = { 0 };
    size_t part = size / n_buckets;
    dr__put_bytes(&file, "DRSEK\r\n\x1a", 8);
    dr__put_u32(&file, 1);
    dr__put_u32(&file, n_buckets);
    dr__put_u64(&file, 1);
    for (uint32_t i = 0; i < n_buckets; i++)
        dr__put_u32(&file, (uint32_t)part + 8);
    dr__put_u64(&file, XXH3_64bits(file.data, file.size));
    for (uint32_t i = 0; i < n_buckets; i++) {
        dr__put_u64(&file, XXH3_64bits(data + i * part, part));
        dr__put_bytes(&file, data + i * part, part);
    }
    if (!file.failed)
        open_bytes(file.data, file.size);
    dr__free(file.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    unpack_note(data, size);
    if (data[0] == 0)
        unpack(data + 1, size - 1);
    else if (data[0] == 1)
        open_bytes(data + 1, size - 1);
    else
        put_together(data + 1, size - 1, data[0] - 1u);
    return 0;
}
