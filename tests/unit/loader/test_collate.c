/* From samples to batches: stack, pad, ragged, list; left-out slots closed up in each. */
#include "unit/loader/toy.h"

#include "loader/loader_internal.h"

static dr_error err;

static dr_batch_field field_named(const dr_batch *b, const char *name)
{
    dr_batch_field f;
    for (int i = 0; i < dr_batch_fields(b); i++) {
        assert_ok(dr_batch_field_at(b, i, &f, &err));
        if (!strcmp(f.name, name))
            return f;
    }
    fail_msg("batch has no field %s", name);
    return f;
}

/* The views that a plain list gives: what the other rules are compared with. */
static dr_batch *one_batch(dr_loader *l)
{
    dr_batch *b = NULL;
    assert_ok(dr_loader_next(l, -1, &b, &err));
    return b;
}

static size_t bytes_of(const dr_view *v)
{
    size_t n = dr_dtype_size(v->desc.dtype);
    for (int i = 0; i < v->desc.n_dims; i++)
        n *= (size_t)v->desc.dims[i];
    return n;
}

static void check_pad(const dr_batch *b, const dr_batch_field *list)
{
    dr_batch_field f = field_named(b, "boxes");
    uint64_t n = dr_batch_samples(b);
    int64_t most = 0;
    assert_int_equal(f.collate, DR_COLLATE_PAD);
    assert_int_equal(f.array.desc.n_dims, 3);
    assert_int_equal(f.array.desc.dims[0], n);
    assert_int_equal(f.array.desc.dims[2], 4);
    for (uint64_t i = 0; i < n; i++) {
        assert_int_equal(f.sizes[i * 2], list->items[i].desc.dims[0]);
        assert_int_equal(f.sizes[i * 2 + 1], 4);
        most = f.sizes[i * 2] > most ? f.sizes[i * 2] : most;
    }
    assert_int_equal(f.array.desc.dims[1], most);
    size_t room = (size_t)most * 16;
    for (uint64_t i = 0; i < n; i++) {
        size_t used = bytes_of(&list->items[i]);
        assert_memory_equal(f.array.data + i * room, list->items[i].data, used);
        for (size_t k = used; k < room; k++)
            assert_int_equal(f.array.data[i * room + k], 0);
    }
}

static void check_ragged(const dr_batch *b, const dr_batch_field *list)
{
    dr_batch_field f = field_named(b, "tokens");
    uint64_t n = dr_batch_samples(b);
    assert_int_equal(f.collate, DR_COLLATE_RAGGED);
    assert_int_equal(f.offsets[0], 0);
    assert_int_equal(f.array.desc.dims[0], f.offsets[n]);
    for (uint64_t i = 0; i < n; i++) {
        assert_int_equal(f.offsets[i + 1] - f.offsets[i], list->items[i].desc.dims[0]);
        assert_memory_equal(f.array.data + f.offsets[i] * 4, list->items[i].data, bytes_of(&list->items[i]));
    }
}

static void check_text(const dr_batch *b)
{
    dr_batch_field f = field_named(b, "text");
    assert_int_equal(f.collate, DR_COLLATE_LIST);
    for (uint64_t i = 0; i < dr_batch_samples(b); i++) {
        char want[32];
        snprintf(want, sizeof want, "sample-%llu", (unsigned long long)dr_batch_ids(b)[i]);
        assert_int_equal(f.items[i].desc.kind, DR_KIND_TEXT);
        assert_int_equal(f.items[i].desc.dims[0], strlen(want));
        assert_memory_equal(f.items[i].data, want, strlen(want));
    }
}

static void check_stack(const dr_batch *b, const dr_batch_field *list)
{
    dr_batch_field label = field_named(b, "label"), image = field_named(b, "image");
    uint64_t n = dr_batch_samples(b);
    assert_int_equal(label.array.desc.n_dims, 1);
    assert_int_equal(image.array.desc.n_dims, 4);
    assert_int_equal(image.array.desc.dims[0], n);
    for (uint64_t i = 0; i < n; i++) {
        assert_int_equal(((int64_t *)label.array.data)[i], dr_batch_ids(b)[i]);
        assert_memory_equal(image.array.data + i * 144, list->items[i].data, 144);
    }
}

