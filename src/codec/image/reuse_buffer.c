/* reuse_buffer.c: buffers that are kept between images.
 *
 * Row buffers of ordinary images take tens of kilobytes; a whole interlaced image may take a gigabyte.  Up to
 * KEEP_BYTES stays with the worker, more is given back after the image.
 */
#include "codec/image/reuse_buffer.h"

#include "base/alloc.h"

enum { KEEP_BYTES = 4 << 20 };

void *dr__reuse_buffer_get(dr__reuse_buffer *buffer, size_t size)
{
    if (size <= buffer->cap && buffer->data)
        return buffer->data;
    dr__reuse_buffer_free(buffer);
    size_t cap = size < 4096 ? 4096 : size;
    buffer->data = dr__alloc_aligned(cap);
    buffer->cap = buffer->data ? cap : 0;
    return buffer->data;
}

void dr__reuse_buffer_trim(dr__reuse_buffer *buffer)
{
    if (buffer->cap > KEEP_BYTES)
        dr__reuse_buffer_free(buffer);
}

void dr__reuse_buffer_free(dr__reuse_buffer *buffer)
{
    dr__free_aligned(buffer->data);
    *buffer = (dr__reuse_buffer){ 0 };
}
