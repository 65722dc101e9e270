/* array.c: arrays in memory as a data set: sample i is row i of each. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "data/desc.h"
#include "format/dataset_internal.h"

struct arrays {
    dr_dataset head;
    struct column {
        const uint8_t *data;
        size_t row_bytes;
    } * columns; /* n of them; owned */
    int n;
    bool own_key; /* one of the arrays has the name "key" */
    void (*release)(void *user);
    void *user;
};

static void key(const dr_dataset *set, uint64_t id, char *text, size_t size)
{
    (void)set;
    snprintf(text, size, "%" PRIu64, id);
}

static dr_status read_sample(const dr_dataset *set, uint64_t id, dr__record *record, dr_error *err)
{
    const struct arrays *a = (const struct arrays *)set;
    char text[24];
    DR_TRY(dr__record_reset(record, sizeof text, err));
    if (!dr__record_reserve_fields(record, set->n_fields))
        return dr__fail(err, DR_ERR_NOMEM, "out of memory for the fields of a sample");
    for (int i = 0; i < a->n; i++) {
        const struct column *c = &a->columns[i];
        record->fields[i] = dr__view_dense(&set->fields[i].desc, (uint8_t *)c->data + id * c->row_bytes);
    }
    record->n_fields = a->n;
    if (a->own_key)
        return DR_OK;
    key(set, id, text, sizeof text);
    return dr__record_text(record, text, strlen(text), err);
}

static void close_arrays(dr_dataset *set)
{
    struct arrays *a = (struct arrays *)set;
    dr__free(a->columns);
    if (a->release)
        a->release(a->user);
}

static const dr_dataset_def arrays_def = {
    .read = read_sample,
    .key = key,
    .close = close_arrays,
};

static dr_status volume_desc(const dr_array *array, dr_desc *row, dr_error *err)
{
    if (row->n_dims == 3) { /* without channels: one */
        memmove(row->dims + 1, row->dims, 3 * sizeof row->dims[0]);
        row->dims[0] = 1;
        row->n_dims = 4;
    }
    if (row->n_dims == 4)
        return DR_OK;
    return dr__fail(err, DR_ERR_ARG,
                    "array \"%s\": volumes must have the shape (n, D, H, W) or (n, C, D, H, W), got %d extents",
                    array->name, array->desc.n_dims);
}

/* What one row is: the array without its first extent.  Grey images get their channel. */
static dr_status row_desc(const dr_array *array, dr_desc *row, dr_error *err)
{
    *row = array->desc;
    row->n_dims--;
    memmove(row->dims, row->dims + 1, (DR_MAX_DIMS - 1) * sizeof row->dims[0]);
    row->dims[DR_MAX_DIMS - 1] = 0;
    if (dr__is_volume(row))
        return volume_desc(array, row, err);
    if (!dr__is_image(row))
        return DR_OK;
    if (row->n_dims != 2 && row->n_dims != 3)
        return dr__fail(err, DR_ERR_ARG,
                        "array \"%s\": images must have the shape (n, H, W) or (n, H, W, C), got %d extents",
                        array->name, array->desc.n_dims);
    if (row->layout == DR_LAYOUT_ANY)
        row->layout = DR_LAYOUT_HWC;
    if (row->n_dims == 2 && row->kind == DR_KIND_IMAGE) {
        row->layout = DR_LAYOUT_HWC;
        row->n_dims = 3;
        row->dims[2] = 1;
    }
    return DR_OK;
}

