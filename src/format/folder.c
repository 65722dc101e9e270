/* folder.c: a folder with one folder per class, found and numbered as by torchvision's ImageFolder; and the data set of
 * flat.c, image files below a folder without classes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "data/desc.h"
#include "format/folder.h"
#include "format/listing.h"

enum { MAX_PATH = 8192 }; /* a folder's path and a name, each bounded by the system to less */

struct folder {
    dr_dataset head;
    dr__listing listing;
};

static dr_status read_sample(const dr_dataset *set, uint64_t id, dr__record *record, dr_error *err)
{
    const struct folder *f = (const struct folder *)set;
    char path[MAX_PATH];
    size_t len = dr__listing_path(&f->listing, id, path, sizeof path), size;
    if (len >= sizeof path)
        return dr__fail(err, DR_ERR_LIMIT, "%s/%.200s...: path longer than %d bytes", set->name, path, MAX_PATH);
    void *data;
    DR_TRY(dr__record_read_file(record, f->listing.root, path, len + 8, &data, &size, err));
    dr__record_ranged(record, set, id, data);
    DR_TRY(dr__record_bytes(record, DR_KIND_BYTES, data, size, err));
    if (f->listing.by_class)
        DR_TRY(dr__record_i64(record, f->listing.dir[dr__listing_dir_of(&f->listing, id)].label, err));
    return dr__record_text(record, path, len, err);
}

static dr_status read_ranges(const dr_dataset *set, uint64_t id, uint64_t version, const dr__byte_ranges *ranges,
                             uint8_t *to, dr_error *err)
{
    const struct folder *f = (const struct folder *)set;
    char path[MAX_PATH];
    dr__listing_path(&f->listing, id, path, sizeof path);
    return dr__source_dir_get_ranges(f->listing.root, path, version, ranges, to, err);
}

static void key(const dr_dataset *set, uint64_t id, char *text, size_t size)
{
    dr__listing_path(&((const struct folder *)set)->listing, id, text, size);
}

static dr_status file(const dr_dataset *set, uint64_t id, int field, char *text, size_t size, dr_error *err)
{
    char path[MAX_PATH];
    if (field != 0)
        return dr__dataset_no_file(set, field, err);
    dr__listing_path(&((const struct folder *)set)->listing, id, path, sizeof path);
    return dr__dataset_file_is(set, path, text, size, err);
}

static void where(const dr_dataset *set, uint64_t id, int field, dr__where *out)
{
    const dr__listing *l = &((const struct folder *)set)->listing;
    if (field == 0) {
        out->size = DR__WHOLE_FILE;
        out->form = dr__listing_path(l, id, out->path, sizeof out->path) < sizeof out->path ? DR__WHERE_RANGE
                                                                                            : DR__WHERE_UNKNOWN;
    } else if (field == 1 && l->by_class) {
        out->form = DR__WHERE_NUMBER;
        out->number = l->dir[dr__listing_dir_of(l, id)].label;
    } else {
        out->form = DR__WHERE_KEY;
    }
}

static dr_status stamp(const dr_dataset *set, uint64_t id, uint64_t *out, dr_error *err)
{
    const struct folder *f = (const struct folder *)set;
    char path[MAX_PATH];
    if (dr__listing_path(&f->listing, id, path, sizeof path) >= sizeof path)
        return dr__fail(err, DR_ERR_LIMIT, "%s: path longer than %d bytes", set->name, MAX_PATH);
    return dr__stamp_file(f->listing.root, path, out, err);
}

static void close_folder(dr_dataset *set)
{
    dr__listing_free(&((struct folder *)set)->listing);
}

static const dr_dataset_def folder_def = {
    .read = read_sample,
    .key = key,
    .stamp = stamp,
    .read_ranges = read_ranges,
    .file = file,
    .where = where,
    .close = close_folder,
};

static dr_status add_fields(dr_dataset *set, bool with_label, dr_error *err)
{
    dr_desc image = dr__desc_bytes(DR_UNKNOWN), label = dr__desc_scalar(DR_I64), text = dr__desc_text(DR_UNKNOWN);
    DR_TRY(dr__dataset_add_field(set, "image", &image, err));
    if (with_label)
        DR_TRY(dr__dataset_add_field(set, "label", &label, err));
    return dr__dataset_add_field(set, "key", &text, err);
}

