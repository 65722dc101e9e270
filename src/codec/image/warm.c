/* warm.c: buffers that are kept between images.
 *
 * Row buffers of ordinary images take tens of kilobytes; a whole interlaced image may take a gigabyte.  Up to
 * KEEP_BYTES stays with the worker, more is given back after the image.
 */
#include "codec/image/warm.h"

#include "base/alloc.h"

enum { KEEP_BYTES = 4 << 20 };

void *dr__warm_get(dr__warm *warm, size_t size)
{
    if (size <= warm->cap && warm->data)
        return warm->data;
    dr__warm_free(warm);
    size_t cap = size < 4096 ? 4096 : size;
    warm->data = dr__alloc_aligned(cap);
    warm->cap = warm->data ? cap : 0;
    return warm->data;
}

void dr__warm_trim(dr__warm *warm)
{
    if (warm->cap > KEEP_BYTES)
        dr__warm_free(warm);
}

void dr__warm_free(dr__warm *warm)
{
    dr__free_aligned(warm->data);
    *warm = (dr__warm){ 0 };
}
