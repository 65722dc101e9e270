/* random_order: all ops of a list, in random order. */
#include <jansson.h>
#include <string.h>

#include "op/chain.h"
#include "op/op_defs.h"

struct conf {
    dr_op_list transforms;
};

/* The pars of the list follow. */
struct par {
    dr_ints order;
};

enum { PAR_HEAD = (sizeof(struct par) + 15) & ~(size_t)15 };

static const dr_param params[] = {
    DR_OP_LIST(struct conf, transforms, "the ops"),
    { 0 },
};

static const dr_param draws[] = {
    DR_INT_LIST(struct par, order, NULL, 0, DR_PARAM_LIST - 1, 1, DR_PARAM_LIST, "places in the list, as they run"),
    { 0 },
};

static dr_status init(void *conf, dr_error *err)
{
    const struct conf *c = conf;
    if (c->transforms.n > DR_PARAM_LIST)
        return dr__fail(err, DR_ERR_ARG, "random_order: transforms must be 1 to %d ops, got %d", DR_PARAM_LIST,
                        c->transforms.n);
    return DR_OK;
}

static dr__chain chain_of(const struct conf *c, const struct par *p)
{
    return (dr__chain){ .ops = c->transforms.ops, .n = c->transforms.n, .order = p ? p->order.v : NULL };
}

static const void *nested(const void *par)
{
    return (const char *)par + PAR_HEAD;
}

static size_t par_bytes(const void *conf)
{
    dr__chain chain = chain_of(conf, NULL);
    return PAR_HEAD + dr__chain_par_bytes(&chain);
}

static struct json_t *draws_json(const void *conf, const void *par)
{
    dr__chain chain = chain_of(conf, par);
    json_t *object = dr__params_write(draws, par, 1);
    json_object_set_new(object, "transforms", dr__chain_draws(&chain, nested(par)));
    return object;
}

static dr_status draw(const void *conf, dr_rng *rng, const dr_desc *in, void *par, dr_error *err)
{
    const struct conf *c = conf;
    struct par *p = par;
    memset(par, 0, par_bytes(conf));
    p->order.n = c->transforms.n;
    for (int i = 0; i < p->order.n; i++) { /* each one goes to a random place among those before it */
        int64_t j = (int64_t)dr__rng_below(rng, (uint64_t)i + 1);
        p->order.v[i] = p->order.v[j];
        p->order.v[j] = i;
    }
    dr__chain chain = chain_of(c, p);
    return dr__chain_draw(&chain, rng, in, (char *)par + PAR_HEAD, err);
}

/* While the graph is built the order is open: the shape is certain when the ops keep it. */
static dr_status plan_any(const void *conf, const dr_desc *in, dr_plan *out, dr_error *err)
{
    dr__chain chain = chain_of(conf, NULL);
    DR_TRY(dr__chain_plan(&chain, NULL, in, out, err));
    return dr__chain_either(&out->desc, in, "random_order", &out->desc, err);
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    if (!par)
        return plan_any(conf, in, out, err);
    dr__chain chain = chain_of(conf, par);
    return dr__chain_plan(&chain, nested(par), in, out, err);
}

static double cost(const void *conf, const void *par, const dr_desc *in)
{
    dr__chain chain = chain_of(conf, par);
    return dr__chain_cost(&chain, nested(par), in);
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    dr__chain chain = chain_of(task->conf, par);
    return dr__chain_run(&chain, task, nested(par), in, out);
}

const dr_op_def dr__op_random_order = {
    .name = "random_order",
    .version = 1,
    .summary = "all ops of a list in random order",
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
