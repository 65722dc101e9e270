/* list.c: files named in a list: plain lines, CSV, TSV or JSONL.
 *
 * A sample may have a second file: a mask, or a volume of labels.  Columns that are neither path, label nor mask are
 * fields under their own names.
 */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/grow.h"
#include "base/limits.h"
#include "data/desc.h"
#include "format/cell_table.h"
#include "format/dataset_internal.h"
#include "format/paths.h"
#include "source/source.h"

enum { MAX_PATH = 8192, PIECE = 1 << 22, OWN_VALUES = 4 }; /* image, label, mask, key */

struct list {
    dr_dataset head;
    dr__source_dir *root; /* relative paths start here */
    dr__table table;
    int path_column, label_column, mask_column; /* label, mask: -1 for none */
    dr__paths paths, masks;
    int64_t *class_of;       /* where labels are names */
    int *columns, n_columns; /* the other columns, in the order of their fields */
    size_t columns_cap;
};

/* What a list and its columns, which take about as much again, may each take. */
static uint64_t most_bytes(void)
{
    dr__limits limits;
    dr__limits_read("", &limits);
    return dr__limits_memory(&limits) / 2;
}

static dr_status check_size(const char *path, uint64_t size, dr_error *err)
{
    const uint64_t most = most_bytes();
    if (size <= most)
        return DR_OK;
    return dr__fail(err, DR_ERR_LIMIT, "%s: a list of %llu bytes; the memory of this process allows %llu", path,
                    (unsigned long long)size, (unsigned long long)most);
}

/* Reads piece by piece and stops at a zero byte, so that a large sparse file, whose holes are zeros, is refused early.
 */
static dr_status read_text(dr__source *source, uint64_t total, uint8_t **data, size_t *size, dr_error *err)
{
    size_t cap = 0, got = 1;
    while (got && *size < total) {
        const size_t ask = (size_t)DR_MIN(total - *size, (uint64_t)PIECE);
        uint8_t *more = dr__grow(*data, &cap, *size + ask, 1);
        if (!more)
            return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory for %llu bytes", source->name,
                            (unsigned long long)total);
        *data = more;
        DR_TRY(dr__source_read_at(source, more + *size, ask, *size, &got, err));
        const uint8_t *zero = memchr(more + *size, 0, got);
        if (zero)
            return dr__fail(err, DR_ERR_FORMAT, "%s: byte %zu is zero: not a list in UTF-8", source->name,
                            (size_t)(zero - more));
        *size += got;
    }
    return DR_OK;
}

static dr_status read_all(const char *path, const dr__source_options *options, uint8_t **data, size_t *size,
                          dr_error *err)
{
    dr__source *source;
    uint64_t total;
    *data = NULL;
    *size = 0;
    DR_TRY(dr__source_open(path, options, &source, err));
    dr_status status = dr__source_size(source, &total, err);
    if (status == DR_OK)
        status = check_size(path, total, err);
    if (status == DR_OK)
        status = read_text(source, total, data, size, err);
    if (status != DR_OK)
        dr__free(*data);
    dr__source_close(&source);
    return status;
}

static bool ends_with(const char *path, const char *const *endings)
{
    return dr__has_extension(path, strlen(path), endings);
}

static const char *const csv_endings[] = { ".csv", NULL };
static const char *const tsv_endings[] = { ".tsv", NULL };
static const char *const jsonl_endings[] = { ".jsonl", ".ndjson", NULL };
static const char *const all_endings[] = { ".csv", ".tsv", ".jsonl", ".ndjson", ".txt", ".lst", ".list", NULL };

static dr_status parse(const char *path, const uint8_t *data, size_t size, dr__table *table, dr_error *err)
{
    if (size >= 3 && !memcmp(data, "\xEF\xBB\xBF", 3)) { /* the mark that some editors write before UTF-8 */
        data += 3;
        size -= 3;
    }
    if (ends_with(path, csv_endings))
        return dr__csv_read(data, size, ',', table, err);
    if (ends_with(path, tsv_endings))
        return dr__csv_read(data, size, '\t', table, err);
    if (ends_with(path, jsonl_endings) || (!ends_with(path, all_endings) && size && data[0] == '{'))
        return dr__jsonl_read(data, size, table, err);
    return dr__lines_read(data, size, table, err);
}

