/* compress_policy.h: whether the samples of a store are compressed.
 *
 * The first samples are compressed and, to measure the time, decompressed; later one in DR__COMPRESS_AGAIN is, as
 * samples and machines change.  Compression is on where reading the bytes that it saves takes longer than decompressing
 * does. The speed of reading is that at which this process reads such samples; until that is known,
 * DR__DISK_BYTES_PER_S, which the disks of rented machines give.  Samples that were just written do not count: they are
 * read from the page cache.
 */
#ifndef DR_STORE_COMPRESS_POLICY_H
#define DR_STORE_COMPRESS_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/bytes/byte_codec.h"

enum {
    DR__COMPRESS_TRIALS = 16,
    DR__COMPRESS_AGAIN = 64,
    DR__COMPRESS_READ = 16 << 20,  /* bytes read after which their time counts */
    DR__COMPRESS_FRESH = 64 << 20, /* bytes written last, which may still be in the page cache */
    DR__DISK_BYTES_PER_S = 500 * 1000 * 1000,
};

typedef struct dr__compress_policy {
    bool fixed; /* always on */
    int tried;
    uint64_t raw_bytes, packed_bytes, unpack_ns; /* sums over the trials; older ones fade */
    uint64_t untried;                            /* samples since the last trial */
    uint64_t read_bytes, read_ns;                /* of samples that were read, without decompression; older ones fade */
} dr__compress_policy;

typedef enum dr__compress_choice { DR__COMPRESS_TRY, DR__COMPRESS_ON, DR__COMPRESS_OFF } dr__compress_choice;

/* The codec that stores compress with; NULL: this build has none. */
const dr_byte_codec *dr__compress_codec(void);

/* What to do with the next sample: TRY means compress it and measure. */
dr__compress_choice dr__compress_choose(const dr__compress_policy *policy);

/* Adds the measurements of a trial, or counts a sample that was no trial. */
void dr__compress_note_trial(dr__compress_policy *policy, uint64_t raw_bytes, uint64_t packed_bytes,
                             uint64_t unpack_ns);
void dr__compress_note_skipped(dr__compress_policy *policy);

/* Adds bytes that one thread read from the disk, and the time it took. */
void dr__compress_note_read(dr__compress_policy *policy, uint64_t bytes, uint64_t ns);

/* Writes the choice and its reason as a sentence. */
void dr__compress_explain(const dr__compress_policy *policy, char *text, size_t size);

/* The time to read so many bytes at DR__DISK_BYTES_PER_S. */
uint64_t dr__disk_ns(uint64_t bytes);

/* Compresses into new memory, which the caller frees by dr__free.  NULL: out of memory, too large for the codec, or no
 * smaller than before. */
void *dr__compress(const dr_byte_codec *codec, const void *data, size_t size, size_t *encoded_size);

#endif