static void rules(const toy *t, int workers)
{
    dr_dataset *set = toy_set(t);
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(9, workers);
    o.shuffle = true;
    o.on_bad_sample = DR_BAD_SKIP;
    o.layout = "NHWC";
    o.outputs = "label,boxes,tokens,text,image";
    o.collate = "boxes=pad,tokens=ragged,image=stack";
    dr_loader *a = open_loader(set, g, &o);
    o.collate = "boxes=list,tokens=list,image=list";
    dr_loader *b = open_loader(set, g, &o);
    for (uint64_t i = 0; i < dr_loader_batches(a); i++) {
        dr_batch *got = one_batch(a), *plain = one_batch(b);
        dr_batch_field boxes = field_named(plain, "boxes"), tokens = field_named(plain, "tokens");
        dr_batch_field images = field_named(plain, "image");
        assert_memory_equal(dr_batch_ids(got), dr_batch_ids(plain), dr_batch_samples(got) * 8);
        check_pad(got, &boxes);
        check_ragged(got, &tokens);
        check_stack(got, &images);
        check_text(got);
        dr_batch_unref(&got);
        dr_batch_unref(&plain);
    }
    dr_loader_close(&a);
    dr_loader_close(&b);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void every_rule(void **state)
{
    (void)state;
    for (int workers = 0; workers < 4; workers++)
        rules(&(toy){ .n = 60 }, workers);
}

static void left_out_slots_are_closed_up(void **state)
{
    (void)state;
    for (uint64_t at = 0; at < 5; at++)
        rules(&(toy){ .n = 60, .bad_every = 5, .bad_at = at }, (int)at % 3);
}

static void all_empty_samples(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 1 }); /* sample 0 has no tokens and no boxes */
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(3, 1);
    o.outputs = "boxes,tokens,label";
    o.collate = "boxes=pad,tokens=ragged,label=pad";
    dr_loader *l = open_loader(set, g, &o);
    dr_batch *b = one_batch(l);
    dr_batch_field f = field_named(b, "boxes");
    assert_int_equal(f.array.desc.dims[1], 0);
    f = field_named(b, "tokens");
    assert_int_equal(f.offsets[1], 0);
    f = field_named(b, "label"); /* scalars have nothing to pad */
    assert_int_equal(f.array.desc.n_dims, 1);
    assert_fails(dr_batch_field_at(b, 3, &f, &err), DR_ERR_ARG, "0 to 2, got 3");
    assert_fails(dr_batch_field_at(b, -1, &f, &err), DR_ERR_ARG, "-1");
    dr_batch_unref(&b);
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void what_cannot_be_joined_is_named(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 6 });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(3, 1);
    o.outputs = "label";
    o.collate = "label=ragged";
    dr_loader *l = open_loader(set, g, &o);
    dr_batch *b = NULL;
    assert_fails(dr_loader_next(l, -1, &b, &err), DR_ERR_ARG, "field \"label\": a scalar cannot be ragged");
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* "*" is for arrays of unknown shape that no other rule names; those of one shape are stacked as ever. */
static void a_rule_for_unknown_shapes(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 6 });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(6, 0);
    o.outputs = "image,tokens,boxes";
    o.collate = "*=list,boxes=pad";
    dr_loader *l = open_loader(set, g, &o);
    dr_batch *b = one_batch(l);
    assert_int_equal(field_named(b, "image").collate, DR_COLLATE_STACK);
    assert_int_equal(field_named(b, "tokens").collate, DR_COLLATE_LIST);
    assert_int_equal(field_named(b, "boxes").collate, DR_COLLATE_PAD);
    dr_batch_unref(&b);
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void draws_are_kept_with_their_samples(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 40, .bad_every = 4, .bad_at = 1 });
    dr_graph *g = graph_of("{\"op\":\"random_crop\",\"params\":{\"size\":[3,3]}}");
    dr_loader_options o = options_of(8, 2);
    o.on_bad_sample = DR_BAD_SKIP;
    o.keep_draws = true;
    o.layout = "NHWC";
    dr_loader *l = open_loader(set, g, &o);
    dr_runner *r = NULL;
    assert_ok(dr_runner_open(set, g, "image", "NHWC", true, &r, &err));
    for (uint64_t k = 0; k < dr_loader_batches(l); k++) {
        dr_batch *b = one_batch(l);
        for (uint64_t i = 0; i < dr_batch_samples(b); i++) {
            char *kept = NULL, *drawn = NULL;
            dr_sample_name name = { .id = dr_batch_ids(b)[i] };
            assert_ok(dr_runner_run(r, &name, &err));
            assert_ok(dr_runner_draws(r, &drawn, &err));
            assert_ok(dr_batch_draws(b, i, &kept, &err));
            assert_string_equal(kept, drawn);
            assert_non_null(strstr(kept, "random_crop"));
            dr_text_free(&kept);
            dr_text_free(&drawn);
        }
        char *none = NULL;
        assert_fails(dr_batch_draws(b, dr_batch_samples(b), &none, &err), DR_ERR_ARG, "samples");
        dr_batch_unref(&b);
    }
    dr_runner_free(&r);
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* Writes `value` into every field of a slot. */
static void fill_slot(dr_batch *b, uint64_t slot, int value)
{
    for (int i = 0; i < b->n_fields; i++) {
        uint8_t *place = dr__batch_slot_memory(b, i, slot, &b->fields[i].desc);
        assert_non_null(place);
        memset(place, value, b->fields[i].bytes);
    }
}

