/* op_run: runs ops on raw images, for parity tests that compare with other libraries.
 *
 *     op_run run IN.raw OUT.raw JOB.json      one op on one image; prints draws and the result's description as JSON
 *     op_run draws JOB.json                   the draws of samples 0 .. n-1, one JSON object a line
 *     op_run batch JOB.json IN0.raw IN1.raw OUT0.raw OUT1.raw     a batch op on images and labels
 *
 * JOB: {"op": name, "params": {...}, "seed": n, "dtype": "uint8", "shape": [h, w, c], "kind": "image" or "mask",
 *       "cpu": "c" or "best", "samples": n; for batch: "layout": "HWC" or "CHW", "labels": "int64" or "float32"}
 */
#include <errno.h>
#include <stdlib.h>

#include "unit/op/op_harness.h"

struct job {
    json_t *json;
    const char *op;
    char *params;
    uint64_t seed;
    dr_desc desc;
};

static int die(const char *what, const char *detail)
{
    fprintf(stderr, "op_run: %s: %s\n", what, detail);
    return 1;
}

static const char *text_of(const json_t *json, const char *key, const char *fallback)
{
    const char *text = json_string_value(json_object_get(json, key));
    return text ? text : fallback;
}

static int64_t extent(const json_t *json, size_t i)
{
    return json_integer_value(json_array_get(json_object_get(json, "shape"), i));
}

static bool read_job(const char *path, struct job *job)
{
    *job = (struct job){ .json = json_load_file(path, 0, NULL) };
    if (!job->json)
        return false;
    json_t *params = json_object_get(job->json, "params");
    job->op = text_of(job->json, "op", "");
    job->params = params ? json_dumps(params, 0) : strdup("{}");
    job->seed = (uint64_t)json_integer_value(json_object_get(job->json, "seed"));
    job->desc = dr__desc_image(dr_dtype_parse(text_of(job->json, "dtype", "uint8")), extent(job->json, 0),
                               extent(job->json, 1), extent(job->json, 2));
    if (!strcmp(text_of(job->json, "kind", "image"), "mask"))
        job->desc.kind = DR_KIND_MASK;
    return job->params != NULL;
}

static void free_job(struct job *job)
{
    free(job->params);
    json_decref(job->json);
}

static const dr__kernels *kernels_of(const struct job *job)
{
    return !strcmp(text_of(job->json, "cpu", "best"), "c") ? dr__kernels_c() : dr__kernels_best();
}

static bool read_file(const char *path, uint8_t *to, size_t bytes)
{
    FILE *f = fopen(path, "rb");
    bool ok = f && fread(to, 1, bytes, f) == bytes;
    if (f)
        fclose(f);
    return ok;
}

static bool write_file(const char *path, const uint8_t *from, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    bool ok = f && fwrite(from, 1, bytes, f) == bytes;
    return (f ? !fclose(f) : true) && ok;
}

static json_t *draws_json(const struct op_run *r)
{
    return r->op.def->draws ? dr__params_write(r->op.def->draws, r->par, 1) : json_object();
}

static void print_result(const struct op_run *r)
{
    json_t *shape = json_array();
    for (int i = 0; i < r->plan.desc.n_dims; i++)
        json_array_append_new(shape, json_integer(r->plan.desc.dims[i]));
    json_t *all = json_pack("{s:o, s:o, s:s}", "draws", draws_json(r), "shape", shape, "dtype",
                            dr_dtype_name(r->plan.desc.dtype));
    char *text = json_dumps(all, JSON_REAL_PRECISION(17));
    puts(text ? text : "null");
    free(text);
    json_decref(all);
}

static int run_image(struct job *job, const char *in_path, const char *out_path)
{
    size_t bytes = 0;
    struct op_run r;
    if (!dr__desc_bytes_dense(&job->desc, &bytes))
        return die("shape", job->op);
    dr_view in = dr__view_dense(&job->desc, dr__alloc(bytes + 1));
    if (!read_file(in_path, in.data, bytes))
        return die(in_path, strerror(errno));
    dr_status status = harness_open(&r, job->op, job->params);
    if (status == DR_OK)
        status = harness_draw(&r, &(dr__rng_name){ .seed = job->seed }, &in.desc);
    if (status == DR_OK)
        status = harness_run(&r, kernels_of(job), &in);
    int rc = status == DR_OK ? 0 : die(job->op, r.err.text);
    if (!rc && !harness_guards_intact(&r))
        rc = die(job->op, "wrote outside its output or scratch");
    if (!rc && !write_file(out_path, r.out.data, r.out_bytes))
        rc = die(out_path, strerror(errno));
    if (!rc)
        print_result(&r);
    harness_close(&r);
    dr__free(in.data);
    return rc;
}

