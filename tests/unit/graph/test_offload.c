/* Programs cut in two for two machines: head, frame and rest make the bytes of the whole, for every cut and epoch. */
#include "unit/loader/toy.h"

#include <sys/stat.h>

#include "data/desc.h"
#include "format/remote_frame.h"
#include "graph/prefix.h"
#include "graph/workbench.h"

#define STANDARD                                                                                                       \
    "{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"params\":{\"size\":[24,20]}},"                              \
    "{\"op\":\"random_horizontal_flip\"},{\"op\":\"to_dtype\",\"params\":{\"scale\":true}},"                           \
    "{\"op\":\"normalize\",\"params\":{\"mean\":[0.5,0.4,0.3],\"std\":[0.2,0.3,0.4]}}"
#define FAST                                                                                                           \
    "{\"op\":\"decode\",\"params\":{\"fast_decode\":true}},"                                                           \
    "{\"op\":\"random_resized_crop\",\"params\":{\"size\":[8,8]}},{\"op\":\"random_horizontal_flip\"}"
#define BRANCHES                                                                                                       \
    "{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"params\":{\"size\":[24,20]},\"outputs\":[\"view\"]},"       \
    "{\"op\":\"color_jitter\",\"params\":{\"brightness\":0.4,\"hue\":0.1},\"fields\":[\"view\"]},"                     \
    "{\"op\":\"resize\",\"params\":{\"size\":[16,18]}}"
#define MIXUP                                                                                                          \
    "{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"params\":{\"size\":[24,20]}},"                              \
    "{\"op\":\"to_dtype\",\"params\":{\"scale\":true}},"                                                               \
    "{\"op\":\"mixup\",\"params\":{\"num_classes\":10},\"fields\":[\"image\",\"label\"]}"

enum { N_SAMPLES = 6, N_EPOCHS = 3 };

static dr_error err;

typedef struct fixture {
    char folder[64];
    dr_dataset *set;
    dr_graph *graph;
    dr__program *whole;
    dr__program_options options;
    dr__workbench *bench, *far;
} fixture;

/* The JPEGs in folders of classes. */
static dr_dataset *labelled_set(char folder[64])
{
    char from[128], to[128];
    dr_dataset *set = jpeg_set(folder, N_SAMPLES);
    dr_dataset_unref(&set);
    for (int i = 0; i < N_SAMPLES; i++) {
        snprintf(to, sizeof to, "%s/%c", folder, 'a' + i % 2);
        mkdir(to, 0700);
        snprintf(from, sizeof from, "%s/%03d.jpg", folder, i);
        snprintf(to, sizeof to, "%s/%c/%03d.jpg", folder, 'a' + i % 2, i);
        assert_int_equal(rename(from, to), 0);
    }
    dr_read_options o;
    dr_read_defaults(&o);
    o.use_index = false;
    assert_ok(dr_dataset_open(folder, &o, &set, &err));
    return set;
}

static void remove_classes(const char *folder)
{
    for (int i = 0; i < 2; i++) {
        char name[128];
        snprintf(name, sizeof name, "%s/%c", folder, 'a' + i);
        remove_folder(name);
    }
    remove_folder(folder);
}

static fixture open_fixture(const char *nodes, const char *outputs)
{
    char text[4096];
    fixture f = { .options = { .outputs = outputs, .layout = "NCHW", .any_shape = true } };
    f.set = labelled_set(f.folder);
    snprintf(text, sizeof text, "{\"version\":1,\"nodes\":[%s]}", nodes);
    assert_ok(dr_graph_from_json(text, &f.graph, &err));
    assert_ok(dr__program_compile(f.graph, f.set->fields, f.set->n_fields, &f.options, &f.whole, &err));
    f.bench = dr__workbench_new();
    f.far = dr__workbench_new();
    assert_non_null(f.bench);
    assert_non_null(f.far);
    return f;
}

static void close_fixture(fixture *f)
{
    dr__workbench_free(&f->bench);
    dr__workbench_free(&f->far);
    dr__program_free(&f->whole);
    dr_graph_free(&f->graph);
    dr_dataset_unref(&f->set);
    remove_classes(f->folder);
}

static dr__prefix cut(const fixture *f, int n)
{
    dr__prefix out;
    assert_ok(dr__prefix_offload(f->whole, f->set->fields, f->set->n_fields, n, &f->options, &out, &err));
    return out;
}

