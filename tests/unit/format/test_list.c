/* test_list.c: lists of files: lines, CSV, JSONL. */
#include "tree.h"

#include <sys/resource.h>

#include <math.h>

#include "base/alloc.h"
#include "format/cell_table.h"
#include "format/dataset_internal.h"

static dr_status try_open(const char *name, const char *text, dr_dataset **set, dr_error *err)
{
    dr_read_options o;
    dr_read_defaults(&o);
    put_text(at("%s", name), text);
    return dr_dataset_open(at("%s", name), &o, set, err);
}

static dr_dataset *open_list(const char *name, const char *text)
{
    dr_dataset *set;
    dr_error err;
    if (try_open(name, text, &set, &err) != DR_OK)
        fail_msg("%s", err.text);
    assert_string_equal(dr_dataset_format(set), "list");
    return set;
}

static void fails(const char *name, const char *text, dr_status want, const char *part)
{
    dr_dataset *set = NULL;
    dr_error err;
    assert_int_equal(try_open(name, text, &set, &err), want);
    expect_in(err.text, part);
    expect_in(err.text, name);
}

static dr__record record;

static const dr_view *value(const dr_dataset *set, uint64_t id, const char *field)
{
    dr_error err;
    int f = dr__dataset_find_field(set, field);
    assert_true(f >= 0);
    if (set->def->read(set, id, &record, &err) != DR_OK)
        fail_msg("%s", err.text);
    assert_int_equal(record.n_fields, set->n_fields);
    return &record.fields[f];
}

static int64_t int_value(const dr_dataset *set, uint64_t id, const char *field)
{
    const dr_view *v = value(set, id, field);
    assert_int_equal(v->desc.dtype, DR_I64);
    return *(int64_t *)(void *)v->data;
}

static double real_value(const dr_dataset *set, uint64_t id, const char *field)
{
    const dr_view *v = value(set, id, field);
    assert_int_equal(v->desc.dtype, DR_F64);
    return *(double *)(void *)v->data;
}

static void expect_text(const dr_dataset *set, uint64_t id, const char *field, const char *want)
{
    const dr_view *v = value(set, id, field);
    assert_int_equal(v->desc.dims[0], strlen(want));
    assert_memory_equal(v->data, want, strlen(want));
}

static void plain_lines(void **state)
{
    (void)state;
    put_text(at("a.jpg"), "A");
    put_text(at("sub/b c.jpg"), "BC");
    dr_dataset *set = open_list("l.txt", "\xEF\xBB\xBF"
                                         "a.jpg\r\n\n  \nsub/b c.jpg\na.jpg");
    assert_int_equal(dr_dataset_size(set), 3);
    assert_int_equal(dr__dataset_find_field(set, "label"), -1);
    expect_text(set, 0, "image", "A");
    expect_text(set, 1, "image", "BC");
    expect_text(set, 2, "key", "a.jpg");
    expect_key(set, 1, "sub/b c.jpg");
    dr_dataset_unref(&set);
}

static void lines_with_labels(void **state)
{
    (void)state;
    put_text(at("a.jpg"), "A");
    put_text(at("b c.jpg"), "BC");
    const char *const texts[] = { "a.jpg 3\nb c.jpg -1\n", "a.jpg\t3\nb c.jpg\t-1\n" };
    for (int i = 0; i < 2; i++) {
        dr_dataset *set = open_list("l.txt", texts[i]);
        assert_int_equal(int_value(set, 0, "label"), 3);
        assert_int_equal(int_value(set, 1, "label"), -1);
        expect_text(set, 1, "key", "b c.jpg");
        dr_dataset_unref(&set);
    }
    fails("l.txt", "a.jpg 3\nb.jpg\n", DR_ERR_FORMAT, "l.txt:2: label");
    fails("l.txt", "a.jpg\tcat\n", DR_ERR_FORMAT, "\"cat\" is not a whole number");
    fails("l.txt", "a.jpg\t99999999999999999999\n", DR_ERR_FORMAT, "not a whole number");
    fails("l.txt", "\n \n", DR_ERR_NOT_FOUND, "names no file");
}

