/* squeeze.h: whether the samples of a store are compressed.
 *
 * The first samples are compressed by LZ4 and, to know the time, decompressed.  Compression stays on where reading the
 * bytes that it saves would take longer than decompressing does, at DR__DISK_BYTES_PER_S: what the disks of rented
 * machines give, and what the samples of a data set that is larger than memory are read at.
 */
#ifndef DR_STORE_SQUEEZE_H
#define DR_STORE_SQUEEZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DR__SQUEEZE_TRIALS = 16, DR__DISK_BYTES_PER_S = 500 * 1000 * 1000 };

typedef struct dr__squeeze {
    int tried;
    uint64_t raw_bytes, packed_bytes, unpack_ns; /* of the trials */
} dr__squeeze;

typedef enum dr__squeeze_choice { DR__SQUEEZE_TRY, DR__SQUEEZE_ON, DR__SQUEEZE_OFF } dr__squeeze_choice;

/* Is LZ4 in this build? */
bool dr__squeeze_there(void);

dr__squeeze_choice dr__squeeze_choose(const dr__squeeze *squeeze);

/* Books one trial. */
void dr__squeeze_note(dr__squeeze *squeeze, uint64_t raw_bytes, uint64_t packed_bytes, uint64_t unpack_ns);

/* What was chosen and why, for people. */
void dr__squeeze_explain(const dr__squeeze *squeeze, char *text, size_t size);

/* Time to read so many bytes at DR__DISK_BYTES_PER_S. */
uint64_t dr__disk_ns(uint64_t bytes);

/* Compresses into new memory (dr__free); NULL: out of memory, too large, or no smaller than it was. */
void *dr__lz4_pack(const void *data, size_t size, size_t *packed_size);

/* Decompresses to exactly `size` bytes; false: the input is no such thing. */
bool dr__lz4_unpack(const void *packed, size_t packed_size, void *data, size_t size);

#endif