/* The first slots of a batch, as many as the staging area has or fewer, may be made before it has memory: they end
 * where they belong, and without what was left out. */
static void staged_samples_are_copied(void **state)
{
    (void)state;
    enum { SLOTS = 7, STAGED = 3, RUNS = (SLOTS + 1) * (STAGED + 1) };
    dr_dataset *set = toy_set(&(toy){ .n = 40 });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(SLOTS, 0);
    dr_loader *l = open_loader(set, g, &o);
    for (int run = 0; run < RUNS; run++) {
        const int left_out = run % (SLOTS + 1); /* SLOTS: none is */
        const uint64_t early = (uint64_t)run / (SLOTS + 1);
        dr_batch *b = dr__batch_new(&l->exec, 0, SLOTS, STAGED);
        assert_non_null(b);
        assert_true(b->is_staged);
        for (b->used = 0; b->used < early; b->used++)
            fill_slot(b, b->used, (int)b->used);
        assert_true(dr__batch_allocate(&l->exec, b));
        assert_false(b->is_staged);
        assert_int_equal(b->n_staged, early);
        for (; b->used < SLOTS; b->used++)
            fill_slot(b, b->used, (int)b->used);
        if (left_out < SLOTS)
            b->missing[left_out] = 1;
        assert_ok(dr__batch_finish(&l->exec, b, &err));
        assert_int_equal(dr_batch_samples(b), left_out < SLOTS ? SLOTS - 1 : SLOTS);
        for (int i = 0; i < dr_batch_fields(b); i++) {
            const struct dr__batch_field *f = &b->fields[i];
            assert_null(f->staging);
            for (uint64_t k = 0; k < dr_batch_samples(b); k++)
                for (size_t at = 0; at < f->bytes; at++)
                    assert_int_equal(f->array.data[k * f->bytes + at], k + (k >= (uint64_t)left_out));
        }
        dr_batch_unref(&b);
    }
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(staged_samples_are_copied),         cmocka_unit_test(every_rule),
        cmocka_unit_test(left_out_slots_are_closed_up),      cmocka_unit_test(all_empty_samples),
        cmocka_unit_test(what_cannot_be_joined_is_named),    cmocka_unit_test(a_rule_for_unknown_shapes),
        cmocka_unit_test(draws_are_kept_with_their_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
