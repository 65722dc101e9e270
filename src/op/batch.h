/* batch.h: ops that mix the samples of a batch (mixup, cutmix).
 *
 * They run once a batch is full, keyed by (seed, epoch, batch number, op id).  A node names its fields in the order the
 * op expects: image, then label.
 */
#ifndef DR_OP_BATCH_H
#define DR_OP_BATCH_H

#include "op/op.h"

enum { DR__BATCH_OP_FIELDS = 4 };

typedef struct dr_batch_op_def {
    int n_fields;

    /* From the descriptions of one sample's fields to those after the op (label to a vector of classes). */
    dr_status (*plan)(const void *conf, const dr_desc *in, dr_desc *out, size_t *scratch, dr_error *err);

    /* in: descriptions of one sample. */
    dr_status (*draw)(const void *conf, dr_rng *rng, const dr_desc *in, int64_t n_samples, void *par, dr_error *err);

    /* Views of whole batches: dims[0] is the number of samples, dense.  in[i] and out[i] are the same memory where
     * plan kept the description. */
    dr_status (*run)(dr_task *task, const void *par, const dr_view *in, dr_view *out);
} dr_batch_op_def;

#endif
