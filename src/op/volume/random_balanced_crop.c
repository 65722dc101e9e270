/* random_balanced_crop: cut a part of fixed size from a volume and its mask; with probability `oversampling` around a
 * voxel of the mask's foreground, so that rare classes are seen.  Any element type.
 *
 * The numbers are drawn beforehand; which voxel they mean is known once the mask is: one of the classes above 0 that it
 * has, each as likely as the other, and one of that class's voxels.  A mask without foreground leaves the random place.
 */
#include "op/op_defs.h"
#include "op/volume/voxels.h"

enum { CLASSES = 256 };

struct conf {
    dr_ints size;
    double oversampling;
    int64_t crop[3];
};

struct par {
    bool oversampled;
    int64_t front, top, left; /* of a voxel's part: once it was looked for */
    double pick_class, pick_voxel;
};

static const dr_param params[] = {
    DR_INT_LIST(struct conf, size, NULL, 1, 1e6, 1, 3, "depth, height and width, or one number for all"),
    DR_REAL(struct conf, oversampling, "0.4", 0, 1, "chance that the part lies around a voxel of the foreground"),
    { 0 },
};

static const dr_param draws[] = {
    DR_BOOLEAN(struct par, oversampled, NULL, "around a voxel of the foreground"),
    DR_INT(struct par, front, NULL, 0, 1e9, "first slice"),
    DR_INT(struct par, top, NULL, 0, 1e9, "first row"),
    DR_INT(struct par, left, NULL, 0, 1e9, "first column"),
    { 0 },
};

static dr_status init(void *conf, dr_error *err)
{
    struct conf *c = conf;
    return dr__volume_size(&c->size, c->crop, "random_balanced_crop", err);
}

static dr_status draw(const void *conf, dr_rng *rng, const dr_desc *in, void *par, dr_error *err)
{
    const struct conf *c = conf;
    struct par *p = par;
    int64_t at[3];
    for (int i = 0; i < 3; i++) {
        if (in->dims[1 + i] < c->crop[i])
            return dr__fail(
                err, DR_ERR_ARG,
                "random_balanced_crop: axis %d must have at least %lld voxels, got %lld (pad_volume before it)", i,
                (long long)c->crop[i], (long long)in->dims[1 + i]);
        at[i] = (int64_t)dr__rng_below(rng, (uint64_t)(in->dims[1 + i] - c->crop[i] + 1));
    }
    p->front = at[0], p->top = at[1], p->left = at[2];
    p->oversampled = dr__rng_unit(rng) < c->oversampling;
    p->pick_class = dr__rng_unit(rng);
    p->pick_voxel = dr__rng_unit(rng);
    return DR_OK;
}

static int64_t class_at(const dr_view *mask, int64_t i)
{
    switch (mask->desc.dtype) {
    case DR_U8:
    case DR_BOOL:
        return mask->data[i];
    case DR_I16:
        return ((const int16_t *)mask->data)[i];
    case DR_I32:
        return ((const int32_t *)mask->data)[i];
    default:
        return ((const int64_t *)mask->data)[i];
    }
}

static dr_status check_mask(const dr_view *mask, const dr_desc *volume, dr_error *err)
{
    static const unsigned types = 1u << DR_U8 | 1u << DR_BOOL | 1u << DR_I16 | 1u << DR_I32 | 1u << DR_I64;
    DR_TRY(dr__want_volume(&mask->desc, types, "random_balanced_crop", err));
    for (int i = 1; i < 4; i++)
        if (mask->desc.dims[i] != volume->dims[i])
            return dr__fail(err, DR_ERR_ARG,
                            "random_balanced_crop: axis %d of the mask must have %lld voxels, as the volume, got %lld",
                            i - 1, (long long)volume->dims[i], (long long)mask->desc.dims[i]);
    return DR_OK;
}

