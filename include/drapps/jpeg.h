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

/* The header of a file. */
typedef struct dr_jpeg_info {
    int64_t width, height; /* in pixels */
    const char *stored;    /* colours and subsampling as stored, for people: "YCbCr 4:2:0", "gray"; static */
    const char *decoder;   /* what will decode it: "drapps" or "libjpeg-turbo 2.1.5"; static */
} dr_jpeg_info;

/**
 * Open a decoder.
 *
 * @param out The decoder, which the caller closes by dr_jpeg_close.
 * @param err The reason of a failure.  May be NULL.
 *
 * @return DR_OK or DR_ERR_NOMEM.
 */
DR_API dr_status dr_jpeg_open(dr_jpeg **out, dr_error *err);

/**
 * Close a decoder.
 *
 * @param jpeg The decoder; set to NULL.  A pointer to NULL is allowed.
 */
DR_API void dr_jpeg_close(dr_jpeg **jpeg);

/**
 * Choose what decodes baseline files.
 *
 * @param jpeg The decoder.
 * @param only true: libjpeg-turbo decodes everything; false (the default): drapps decodes what it can.
 */
DR_API void dr_jpeg_use_libjpeg(dr_jpeg *jpeg, bool only);

/**
 * Read the header of a file, without decoding it.
 *
 * @param jpeg The decoder.
 * @param data The bytes of the file, borrowed for the call.
 * @param size Their number.
 * @param info Receives the header.
 * @param err  The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_FORMAT where the bytes are no JPEG or damaged; DR_ERR_LIMIT as in dr_jpeg_decode.
 */
DR_API dr_status dr_jpeg_header(dr_jpeg *jpeg, const void *data, size_t size, dr_jpeg_info *info, dr_error *err);

/* Where the rows of one file begin: learnt while it is decoded, used when it is decoded again.  Decoding is then faster
 * where `crop` leaves out upper rows, left or right columns.  An index belongs to the exact bytes it was learnt from.
 * One thread at a time may use it. */
typedef struct dr_jpeg_index dr_jpeg_index;

/**
 * Make an index that has learnt nothing yet.
 *
 * @param out The index, which the caller frees by dr_jpeg_index_free.
 * @param err The reason of a failure.  May be NULL.
 *
 * @return DR_OK or DR_ERR_NOMEM.
 */
DR_API dr_status dr_jpeg_index_new(dr_jpeg_index **out, dr_error *err);

/**
 * Free an index.
 *
 * @param index The index; set to NULL.  A pointer to NULL is allowed.
 */
DR_API void dr_jpeg_index_free(dr_jpeg_index **index);

/**
 * Get the size of an index when it is stored.
 *
 * @param index The index.
 *
 * @return Its size in bytes; 0: it has learnt nothing.
 */
DR_API size_t dr_jpeg_index_bytes(const dr_jpeg_index *index);

/**
 * Decode a file, or a rectangle of it, to RGB.  Grey becomes three equal channels; CMYK is converted as Pillow does.
 *
 * @param jpeg   The decoder.
 * @param data   The bytes of the file, borrowed for the call.  Nothing behind them is read.
 * @param size   Their number.
 * @param crop   The rectangle to decode, inside the image.  NULL: the whole image.
 * @param index  The index of this file, which is used and extended.  NULL: none.
 * @param pixels Receives rows of 3 * width bytes.
 * @param stride Bytes from one row to the next, at least 3 * width.
 * @param err    The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG where the rectangle leaves the image, or the index was learnt from other bytes (noticed by
 *         size and a hash); DR_ERR_FORMAT where the data is damaged or truncated and Pillow refuses it, too;
 *         DR_ERR_LIMIT for more than 65535 pixels a side, 178956970 in all or 1 GiB of memory; DR_ERR_NOMEM.
 */
DR_API dr_status dr_jpeg_decode(dr_jpeg *jpeg, const void *data, size_t size, const dr_rect *crop, dr_jpeg_index *index,
                                uint8_t *pixels, ptrdiff_t stride, dr_error *err);

#ifdef __cplusplus
}
#endif
#endif
