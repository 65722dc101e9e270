/* byte_codec.h: lossless compression of bytes.
 *
 * A byte codec is one file that ends in a `const dr_byte_codec`, and one row in byte_codec_table.c.  Codecs keep no
 * state: every function may be called by many threads at once.
 */
#ifndef DR_CODEC_BYTE_CODEC_H
#define DR_CODEC_BYTE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Wire ids stand in stored records.  A number never changes its meaning and is never reused. */
enum {
    DR__BYTES_NONE = 0,
    DR__BYTES_LZ4 = 1,
    DR__BYTES_LZ4HC = 2, /* decodes as LZ4 */
    DR__BYTES_ZSTD = 3,
    DR__BYTES_SNAPPY = 4,
    DR__BYTES_LAST = DR__BYTES_SNAPPY
};

typedef struct dr_byte_codec {
    const char *name; /* "lz4" */
    const char *summary;
    const char *library; /* with its version; NULL: none */
    uint8_t wire_id;     /* DR__BYTES_... */

    /* Returns the most bytes that encode can make of `size` bytes; 0: it cannot take so many. */
    size_t (*bound)(size_t size);

    /* Compresses `size` bytes of `data` into `out`, which has room for `cap` bytes.  Returns the number of bytes
     * written; 0: they did not fit, or `size` is 0 or beyond what the codec can take. */
    size_t (*encode)(const void *data, size_t size, void *out, size_t cap);

    /* The same at a level from min_level to max_level; `encode` is that of default_level.  NULL: there are no levels.
     */
    size_t (*encode_at)(const void *data, size_t size, void *out, size_t cap, int level);
    int min_level, max_level, default_level;

    /* Decompresses `size` bytes of `data`, which may be damaged, to exactly `out_size` bytes.  Returns false where the
     * data decodes to anything else; `out` then holds garbage. */
    bool (*decode)(const void *data, size_t size, void *out, size_t out_size);
} dr_byte_codec;

extern const dr_byte_codec *const dr__byte_codecs[]; /* the codecs of this build; NULL ends it */

/* Returns the most bytes that one encoded byte can decode to, which bounds what a damaged header may claim.  Known for
 * every wire id, whether this build has the codec or not. */
uint32_t dr__byte_codec_ratio(unsigned wire_id);

/* Returns the codec with this wire id, or NULL where this build has none. */
const dr_byte_codec *dr__byte_codec_find(unsigned wire_id);

#endif
