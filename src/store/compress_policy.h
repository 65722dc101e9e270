/* compress_policy.h: whether the samples of a store are compressed.
 *
 * The first samples are compressed by LZ4 and, to know the time, decompressed; later one in DR__COMPRESS_AGAIN is, as
 * samples and machines change.  Compression is on where reading the bytes that it saves takes longer than decompressing
 * does: at the speed at which this process reads such samples, and until that is known at DR__DISK_BYTES_PER_S, which
 * the disks of rented machines give.  What was just written is in memory, and its reading says nothing.
 */
#ifndef DR_STORE_COMPRESS_POLICY_H
#define DR_STORE_COMPRESS_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DR__COMPRESS_TRIALS = 16,
    DR__COMPRESS_AGAIN = 64,
    DR__COMPRESS_READ = 16 << 20,  /* bytes after which their time counts */
    DR__COMPRESS_FRESH = 64 << 20, /* what was written last and may not be on the disk */
    DR__DISK_BYTES_PER_S = 500 * 1000 * 1000,
};

typedef struct dr__compress_policy {
    bool fixed; /* on, whatever is measured */
    int tried;
    uint64_t raw_bytes, packed_bytes, unpack_ns; /* of the trials; older ones fade */
    uint64_t untried;                            /* samples since the last of them */
    uint64_t read_bytes, read_ns;                /* of samples that were read, without unpacking; likewise */
} dr__compress_policy;

typedef enum dr__compress_choice { DR__COMPRESS_TRY, DR__COMPRESS_ON, DR__COMPRESS_OFF } dr__compress_choice;

/* Is LZ4 in this build? */
bool dr__compress_there(void);

dr__compress_choice dr__compress_choose(const dr__compress_policy *policy);

/* Books one trial, and a sample that was none. */
void dr__compress_note_trial(dr__compress_policy *policy, uint64_t raw_bytes, uint64_t packed_bytes,
                             uint64_t unpack_ns);
void dr__compress_note_skipped(dr__compress_policy *policy);

/* Books bytes that were read from the disk by one thread. */
void dr__compress_note_read(dr__compress_policy *policy, uint64_t bytes, uint64_t ns);

/* What was chosen and why, for people. */
void dr__compress_explain(const dr__compress_policy *policy, char *text, size_t size);

/* Time to read so many bytes at DR__DISK_BYTES_PER_S. */
uint64_t dr__disk_ns(uint64_t bytes);

/* Compresses into new memory (dr__free); NULL: out of memory, too large, or no smaller than it was. */
void *dr__lz4_pack(const void *data, size_t size, size_t *packed_size);

/* Decompresses to exactly `size` bytes; false: the input is no such thing. */
bool dr__lz4_unpack(const void *packed, size_t packed_size, void *data, size_t size);

#endif