static void csv_with_all_kinds_of_columns(void **state)
{
    (void)state;
    put_text(at("a,b.jpg"), "A");
    put_text(at("c.jpg"), "C");
    dr_dataset *set = open_list("l.csv", "id,path,label,score,caption,key\r\n"
                                         "7,\"a,b.jpg\",dog,1.5,\"say \"\"hi\"\"\nagain\",k1\r\n"
                                         "8,c.jpg,cat,,,k2");
    assert_int_equal(dr_dataset_size(set), 2);
    assert_int_equal(dr_dataset_classes(set), 2);
    assert_string_equal(dr_dataset_class(set, 0), "cat");
    assert_string_equal(dr_dataset_class(set, 1), "dog");
    assert_int_equal(int_value(set, 0, "label"), 1);
    assert_int_equal(int_value(set, 1, "label"), 0);
    assert_int_equal(int_value(set, 0, "id"), 7);
    assert_true(real_value(set, 0, "score") == 1.5);
    assert_true(isnan(real_value(set, 1, "score")));
    expect_text(set, 0, "caption", "say \"hi\"\nagain");
    expect_text(set, 1, "caption", "");
    expect_text(set, 0, "key", "a,b.jpg");
    expect_text(set, 1, "key_", "k2");
    expect_text(set, 0, "image", "A");
    dr_dataset_unref(&set);
}

static void csv_errors_name_the_line(void **state)
{
    (void)state;
    fails("l.csv", "path,label\na.jpg\n", DR_ERR_FORMAT, "l.csv:2: 1 cells; the header has 2");
    fails("l.csv", "path,label\n\na.jpg,1,2\n", DR_ERR_FORMAT, "l.csv:3: more than the header's 2");
    fails("l.csv", "path,label\n\"a.jpg,1", DR_ERR_FORMAT, "l.csv:2: a quoted cell does not end");
    fails("l.csv", "path,path\n", DR_ERR_FORMAT, "two columns \"path\"");
    fails("l.csv", "path,,x\n", DR_ERR_FORMAT, "column name");
    fails("l.csv", "name,n\nx,1\n", DR_ERR_NOT_FOUND, "there are: name, n");
    fails("l.csv", "path,label\na.jpg,1\nb.jpg,\n", DR_ERR_FORMAT, "a label is missing");
    fails("l.csv", "path,label\n,1\n", DR_ERR_FORMAT, "row 1: the path is empty");
    fails("l.csv", "path\n", DR_ERR_NOT_FOUND, "names no file");
    fails("l.csv", "", DR_ERR_FORMAT, "column name");
    char many[16000] = "path";
    for (int i = 0; i < DR__MAX_COLUMNS; i++)
        snprintf(many + strlen(many), 16, ",c%d", i);
    fails("l.csv", many, DR_ERR_LIMIT, "more than 1024 columns");
}

enum { WIDE = 300 };

static void expect_wide(const dr_dataset *set)
{
    assert_int_equal(dr_dataset_fields(set), WIDE + 2); /* image and key, too */
    for (uint64_t row = 0; row < 2; row++)
        for (int i = 0; i < WIDE; i++) {
            char name[16];
            snprintf(name, sizeof name, "c%d", i);
            assert_int_equal(int_value(set, row, name), 1000 * (int)row + i);
        }
}

static void a_csv_with_hundreds_of_columns(void **state)
{
    (void)state;
    static char text[20000];
    int n = snprintf(text, sizeof text, "path");
    for (int i = 0; i < WIDE; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, ",c%d", i);
    for (int row = 0; row < 2; row++) {
        n += snprintf(text + n, sizeof text - (size_t)n, "\na.jpg");
        for (int i = 0; i < WIDE; i++)
            n += snprintf(text + n, sizeof text - (size_t)n, ",%d", 1000 * row + i);
    }
    put_text(at("a.jpg"), "A");
    dr_dataset *set = open_list("l.csv", text);
    expect_wide(set);
    dr_dataset_unref(&set);
}