static int find_any(const dr__table *t, const char *wanted, const char *const *usual)
{
    if (wanted)
        return dr__table_find(t, wanted, strlen(wanted));
    int found = -1;
    for (; *usual && found < 0; usual++)
        found = dr__table_find(t, *usual, strlen(*usual));
    return found;
}

static dr_status no_column(const dr__table *t, const char *what, const char *wanted, dr_error *err)
{
    char names[400] = "";
    size_t used = 0;
    for (int i = 0; i < t->n_columns && used + 70 < sizeof names; i++) {
        size_t n = strlen(t->columns[i].name);
        memcpy(names + used, i ? ", " : "", i ? 2 : 0);
        used += i ? 2 : 0;
        memcpy(names + used, t->columns[i].name, n + 1);
        used += n;
    }
    return dr__fail(err, DR_ERR_NOT_FOUND, "%s: no %s column (looked for %s); there are: %s", t->name, what, wanted,
                    names);
}

static dr_status same_column(const dr__table *t, const char *a, const char *b, int column, dr_error *err)
{
    return dr__fail(err, DR_ERR_ARG, "%s: %s and %s are the same column, \"%s\"", t->name, a, b,
                    t->columns[column].name);
}

/* A column has one use.  A column that was named by the caller overrides one that was found by its usual name. */
static dr_status part_columns(struct list *l, const dr_read_options *o, dr_error *err)
{
    if (l->label_column == l->path_column)
        return same_column(&l->table, "path", "label", l->path_column, err);
    if (l->mask_column < 0 || (l->mask_column != l->path_column && l->mask_column != l->label_column))
        return DR_OK;
    if (!o->mask_column)
        l->mask_column = -1;
    else if (l->mask_column == l->path_column)
        return same_column(&l->table, "path", "mask", l->path_column, err);
    else if (o->label_column)
        return same_column(&l->table, "label", "mask", l->label_column, err);
    else
        l->label_column = -1;
    return DR_OK;
}

static dr_status find_columns(struct list *l, const dr_read_options *o, dr_error *err)
{
    static const char *const paths[] = { "path", "file", "filename", "image", NULL };
    static const char *const labels[] = { "label", "class", "target", NULL };
    static const char *const masks[] = { "mask", "label_file", NULL };
    l->path_column = find_any(&l->table, o->path_column, paths);
    if (l->path_column < 0)
        return no_column(&l->table, "path", o->path_column ? o->path_column : "path, file, filename, image", err);
    l->label_column = find_any(&l->table, o->label_column, labels);
    if (l->label_column < 0 && o->label_column)
        return no_column(&l->table, "label", o->label_column, err);
    l->mask_column = find_any(&l->table, o->mask_column, masks);
    if (l->mask_column < 0 && o->mask_column)
        return no_column(&l->table, "mask", o->mask_column, err);
    return part_columns(l, o, err);
}

static dr_status take_path(struct list *l, const dr__names *cells, size_t row, dr__paths *paths, dr_error *err)
{
    const char *path = dr__names_get(cells, row);
    size_t len = dr__names_len(cells, row);
    if (!len || len >= MAX_PATH || strlen(path) != len)
        return dr__fail(err, DR_ERR_FORMAT, "%s: row %zu: the path is empty, longer than %d bytes or holds a zero byte",
                        l->table.name, row + 1, MAX_PATH - 1);
    return dr__paths_add(paths, path, len) ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", l->table.name);
}

static dr_status take_paths(struct list *l, int column, dr__paths *paths, dr_error *err)
{
    dr__names *cells = &l->table.columns[column].cells;
    for (size_t row = 0; row < l->table.n_rows; row++)
        DR_TRY(take_path(l, cells, row, paths, err));
    dr__names_free(cells);
    dr__paths_shrink(paths);
    return DR_OK;
}

