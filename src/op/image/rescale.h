/* rescale.h: a part of an image to another size, as PIL or torch resizes: what resize and random_resized_crop share. */
#ifndef DR_OP_IMAGE_RESCALE_H
#define DR_OP_IMAGE_RESCALE_H

#include "op/image/backend.h"
#include "op/op.h"

/* torchvision's interpolations that PIL has. */
extern const char *const dr__rescale_filters[];

typedef struct dr__rescale {
    dr_rect from; /* of the image */
    int64_t w, h; /* of the result */
    int filter;   /* place in dr__rescale_filters; masks take torch's nearest */
    int backend;
    bool antialias; /* PIL always does */
} dr__rescale;

/* An error that names the op when a backend has no such filter. */
dr_status dr__rescale_check(int filter, int backend, const char *op, dr_error *err);

/* uint8 images of 1, 3 or 4 channels; masks, and images whose nearest neighbours are taken, of any element type. */
dr_status dr__want_rescalable(const dr_desc *in, int filter, const char *op, dr_error *err);

/* The scratch that each of the three below needs. */
dr_status dr__rescale_scratch(const dr__rescale *r, const dr_desc *in, const char *op, size_t *bytes, dr_error *err);

/* Work units, about nanoseconds. */
double dr__rescale_cost(const dr__rescale *r, const dr_desc *in);

/* The input view may be a window that holds `from`. */
void dr__rescale_run(dr_task *task, const dr__rescale *r, const dr_view *in, dr_view *out);
void dr__rescale_rows(dr_task *task, const dr__rescale *r, const dr_view *in, dr__row_sink *sink);

/* Takes the rows of `from` one band after the other; lives in task->scratch. */
struct dr__bands *dr__rescale_feed(dr_task *task, const dr__rescale *r, const dr_desc *in, dr__row_sink *sink);

#endif