/* The outputs of a program for the sample in the bench's record, one after the other: shapes and bytes. */
static dr__text run(const dr__program *p, dr__workbench *bench, const dr__rng_name *name)
{
    dr__text out = { 0 };
    assert_ok(dr__sample_plan(p, bench, name, &err));
    assert_ok(dr__sample_run(p, bench, &err));
    for (int i = 0; i < p->n_outputs; i++) {
        const dr_desc desc = dr__sample_desc(p, bench, i);
        char text[128];
        size_t bytes;
        assert_true(dr__desc_bytes_dense(&desc, &bytes));
        uint8_t *place = malloc(bytes + 64);
        assert_ok(dr__sample_store(p, bench, i, place, &err));
        dr__text_say(&out, dr__desc_text_of(&desc, text, sizeof text));
        dr__text_add(&out, (char *)place, bytes);
        free(place);
    }
    return out;
}

/* What the far machine sends: the head's outputs, or the sample as it is stored. */
static dr__text send_head(const fixture *f, const dr__program *head, const dr__rng_name *name, int prefix,
                          const dr_codec *codec)
{
    dr__text frame = { 0 };
    dr_view views[DR_STORE_FIELDS];
    uint8_t *places[DR_STORE_FIELDS] = { 0 };
    const dr__remote_head h = { .id = name->sample, .prefix = (uint16_t)prefix };
    assert_ok(dr__sample_read(f->far, f->set, name->sample, &err));
    if (!head) {
        assert_ok(dr__remote_put_sample(&frame, &h, f->far->record.fields, f->far->record.n_fields, codec, &err));
        return frame;
    }
    assert_ok(dr__sample_plan(head, f->far, name, &err));
    assert_ok(dr__sample_run(head, f->far, &err));
    for (int i = 0; i < head->n_outputs; i++) {
        const dr_desc desc = dr__sample_desc(head, f->far, i);
        size_t bytes;
        assert_true(dr__desc_bytes_dense(&desc, &bytes));
        places[i] = malloc(bytes + 64);
        assert_ok(dr__sample_store(head, f->far, i, places[i], &err));
        views[i] = dr__view_dense(&desc, places[i]);
    }
    assert_ok(dr__remote_put_sample(&frame, &h, views, head->n_outputs, codec, &err));
    for (int i = 0; i < head->n_outputs; i++)
        free(places[i]);
    return frame;
}

static void receive(fixture *f, const dr__program *rest, const dr__text *frame)
{
    dr__remote_head head;
    assert_ok(dr__remote_parse_head(frame->text, UINT64_MAX, &head, &err));
    assert_int_equal(head.size, frame->n - DR__REMOTE_HEAD);
    assert_ok(dr__remote_check(&head, frame->text + DR__REMOTE_HEAD, &err));
    assert_ok(dr__remote_read_sample(&head, frame->text + DR__REMOTE_HEAD, &f->bench->record, &err));
    assert_true(dr__prefix_fits(rest, &f->bench->record));
}

static void check_sample(fixture *f, const dr__prefix *p, const dr__rng_name *name, int n, const dr_codec *codec)
{
    assert_ok(dr__sample_read(f->bench, f->set, name->sample, &err));
    dr__text want = run(f->whole, f->bench, name);
    dr__text frame = send_head(f, p->head, name, n, codec);
    const dr__program *rest = p->head ? p->rest : f->whole;
    receive(f, rest, &frame);
    dr__text have = run(rest, f->bench, name);
    assert_int_equal(have.n, want.n);
    assert_memory_equal(have.text, want.text, want.n);
    dr__free(want.text);
    dr__free(have.text);
    dr__free(frame.text);
}

static void check_cuts(const char *nodes, const char *outputs, const char *spec)
{
    fixture f = open_fixture(nodes, outputs);
    dr_codec *codec = NULL;
    if (spec)
        assert_ok(dr_codec_open(spec, NULL, &codec, &err));
    for (int n = 0; n <= f.graph->n_nodes; n++) {
        dr__prefix p = cut(&f, n);
        assert_int_equal(p.head != NULL, n > 0);
        for (uint64_t epoch = 0; epoch < N_EPOCHS; epoch++)
            for (uint64_t id = 0; id < N_SAMPLES; id++) {
                const dr__rng_name name = { 7, epoch, id, (uint32_t)(id % 2) };
                check_sample(&f, &p, &name, n, codec);
            }
        dr__prefix_free(&p);
    }
    dr_codec_close(&codec);
    close_fixture(&f);
}