/* A column of numbers holds no file names: it is a plain field, or an error where the caller named it. */
static dr_status take_masks(struct list *l, const dr_read_options *o, dr_error *err)
{
    if (l->mask_column < 0)
        return DR_OK;
    if (l->table.columns[l->mask_column].type == DR__CELL_TEXT)
        return take_paths(l, l->mask_column, &l->masks, err);
    if (o->mask_column)
        return dr__fail(err, DR_ERR_FORMAT, "%s: column \"%s\": a mask must be a file's name, these are numbers",
                        l->table.name, o->mask_column);
    l->mask_column = -1;
    return DR_OK;
}

static int compare_names(const void *a, const void *b)
{
    return dr__name_compare(*(const char *const *)a, *(const char *const *)b);
}

/* Sorts the distinct names into the front of `names`; returns how many there are. */
static size_t unique(const char **names, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (!kept || strcmp(names[kept - 1], names[i]))
            names[kept++] = names[i];
    return kept;
}

static dr_status name_classes(struct list *l, const char **names, dr_error *err)
{
    const dr__column *c = &l->table.columns[l->label_column];
    for (size_t i = 0; i < l->table.n_rows; i++)
        names[i] = dr__names_get(&c->cells, i);
    if (!dr__names_sort(names, l->table.n_rows))
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", l->table.name);
    size_t n = unique(names, l->table.n_rows);
    for (size_t i = 0; i < l->table.n_rows; i++) {
        const char *text = dr__names_get(&c->cells, i);
        const char **found = bsearch(&text, names, n, sizeof *names, compare_names);
        l->class_of[i] = found - names;
    }
    return dr__dataset_set_classes(&l->head, names, n, err);
}

static dr_status take_labels(struct list *l, dr_error *err)
{
    dr__column *c = &l->table.columns[l->label_column];
    if (c->kinds & 1u << DR__CELL_EMPTY)
        return dr__fail(err, DR_ERR_FORMAT, "%s: column \"%s\": a label is missing", l->table.name, c->name);
    if (c->type != DR__CELL_TEXT)
        return DR_OK;
    const char **names = dr__realloc(NULL, l->table.n_rows, sizeof *names);
    l->class_of = dr__realloc(NULL, l->table.n_rows, sizeof *l->class_of);
    dr_status status = names && l->class_of ? name_classes(l, names, err)
                                            : dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", l->table.name);
    dr__free(names);
    dr__names_free(&c->cells);
    return status;
}

static bool are_boxes(const dr__column *c)
{
    return (c->form.width == 4 || c->form.width < 0) && (!strcmp(c->name, "boxes") || !strcmp(c->name, "bboxes"));
}

/* x, y and visibility of each, in one row for an object. */
static bool are_keypoints(const dr__column *c)
{
    return c->form.width > 0 && c->form.width % 3 == 0 && !strcmp(c->name, "keypoints");
}

/* Boxes and key points are known by their name and width, labels of boxes by their name; other lists of numbers are
 * arrays. */
static dr_desc list_desc(const dr__column *c)
{
    dr_desc d = {
        .kind = DR_KIND_ARRAY, .dtype = c->form.whole ? DR_I64 : DR_F64, .n_dims = 1, .dims = { DR_UNKNOWN }
    };
    if (c->form.width > 0) {
        d.n_dims = 2;
        d.dims[1] = c->form.width;
    }
    if (!strcmp(c->name, "labels") || !strcmp(c->name, "iscrowd"))
        d.kind = DR_KIND_LABELS;
    if (are_keypoints(c))
        return (dr_desc){
            .kind = DR_KIND_KEYPOINTS, .dtype = DR_F32, .n_dims = 3, .dims = { DR_UNKNOWN, c->form.width / 3, 3 }
        };
    if (are_boxes(c))
        return (dr_desc){ .kind = DR_KIND_BOXES, .dtype = DR_F32, .n_dims = 2, .dims = { DR_UNKNOWN, 4 } };
    return d;
}

