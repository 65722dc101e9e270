/* jpeg.h: the JPEG decoder by itself.
 *
 * Pixels are those of libjpeg-turbo with its defaults (accurate integer DCT, fancy upsampling), bit for bit, for whole
 * images and for any rectangle.  Baseline files are decoded by drapps' own decoder; all others (progressive,
 * arithmetic, CMYK, ...) and damaged ones go to libjpeg-turbo.
 *
 *   dr_jpeg *jpeg = NULL;
 *   dr_jpeg_open(&jpeg, &err);
 *   dr_jpeg_info info;
 *   dr_jpeg_header(jpeg, data, size, &info, &err);
 *   uint8_t *pixels = malloc((size_t)info.width * info.height * 3);
 *   dr_jpeg_decode(jpeg, data, size, NULL, NULL, pixels, info.width * 3, &err);
 *   dr_jpeg_close(&jpeg);
 *
 * A decoder keeps its tables and buffers from image to image.  One thread at a time may use it.
 */
#ifndef DRAPPS_JPEG_H
#define DRAPPS_JPEG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drapps/data.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dr_jpeg dr_jpeg;

typedef struct dr_jpeg_info {
    int64_t width, height;
    const char *stored;  /* "YCbCr 4:2:0", "gray", ...: static text */
    const char *decoder; /* "drapps" or "libjpeg-turbo 2.1.5": what will decode it; static text */
} dr_jpeg_info;

DR_API dr_status dr_jpeg_open(dr_jpeg **out, dr_error *err);
DR_API void dr_jpeg_close(dr_jpeg **jpeg);

/* Decode everything by libjpeg-turbo from here on (true), or what drapps can by drapps (false, as at first). */
DR_API void dr_jpeg_use_libjpeg(dr_jpeg *jpeg, bool only);

/* What the header says, without decoding. */
DR_API dr_status dr_jpeg_header(dr_jpeg *jpeg, const void *data, size_t size, dr_jpeg_info *info, dr_error *err);

/* Where the rows of one file begin: learnt while it is decoded, used when it is decoded again, which is then faster
 * when `crop` leaves out upper rows, left or right columns.  Belongs to the exact bytes it was learnt from. */
typedef struct dr_jpeg_index dr_jpeg_index;
DR_API dr_status dr_jpeg_index_new(dr_jpeg_index **out, dr_error *err);
DR_API void dr_jpeg_index_free(dr_jpeg_index **index);

/* Bytes that it takes when stored. */
DR_API size_t dr_jpeg_index_bytes(const dr_jpeg_index *index);

/* The RGB pixels of `crop` (NULL: the whole image) to rows of 3 * width bytes, `stride` (at least that) bytes apart;
 * grey becomes three equal channels, CMYK is converted as Pillow does.  Nothing is read past data + size.
 *
 * index: NULL, or that of this file; one thread at a time.  DR_ERR_ARG if it was learnt from another one, which is
 * noticed by size and a hash of the bytes.
 *
 * A rectangle that leaves the image is DR_ERR_ARG, data that is damaged or truncated where Pillow refuses it
 * DR_ERR_FORMAT, more than 65535 pixels a side, 178956970 in all or 1 GiB of memory DR_ERR_LIMIT. */
DR_API dr_status dr_jpeg_decode(dr_jpeg *jpeg, const void *data, size_t size, const dr_rect *crop, dr_jpeg_index *index,
                                uint8_t *pixels, ptrdiff_t stride, dr_error *err);

#ifdef __cplusplus
}
#endif
#endif
