/* random_apply: a list of ops, all of them with probability p, else none. */
#include <jansson.h>
#include <string.h>

#include "op/chain.h"
#include "op/op_defs.h"

struct conf {
    dr_op_list transforms;
    double p;
};

/* The pars of the list follow. */
struct par {
    bool applied;
};

enum { PAR_HEAD = 16 };

static const dr_param params[] = {
    DR_OP_LIST(struct conf, transforms, "the ops, in order"),
    DR_REAL(struct conf, p, "0.5", 0, 1, "chance that they are applied"),
    { 0 },
};

static const dr_param draws[] = {
    DR_BOOLEAN(struct par, applied, NULL, "applied to this sample"),
    { 0 },
};

static dr__chain chain_of(const struct conf *c)
{
    return (dr__chain){ .ops = c->transforms.ops, .n = c->transforms.n };
}

static const void *nested(const void *par)
{
    return par ? (const char *)par + PAR_HEAD : NULL;
}

static size_t par_bytes(const void *conf)
{
    dr__chain chain = chain_of(conf);
    return PAR_HEAD + dr__chain_par_bytes(&chain);
}

static struct json_t *draws_json(const void *conf, const void *par)
{
    const struct par *p = par;
    dr__chain chain = chain_of(conf);
    json_t *object = dr__params_write(draws, par, 1);
    if (p->applied)
        json_object_set_new(object, "transforms", dr__chain_draws(&chain, nested(par)));
    return object;
}

static dr_status draw(const void *conf, dr_rng *rng, const dr_desc *in, void *par, dr_error *err)
{
    const struct conf *c = conf;
    dr__chain chain = chain_of(c);
    memset(par, 0, par_bytes(conf));
    ((struct par *)par)->applied = dr__rng_unit(rng) < c->p;
    return ((struct par *)par)->applied ? dr__chain_draw(&chain, rng, in, (char *)par + PAR_HEAD, err) : DR_OK;
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    dr__chain chain = chain_of(conf);
    if (par && !((const struct par *)par)->applied) {
        out->desc = *in;
        return DR_OK;
    }
    DR_TRY(dr__chain_plan(&chain, nested(par), in, out, err));
    return par ? DR_OK : dr__chain_either(&out->desc, in, "random_apply", &out->desc, err);
}

static double cost(const void *conf, const void *par, const dr_desc *in)
{
    dr__chain chain = chain_of(conf);
    size_t bytes = 0;
    if (((const struct par *)par)->applied)
        return dr__chain_cost(&chain, nested(par), in);
    return dr__desc_bytes_dense(in, &bytes) ? 0.1 * (double)bytes : 0.0;
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    dr__chain chain = chain_of(task->conf);
    if (((const struct par *)par)->applied)
        return dr__chain_run(&chain, task, nested(par), in, out);
    dr__view_copy(out, in);
    return DR_OK;
}

const dr_op_def dr__op_random_apply = {
    .name = "random_apply",
    .version = 1,
    .summary = "a list of ops with probability p",
    .params = params,
    .draws = draws,
    .conf_size = sizeof(struct conf),
    .par_size = sizeof(struct par),
    .flags = DR_OP_RANDOM | DR_OP_EARLY,
    .par_bytes = par_bytes,
    .draws_json = draws_json,
    .draw = draw,
    .plan = plan,
    .cost = cost,
    .run = run,
};
