/* blob.h: bytes of a test's file, and chance that can be repeated. */
#ifndef DR_TESTS_BLOB_H
#define DR_TESTS_BLOB_H

#include <stddef.h>
#include <stdint.h>

/* Owned by the caller; freed by blob_free.  Exactly `size` bytes are allocated, so that sanitizers see overreads. */
struct blob {
    uint8_t *data;
    size_t size;
};

void blob_free(struct blob *blob);
struct blob blob_copy(const uint8_t *data, size_t size);

/* A small generator with a state of its own: tests print the seed they began with. */
uint64_t next_random(uint64_t *state);
int random_in(uint64_t *state, int lo, int hi); /* both ends included */

#endif