/* The second line has its members in the opposite order. */
static void a_jsonl_with_hundreds_of_members(void **state)
{
    (void)state;
    static char text[20000];
    int n = 0;
    for (int row = 0; row < 2; row++) {
        n += snprintf(text + n, sizeof text - (size_t)n, "{\"path\": \"a.jpg\"");
        for (int k = 0; k < WIDE; k++) {
            const int i = row ? WIDE - 1 - k : k;
            n += snprintf(text + n, sizeof text - (size_t)n, ", \"c%d\": %d", i, 1000 * row + i);
        }
        n += snprintf(text + n, sizeof text - (size_t)n, "}\n");
    }
    put_text(at("a.jpg"), "A");
    dr_dataset *set = open_list("l.jsonl", text);
    expect_wide(set);
    dr_dataset_unref(&set);
}

/* Lists of numbers are copied into the record, each aligned. */
static void a_jsonl_with_hundreds_of_lists(void **state)
{
    (void)state;
    static char text[20000];
    int n = snprintf(text, sizeof text, "{\"path\": \"a.jpg\"");
    for (int i = 0; i < WIDE; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, ", \"c%d\": [%d]", i, i);
    snprintf(text + n, sizeof text - (size_t)n, "}\n");
    put_text(at("a.jpg"), "A");
    dr_dataset *set = open_list("l.jsonl", text);
    for (int i = 0; i < WIDE; i++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", i);
        assert_int_equal(int_value(set, 0, name), i);
    }
    dr_dataset_unref(&set);
}

static void sparse_rows_are_bounded(void **state)
{
    (void)state;
    const char text[] = "{\"a\": 1, \"b\": 2, \"c\": 3}\n{}\n{}\n{}\n";
    dr__table table;
    dr_error err;
    dr__table_init(&table, "l.jsonl");
    table.max_cells = 9;
    assert_int_equal(dr__jsonl_read(text, sizeof text - 1, &table, &err), DR_ERR_LIMIT);
    expect_in(err.text, "l.jsonl:4: 3 columns of 4 rows");
    dr__table_free(&table);
}

static void columns_and_root_can_be_named(void **state)
{
    (void)state;
    dr_read_options o;
    dr_dataset *set;
    dr_error err;
    char root[300];
    put_text(at("elsewhere/x.jpg"), "X");
    put_text(at("l.tsv"), "where\twhat\tlabel\nx.jpg\t5\tno\n");
    snprintf(root, sizeof root, "%s", at("elsewhere"));
    dr_read_defaults(&o);
    o.root = root;
    o.path_column = "where";
    o.label_column = "what";
    assert_int_equal(dr_dataset_open(at("l.tsv"), &o, &set, &err), DR_OK);
    assert_int_equal(int_value(set, 0, "label"), 5);
    expect_text(set, 0, "image", "X");
    expect_text(set, 0, "label_", "no");
    dr_dataset_unref(&set);
    o.label_column = "nothing";
    assert_int_equal(dr_dataset_open(at("l.tsv"), &o, &set, &err), DR_ERR_NOT_FOUND);
    expect_in(err.text, "nothing");
    o.label_column = "where";
    assert_int_equal(dr_dataset_open(at("l.tsv"), &o, &set, &err), DR_ERR_ARG);
    o.root = "/nowhere/at/all";
    assert_int_equal(dr_dataset_open(at("l.tsv"), &o, &set, &err), DR_ERR_NOT_FOUND);
    expect_in(err.text, "/nowhere/at/all");
}

