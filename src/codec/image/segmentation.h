/* segmentation.h: outlines and run lengths of objects, as COCO writes them, to masks, as pycocotools makes them.
 *
 * The text is JSON of one form, for all objects of an image:
 *
 *     {"size":[height,width],"objects":[OBJECT,...]}
 *
 * An OBJECT is a list of polygons [[x,y,x,y,...],...], whose insides are joined, or run lengths
 * {"size":[height,width],"counts":[...]} down the columns, first of 0 and then of 1 by turns, which may also be COCO's
 * compressed text: "counts":"...".
 */
#ifndef DR_CODEC_SEGMENTATION_H
#define DR_CODEC_SEGMENTATION_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { DR__SEGMENTATION_SIDE = 65535 }; /* most rows or columns */

typedef struct dr__segmentation {
    int64_t n; /* objects */
    int64_t height, width;
} dr__segmentation;

/* What the text says before it is decoded. */
dr_status dr__segmentation_header(const char *text, size_t size, dr__segmentation *info, dr_error *err);

/* One plane of 0 and 1 for each object, at `out`; `room` has as many bytes as a plane. */
dr_status dr__segmentation_decode(const char *text, size_t size, const dr__segmentation *info, uint8_t *room,
                                  uint8_t *out, dr_error *err);

#endif
