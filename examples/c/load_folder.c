/* load_folder: one epoch of shuffled, augmented, normalised batches from a folder of images, in plain C.
 *
 *   cc load_folder.c $(pkg-config --cflags --libs drapps) -o load_folder
 *   ./load_folder FOLDER [BATCH_SIZE]
 *
 * FOLDER has one folder for each class.  Prints a line for each batch: its number, and shape and sum of
 * each field; then how many samples there were.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <drapps/drapps.h>

static dr_status build_graph(dr_graph **out, dr_error *err)
{
    static const char *const steps[][2] = {
        { "decode", "{}" },
        { "random_resized_crop", "{\"size\":64}" },
        { "random_horizontal_flip", "{}" },
        { "normalize", "{\"mean\":[0.485,0.456,0.406],\"std\":[0.229,0.224,0.225]}" },
    };
    dr_graph *graph = NULL;
    dr_status status = dr_graph_new(&graph, err);
    for (size_t i = 0; status >= 0 && i < sizeof steps / sizeof *steps; i++)
        status = dr_graph_add(graph, steps[i][0], steps[i][1], NULL, NULL, err);
    if (status < 0)
        dr_graph_free(&graph);
    *out = graph;
    return status;
}

static int64_t elements(const dr_desc *desc)
{
    int64_t n = 1;
    for (int i = 0; i < desc->n_dims; i++)
        n *= desc->dims[i];
    return n;
}

static void print_field(const dr_batch_field *field)
{
    const dr_desc *desc = &field->array.desc;
    double sum = 0.0;
    printf(" %s %s[", field->name, dr_dtype_name(desc->dtype));
    for (int i = 0; i < desc->n_dims; i++)
        printf("%s%" PRId64, i > 0 ? "," : "", desc->dims[i]);
    for (int64_t i = 0, n = elements(desc); i < n; i++) {
        if (desc->dtype == DR_F32)
            sum += (double)((const float *)(const void *)field->array.data)[i];
        else if (desc->dtype == DR_I64)
            sum += (double)((const int64_t *)(const void *)field->array.data)[i];
    }
    printf("] sum %.3f", sum);
}

static dr_status print_batch(const dr_batch *batch, dr_error *err)
{
    printf("batch %" PRIu64 ":", dr_batch_number(batch));
    for (int i = 0; i < dr_batch_fields(batch); i++) {
        dr_batch_field field;
        dr_status status = dr_batch_field_at(batch, i, &field, err);
        if (status < 0)
            return status;
        print_field(&field);
    }
    printf("\n");
    return DR_OK;
}

static dr_status run_epoch(dr_loader *loader, dr_error *err)
{
    uint64_t n_samples = 0;
    for (;;) {
        dr_batch *batch = NULL;
        dr_status status = dr_loader_next(loader, -1, &batch, err);
        if (status == DR_END)
            break;
        if (status < 0)
            return status;
        n_samples += dr_batch_samples(batch);
        status = print_batch(batch, err);
        dr_batch_unref(&batch);
        if (status < 0)
            return status;
    }
    printf("%" PRIu64 " samples in %" PRIu64 " batches\n", n_samples, dr_loader_batches(loader));
    return DR_OK;
}

static dr_status load_folder(const char *path, uint64_t batch_size, dr_error *err)
{
    dr_dataset *set = NULL;
    dr_graph *graph = NULL;
    dr_loader *loader = NULL;
    dr_read_options how;
    dr_read_defaults(&how);
    dr_loader_options options;
    dr_loader_defaults(&options);
    options.batch_size = batch_size;
    options.shuffle = true;
    options.seed = 1;

    dr_status status = dr_dataset_open(path, &how, &set, err);
    if (status >= 0)
        status = build_graph(&graph, err);
    if (status >= 0)
        status = dr_loader_open(set, graph, &options, &loader, err);
    if (status >= 0)
        status = run_epoch(loader, err);

    dr_loader_close(&loader);
    dr_graph_free(&graph);
    dr_dataset_unref(&set);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s FOLDER [BATCH_SIZE]\n", argv[0]);
        return 2;
    }
    uint64_t batch_size = argc > 2 ? strtoull(argv[2], NULL, 10) : 8;
    dr_error err;
    if (load_folder(argv[1], batch_size, &err) < 0) {
        fprintf(stderr, "load_folder: %s\n", err.text);
        return 1;
    }
    return 0;
}