/* A second file of each sample; its size may make the first one move. */
static void a_mask_for_each_file(void **state)
{
    dr_read_options o;
    dr_dataset *set;
    dr_error err;
    char large[20001];
    (void)state;
    memset(large, 'm', 20000);
    large[20000] = 0;
    put_text(at("a.nii"), "A");
    put_text(at("b.nii"), "BB");
    put_text(at("a_seg.nii"), "seg");
    put_text(at("b_seg.nii"), large);
    set = open_list("l.csv", "image,label_file,id\na.nii,a_seg.nii,1\nb.nii,b_seg.nii,2\n");
    for (int i = 0; i < 2; i++) {
        expect_text(set, 0, "image", "A");
        expect_text(set, 0, "label", "seg");
        expect_text(set, 1, "image", "BB");
        expect_text(set, 1, "label", large);
        assert_int_equal(int_value(set, 1, "id"), 2);
    }
    dr_dataset_unref(&set);
    set = open_list("l.csv", "path,mask\na.nii,3\n"); /* a number is no file */
    assert_int_equal(int_value(set, 0, "mask"), 3);
    dr_dataset_unref(&set);
    dr_read_defaults(&o);
    o.mask_column = "second";
    put_text(at("l.csv"), "path,second,label\na.nii,a_seg.nii,7\n");
    assert_int_equal(dr_dataset_open(at("l.csv"), &o, &set, &err), DR_OK);
    expect_text(set, 0, "second", "seg");
    assert_int_equal(int_value(set, 0, "label"), 7);
    dr_dataset_unref(&set);
    o.mask_column = "third";
    assert_int_equal(dr_dataset_open(at("l.csv"), &o, &set, &err), DR_ERR_NOT_FOUND);
    expect_in(err.text, "third");
    fails("l.csv", "path,mask\na.nii,a_seg.nii\nb.nii,\n", DR_ERR_FORMAT, "row 2");
}

static void a_column_has_one_use(void **state)
{
    dr_read_options o;
    dr_dataset *set;
    dr_error err;
    (void)state;
    put_text(at("a.nii"), "A");
    put_text(at("a_seg.nii"), "seg");
    put_text(at("l.csv"), "path,label,n\na.nii,a_seg.nii,3\n");
    dr_read_defaults(&o);
    o.mask_column = "label"; /* goes before the label that is found by its name */
    assert_int_equal(dr_dataset_open(at("l.csv"), &o, &set, &err), DR_OK);
    expect_text(set, 0, "image", "A");
    expect_text(set, 0, "label", "seg");
    dr_dataset_unref(&set);
    o.label_column = "label";
    assert_int_equal(dr_dataset_open(at("l.csv"), &o, &set, &err), DR_ERR_ARG);
    expect_in(err.text, "label and mask are the same column, \"label\"");
    o.label_column = NULL;
    o.mask_column = "path";
    assert_int_equal(dr_dataset_open(at("l.csv"), &o, &set, &err), DR_ERR_ARG);
    expect_in(err.text, "path and mask are the same column, \"path\"");
    o.mask_column = "n";
    assert_int_equal(dr_dataset_open(at("l.csv"), &o, &set, &err), DR_ERR_FORMAT);
    expect_in(err.text, "column \"n\": a mask must be a file's name");
    o.mask_column = NULL;
    o.label_column = "mask"; /* goes before the mask that is found by its name */
    put_text(at("l.csv"), "path,mask\na.nii,cat\n");
    assert_int_equal(dr_dataset_open(at("l.csv"), &o, &set, &err), DR_OK);
    assert_int_equal(int_value(set, 0, "label"), 0);
    dr_dataset_unref(&set);
}

static void json_lines(void **state)
{
    (void)state;
    char text[1200];
    put_text(at("a.jpg"), "A");
    snprintf(text, sizeof text,
             "{\"file\": \"a.jpg\", \"label\": 4, \"t\": \"\\u00e9\", \"x\": 0.1, \"ok\": true, \"tags\": [1, \"b\"]}\n"
             "   \n"
             "{\"label\": 5, \"file\": \"%s\", \"late\": \"z\", \"x\": null}\n",
             at("a.jpg"));
    dr_dataset *set = open_list("l.jsonl", text);
    assert_int_equal(dr_dataset_size(set), 2);
    assert_int_equal(int_value(set, 1, "label"), 5);
    expect_text(set, 0, "t", "\xC3\xA9");
    expect_text(set, 1, "t", "");
    expect_text(set, 0, "late", "");
    expect_text(set, 1, "late", "z");
    expect_text(set, 0, "tags", "[1,\"b\"]");
    expect_text(set, 1, "image", "A"); /* an absolute path */
    assert_true(real_value(set, 0, "x") == 0.1);
    assert_true(isnan(real_value(set, 1, "x")));
    assert_true(real_value(set, 0, "ok") == 1); /* missing in the other line */
    dr_dataset_unref(&set);
    fails("l.jsonl", "{\"path\": \"a\"}\n[1]\n", DR_ERR_FORMAT, "l.jsonl:2: not a JSON object");
    fails("l.jsonl", "{\"path\": \"a\"", DR_ERR_FORMAT, "l.jsonl:1: not a JSON object");
    fails("l.jsonl", "{\"path\": \"a\\u0000b\"}", DR_ERR_FORMAT, "l.jsonl:1");
}