static void every_cut_gives_the_bytes_of_the_whole(void **state)
{
    (void)state;
    check_cuts(STANDARD, "image,label", NULL);
}

static void compressed_frames_give_them_too(void **state)
{
    (void)state;
    check_cuts(STANDARD, "image,label", "none");
    dr_codec *codec = NULL;
    if (dr_codec_open("lz4", NULL, &codec, &err) != DR_OK)
        skip();
    dr_codec_close(&codec);
    check_cuts(STANDARD, "image,label", "lz4");
}

static void so_do_branches_and_all_fields(void **state)
{
    (void)state;
    check_cuts(BRANCHES, "view,image,key", NULL);
    check_cuts(BRANCHES, NULL, NULL);
}

static void draws_differ_between_epochs(void **state)
{
    (void)state;
    fixture f = open_fixture(STANDARD, "image");
    dr__prefix p = cut(&f, 2);
    const dr__rng_name first = { 7, 0, 3, 0 }, second = { 7, 1, 3, 0 };
    dr__text a = send_head(&f, p.head, &first, 2, NULL), b = send_head(&f, p.head, &second, 2, NULL);
    assert_int_equal(a.n, b.n);
    assert_memory_not_equal(a.text, b.text, a.n);
    dr__free(a.text);
    dr__free(b.text);
    dr__prefix_free(&p);
    close_fixture(&f);
}

static void some_cuts_are_refused(void **state)
{
    (void)state;
    dr__prefix p;
    fixture f = open_fixture(MIXUP, "image,label");
    assert_int_equal(dr__prefix_offload_most(f.whole), 3);
    for (int n = -1; n <= 5; n += 6)
        assert_fails(dr__prefix_offload(f.whole, f.set->fields, f.set->n_fields, n, &f.options, &p, &err), DR_ERR_ARG,
                     "must be 0 to 4 ops, got");
    assert_fails(dr__prefix_offload(f.whole, f.set->fields, f.set->n_fields, 4, &f.options, &p, &err),
                 DR_ERR_UNSUPPORTED, "op 3 (mixup) works on whole batches");
    assert_null(p.head);
    p = cut(&f, 3);
    assert_int_equal(p.rest->n_batch_nodes, 1);
    dr__prefix_free(&p);
    close_fixture(&f);

    f = open_fixture(FAST, "image");
    assert_int_equal(dr__prefix_offload_most(f.whole), 3);
    assert_fails(dr__prefix_offload(f.whole, f.set->fields, f.set->n_fields, 1, &f.options, &p, &err),
                 DR_ERR_UNSUPPORTED, "op 0 (decode) with fast_decode depends on");
    p = cut(&f, 2);
    dr__prefix_free(&p);
    close_fixture(&f);

    f = open_fixture(STANDARD, "label");
    assert_fails(dr__prefix_offload(f.whole, f.set->fields, f.set->n_fields, 5, &f.options, &p, &err),
                 DR_ERR_UNSUPPORTED, "none of its results is used later");
    close_fixture(&f);
}

static void records_that_do_not_fit_are_told(void **state)
{
    (void)state;
    fixture f = open_fixture(STANDARD, "image,label");
    dr__prefix p = cut(&f, 2);
    assert_ok(dr__sample_read(f.bench, f.set, 0, &err));
    assert_true(dr__prefix_fits(f.whole, &f.bench->record));
    assert_false(dr__prefix_fits(p.rest, &f.bench->record));
    f.bench->record.n_fields--;
    assert_false(dr__prefix_fits(f.whole, &f.bench->record));
    dr__prefix_free(&p);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cut_gives_the_bytes_of_the_whole),
        cmocka_unit_test(compressed_frames_give_them_too),
        cmocka_unit_test(so_do_branches_and_all_fields),
        cmocka_unit_test(draws_differ_between_epochs),
        cmocka_unit_test(some_cuts_are_refused),
        cmocka_unit_test(records_that_do_not_fit_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