static dr_status check(const dr_array *array, int i, int64_t n, dr_error *err)
{
    const dr_desc *d = &array->desc;
    size_t bytes;
    if (!array->name)
        return dr__fail(err, DR_ERR_ARG, "array %d must have a name", i);
    if (d->n_dims < 1 || d->n_dims > DR_MAX_DIMS)
        return dr__fail(err, DR_ERR_ARG, "array \"%s\": extents must be 1 to %d, got %d", array->name, DR_MAX_DIMS,
                        d->n_dims);
    if (!dr_dtype_size(d->dtype))
        return dr__fail(err, DR_ERR_ARG, "array \"%s\": dtype must be a dr_dtype, got %d", array->name, (int)d->dtype);
    if (!dr__desc_bytes_dense(d, &bytes))
        return dr__fail(err, DR_ERR_ARG,
                        "array \"%s\": extents must not be negative, and their product must fit in memory",
                        array->name);
    if (d->device.type != DR_DEVICE_CPU || (bytes && !array->data))
        return dr__fail(err, DR_ERR_ARG, "array \"%s\": must be in CPU memory", array->name);
    if (d->dims[0] != n)
        return dr__fail(err, DR_ERR_ARG, "array \"%s\" must have %lld samples, as the first array, got %lld",
                        array->name, (long long)n, (long long)d->dims[0]);
    return n ? DR_OK : dr__fail(err, DR_ERR_ARG, "array \"%s\" has no samples", array->name);
}

/* Shapes, and a little of the content: hashing all of it would read gigabytes. */
static uint64_t hash_array(const dr_array *array, size_t bytes, uint64_t h)
{
    size_t part = DR_MIN(bytes, (size_t)65536);
    h = XXH3_64bits_withSeed(array->name, strlen(array->name), h);
    h = XXH3_64bits_withSeed(array->desc.dims, (size_t)array->desc.n_dims * sizeof array->desc.dims[0], h);
    h = XXH3_64bits_withSeed(array->data, part, h + (uint64_t)array->desc.dtype);
    return XXH3_64bits_withSeed((const uint8_t *)array->data + bytes - part, part, h);
}

static dr_status add_array(struct arrays *a, const dr_array *array, int64_t n, dr_error *err)
{
    dr_desc row;
    DR_TRY(check(array, a->n, n, err));
    DR_TRY(row_desc(array, &row, err));
    DR_TRY(dr__dataset_add_field(&a->head, array->name, &row, err));
    struct column *c = &a->columns[a->n];
    dr__desc_bytes_dense(&row, &c->row_bytes);
    c->data = array->data;
    a->own_key = a->own_key || !strcmp(array->name, "key");
    a->head.fingerprint = hash_array(array, c->row_bytes * (size_t)n, a->head.fingerprint);
    a->n++;
    return DR_OK;
}

static dr_status fill(struct arrays *a, const dr_array *arrays, int n_arrays, dr_error *err)
{
    int64_t n = arrays[0].desc.n_dims > 0 ? arrays[0].desc.dims[0] : 0;
    a->columns = dr__alloc_zero((size_t)n_arrays, sizeof *a->columns);
    if (!a->columns)
        return dr__fail(err, DR_ERR_NOMEM, "out of memory for %d arrays", n_arrays);
    for (int i = 0; i < n_arrays; i++)
        DR_TRY(add_array(a, &arrays[i], n, err));
    a->head.n_samples = a->head.n_places = (uint64_t)n;
    dr_desc text = dr__desc_text(DR_UNKNOWN);
    return a->own_key ? DR_OK : dr__dataset_add_field(&a->head, "key", &text, err);
}

dr_status dr_dataset_from_arrays(const dr_array *arrays, int n_arrays, void (*release)(void *user), void *user,
                                 dr_dataset **out, dr_error *err)
{
    if (!arrays || n_arrays < 1 || n_arrays >= DR__MAX_FIELDS)
        return dr__fail(err, DR_ERR_ARG, "n_arrays must be 1 to %d, got %d", DR__MAX_FIELDS - 1, n_arrays);
    dr_dataset *set;
    DR_TRY(dr__dataset_new(sizeof(struct arrays), &arrays_def, "array", "arrays", &set, err));
    struct arrays *a = (struct arrays *)set;
    dr_status status = fill(a, arrays, n_arrays, err);
    if (status != DR_OK) {
        dr_dataset_unref(&set);
        return status;
    }
    a->release = release; /* from here on: a failed call leaves the memory to the caller */
    a->user = user;
    *out = set;
    return DR_OK;
}
