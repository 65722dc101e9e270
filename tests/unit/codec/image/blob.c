/* blob.c: see blob.h. */
#include "unit/codec/image/blob.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void blob_free(struct blob *blob)
{
    free(blob->data);
    *blob = (struct blob){ 0 };
}

struct blob blob_copy(const uint8_t *data, size_t size)
{
    struct blob b = { malloc(size ? size : 1), size };
    assert(b.data);
    if (size)
        memcpy(b.data, data, size);
    return b;
}

uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int random_in(uint64_t *state, int lo, int hi)
{
    return lo + (int)(next_random(state) % (uint64_t)(hi - lo + 1));
}
