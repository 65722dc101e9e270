/* warm.h: a buffer that grows and is kept, so that its pages stay warm from image to image. */
#ifndef DR_CODEC_WARM_H
#define DR_CODEC_WARM_H

#include <stddef.h>
#include <stdint.h>

typedef struct dr__warm {
    uint8_t *data;
    size_t cap;
} dr__warm;

/* At least `size` bytes, content undefined; NULL: out of memory.  Valid until the next call on this buffer. */
void *dr__warm_get(dr__warm *warm, size_t size);

/* Gives back a buffer that one unusual image made large. */
void dr__warm_trim(dr__warm *warm);

void dr__warm_free(dr__warm *warm);

#endif