/* The class that the draw means; 0: there is none above 0. */
static int64_t choose_class(const dr_view *mask, double pick, int64_t counts[CLASSES])
{
    int64_t n = dr__channel_voxels(&mask->desc), present = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t v = class_at(mask, i);
        if (v > 0 && v < CLASSES)
            counts[v]++;
    }
    for (int v = 1; v < CLASSES; v++)
        present += counts[v] > 0;
    int64_t left = (int64_t)(pick * (double)present);
    for (int v = 1; present && v < CLASSES; v++)
        if (counts[v] && left-- == 0)
            return v;
    return 0;
}

static int64_t find_voxel(const dr_view *mask, int64_t class, int64_t nth)
{
    int64_t i = 0;
    for (;; i++)
        if (class_at(mask, i) == class && nth-- == 0)
            return i;
}

static int64_t around(int64_t centre, int64_t crop, int64_t extent)
{
    int64_t at = centre - crop / 2;
    return at < 0 ? 0 : DR_MIN(at, extent - crop);
}

static dr_status inspect(dr_task *task, void *par)
{
    const struct conf *c = task->conf;
    const dr_view *mask = NULL;
    struct par *p = par;
    for (int i = 0; i < task->n_fields && !mask; i++)
        mask = task->fields[i]->desc.kind == DR_KIND_VOLUME_MASK ? task->fields[i] : NULL;
    if (c->oversampling > 0 && !mask)
        return dr__fail(task->err, DR_ERR_ARG,
                        "random_balanced_crop: needs the mask among its fields (fields=\"image,label\"), or "
                        "oversampling 0");
    if (!p->oversampled)
        return DR_OK;
    int64_t counts[CLASSES] = { 0 };
    const int64_t *d = mask->desc.dims;
    DR_TRY(check_mask(mask, &task->fields[0]->desc, task->err));
    int64_t class = choose_class(mask, p->pick_class, counts);
    if (!class)
        return DR_OK;
    int64_t voxel = find_voxel(mask, class, (int64_t)(p->pick_voxel * (double)counts[class]));
    p->front = around(voxel / (d[2] * d[3]), c->crop[0], d[1]);
    p->top = around(voxel / d[3] % d[2], c->crop[1], d[2]);
    p->left = around(voxel % d[3], c->crop[2], d[3]);
    return DR_OK;
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    const struct conf *c = conf;
    (void)par;
    DR_TRY(dr__want_volume(in, ~0u, "random_balanced_crop", err));
    out->desc = dr__volume_resized(in, c->crop);
    return DR_OK;
}

/* Looking for the voxel passes the mask up to twice; it is done once, for the volume. */
static double cost(const void *conf, const void *par, const dr_desc *in)
{
    const struct conf *c = conf;
    const struct par *p = par;
    double copied = (double)in->dims[0] * (double)(c->crop[0] * c->crop[1] * c->crop[2]);
    double looked = p->oversampled && in->kind == DR_KIND_VOLUME ? 3.0 * (double)dr__channel_voxels(in) : 0.0;
    return 0.1 * copied * (double)dr_dtype_size(in->dtype) + looked;
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const struct par *p = par;
    int64_t at[3] = { p->front, p->top, p->left };
    for (int i = 0; i < 3; i++)
        if (at[i] + out->desc.dims[1 + i] > in->desc.dims[1 + i])
            return dr__fail(task->err, DR_ERR_ARG,
                            "random_balanced_crop: the volumes of a sample must have one size; axis %d has %lld voxels "
                            "in one field, and the part of another field ends at %lld",
                            i, (long long)in->desc.dims[1 + i], (long long)(at[i] + out->desc.dims[1 + i]));
    dr__volume_cut(in, at, out);
    return DR_OK;
}

const dr_op_def dr__op_random_balanced_crop = {
    .name = "random_balanced_crop",
    .version = 1,
    .summary = "cut a part from a volume and its mask, often around the foreground",
    .params = params,
    .draws = draws,
    .conf_size = sizeof(struct conf),
    .par_size = sizeof(struct par),
    .flags = DR_OP_RANDOM | DR_OP_MOVES,
    .kinds = DR__ON_VOXELS,
    .init = init,
    .draw = draw,
    .inspect = inspect,
    .plan = plan,
    .cost = cost,
    .run = run,
};