static dr_desc column_desc(const dr__column *c)
{
    if (c->type == DR__CELL_LIST)
        return list_desc(c);
    return c->type == DR__CELL_INT    ? dr__desc_scalar(DR_I64)
           : c->type == DR__CELL_REAL ? dr__desc_scalar(DR_F64)
                                      : dr__desc_text(DR_UNKNOWN);
}

/* A column with the name of a field that is already there gets an underscore appended. */
static dr_status add_column_field(struct list *l, int column, dr_error *err)
{
    const dr__column *c = &l->table.columns[column];
    char name[sizeof c->name + 1];
    dr_desc desc = column_desc(c);
    size_t n = strlen(c->name);
    memcpy(name, c->name, n + 1);
    if (dr__dataset_find_field(&l->head, name) >= 0)
        memcpy(name + n, "_", 2);
    DR_TRY(dr__dataset_add_field(&l->head, name, &desc, err));
    int *columns = dr__grow(l->columns, &l->columns_cap, (size_t)l->n_columns + 1, sizeof *columns);
    if (!columns)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", l->table.name);
    l->columns = columns;
    columns[l->n_columns++] = column;
    return DR_OK;
}

static dr_status add_fields(struct list *l, dr_error *err)
{
    dr_desc image = dr__desc_bytes(DR_UNKNOWN), text = dr__desc_text(DR_UNKNOWN);
    DR_TRY(dr__dataset_add_field(&l->head, "image", &image, err));
    if (l->label_column >= 0) {
        dr_desc label = l->class_of ? dr__desc_scalar(DR_I64) : column_desc(&l->table.columns[l->label_column]);
        DR_TRY(dr__dataset_add_field(&l->head, "label", &label, err));
    }
    if (l->mask_column >= 0) {
        const char *column = l->table.columns[l->mask_column].name;
        DR_TRY(dr__dataset_add_field(&l->head, strcmp(column, "label_file") ? column : "label", &image, err));
    }
    DR_TRY(dr__dataset_add_field(&l->head, "key", &text, err));
    for (int i = 0; i < l->table.n_columns; i++)
        if (i != l->path_column && i != l->label_column && i != l->mask_column)
            DR_TRY(add_column_field(l, i, err));
    return DR_OK;
}

static dr_status open_root(struct list *l, const char *path, const dr_read_options *o, dr_error *err)
{
    const char *slash = strrchr(path, '/');
    const dr__source_options options = dr__source_options_of(o);
    char *root = dr__strdup(o->root ? o->root : slash ? path : ".");
    if (!root)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", path);
    if (!o->root && slash)
        root[slash == path ? 1 : slash - path] = 0;
    dr_status status = dr__source_dir_open(root, &options, &l->root, err);
    if (status != DR_OK)
        dr__error_prefix(err, "%s", path);
    dr__free(root);
    return status;
}

static dr_status fill(struct list *l, const char *path, const dr_read_options *o, dr_error *err)
{
    uint8_t *data;
    size_t size;
    DR_TRY(open_root(l, path, o, err));
    dr__table_init(&l->table, l->head.name);
    l->table.max_cells = most_bytes() / DR__CELL_BYTES; /* rows of JSONL may lack most of the columns */
    const dr__source_options options = dr__source_options_of(o);
    DR_TRY(read_all(path, &options, &data, &size, err));
    dr_status status = parse(path, data, size, &l->table, err);
    l->head.fingerprint = XXH3_64bits(data, size);
    dr__free(data);
    DR_TRY(status);
    if (!l->table.n_rows)
        return dr__fail(err, DR_ERR_NOT_FOUND, "%s: the list names no file", path);
    DR_TRY(find_columns(l, o, err));
    DR_TRY(dr__table_finish(&l->table, l->path_column, err));
    DR_TRY(take_paths(l, l->path_column, &l->paths, err));
    DR_TRY(take_masks(l, o, err));
    if (l->label_column >= 0)
        DR_TRY(take_labels(l, err));
    l->head.n_samples = l->head.n_places = l->table.n_rows;
    if (o->use_index)
        dr__dataset_keep(&l->head, path, ".drapps-seek");
    return add_fields(l, err);
}