static const dr_view *list_value(const dr_dataset *set, uint64_t id, const char *field, dr_dtype dtype, int64_t rows)
{
    const dr_view *v = value(set, id, field);
    assert_int_equal(v->desc.dtype, dtype);
    assert_int_equal(v->desc.dims[0], rows);
    return v;
}

static void lists_of_numbers(void **state)
{
    (void)state;
    put_text(at("a.jpg"), "A");
    dr_dataset *set = open_list(
        "l.jsonl",
        "{\"path\": \"a.jpg\", \"boxes\": [[1, 2, 3.5, 4], [5, 6, 7, 8]], \"labels\": [3, -4], \"w\": [1, 0.5]}\n"
        "{\"path\": \"a.jpg\", \"boxes\": [], \"labels\": []}\n"
        "{\"path\": \"a.jpg\", \"boxes\": [[0, 0, 1e2, 1]], \"labels\": [7], \"w\": []}\n");
    const dr_view *v = list_value(set, 0, "boxes", DR_F32, 2);
    assert_int_equal(v->desc.kind, DR_KIND_BOXES);
    assert_memory_equal(v->data, ((float[]){ 1, 2, 3.5f, 4, 5, 6, 7, 8 }), 32);
    assert_memory_equal(list_value(set, 0, "labels", DR_I64, 2)->data, ((int64_t[]){ 3, -4 }), 16);
    assert_memory_equal(list_value(set, 0, "w", DR_F64, 2)->data, ((double[]){ 1, 0.5 }), 16);
    list_value(set, 1, "boxes", DR_F32, 0);
    list_value(set, 1, "w", DR_F64, 0);
    assert_true(((float *)(void *)list_value(set, 2, "boxes", DR_F32, 1)->data)[2] == 100);
    dr_dataset_unref(&set);
    /* other lists stay text: of different lengths, of texts, deeper ones */
    set = open_list("l.jsonl",
                    "{\"path\": \"a.jpg\", \"x\": [[1], [2, 3]], \"y\": [1, \"b\"], \"z\": [[[1]]], \"u\": [1]}\n"
                    "{\"path\": \"a.jpg\", \"u\": [[1]]}\n");
    expect_text(set, 0, "x", "[[1],[2,3]]");
    expect_text(set, 0, "y", "[1,\"b\"]");
    expect_text(set, 0, "z", "[[[1]]]");
    expect_text(set, 1, "u", "[[1]]");
    dr_dataset_unref(&set);
}

