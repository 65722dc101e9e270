/* fuzz_index.c: any bytes as an index file, of a listing, of a shard and of a set on a server.
 *
 * Checksums would keep a fuzzer out, so the input is taken apart into sections (u8 id, u16 length, bytes) and put
 * together as a right file; inputs that begin with 0xFF are taken as the file itself.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "index/index_file.h"
#include "format/listing.h"
#include "format/remote_index.h"
#include "format/tar_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TAR_SIZE = 10240 };

/* What was believed leads to no path outside of the set. */
static void read_remote(const void *data, size_t size)
{
    dr__remote_index x;
    if (dr__remote_index_decode(data, size, &x, NULL) != DR_OK)
        return;
    for (int f = 0; f < x.n_fields; f++)
        for (size_t i = 0; x.values[f].form == DR__WHERE_RANGE && i < x.n_samples; i++) {
            const size_t at = x.values[f].by_key ? i : x.values[f].paths[i];
            if (!dr__remote_path_is_plain(dr__names_get(x.values[f].by_key ? &x.keys : &x.paths, at)))
                abort();
        }
    dr__remote_index_free(&x);
}

static void read_all(const void *data, size_t size)
{
    read_remote(data, size);
    dr__listing listing = { .by_class = true };
    dr__tar_index index;
    dr_error err;
    if (dr__listing_decode(data, size, "w", &listing, &err) == DR_OK && listing.files.n) {
        char path[64];
        dr__listing_path(&listing, listing.files.n - 1, path, sizeof path);
        dr__free(dr__listing_classes(&listing));
    }
    dr__listing_free(&listing);
    if (dr__tar_index_decode(data, size, "w", TAR_SIZE, 0, &index, &err) == DR_OK) {
        for (size_t s = 0; s < index.keys.n; s++)
            if (index.samples[s].header > TAR_SIZE || index.samples[s].first > index.n_parts)
                abort();
        if (index.sums && (index.origins.n != index.keys.n || !index.raw_sizes))
            abort();
        dr__tar_index_free(&index);
    }
}

/* Sections from the input, then a head that fits them. */
static void put_together(dr_cursor *c, dr__section *file)
{
    dr__section body[8] = { 0 };
    uint32_t n = 0;
    uint8_t id, lo, hi;
    const uint8_t *bytes;
    while (n < 8 && dr__cursor_u8(c, &id, NULL) == DR_OK && dr__cursor_u8(c, &lo, NULL) == DR_OK &&
           dr__cursor_u8(c, &hi, NULL) == DR_OK) {
        size_t want = (size_t)lo | (size_t)hi << 8, left = dr__cursor_left(c);
        if (dr__cursor_bytes(c, want < left ? want : left, &bytes, NULL) != DR_OK)
            break;
        body[n].id = id;
        dr__put_bytes(&body[n++], bytes, want < left ? want : left);
    }
    uint64_t offset = 16 + n * 32 + 8;
    dr__put_bytes(file, "DRIDX\r\n\x1a", 8);
    dr__put_u32(file, 1);
    dr__put_u32(file, n);
    for (uint32_t i = 0; i < n; offset += body[i++].size) {
        dr__put_u32(file, body[i].id);
        dr__put_u32(file, 0);
        dr__put_u64(file, offset);
        dr__put_u64(file, body[i].size);
        dr__put_u64(file, XXH3_64bits(body[i].data, body[i].size));
    }
    dr__put_u64(file, XXH3_64bits(file->data, file->size));
    for (uint32_t i = 0; i < n; i++)
        dr__put_bytes(file, body[i].data, body[i].size);
    dr__sections_free(body, (int)n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size && data[0] == 0xFF) {
        read_all(data + 1, size - 1);
        return 0;
    }
    dr_cursor c = dr__cursor(data, size, "fuzz");
    dr__section file = { 0 };
    put_together(&c, &file);
    read_all(file.data, file.size);
    dr__sections_free(&file, 1);
    return 0;
}
