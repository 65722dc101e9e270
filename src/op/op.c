/* op.c: finding ops, and giving one its settings. */
#include "op/op.h"

#include <string.h>

#include "base/alloc.h"

const dr_op_def *dr__op_find(const char *name)
{
    for (const dr_op_def *const *def = dr__op_table; *def; def++)
        if (!strcmp((*def)->name, name))
            return *def;
    return NULL;
}

dr_status dr__op_open(const dr_op_def *def, const struct json_t *params, dr__op *out, dr_error *err)
{
    *out = (dr__op){ .def = def, .conf = dr__alloc_zero(1, def->conf_size) };
    if (!out->conf)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", def->name);
    dr_status status = dr__params_read(def->params, params, def->name, out->conf, err);
    if (status == DR_OK && def->init)
        status = def->init(out->conf, err);
    if (status != DR_OK)
        dr__op_close(out);
    return status;
}

void dr__op_close(dr__op *op)
{
    if (op->def && op->conf) {
        if (op->def->fini)
            op->def->fini(op->conf);
        dr__params_free(op->def->params, op->conf);
    }
    dr__free(op->conf);
    *op = (dr__op){ 0 };
}

size_t dr__op_par_bytes(const dr__op *op)
{
    size_t bytes = op->def->par_bytes ? op->def->par_bytes(op->conf) : op->def->par_size;
    return (bytes + 15) & ~(size_t)15; /* pars stand one after the other, each aligned for what it may hold */
}

struct json_t *dr__op_draws_json(const dr__op *op, const void *par)
{
    return op->def->draws_json ? op->def->draws_json(op->conf, par) : dr__params_write(op->def->draws, par, 1);
}

/* The ops that a setting of op holds; NULL: none. */
static const dr_op_list *members_of(const dr__op *op)
{
    for (const dr_param *p = op->def->params; p && p->name; p++)
        if (p->type == DR_P_OPS)
            return (const dr_op_list *)((const char *)op->conf + p->offset);
    return NULL;
}

bool dr__op_moves(const dr__op *op)
{
    const dr_op_list *members = members_of(op);
    for (int i = 0; members && i < members->n; i++)
        if (dr__op_moves(&members->ops[i]))
            return true;
    return op->def->flags & DR_OP_MOVES;
}

unsigned dr__op_kinds(const dr__op *op)
{
    const dr_op_list *members = members_of(op);
    unsigned any = op->def->kinds, all = ~0u;
    for (int i = 0; members && i < members->n; i++) {
        const unsigned kinds = dr__op_kinds(&members->ops[i]);
        any |= kinds;
        all &= dr__op_moves(&members->ops[i]) ? kinds : ~0u;
    }
    return any & all;
}