static dr_status list_value(const dr__column *c, uint64_t id, dr__record *record, dr_error *err)
{
    const char *text = dr__names_get(&c->cells, id);
    size_t len = dr__names_len(&c->cells, id), n = dr__ragged_numbers(text, len);
    dr_desc desc = list_desc(c);
    void *values = dr__record_take(record, n * dr_dtype_size(desc.dtype));
    if (!values)
        return dr__fail(err, DR_ERR_NOMEM, "no room for %zu numbers of column \"%s\"", n, c->name);
    dr__ragged_read(text, len, desc.dtype, values);
    desc.dims[0] = (int64_t)(c->form.width > 0 ? n / (size_t)c->form.width : n);
    return dr__record_view(record, &(dr_view){ .data = values, .desc = desc }, err);
}

/* Bytes of a sample's lists of numbers. */
static size_t list_bytes(const struct list *l, uint64_t id)
{
    size_t bytes = 0, n_lists = 0;
    for (int i = 0; i < l->table.n_columns; i++) {
        const dr__column *c = &l->table.columns[i];
        if (c->type != DR__CELL_LIST)
            continue;
        bytes += 8 * dr__ragged_numbers(dr__names_get(&c->cells, id), dr__names_len(&c->cells, id));
        n_lists++;
    }
    return bytes + dr__record_overhead(n_lists + OWN_VALUES);
}

/* Values other than lists are borrowed from the table, which outlives the record. */
static dr_status column_value(const dr__column *c, uint64_t id, dr__record *record, dr_error *err)
{
    if (c->type == DR__CELL_LIST)
        return list_value(c, id, record, err);
    if (c->type == DR__CELL_TEXT)
        return dr__record_bytes(record, DR_KIND_TEXT, dr__names_get(&c->cells, id), dr__names_len(&c->cells, id), err);
    void *value = c->type == DR__CELL_INT ? (void *)&c->ints[id] : (void *)&c->reals[id];
    return dr__record_view(record, &(dr_view){ .data = value, .desc = column_desc(c) }, err);
}

static dr_status read_sample(const dr_dataset *set, uint64_t id, dr__record *record, dr_error *err)
{
    const struct list *l = (const struct list *)set;
    char path[MAX_PATH], mask[MAX_PATH];
    const char *paths[] = { path, mask };
    size_t len = dr__paths_get(&l->paths, id, path, sizeof path), sizes[2];
    void *data[2];
    if (l->mask_column >= 0)
        dr__paths_get(&l->masks, id, mask, sizeof mask);
    DR_TRY(dr__record_read_files(record, l->root, paths, l->mask_column >= 0 ? 2 : 1, len + 8 + list_bytes(l, id), data,
                                 sizes, err));
    dr__record_ranged(record, set, id, data[0]);
    DR_TRY(dr__record_bytes(record, DR_KIND_BYTES, data[0], sizes[0], err));
    if (l->class_of)
        DR_TRY(dr__record_i64(record, l->class_of[id], err));
    else if (l->label_column >= 0)
        DR_TRY(column_value(&l->table.columns[l->label_column], id, record, err));
    if (l->mask_column >= 0)
        DR_TRY(dr__record_bytes(record, DR_KIND_BYTES, data[1], sizes[1], err));
    DR_TRY(dr__record_text(record, path, len, err));
    for (int i = 0; i < l->n_columns; i++)
        DR_TRY(column_value(&l->table.columns[l->columns[i]], id, record, err));
    return DR_OK;
}

static dr_status read_ranges(const dr_dataset *set, uint64_t id, uint64_t version, const dr__byte_ranges *ranges,
                             uint8_t *to, dr_error *err)
{
    const struct list *l = (const struct list *)set;
    char path[MAX_PATH];
    dr__paths_get(&l->paths, id, path, sizeof path);
    return dr__source_dir_get_ranges(l->root, path, version, ranges, to, err);
}