/* As ImageFolder, refuses classes without files: a label without samples is mostly a mistake in the data. */
static dr_status check_classes(const dr_dataset *set, const dr__listing *l, const char **classes,
                               const char *const *extensions, dr_error *err)
{
    char names[400] = "", list[160];
    size_t used = 0, missing = 0, d = 1;
    for (size_t c = 0; c < l->n_classes; c++) {
        uint64_t begin = l->dir[d].first;
        while (d < l->dirs.n && l->dir[d].label == c)
            d++;
        if ((d < l->dirs.n ? l->dir[d].first : l->files.n) > begin)
            continue;
        if (missing++ < 8 && used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", missing > 1 ? ", " : "", classes[c]);
    }
    if (!missing)
        return DR_OK;
    return dr__fail(err, DR_ERR_NOT_FOUND,
                    "%s: found no valid file for %zu of %zu classes: %s%s; extensions searched: %s", set->name, missing,
                    l->n_classes, names, missing > 8 ? ", ..." : "",
                    dr__extensions_text(extensions, list, sizeof list));
}

static dr_status take_classes(dr_dataset *set, const dr__listing *l, const char *const *extensions, dr_error *err)
{
    if (!l->n_classes)
        return dr__fail(err, DR_ERR_NOT_FOUND, "%s: no class folder in it", set->name);
    const char **names = dr__listing_classes(l);
    if (!names)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory for %zu classes", set->name, l->n_classes);
    dr_status status = check_classes(set, l, names, extensions, err);
    if (status == DR_OK)
        status = dr__dataset_set_classes(set, names, l->n_classes, err);
    dr__free(names);
    return status;
}

static dr_status fill(struct folder *f, const char *path, const dr_read_options *options, bool by_class, dr_error *err)
{
    const char *const *extensions = dr__extensions(options);
    char list[160];
    dr__listing *l = &f->listing;
    const dr__source_options source = dr__source_options_of(options);
    DR_TRY(dr__listing_open(path, &source, by_class, extensions, options->use_index, l, err));
    if (by_class)
        DR_TRY(take_classes(&f->head, l, extensions, err));
    if (!l->files.n)
        return dr__fail(err, DR_ERR_NOT_FOUND, "%s: no image in it or below; extensions searched: %s", path,
                        dr__extensions_text(extensions, list, sizeof list));
    f->head.n_samples = f->head.n_places = l->files.n;
    f->head.fingerprint = dr__listing_fingerprint(l);
    /* A file beside it would change the mtime of the folder, by which the listings of other folders are known. */
    if (options->use_index)
        dr__dataset_keep(&f->head, path, by_class && !options->extensions ? "/.drapps-seek" : NULL);
    return add_fields(&f->head, by_class, err);
}

dr_status dr__folder_open(const char *path, const dr_read_options *options, bool by_class, dr_dataset **out,
                          dr_error *err)
{
    dr_dataset *set;
    DR_TRY(dr__dataset_new(sizeof(struct folder), &folder_def, by_class ? "folder" : "flat", path, &set, err));
    dr_status status = fill((struct folder *)set, path, options, by_class, err);
    if (status != DR_OK) {
        dr_dataset_unref(&set);
        return status;
    }
    *out = set;
    return DR_OK;
}

static dr_status open_folder(const char *path, const dr_read_options *options, dr_dataset **out, dr_error *err)
{
    return dr__folder_open(path, options, true, out, err);
}

static int probe(const char *path)
{
    bool below;
    if (!dr__listing_known_below(path, dr__extensions(NULL), &below))
        below = dr__listing_any_below(path, dr__extensions(NULL));
    return below ? 50 : 0;
}

const dr_format_def dr__format_folder = {
    .name = "folder",
    .summary = "image files, one folder per class, as ImageFolder finds them",
    .uses = "a folder with one folder per class",
    .probe = probe,
    .open = open_folder,
};
