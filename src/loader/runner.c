/* runner.c: runs single samples in the calling thread. */
#include <drapps/sample.h>

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "exec/exec.h"

struct dr_runner {
    dr_dataset *set; /* NULL: fields are handed in */
    dr__program *program;
    dr__workbench *bench;
    dr_view outputs[DR__MAX_OUTPUTS]; /* memory owned and reused */
    size_t capacity[DR__MAX_OUTPUTS];
};

dr_status dr_order_sample(const dr_dataset *set, uint64_t seed, uint64_t epoch, bool shuffle, uint64_t position,
                          dr_sample_name *out, dr_error *err)
{
    if (!set->n_places)
        return dr__fail(err, DR_ERR_ARG, "%s: has no samples", set->name);
    dr__sample_ref ref = dr__order_sample(set, seed, epoch, shuffle, position);
    *out = (dr_sample_name){ seed, epoch, ref.id, ref.occurrence };
    return DR_OK;
}

static dr__rng_name rng_name(const dr_sample_name *name)
{
    return (dr__rng_name){ name->seed, name->epoch, name->id, name->occurrence };
}

uint64_t dr_replacement(const dr_sample_name *bad, uint32_t attempt, uint64_t n)
{
    const dr__rng_name name = rng_name(bad);
    return dr__replacement(&name, attempt, n);
}

dr_status dr_replacement_sample(const dr_dataset *set, const dr_sample_name *bad, uint32_t attempt, dr_sample_name *out,
                                dr_error *err)
{
    if (!set->n_places)
        return dr__fail(err, DR_ERR_ARG, "%s: has no samples", set->name);
    const dr__rng_name name = rng_name(bad);
    dr__sample_ref ref = dr__replacement_sample(set, &name, attempt);
    *out = (dr_sample_name){ bad->seed, bad->epoch, ref.id, ref.occurrence };
    return DR_OK;
}

static dr_status open_runner(dr_dataset *set, const dr__field *fields, int n_fields, dr_graph *graph,
                             const char *outputs, const char *layout, bool reference, dr_runner **out, dr_error *err)
{
    dr_runner *r = *out = dr__alloc_zero(1, sizeof *r);
    if (!r || !(r->bench = dr__workbench_new())) {
        dr_runner_free(out);
        return dr__fail(err, DR_ERR_NOMEM, "runner: out of memory");
    }
    dr__limits limits;
    dr__limits_read("", &limits);
    r->bench->memory_limit = (size_t)(dr__limits_memory(&limits) / DR__BENCH_PART);
    dr__program_options po = {
        .outputs = outputs, .layout = layout, .reference = reference, .part = true, .any_shape = true
    };
    dr_status status = dr__program_compile(graph, fields, n_fields, &po, &r->program, err);
    if (status == DR_OK && r->program->n_batch_nodes)
        status = dr__fail(err, DR_ERR_ARG, "%s works on whole batches and cannot run on single samples",
                          r->program->graph->nodes[r->program->batch_nodes[0]].op.def->name);
    if (status == DR_OK && set)
        r->set = dr_dataset_ref(set);
    if (status != DR_OK)
        dr_runner_free(out);
    return status;
}

dr_status dr_runner_open(dr_dataset *set, dr_graph *graph, const char *outputs, const char *layout, bool reference,
                         dr_runner **out, dr_error *err)
{
    return open_runner(set, set->fields, set->n_fields, graph, outputs, layout, reference, out, err);
}

dr_status dr_runner_open_fields(const dr_field_spec *specs, int n, dr_graph *graph, const char *outputs,
                                const char *layout, bool reference, dr_runner **out, dr_error *err)
{
    if (n < 0 || n > DR__MAX_FIELDS)
        return dr__fail(err, DR_ERR_LIMIT, "fields must be 0 to %d, got %d", DR__MAX_FIELDS, n);
    dr__field *fields = dr__alloc_zero((size_t)n, sizeof *fields);
    if (!fields)
        return dr__fail(err, DR_ERR_NOMEM, "out of memory for %d fields", n);
    for (int i = 0; i < n; i++) {
        snprintf(fields[i].name, sizeof fields[i].name, "%s", specs[i].name);
        fields[i].desc = specs[i].desc;
    }
    dr_status status = open_runner(NULL, fields, n, graph, outputs, layout, reference, out, err);
    dr__free(fields);
    return status;
}

dr_status dr_runner_check(const dr_runner *r, const char *delivered, dr_error *err)
{
    return dr__program_check_followers(r->program, delivered, err);
}