static void kinds_of_cells(void **state)
{
    (void)state;
    const struct {
        const char *text;
        dr__cell_kind kind;
    } cases[] = { { "", DR__CELL_EMPTY },    { "12", DR__CELL_INT },
                  { " -3 ", DR__CELL_INT },  { "1.5", DR__CELL_REAL },
                  { "1e3", DR__CELL_REAL },  { "nan", DR__CELL_REAL },
                  { "0x10", DR__CELL_TEXT }, { "1,5", DR__CELL_TEXT },
                  { "a", DR__CELL_TEXT },    { "9223372036854775808", DR__CELL_REAL },
                  { " ", DR__CELL_TEXT } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (dr__cell_kind_of(cases[i].text, strlen(cases[i].text)) != cases[i].kind)
            fail_msg("\"%s\"", cases[i].text);
}

static void long_paths_share_their_folders(void **state)
{
    (void)state;
    enum { N = 2000 };
    char *text = malloc(N * 300), *p = text;
    for (int i = 0; i < N; i++)
        p += sprintf(p, "/a/very/long/folder/name/that/every/line/of/the/list/repeats/again/and/again/%d/%d.jpg %d\n",
                     i % 700, i, i);
    dr_dataset *set = open_list("l.txt", text);
    expect_key(set, 1234, "/a/very/long/folder/name/that/every/line/of/the/list/repeats/again/and/again/534/1234.jpg");
    expect_key(set, 0, "/a/very/long/folder/name/that/every/line/of/the/list/repeats/again/and/again/0/0.jpg");
    dr_dataset_unref(&set);
    free(text);
}

static void opening_survives_lack_of_memory(void **state)
{
    (void)state;
    const char *const names[] = { "l.txt", "l.csv", "l.jsonl" };
    const char *const texts[] = { "a/b.jpg 1\nc.jpg 2\n", "path,label,x,y\na.jpg,u,1,q\nb.jpg,v,2.5,r\n",
                                  "{\"path\":\"a\",\"label\":\"x\"}\n{\"path\":\"b\",\"label\":\"y\",\"n\":[1]}\n" };
    for (int i = 0; i < 3; i++)
        for (long n = 1;; n++) {
            dr_dataset *set = NULL;
            dr_error err;
            put_text(at("%s", names[i]), texts[i]);
            dr__alloc_fail_at(n, n % 2);
            dr_status status = try_open(names[i], texts[i], &set, &err);
            long used = dr__alloc_fail_at(0, false);
            if (status == DR_OK) {
                assert_int_equal(dr_dataset_size(set), 2);
                dr_dataset_unref(&set);
            } else {
                assert_int_equal(status, DR_ERR_NOMEM);
            }
            assert_true(n < 1000);
            if (used < n)
                break;
        }
}

/* Holes of a sparse file are zeros: what is refused is not read to its end, and what no memory could hold not at all.
 */
static void sparse_lists_are_refused(void **state)
{
    (void)state;
    dr_dataset *set;
    dr_error err;
    struct rusage before, after;
    const struct {
        const char *name, *text, *want;
    } cases[] = { { "l.txt", "", "byte 0 is zero" },
                  { "l.csv", "path,label\na.jpg,1\n", "byte 19 is zero" },
                  { "l.jsonl", "{\"path\": \"a\"}\n", "byte 14 is zero" } };
    getrusage(RUSAGE_SELF, &before);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put_text(at("%s", cases[i].name), cases[i].text);
        assert_int_equal(truncate(at("%s", cases[i].name), 512 << 20), 0);
        assert_int_equal(dr_dataset_open(at("%s", cases[i].name), NULL, &set, &err), DR_ERR_FORMAT);
        expect_in(err.text, cases[i].want);
    }
    getrusage(RUSAGE_SELF, &after);
    assert_true(after.ru_maxrss - before.ru_maxrss < 64 << 10); /* kilobytes */
    assert_int_equal(truncate(at("l.txt"), (off_t)1 << 43), 0);
    assert_int_equal(dr_dataset_open(at("l.txt"), NULL, &set, &err), DR_ERR_LIMIT);
    expect_in(err.text, "l.txt: a list of 8796093022208 bytes; the memory of this process allows ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_make, tree_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(plain_lines),
        TEST(lines_with_labels),
        TEST(csv_with_all_kinds_of_columns),
        TEST(csv_errors_name_the_line),
        TEST(a_csv_with_hundreds_of_columns),
        TEST(a_jsonl_with_hundreds_of_members),
        TEST(a_jsonl_with_hundreds_of_lists),
        TEST(sparse_rows_are_bounded),
        TEST(columns_and_root_can_be_named),
        TEST(a_mask_for_each_file),
        TEST(a_column_has_one_use),
        TEST(json_lines),
        TEST(lists_of_numbers),
        TEST(kinds_of_cells),
        TEST(long_paths_share_their_folders),
        TEST(opening_survives_lack_of_memory),
        TEST(sparse_lists_are_refused),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    dr__record_free(&record);
    return failed;
}
