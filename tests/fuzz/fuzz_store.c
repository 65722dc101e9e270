/* fuzz_store.c: any bytes as a data file of stored samples.
 *
 * The first byte says how the rest is taken: 0 the head of a record, 1 compressed bytes; else as the records of a file,
 * from 3 on with the checksum of the first one's head made right: it would keep a fuzzer out.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include "codec/bytes/byte_codec.h"
#include "data/desc.h"
#include "index/index_file.h"
#include "store/data_file.h"
#include "store/codec_manager.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1 << 20 };

/* Whatever was believed: every field lies inside the sample, and the sample is no larger than its bytes can make. */
static void check(const dr_stored *s)
{
    if (s->n_fields < 0 || s->n_fields > DR_STORE_FIELDS || s->bytes / 255 > s->payload_bytes)
        abort();
    for (int i = 0; i < s->n_fields; i++) {
        size_t bytes;
        if (!dr__desc_bytes_dense(&s->fields[i], &bytes) || s->at[i] % DR__DATA_ALIGN || s->at[i] > s->bytes ||
            bytes > s->bytes - s->at[i])
            abort();
    }
}

static void parse(const uint8_t *data, size_t size)
{
    dr_stored s;
    size_t length;
    if (!dr__data_parse_head(data, size, &s, &length))
        return;
    if (length > size)
        abort();
    check(&s);
}

static void unpack(const uint8_t *data, size_t size)
{
    static uint8_t out[4096];
    for (const dr_byte_codec *const *c = dr__byte_codecs; *c; c++)
        (*c)->decode(data, size, out, size % sizeof out);
}

static void make_right(uint8_t *record, size_t size)
{
    uint32_t length;
    if (size < 8)
        return;
    memcpy(&length, record + 4, sizeof length);
    if (length < 16 || length > size)
        return;
    uint64_t sum = XXH3_64bits(record, length - 8);
    memcpy(record + length - 8, &sum, sizeof sum);
}

/* Record after record, forwards, each inside the file. */
static void walk(dr__data_file *f, uint64_t end)
{
    dr_stored s;
    uint64_t next, at = DR__DATA_HEAD;
    while (dr__data_read_head(f, at, &s, &next)) {
        if (next <= at || next > end || s.payload_at < at || s.payload_at + s.payload_bytes > next)
            abort();
        check(&s);
        at = next;
    }
}

static void read_file(const uint8_t *data, size_t size, bool right)
{
    dr_store_key identity = { 1, 2 };
    dr__data_file made, opened;
    char path[64], name[64];
    snprintf(name, sizeof name, "/tmp/drapps-fuzz-%ld", (long)getpid());
    if (!dr__data_create(AT_FDCWD, name, &identity, &made))
        return;
    unlink(name);
    uint8_t *copy = malloc(size + 1);
    memcpy(copy, data, size);
    if (right)
        make_right(copy, size);
    if (!dr__write_all(made.fd, copy, size))
        abort();
    free(copy);
    snprintf(path, sizeof path, "/proc/self/fd/%d", made.fd);
    if (!dr__data_open(AT_FDCWD, path, &identity, &opened))
        abort();
    walk(&opened, DR__DATA_HEAD + size);
    dr__data_close(&opened);
    dr__data_close(&made);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size || size > MOST)
        return 0;
    if (data[0] == 0)
        parse(data + 1, size - 1);
    else if (data[0] == 1)
        unpack(data + 1, size - 1);
    else
        read_file(data + 1, size - 1, data[0] > 2);
    return 0;
}
