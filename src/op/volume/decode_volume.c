/* decode_volume: a stored volume (NIfTI-1, plain or gzipped, or .npy) to an array of channels, depth, height, width.
 *
 * The spacing of the voxels comes with it, so that resample_volume can plan its size from header facts alone. */
#include "base/alloc.h"
#include "codec/volume/volume.h"
#include "op/op.h"
#include "op/op_defs.h"

enum { AUTO, FLOAT32, UINT8, INT16, INT32, INT64 };
enum { ZYX, XYZ };

struct conf {
    bool labels;
    int dtype;
    int axes;
    int64_t channels;
    int64_t max_voxels;
};

struct par {
    dr__volume_info info;
};

static const char *const names[] = { "auto", "float32", "uint8", "int16", "int32", "int64", NULL };
static const char *const orders[] = { "zyx", "xyz", NULL };

static const dr_param params[] = {
    DR_BOOLEAN(struct conf, labels, "false",
               "the voxels are class numbers: resampled by nearest neighbour, never normalised"),
    DR_CHOICE(struct conf, dtype, "\"auto\"", names,
              "element type of the result; auto is float32, and uint8 for labels; integers take whole numbers only"),
    DR_CHOICE(struct conf, axes, "\"zyx\"", orders,
              "what depth, height and width are in a NIfTI file: zyx as they lie in it, xyz as nibabel gives them"),
    DR_INT(struct conf, channels, "1", 0, 65535,
           "channels (points in time) that each volume must have; 0: as stored, and samples cannot be stacked"),
    DR_INT(struct conf, max_voxels, "1073741824", 1, 1e12, "most voxels accepted"),
    { 0 },
};

static dr_dtype dtype_of(const struct conf *c)
{
    static const dr_dtype dtypes[] = { DR_F32, DR_F32, DR_U8, DR_I16, DR_I32, DR_I64 };
    return c->dtype == AUTO && c->labels ? DR_U8 : dtypes[c->dtype];
}

static dr_status peek(dr_task *task, const dr_view *in, void *par)
{
    const struct conf *c = task->conf;
    dr__volume_options options = { .xyz = c->axes == XYZ, .max_voxels = c->max_voxels };
    uint8_t *room = dr__alloc_aligned(DR__VOLUME_ROOM);
    if (!room)
        return dr__fail(task->err, DR_ERR_NOMEM, "out of memory");
    dr_status status =
        dr__volume_header(in->data, (size_t)in->desc.dims[0], &options, room, &((struct par *)par)->info, task->err);
    dr__free_aligned(room);
    return status;
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    const struct conf *c = conf;
    const struct par *p = par;
    const int64_t unknown[4] = { c->channels ? c->channels : DR_UNKNOWN, DR_UNKNOWN, DR_UNKNOWN, DR_UNKNOWN };
    if (in->kind != DR_KIND_BYTES)
        return dr__fail(err, DR_ERR_ARG, "decode_volume: needs encoded bytes; this field is decoded already");
    if (p && c->channels && p->info.dims[0] != c->channels)
        return dr__fail(err, DR_ERR_FORMAT, "decode_volume: the file has %lld channels, channels is %lld",
                        (long long)p->info.dims[0], (long long)c->channels);
    out->desc = dr__desc_volume(dtype_of(c), p ? p->info.dims : unknown);
    for (int i = 0; p && i < 3; i++)
        out->desc.spacing[i] = p->info.spacing[i];
    out->desc.kind = c->labels ? DR_KIND_VOLUME_MASK : DR_KIND_VOLUME;
    out->scratch = DR__VOLUME_ROOM;
    return DR_OK;
}

/* Measured: inflating takes about 11 ns for each byte in and 1 for each byte out, converting 2.5 for each voxel. */
static double cost(const void *conf, const void *par, const dr_desc *in)
{
    const dr__volume_info *info = &((const struct par *)par)->info;
    double voxels = 1;
    (void)conf;
    for (int i = 0; i < 4; i++)
        voxels *= (double)info->dims[i];
    double inflating = info->gzip ? 11.0 * (double)in->dims[0] + voxels * info->bytes : 0.0;
    return 2.5 * voxels + inflating;
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const struct par *p = par;
    return dr__volume_decode(in->data, (size_t)in->desc.dims[0], &p->info, task->scratch, out, task->err);
}

const dr_op_def dr__op_decode_volume = {
    .name = "decode_volume",
    .version = 1,
    .summary = "stored volume (NIfTI-1, .npy) to an array of channels, depth, height, width",
    .params = params,
    .conf_size = sizeof(struct conf),
    .par_size = sizeof(struct par),
    .flags = DR_OP_DECODE,
    .peek = peek,
    .plan = plan,
    .cost = cost,
    .run = run,
};
