/* files.c: files that the caller has listed, with a label each: for front ends that list files by themselves.
 *
 * Paths are opened as they were given: relative ones start from the folder the process is in at that moment. */
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "data/desc.h"
#include "format/dataset_internal.h"
#include "format/paths.h"

enum { MAX_PATH = 8192 };

struct files {
    dr_dataset head;
    dr__source_dir *dir; /* none: paths are opened as they are */
    dr__paths paths;
    int64_t *labels; /* NULL: none */
};

static dr_status read_sample(const dr_dataset *set, uint64_t id, dr__record *record, dr_error *err)
{
    const struct files *f = (const struct files *)set;
    char path[MAX_PATH];
    size_t len = dr__paths_get(&f->paths, id, path, sizeof path), size;
    void *data;
    DR_TRY(dr__record_read_file(record, f->dir, path, len + 8, &data, &size, err));
    dr__record_ranged(record, set, id, data);
    DR_TRY(dr__record_bytes(record, DR_KIND_BYTES, data, size, err));
    if (f->labels)
        DR_TRY(dr__record_i64(record, f->labels[id], err));
    return dr__record_text(record, path, len, err);
}

static dr_status read_ranges(const dr_dataset *set, uint64_t id, uint64_t version, const dr__byte_ranges *ranges,
                             uint8_t *to, dr_error *err)
{
    const struct files *f = (const struct files *)set;
    char path[MAX_PATH];
    dr__paths_get(&f->paths, id, path, sizeof path);
    return dr__source_dir_get_ranges(f->dir, path, version, ranges, to, err);
}

static void key(const dr_dataset *set, uint64_t id, char *text, size_t size)
{
    dr__paths_get(&((const struct files *)set)->paths, id, text, size);
}

static dr_status file(const dr_dataset *set, uint64_t id, int field, char *text, size_t size, dr_error *err)
{
    char path[MAX_PATH];
    if (field != 0)
        return dr__dataset_no_file(set, field, err);
    dr__paths_get(&((const struct files *)set)->paths, id, path, sizeof path);
    return dr__dataset_file_is(set, path, text, size, err);
}

static dr_status stamp(const dr_dataset *set, uint64_t id, uint64_t *out, dr_error *err)
{
    const struct files *f = (const struct files *)set;
    char path[MAX_PATH];
    dr__paths_get(&f->paths, id, path, sizeof path);
    return dr__stamp_file(f->dir, path, out, err);
}

static void close_files(dr_dataset *set)
{
    struct files *f = (struct files *)set;
    dr__source_dir_close(&f->dir);
    dr__paths_free(&f->paths);
    dr__free(f->labels);
}

static const dr_dataset_def files_def = {
    .read = read_sample,
    .key = key,
    .stamp = stamp,
    .read_ranges = read_ranges,
    .file = file,
    .close = close_files,
};

static dr_status add_path(struct files *f, const char *path, size_t i, const char *const *extensions, dr_error *err)
{
    size_t len = strlen(path);
    if (!len || len >= MAX_PATH)
        return dr__fail(err, DR_ERR_ARG, "file %zu: path must have 1 to %d bytes, got %zu", i, MAX_PATH - 1, len);
    if (extensions && !dr__has_extension(path, len, extensions)) {
        char text[256];
        return dr__fail(err, DR_ERR_UNSUPPORTED, "%s: the name ends with none of %s", path,
                        dr__extensions_text(extensions, text, sizeof text));
    }
    if (!dr__paths_add(&f->paths, path, len))
        return dr__fail(err, DR_ERR_NOMEM, "out of memory for %zu paths", i);
    f->head.fingerprint = XXH3_64bits_withSeed(path, len, f->head.fingerprint);
    return DR_OK;
}

static dr_status take_labels(struct files *f, const int64_t *labels, size_t n, dr_error *err)
{
    f->labels = dr__realloc(NULL, n, sizeof *labels);
    if (!f->labels)
        return dr__fail(err, DR_ERR_NOMEM, "out of memory for %zu labels", n);
    memcpy(f->labels, labels, n * sizeof *labels);
    f->head.fingerprint = XXH3_64bits_withSeed(labels, n * sizeof *labels, f->head.fingerprint);
    return DR_OK;
}

static dr_status add_fields(struct files *f, dr_error *err)
{
    dr_desc image = dr__desc_bytes(DR_UNKNOWN), text = dr__desc_text(DR_UNKNOWN), number = dr__desc_scalar(DR_I64);
    DR_TRY(dr__dataset_add_field(&f->head, "image", &image, err));
    if (f->labels)
        DR_TRY(dr__dataset_add_field(&f->head, "label", &number, err));
    return dr__dataset_add_field(&f->head, "key", &text, err);
}

static dr_status fill(struct files *f, const dr_files *files, dr_error *err)
{
    DR_TRY(dr__source_dir_open(NULL, NULL, &f->dir, err));
    for (size_t i = 0; i < files->n; i++)
        DR_TRY(add_path(f, files->paths[i], i, files->extensions, err));
    dr__paths_shrink(&f->paths);
    if (files->labels)
        DR_TRY(take_labels(f, files->labels, files->n, err));
    f->head.n_samples = f->head.n_places = files->n;
    if (files->root)
        dr__dataset_keep(&f->head, files->root, NULL);
    return add_fields(f, err);
}

dr_status dr_dataset_from_files(const dr_files *files, dr_dataset **out, dr_error *err)
{
    if (!files || !files->n || !files->paths)
        return dr__fail(err, DR_ERR_ARG, "a data set needs at least one file");
    dr_dataset *set;
    DR_TRY(dr__dataset_new(sizeof(struct files), &files_def, "files", files->root ? files->root : "files", &set, err));
    dr_status status = fill((struct files *)set, files, err);
    if (status != DR_OK) {
        dr_dataset_unref(&set);
        return status;
    }
    *out = set;
    return DR_OK;
}
