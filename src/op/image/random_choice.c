/* random_choice: one op of a list, drawn with given weights. */
#include <jansson.h>
#include <string.h>

#include "op/chain.h"
#include "op/op_defs.h"

struct conf {
    dr_op_list transforms;
    dr_reals p;
};

/* The par of the chosen op follows. */
struct par {
    int64_t chosen;
};

enum { PAR_HEAD = 16 };

static const dr_param params[] = {
    DR_OP_LIST(struct conf, transforms, "the ops to choose from"),
    DR_REAL_LIST(struct conf, p, "null", 0, 1e9, 0, DR_PARAM_LIST, "weight of each op; null: all alike"),
    { 0 },
};

static const dr_param draws[] = {
    DR_INT(struct par, chosen, NULL, 0, 63, "place of the chosen op in the list"),
    { 0 },
};

static double weight(const struct conf *c, int i)
{
    return c->p.n ? c->p.v[i] : 1.0;
}

static dr_status init(void *conf, dr_error *err)
{
    const struct conf *c = conf;
    double sum = 0.0;
    if (c->p.n && c->p.n != c->transforms.n)
        return dr__fail(err, DR_ERR_ARG, "random_choice: p must have %d entries, one for each transform, got %d",
                        c->transforms.n, c->p.n);
    for (int i = 0; i < c->transforms.n; i++)
        sum += weight(c, i);
    return sum > 0.0 ? DR_OK : dr__fail(err, DR_ERR_ARG, "random_choice: p must have a sum above 0");
}

/* A chain of one op. */
static dr__chain chain_of(const struct conf *c, int64_t chosen)
{
    return (dr__chain){ .ops = c->transforms.ops + chosen, .n = 1 };
}

static dr__chain chosen_chain(const void *conf, const void *par)
{
    return chain_of(conf, ((const struct par *)par)->chosen);
}

static const void *nested(const void *par)
{
    return (const char *)par + PAR_HEAD;
}

static size_t par_bytes(const void *conf)
{
    const struct conf *c = conf;
    size_t most = 0;
    for (int i = 0; i < c->transforms.n; i++)
        most = DR_MAX(most, dr__op_par_bytes(&c->transforms.ops[i]));
    return PAR_HEAD + most;
}

static struct json_t *draws_json(const void *conf, const void *par)
{
    dr__chain chain = chosen_chain(conf, par);
    json_t *object = dr__params_write(draws, par, 1);
    json_object_set_new(object, "transforms", dr__chain_draws(&chain, nested(par)));
    return object;
}

static int64_t choose(const struct conf *c, double unit)
{
    double sum = 0.0;
    int64_t last = 0;
    for (int i = 0; i < c->transforms.n; i++)
        sum += weight(c, i);
    unit *= sum;
    for (int i = 0; i < c->transforms.n; i++) {
        if (weight(c, i) > 0.0)
            last = i; /* where sums round, the remainder goes to the last that may be chosen */
        unit -= weight(c, i);
        if (unit < 0.0)
            break;
    }
    return last;
}

static dr_status draw(const void *conf, dr_rng *rng, const dr_desc *in, void *par, dr_error *err)
{
    const struct conf *c = conf;
    memset(par, 0, par_bytes(conf));
    int64_t chosen = choose(c, dr__rng_unit(rng));
    dr__chain chain = chain_of(c, chosen);
    ((struct par *)par)->chosen = chosen;
    return dr__chain_draw(&chain, rng, in, (char *)par + PAR_HEAD, err);
}

/* While the graph is built: what all choices agree on. */
static dr_status plan_any(const struct conf *c, const dr_desc *in, dr_plan *out, dr_error *err)
{
    for (int i = 0; i < c->transforms.n; i++) {
        dr__chain chain = chain_of(c, i);
        dr_plan one = { 0 };
        DR_TRY(dr__chain_plan(&chain, NULL, in, &one, err));
        if (i == 0)
            *out = one;
        DR_TRY(dr__chain_either(&out->desc, &one.desc, "random_choice", &out->desc, err));
        out->scratch = DR_MAX(out->scratch, one.scratch);
    }
    return DR_OK;
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    if (!par)
        return plan_any(conf, in, out, err);
    dr__chain chain = chosen_chain(conf, par);
    return dr__chain_plan(&chain, nested(par), in, out, err);
}

static double cost(const void *conf, const void *par, const dr_desc *in)
{
    dr__chain chain = chosen_chain(conf, par);
    return dr__chain_cost(&chain, nested(par), in);
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    dr__chain chain = chosen_chain(task->conf, par);
    return dr__chain_run(&chain, task, nested(par), in, out);
}

const dr_op_def dr__op_random_choice = {
    .name = "random_choice",
    .version = 1,
    .summary = "one op of a list, drawn with given weights",
    .params = params,
    .draws = draws,
    .conf_size = sizeof(struct conf),
    .par_size = sizeof(struct par),
    .flags = DR_OP_RANDOM | DR_OP_EARLY,
    .init = init,
    .par_bytes = par_bytes,
    .draws_json = draws_json,
    .draw = draw,
    .plan = plan,
    .cost = cost,
    .run = run,
};
