/* sanitize_bounding_boxes: drop boxes that are too small or not inside their image, and with them the rows of the other
 * arrays among the fields (labels).  An image among the fields stays as it is; without one, only the coordinates'
 * signs say what is inside. */
#include <string.h>

#include "op/box/boxes.h"
#include "op/op_defs.h"

struct conf {
    double min_size;
    double min_area;
};

struct par {
    int64_t n; /* boxes that stay */
};

static const dr_param params[] = {
    DR_REAL(struct conf, min_size, "1", 0, 1e6, "least width and height"),
    DR_REAL(struct conf, min_area, "1", 0, 1e12, "least area"),
    { 0 },
};

static bool passes(const dr_desc *in)
{
    return dr__is_image(in);
}

static bool stays(const struct conf *c, const dr_desc *frame, const float *b)
{
    float w = b[2] - b[0], h = b[3] - b[1];
    if (!(w >= (float)c->min_size && h >= (float)c->min_size && w * h >= (float)c->min_area))
        return false;
    if (!(b[0] >= 0 && b[1] >= 0 && b[2] >= 0 && b[3] >= 0))
        return false;
    if (!frame)
        return true;
    float right = (float)dr__width(frame), bottom = (float)dr__height(frame);
    return b[0] <= right && b[2] <= right && b[1] <= bottom && b[3] <= bottom;
}

/* Before anything has its size from the boxes that stay. */
static dr_status compare_rows(const dr_task *task, const dr_desc *boxes)
{
    for (int i = 0; i < task->n_fields; i++) {
        const dr_desc *d = &task->fields[i]->desc;
        if (!passes(d) && d->dims[0] != boxes->dims[0])
            return dr__fail(task->err, DR_ERR_ARG,
                            "sanitize_bounding_boxes: must have %lld rows, one for each box, got %lld",
                            (long long)boxes->dims[0], (long long)d->dims[0]);
    }
    return DR_OK;
}

static dr_status inspect(dr_task *task, void *par)
{
    struct par *p = par;
    const dr_view *boxes = NULL;
    DR_TRY(dr__boxes_among(task, "sanitize_bounding_boxes", &boxes));
    DR_TRY(compare_rows(task, &boxes->desc));
    const dr_desc *frame = dr__boxes_image(task);
    p->n = 0;
    for (int64_t i = 0; i < boxes->desc.dims[0]; i++)
        p->n += stays(task->conf, frame, (const float *)boxes->data + 4 * i);
    return DR_OK;
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    char text[128];
    (void)conf;
    if (!((DR__ON_INSTANCES | DR__KIND(ARRAY)) >> in->kind & 1) || in->n_dims < 1)
        return dr__fail(err, DR_ERR_ARG, "sanitize_bounding_boxes: needs boxes and arrays with a row for each, got %s",
                        dr__desc_text_of(in, text, sizeof text));
    out->desc = *in;
    out->desc.dims[0] = par ? ((const struct par *)par)->n : DR_UNKNOWN;
    return DR_OK;
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const dr_view *boxes = NULL;
    const dr_desc *frame = dr__boxes_image(task);
    dr_desc row = in->desc;
    size_t bytes = 0, to = 0;
    (void)par;
    DR_TRY(dr__boxes_among(task, "sanitize_bounding_boxes", &boxes));
    row.dims[0] = 1;
    dr__desc_bytes_dense(&row, &bytes);
    for (int64_t i = 0; i < boxes->desc.dims[0]; i++)
        if (stays(task->conf, frame, (const float *)boxes->data + 4 * i))
            memcpy(out->data + to++ * bytes, in->data + (size_t)i * bytes, bytes);
    return DR_OK;
}

const dr_op_def dr__op_sanitize_bounding_boxes = {
    .name = "sanitize_bounding_boxes",
    .version = 1,
    .summary = "drop boxes that are too small or outside the image, and their labels",
    .params = params,
    .conf_size = sizeof(struct conf),
    .par_size = sizeof(struct par),
    .flags = DR_OP_EARLY | DR_OP_DROPS,
    .kinds = DR__ON_IMAGES | DR__ON_INSTANCES,
    .needs = DR__KIND(BOXES),
    .inspect = inspect,
    .passes = passes,
    .plan = plan,
    .run = run,
};
