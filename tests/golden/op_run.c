/* op_run.c: runs one op on one image, for comparison with torchvision.
 *
 * A request is a line of JSON and the bytes of the image (HWC; elements are uint8 unless said otherwise):
 *     {"op": name, "params": {...}, "shape": [h, w, c], "kind": "image", "seed": 0, "sample": 0, "draws": 0, "level":
 * "c", "element": "uint8"} The answer is a line {"draws": {...}, "shape": [...], "dtype": "uint8", "bytes": n} and the
 * n bytes of the result, or
 * {"error": "..."}.  With "draws": n > 0 no image follows, and the answer is one line: the list of what n samples
 * draw, from "sample" on.  Until the input ends.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "op/op.h"

enum { LINE = 1 << 16, READ_PAST = 64 };

struct request {
    dr__op op;
    dr_desc in;
    dr__rng_name name;
    int64_t draws;
    const dr__kernels *k;
    json_t *answer;
    dr_error err;
};

static dr_status read_request(struct request *q, const json_t *line)
{
    const char *name = "", *kind = "image", *level = "best", *element = "uint8";
    json_t *params = NULL;
    json_int_t h = 0, w = 0, c = 0, seed = 0, sample = 0, draws = 0;
    json_error_t e;
    if (json_unpack_ex((json_t *)line, &e, 0, "{s:s, s?:o, s:[I,I,I], s?:s, s?:I, s?:I, s?:I, s?:s, s?:s}", "op", &name,
                       "params", &params, "shape", &h, &w, &c, "kind", &kind, "seed", &seed, "sample", &sample, "draws",
                       &draws, "level", &level, "element", &element))
        return dr__fail(&q->err, DR_ERR_ARG, "request: %s", e.text);
    q->in = dr__desc_image(dr_dtype_parse(element), h, w, c);
    q->in.kind = strcmp(kind, "mask") ? DR_KIND_IMAGE : DR_KIND_MASK;
    q->name = (dr__rng_name){ .seed = (uint64_t)seed, .sample = (uint64_t)sample };
    q->draws = draws;
    q->k = strcmp(level, "c") ? dr__kernels_best() : dr__kernels_c();
    const dr_op_def *def = dr__op_find(name);
    if (!def)
        return dr__fail(&q->err, DR_ERR_NOT_FOUND, "no op \"%s\"", name);
    return dr__op_open(def, params, &q->op, &q->err);
}

static dr_status draw_one(struct request *q, void *par)
{
    dr_rng rng = dr__rng_open(&q->name, 1);
    return q->op.def->draw ? q->op.def->draw(q->op.conf, &rng, &q->in, par, &q->err) : DR_OK;
}

static dr_status draw_many(struct request *q, void *par)
{
    q->answer = json_array();
    for (int64_t i = 0; i < q->draws; i++, q->name.sample++) {
        DR_TRY(draw_one(q, par));
        json_array_append_new(q->answer, dr__op_draws_json(&q->op, par));
    }
    return DR_OK;
}

/* Draws, plans and runs; the result is the caller's (dr__free_aligned). */
static dr_status run_one(struct request *q, void *par, uint8_t *pixels, uint8_t **result, size_t *bytes)
{
    dr_desc unknown = q->in;
    dr_plan plan = { 0 };
    unknown.dims[0] = unknown.dims[1] = DR_UNKNOWN;
    DR_TRY(q->op.def->plan(q->op.conf, NULL, &unknown, &plan, &q->err)); /* as when a graph is built */
    DR_TRY(draw_one(q, par));
    plan = (dr_plan){ 0 };
    DR_TRY(q->op.def->plan(q->op.conf, par, &q->in, &plan, &q->err));
    if (!dr__desc_bytes_dense(&plan.desc, bytes))
        return dr__fail(&q->err, DR_ERR_LIMIT, "the result's shape is not known");
    uint8_t *scratch = dr__alloc_aligned(plan.scratch + 1);
    *result = dr__alloc_aligned(*bytes + READ_PAST);
    if (!scratch || !*result)
        return dr__fail(&q->err, DR_ERR_NOMEM, "out of memory");
    dr_task task = { .k = q->k, .conf = q->op.conf, .scratch = scratch, .err = &q->err };
    dr_view in = dr__view_dense(&q->in, pixels), out = dr__view_dense(&plan.desc, *result);
    dr_status status = q->op.def->run(&task, par, &in, &out);
    dr__free_aligned(scratch);
    json_t *shape = json_array();
    for (int i = 0; i < out.desc.n_dims; i++)
        json_array_append_new(shape, json_integer(out.desc.dims[i]));
    q->answer = json_pack("{s:o, s:o, s:s, s:I}", "draws", dr__op_draws_json(&q->op, par), "shape", shape, "dtype",
                          dr_dtype_name(out.desc.dtype), "bytes", (json_int_t)*bytes);
    return status;
}

static int put_answer(const struct request *q, dr_status status, const uint8_t *result, size_t bytes)
{
    json_t *answer = status == DR_OK ? json_incref(q->answer) : json_pack("{s:s}", "error", q->err.text);
    int failed = json_dumpf(answer, stdout, JSON_COMPACT) || putchar('\n') == EOF;
    json_decref(answer);
    if (status == DR_OK && result)
        failed |= fwrite(result, 1, bytes, stdout) != bytes;
    return failed | fflush(stdout);
}

/* The image is read even if the request is wrong, so that the next line is found. */
static int serve(const json_t *line)
{
    struct request q = { 0 };
    size_t in_bytes = 0, bytes = 0;
    uint8_t *pixels = NULL, *result = NULL;
    void *par = NULL;
    dr_status status = read_request(&q, line);
    if (!q.draws && dr__desc_bytes_dense(&q.in, &in_bytes)) {
        pixels = dr__alloc_aligned(in_bytes + READ_PAST);
        if (!pixels || fread(pixels, 1, in_bytes, stdin) != in_bytes)
            return 1;
    }
    if (status == DR_OK) {
        par = dr__alloc_zero(1, dr__op_par_bytes(&q.op) + 1);
        status = q.draws ? draw_many(&q, par) : run_one(&q, par, pixels, &result, &bytes);
    }
    int failed = put_answer(&q, status, result, bytes);
    dr__free(par);
    dr__free_aligned(result);
    dr__free_aligned(pixels);
    json_decref(q.answer);
    dr__op_close(&q.op);
    return failed;
}

int main(void)
{
    static char text[LINE];
    int failed = 0;
    while (!failed && fgets(text, sizeof text, stdin)) {
        json_t *line = json_loads(text, 0, NULL);
        failed = !line || serve(line);
        json_decref(line);
    }
    return failed;
}
