/* jpeg_coefs.c: the coefficients of a large progressive JPEG in pages of their own.
 *
 * An image of several scans is in memory as a whole, two bytes for each sample, until its last scan was read.  libjpeg
 * takes that from malloc, and malloc keeps what large blocks were freed for the next, in each worker's own heap: tens
 * of megabytes that nothing uses.  libjpeg reaches these arrays by three of its memory manager's methods, which are
 * replaced for the time of one image.
 */
#include "base/alloc.h"
#include "codec/image/jpeg_run.h"

enum { LEAST_BYTES = 4 << 20 }; /* smaller images stay with malloc, whose memory is warm */

/* libjpeg leaves the content of its handle to the memory manager. */
struct jvirt_barray_control {
    JDIMENSION width, height; /* in blocks */
    JBLOCKARRAY rows;
    struct jvirt_barray_control *next;
};

static jvirt_barray_ptr request(j_common_ptr cinfo, int pool, boolean zero, JDIMENSION width, JDIMENSION height,
                                JDIMENSION most)
{
    struct dr__jpeg *jpeg = cinfo->client_data;
    struct jvirt_barray_control *array = cinfo->mem->alloc_small(cinfo, pool, sizeof *array);
    (void)zero, (void)most; /* new pages are zero; all rows are there at once */
    *array = (struct jvirt_barray_control){ width, height, NULL, jpeg->coefs.arrays };
    array->rows = cinfo->mem->alloc_small(cinfo, pool, height * sizeof *array->rows);
    jpeg->coefs.arrays = array;
    return array;
}

static void realize(j_common_ptr cinfo)
{
    struct dr__jpeg *jpeg = cinfo->client_data;
    size_t bytes = 0;
    for (const struct jvirt_barray_control *a = jpeg->coefs.arrays; a; a = a->next)
        bytes += (size_t)a->width * a->height * sizeof(JBLOCK);
    jpeg->coefs.pages = dr__pages_new(bytes);
    if (!jpeg->coefs.pages)
        dr__jpeg_fail(jpeg, DR_ERR_NOMEM, "no memory for %zu bytes of JPEG coefficients", bytes);
    jpeg->coefs.bytes = bytes;
    JBLOCKROW row = jpeg->coefs.pages;
    for (struct jvirt_barray_control *a = jpeg->coefs.arrays; a; a = a->next)
        for (JDIMENSION y = 0; y < a->height; y++, row += a->width)
            a->rows[y] = row;
}

static JBLOCKARRAY access_rows(j_common_ptr cinfo, jvirt_barray_ptr array, JDIMENSION first, JDIMENSION n,
                               boolean writable)
{
    (void)writable;
    if (first > array->height || n > array->height - first)
        dr__jpeg_fail(cinfo->client_data, DR_ERR_FORMAT, "damaged JPEG: rows %u to %u of %u blocks", (unsigned)first,
                      (unsigned)(first + n), (unsigned)array->height);
    return array->rows + first;
}

void dr__jpeg_coefs_begin(struct dr__jpeg *jpeg)
{
    struct jpeg_memory_mgr *mem = jpeg->cinfo.mem;
    double bytes = (double)jpeg->cinfo.image_width * jpeg->cinfo.image_height * sizeof(JCOEF);
    if (!jpeg_has_multiple_scans(&jpeg->cinfo) || bytes < LEAST_BYTES)
        return;
    jpeg->coefs.methods = *mem;
    jpeg->coefs.replaced = true;
    mem->request_virt_barray = request;
    mem->realize_virt_arrays = realize;
    mem->access_virt_barray = access_rows;
}

void dr__jpeg_coefs_end(struct dr__jpeg *jpeg)
{
    struct jpeg_memory_mgr *mem = jpeg->cinfo.mem;
    if (!jpeg->coefs.replaced)
        return;
    mem->request_virt_barray = jpeg->coefs.methods.request_virt_barray;
    mem->realize_virt_arrays = jpeg->coefs.methods.realize_virt_arrays;
    mem->access_virt_barray = jpeg->coefs.methods.access_virt_barray;
    dr__pages_free(jpeg->coefs.pages, jpeg->coefs.bytes);
    jpeg->coefs = (struct dr__jpeg_coefs){ 0 };
}
