/* pack_worth.c: whether running ops once makes something that is worth storing. */
#include "base/compiler.h"
#include "codec/image/image.h"
#include "data/desc.h"
#include "pack/pack_internal.h"

/* What the ops make of images, beside what decoding alone makes of them and what the files have. */
struct sizes {
    uint64_t pixels, decoded_pixels, bytes, file_bytes;
};

/* Adds the image `output` of the sample on the bench, if it is one that was decoded. */
static void add_sizes(const dr_pack *p, dr__workbench *bench, int output, struct sizes *sum)
{
    const dr_view *made = &bench->spare.fields[output], *file;
    const int field = dr__dataset_find_field(p->set, p->prefix.head->outputs[output].name);
    const dr_image_codec *codec;
    dr__decode_options o;
    dr__image_info info;
    size_t bytes;
    if (field < 0 || !dr__is_image(&made->desc) || p->set->fields[field].desc.kind != DR_KIND_BYTES)
        return;
    file = &bench->record.fields[field];
    const size_t size = (size_t)file->desc.dims[0];
    const int64_t *d = made->desc.dims + (made->desc.layout == DR_LAYOUT_CHW);
    dr__decode_defaults(&o);
    if (dr__image_probe(file->data, size, &codec, NULL) != DR_OK || !dr__desc_bytes_dense(&made->desc, &bytes) ||
        codec->header(bench->codecs, file->data, size, &o, &info, NULL) != DR_OK)
        return;
    sum->pixels += (uint64_t)(d[0] * d[1]);
    sum->decoded_pixels += (uint64_t)(info.width * info.height);
    sum->bytes += bytes;
    sum->file_bytes += size;
}

dr_status dr__ops_only_grow(dr_pack *p, bool *out, dr_error *err)
{
    enum { JUDGED = 8 };
    const uint64_t n = p->set->n_samples, step = DR_MAX(n / JUDGED, 1);
    dr__workbench *bench = dr__workbench_new();
    struct sizes sum = { 0 };
    const dr__record *record;
    if (!bench)
        return dr__fail(err, DR_ERR_NOMEM, "pack: out of memory");
    for (uint64_t id = 0, seen = 0; id < n && seen < JUDGED; id += step, seen++)
        if (dr__made_read(&p->recipe, bench, id, &record, NULL, NULL) == DR_OK)
            for (int i = 0; i < p->prefix.head->n_outputs; i++)
                add_sizes(p, bench, i, &sum);
    dr__workbench_free(&bench);
    *out = sum.pixels == sum.decoded_pixels && sum.bytes > sum.file_bytes;
    return DR_OK;
}
