/* decode_masks: outlines and run lengths of objects, as COCO has them, to a mask for each (codec/image/segmentation.h).
 *
 * The text tells the size of the image, so that the masks are known whether it is decoded or not. */
#include "codec/image/segmentation.h"
#include "op/op_defs.h"

struct par {
    dr__segmentation info;
};

static const dr_param params[] = { { 0 } };

static dr_status peek(dr_task *task, const dr_view *in, void *par)
{
    return dr__segmentation_header((const char *)in->data, (size_t)in->desc.dims[0], &((struct par *)par)->info,
                                   task->err);
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    const dr__segmentation *info = par ? &((const struct par *)par)->info : NULL;
    char text[128];
    (void)conf;
    if (in->kind != DR_KIND_TEXT)
        return dr__fail(err, DR_ERR_ARG,
                        "decode_masks: needs a text of outlines (drapps.read_coco(masks=True)), got %s",
                        dr__desc_text_of(in, text, sizeof text));
    out->desc =
        (dr_desc){ .kind = DR_KIND_MASKS, .dtype = DR_U8, .n_dims = 3, .dims = { DR_UNKNOWN, DR_UNKNOWN, DR_UNKNOWN } };
    if (!info)
        return DR_OK;
    out->desc.dims[0] = info->n;
    out->desc.dims[1] = info->height;
    out->desc.dims[2] = info->width;
    out->scratch = (size_t)(info->height * info->width);
    return DR_OK;
}

static double cost(const void *conf, const void *par, const dr_desc *in)
{
    const dr__segmentation *info = &((const struct par *)par)->info;
    (void)conf;
    return 30.0 * (double)in->dims[0] + 0.2 * (double)(info->n * info->height * info->width);
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    return dr__segmentation_decode((const char *)in->data, (size_t)in->desc.dims[0], &((const struct par *)par)->info,
                                   task->scratch, out->data, task->err);
}

const dr_op_def dr__op_decode_masks = {
    .name = "decode_masks",
    .version = 1,
    .summary = "outlines and run lengths of objects (COCO) to a mask for each, as pycocotools makes them",
    .params = params,
    .reads = "segmentation",
    .makes = "masks",
    .par_size = sizeof(struct par),
    .flags = DR_OP_DECODE,
    .peek = peek,
    .plan = plan,
    .cost = cost,
    .run = run,
};
