/* reuse_buffer.h: a buffer that grows and is kept, so that its pages stay in the cache from image to image. */
#ifndef DR_CODEC_REUSE_BUFFER_H
#define DR_CODEC_REUSE_BUFFER_H

#include <stddef.h>
#include <stdint.h>

typedef struct dr__reuse_buffer {
    uint8_t *data;
    size_t cap;
} dr__reuse_buffer;

/* At least `size` bytes, content undefined; NULL: out of memory.  Valid until the next call on this buffer. */
void *dr__reuse_buffer_get(dr__reuse_buffer *buffer, size_t size);

/* Gives back a buffer that one unusual image made large. */
void dr__reuse_buffer_trim(dr__reuse_buffer *buffer);

void dr__reuse_buffer_free(dr__reuse_buffer *buffer);

#endif
