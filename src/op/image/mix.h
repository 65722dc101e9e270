/* mix.h: what mixup and cutmix share: the fields they work on, and labels as weights of classes.
 *
 * Each sample i of a batch is mixed with its neighbour i - 1 (the first with the last).  Fields: images float32, HWC or
 * CHW, and labels: either class numbers (int64, they become one-hot float32) or weights of classes (float32).
 */
#ifndef DR_OP_IMAGE_MIX_H
#define DR_OP_IMAGE_MIX_H

#include "op/batch.h"

/* The two settings of both ops. */
typedef struct dr__mix_conf {
    int64_t num_classes; /* 0: labels are weights already */
    double alpha;
} dr__mix_conf;

extern const dr_param dr__mix_params[];

/* For dr_batch_op_def.plan: checks both fields, gives the labels' new shape and room for one image and one label. */
dr_status dr__mix_plan(const dr__mix_conf *c, const char *op, const dr_desc *in, dr_desc *out, size_t *scratch,
                       dr_error *err);

/* out label i = lam * label i + (1 - lam) * label i - 1.  A class number out of range is an error. */
dr_status dr__mix_labels(dr_task *task, const char *op, double lam, const dr_view *in, dr_view *out);

/* x = neighbour * (1 - lam) + x * lam, in float32 as torch computes it. */
void dr__mix_floats(float *x, const float *neighbour, double lam, size_t n);

/* Bytes of one sample of a batch view. */
size_t dr__mix_stride(const dr_view *batch);

#endif