static void key(const dr_dataset *set, uint64_t id, char *text, size_t size)
{
    dr__paths_get(&((const struct list *)set)->paths, id, text, size);
}

static dr_status file(const dr_dataset *set, uint64_t id, int field, char *text, size_t size, dr_error *err)
{
    const struct list *l = (const struct list *)set;
    const bool image = field == 0, mask = l->mask_column >= 0 && field == dr__dataset_find_field(set, "mask");
    char path[MAX_PATH];
    if (!image && !mask)
        return dr__dataset_no_file(set, field, err);
    dr__paths_get(image ? &l->paths : &l->masks, id, path, sizeof path);
    return dr__dataset_file_is(set, path, text, size, err);
}

/* Fields: image, label, mask, key, as far as the list has them, then the other columns. */
static void where(const dr_dataset *set, uint64_t id, int field, dr__where *out)
{
    const struct list *l = (const struct list *)set;
    const int label = l->label_column >= 0 ? 1 : -1, mask = l->mask_column >= 0 ? label > 0 ? 2 : 1 : -1;
    const int key_field = 1 + (label > 0) + (mask > 0);
    if (field == 0 || field == mask) {
        const size_t n = dr__paths_get(field ? &l->masks : &l->paths, id, out->path, sizeof out->path);
        out->form = n < sizeof out->path ? DR__WHERE_RANGE : DR__WHERE_UNKNOWN;
        out->size = DR__WHOLE_FILE;
    } else if (field == key_field) {
        out->form = DR__WHERE_KEY;
    } else if (field == label && l->class_of) {
        out->form = DR__WHERE_NUMBER;
        out->number = l->class_of[id];
    } else if (field == label && l->table.columns[l->label_column].type == DR__CELL_INT) {
        out->form = DR__WHERE_NUMBER;
        out->number = l->table.columns[l->label_column].ints[id];
    }
}

static dr_status stamp(const dr_dataset *set, uint64_t id, uint64_t *out, dr_error *err)
{
    const struct list *l = (const struct list *)set;
    char path[MAX_PATH];
    dr__paths_get(&l->paths, id, path, sizeof path);
    DR_TRY(dr__stamp_file(l->root, path, out, err));
    if (l->mask_column < 0)
        return DR_OK;
    uint64_t stamps[2] = { *out };
    dr__paths_get(&l->masks, id, path, sizeof path);
    DR_TRY(dr__stamp_file(l->root, path, &stamps[1], err));
    *out = XXH3_64bits(stamps, sizeof stamps);
    return DR_OK;
}

static void close_list(dr_dataset *set)
{
    struct list *l = (struct list *)set;
    dr__source_dir_close(&l->root);
    if (l->table.columns)
        dr__table_free(&l->table);
    dr__paths_free(&l->paths);
    dr__paths_free(&l->masks);
    dr__free(l->class_of);
    dr__free(l->columns);
}

static const dr_dataset_def list_def = {
    .read = read_sample,
    .key = key,
    .stamp = stamp,
    .read_ranges = read_ranges,
    .file = file,
    .where = where,
    .close = close_list,
};

static dr_status open_list(const char *path, const dr_read_options *options, dr_dataset **out, dr_error *err)
{
    dr_dataset *set;
    DR_TRY(dr__dataset_new(sizeof(struct list), &list_def, "list", path, &set, err));
    dr_status status = fill((struct list *)set, path, options, err);
    if (status != DR_OK) {
        dr_dataset_unref(&set);
        return status;
    }
    *out = set;
    return DR_OK;
}

static int probe(const char *path)
{
    dr__source_facts facts;
    return ends_with(path, all_endings) && dr__source_stat(path, &facts, NULL) == DR_OK && facts.kind == DR__SOURCE_FILE
               ? 100
               : 0;
}

const dr_format_def dr__format_list = {
    .name = "list",
    .summary = "files named in plain lines, CSV, TSV or JSONL, with labels and other columns",
    .uses = "a .txt, .lst, .csv, .tsv or .jsonl file",
    .probe = probe,
    .open = open_list,
};