void dr_runner_free(dr_runner **runner)
{
    if (!runner || !*runner)
        return;
    dr_runner *r = *runner;
    *runner = NULL;
    for (int i = 0; r->program && i < r->program->n_outputs; i++)
        dr__free_aligned(r->outputs[i].data);
    dr__program_free(&r->program);
    dr__workbench_free(&r->bench);
    dr_dataset_unref(&r->set);
    dr__free(r);
}

static dr_status store_output(dr_runner *r, int i, dr_error *err)
{
    dr_desc desc = dr__sample_desc(r->program, r->bench, i);
    size_t bytes;
    if (!dr__desc_bytes_dense(&desc, &bytes))
        return dr__fail(err, DR_ERR_LIMIT, "output \"%s\" is too large", r->program->outputs[i].name);
    uint8_t *data = r->outputs[i].data;
    if (bytes > r->capacity[i] || !data) {
        dr__free_aligned(data);
        r->outputs[i].data = NULL;
        r->capacity[i] = 0;
        data = dr__alloc_aligned(bytes);
        if (!data)
            return dr__fail(err, DR_ERR_NOMEM, "out of memory");
        r->capacity[i] = bytes;
    }
    r->outputs[i] = dr__view_dense(&desc, data);
    return dr__sample_store(r->program, r->bench, i, data, err);
}

static dr_status run(dr_runner *r, const dr_sample_name *name, dr_error *err)
{
    dr__rng_name rng = { name->seed, name->epoch, name->id, name->occurrence };
    DR_TRY(dr__sample_plan(r->program, r->bench, &rng, err));
    DR_TRY(dr__sample_run(r->program, r->bench, err));
    for (int i = 0; i < r->program->n_outputs; i++)
        DR_TRY(store_output(r, i, err));
    return DR_OK;
}

dr_status dr_runner_run(dr_runner *r, const dr_sample_name *name, dr_error *err)
{
    if (!r->set)
        return dr__fail(err, DR_ERR_STATE, "this runner has no data set; use dr_runner_feed");
    if (name->id >= r->set->n_samples)
        return dr__fail(err, DR_ERR_ARG, "sample id must be below %llu, got %llu",
                        (unsigned long long)r->set->n_samples, (unsigned long long)name->id);
    dr_status status = dr__sample_read(r->bench, r->set, name->id, err);
    if (status == DR_OK)
        status = run(r, name, err);
    if (status != DR_OK && err) {
        char key[512];
        r->set->def->key(r->set, name->id, key, sizeof key);
        dr__error_prefix(err, "%s: sample \"%s\"", r->set->name, key);
    }
    return status;
}

/* Whether a field is as described when the runner was opened.  Fused ops rely on every extent that was known then. */
static bool fits(const dr_desc *have, const dr_desc *want)
{
    if (have->kind != want->kind || have->dtype != want->dtype || have->layout != want->layout ||
        have->n_dims != want->n_dims)
        return false;
    for (int i = 0; i < want->n_dims; i++)
        if (have->dims[i] < 0 || (want->dims[i] != DR_UNKNOWN && have->dims[i] != want->dims[i]))
            return false;
    return true;
}

dr_status dr_runner_feed(dr_runner *r, const dr_view *fields, const dr_sample_name *name, dr_error *err)
{
    if (r->set)
        return dr__fail(err, DR_ERR_STATE, "this runner reads its samples from %s", r->set->name);
    if (!dr__record_reserve_fields(&r->bench->record, r->program->n_inputs))
        return dr__fail(err, DR_ERR_NOMEM, "out of memory for the fields of a sample");
    for (int i = 0; i < r->program->n_inputs; i++) {
        char have[128], want[128];
        r->bench->record.fields[i] = dr__view_dense(&fields[i].desc, fields[i].data);
        if (!fits(&fields[i].desc, &r->program->values[i]))
            return dr__fail(err, DR_ERR_ARG, "field \"%s\" must be %s, got %s", r->program->names[i],
                            dr__desc_text_of(&r->program->values[i], want, sizeof want),
                            dr__desc_text_of(&fields[i].desc, have, sizeof have));
    }
    r->bench->record.n_fields = r->program->n_inputs;
    return run(r, name, err);
}

int dr_runner_outputs(const dr_runner *r)
{
    return r->program->n_outputs;
}

const char *dr_runner_output(const dr_runner *r, int i, dr_view *out)
{
    if (i < 0 || i >= r->program->n_outputs)
        return NULL;
    *out = r->outputs[i];
    return r->program->outputs[i].name;
}

dr_status dr_runner_draws(const dr_runner *r, char **text, dr_error *err)
{
    json_t *o = dr__sample_draws(r->program, r->bench->pars);
    *text = o ? dr__canonical(o) : NULL;
    json_decref(o);
    return *text ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "out of memory");
}
