/* batch_run.c: runs a batch op on images and labels, for comparison with torchvision.
 *
 *     batch_run JOB IMAGES LABELS
 * JOB is {"op": name, "params": {...}, "seed": 0, "shape": [..., ..., ...] of one image, "layout": "HWC" or "CHW",
 * "samples": n, "labels": "int64" or "float32", "classes": n}.  The files hold float32 images and labels, and
 * afterwards the mixed ones.  Prints the draws.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "op/batch.h"

enum { FIELDS = 2 };

struct job {
    dr__op op;
    dr_desc in[FIELDS], out[FIELDS]; /* of one sample */
    int64_t samples;
    uint64_t seed;
    dr_error err;
};

static dr_status read_job(struct job *j, const json_t *text)
{
    const char *name = "", *layout = "HWC", *labels = "int64";
    json_t *params = NULL;
    json_int_t a = 0, b = 0, c = 0, seed = 0, samples = 0, classes = 0;
    json_error_t e;
    if (json_unpack_ex((json_t *)text, &e, 0, "{s:s, s:o, s:I, s:[I,I,I], s:s, s:I, s:s, s:I}", "op", &name, "params",
                       &params, "seed", &seed, "shape", &a, &b, &c, "layout", &layout, "samples", &samples, "labels",
                       &labels, "classes", &classes))
        return dr__fail(&j->err, DR_ERR_ARG, "job: %s", e.text);
    j->samples = samples;
    j->seed = (uint64_t)seed;
    j->in[0] = dr__desc_image(DR_F32, a, b, c);
    j->in[0].layout = strcmp(layout, "CHW") ? DR_LAYOUT_HWC : DR_LAYOUT_CHW;
    j->in[1] = dr__desc_scalar(dr_dtype_parse(labels));
    if (j->in[1].dtype == DR_F32)
        j->in[1].dims[j->in[1].n_dims++] = classes;
    const dr_op_def *def = dr__op_find(name);
    if (!def || !def->batch)
        return dr__fail(&j->err, DR_ERR_NOT_FOUND, "no batch op \"%s\"", name);
    return dr__op_open(def, params, &j->op, &j->err);
}

static dr_view batch_view(const dr_desc *sample, int64_t n, size_t *bytes)
{
    dr_desc d = *sample;
    memmove(d.dims + 1, d.dims, sizeof d.dims[0] * (size_t)d.n_dims);
    d.dims[0] = n;
    d.n_dims++;
    dr__desc_bytes_dense(&d, bytes);
    return (dr_view){ .data = dr__alloc_aligned(*bytes + 1), .desc = d };
}

static bool transfer(const char *path, const char *mode, uint8_t *data, size_t bytes)
{
    FILE *f = fopen(path, mode);
    bool ok = f && (*mode == 'r' ? fread(data, 1, bytes, f) : fwrite(data, 1, bytes, f)) == bytes;
    return (!f || !fclose(f)) && ok;
}

static dr_status run(struct job *j, char **path)
{
    const dr_batch_op_def *def = j->op.def->batch;
    size_t scratch = 0, bytes[FIELDS], out_bytes[FIELDS];
    dr_view in[FIELDS], out[FIELDS];
    DR_TRY(def->plan(j->op.conf, j->in, j->out, &scratch, &j->err));
    for (int i = 0; i < FIELDS; i++) {
        in[i] = batch_view(&j->in[i], j->samples, &bytes[i]);
        out[i] = batch_view(&j->out[i], j->samples, &out_bytes[i]);
        if (dr__desc_equal(&j->in[i], &j->out[i])) { /* in place, as the loader does it */
            dr__free_aligned(out[i].data);
            out[i] = in[i];
        }
        if (!transfer(path[i], "rb", in[i].data, bytes[i]))
            return dr__fail(&j->err, DR_ERR_IO, "%s: cannot be read", path[i]);
    }
    void *par = dr__alloc_zero(1, j->op.def->par_size);
    dr_task task = {
        .k = dr__kernels_best(), .conf = j->op.conf, .scratch = dr__alloc_aligned(scratch), .err = &j->err
    };
    dr_rng rng = dr__rng_open(&(dr__rng_name){ .seed = j->seed }, 1);
    dr_status status = def->draw(j->op.conf, &rng, j->in, j->samples, par, &j->err);
    if (status == DR_OK)
        status = def->run(&task, par, in, out);
    json_t *draws = dr__op_draws_json(&j->op, par);
    json_dumpf(draws, stdout, JSON_COMPACT);
    json_decref(draws);
    for (int i = 0; i < FIELDS; i++) {
        if (status == DR_OK && !transfer(path[i], "wb", out[i].data, out_bytes[i]))
            status = dr__fail(&j->err, DR_ERR_IO, "%s: cannot be written", path[i]);
        if (out[i].data != in[i].data)
            dr__free_aligned(out[i].data);
        dr__free_aligned(in[i].data);
    }
    dr__free_aligned(task.scratch);
    dr__free(par);
    return status;
}

int main(int argc, char **argv)
{
    static struct job j;
    json_t *text = argc == 4 ? json_loads(argv[1], 0, NULL) : NULL;
    dr_status status = text ? read_job(&j, text) : dr__fail(&j.err, DR_ERR_ARG, "usage: batch_run JOB IMAGES LABELS");
    if (status == DR_OK)
        status = run(&j, argv + 2);
    if (status != DR_OK)
        fprintf(stderr, "batch_run: %s\n", j.err.text);
    dr__op_close(&j.op);
    json_decref(text);
    return status != DR_OK;
}