static int run_draws(struct job *job)
{
    struct op_run r;
    int64_t n = json_integer_value(json_object_get(job->json, "samples"));
    dr_status status = harness_open(&r, job->op, job->params);
    for (int64_t i = 0; i < n && status == DR_OK; i++) {
        status = harness_draw(&r, &(dr__rng_name){ .seed = job->seed, .sample = (uint64_t)i }, &job->desc);
        json_t *draws = draws_json(&r);
        char *text = json_dumps(draws, JSON_REAL_PRECISION(17) | JSON_COMPACT);
        puts(text ? text : "null");
        free(text);
        json_decref(draws);
    }
    int rc = status == DR_OK ? 0 : die(job->op, r.err.text);
    harness_close(&r);
    return rc;
}

/* A batch of n samples of that description, dense. */
static dr_view batch_view(const dr_desc *sample, int64_t n, size_t *bytes)
{
    dr_desc d = *sample;
    memmove(d.dims + 1, d.dims, sizeof d.dims[0] * (size_t)d.n_dims);
    d.dims[0] = n;
    d.n_dims++;
    dr__desc_bytes_dense(&d, bytes);
    return (dr_view){ .data = dr__alloc_aligned(*bytes + 1), .desc = d };
}

static int run_batch(struct job *job, char **path)
{
    struct op_run r;
    dr_desc in_desc[2] = { job->desc, { .dtype = dr_dtype_parse(text_of(job->json, "labels", "int64")) } }, out_desc[2];
    int64_t n = json_integer_value(json_object_get(job->json, "samples"));
    size_t bytes[2], out_bytes[2], scratch = 0;
    if (!strcmp(text_of(job->json, "layout", "HWC"), "CHW"))
        in_desc[0].layout = DR_LAYOUT_CHW;
    if (in_desc[1].dtype == DR_F32)
        in_desc[1].dims[in_desc[1].n_dims++] = json_integer_value(json_object_get(job->json, "classes"));
    if (harness_open(&r, job->op, job->params) != DR_OK)
        return die(job->op, r.err.text);
    const dr_batch_op_def *def = r.op.def->batch;
    if (!def || def->plan(r.op.conf, in_desc, out_desc, &scratch, &r.err) != DR_OK)
        return die(job->op, r.err.text);
    dr_view in[2], out[2];
    for (int i = 0; i < 2; i++) {
        in[i] = batch_view(&in_desc[i], n, &bytes[i]);
        out[i] = batch_view(&out_desc[i], n, &out_bytes[i]);
        if (!read_file(path[i], in[i].data, bytes[i]))
            return die(path[i], strerror(errno));
    }
    dr_rng rng = dr__rng_open(&(dr__rng_name){ .seed = job->seed }, 1);
    r.par = dr__alloc_zero(1, r.op.def->par_size);
    r.scratch_block = harness_block(scratch);
    r.out_block = harness_block(0);
    r.plan.scratch = scratch;
    dr_task task = { .conf = r.op.conf, .scratch = r.scratch_block + HARNESS_GUARD, .err = &r.err };
    /* In place where the description is kept, as the loader does it. */
    dr_view to[2] = { dr__desc_equal(&in_desc[0], &out_desc[0]) ? in[0] : out[0],
                      dr__desc_equal(&in_desc[1], &out_desc[1]) ? in[1] : out[1] };
    dr_status status = def->draw(r.op.conf, &rng, in_desc, n, r.par, &r.err);
    if (status == DR_OK)
        status = def->run(&task, r.par, in, to);
    int rc = status == DR_OK ? 0 : die(job->op, r.err.text);
    if (!rc && !harness_guards_intact(&r))
        rc = die(job->op, "wrote outside its scratch");
    for (int i = 0; i < 2 && !rc; i++)
        if (!write_file(path[2 + i], to[i].data, out_bytes[i]))
            rc = die(path[2 + i], strerror(errno));
    r.plan.desc = out_desc[0];
    if (!rc)
        print_result(&r);
    harness_close(&r);
    for (int i = 0; i < 2; i++) {
        dr__free_aligned(in[i].data);
        dr__free_aligned(out[i].data);
    }
    return rc;
}

int main(int argc, char **argv)
{
    struct job job;
    const char *verb = argc > 1 ? argv[1] : "";
    const char *path = !strcmp(verb, "run") && argc == 5 ? argv[4] : argc > 2 ? argv[2] : "";
    if (!read_job(path, &job))
        return die("no job", path);
    int rc = 2;
    if (!strcmp(verb, "run") && argc == 5)
        rc = run_image(&job, argv[2], argv[3]);
    else if (!strcmp(verb, "draws") && argc == 3)
        rc = run_draws(&job);
    else if (!strcmp(verb, "batch") && argc == 7)
        rc = run_batch(&job, argv + 3);
    else
        die("usage", "see the head of op_run.c");
    free_job(&job);
    return rc;
}
