/* follow.c: which fields a node acts on, and whether delivered fields still match.
 *
 * An op that moves pixels also moves the fields that refer to positions in them: masks, boxes and key points follow
 * their image, label volumes their volume.  But a node may name its fields, and some ops cannot move every kind.  A
 * field that was left behind in this way must not be delivered together with the image it belongs to.  The history of a
 * value is the list of nodes that moved it (or dropped rows of it); matching fields have equal histories.
 */
#include <stdio.h>
#include <string.h>

#include "graph/program.h"

static const char *const kind_words[] = {
    [DR_KIND_ARRAY] = "arrays",         [DR_KIND_IMAGE] = "images",
    [DR_KIND_MASK] = "masks",           [DR_KIND_BOXES] = "boxes",
    [DR_KIND_BYTES] = "bytes",          [DR_KIND_TEXT] = "texts",
    [DR_KIND_VOLUME] = "volumes",       [DR_KIND_VOLUME_MASK] = "label volumes",
    [DR_KIND_KEYPOINTS] = "key points", [DR_KIND_LABELS] = "labels of boxes",
    [DR_KIND_MASKS] = "masks of boxes",
};

static bool is_of_kind(const dr__program *p, int value, unsigned kinds)
{
    return kinds >> p->values[value].kind & 1;
}

/* --- fields of a node --- */

static dr_status name_fields_of_kind(dr__program *p, dr__node *node, unsigned kinds, dr_error *err)
{
    for (int v = 0; v < p->n_values; v++) {
        if (!is_of_kind(p, v, kinds) || dr__program_find_value(p, p->names[v]) != v)
            continue;
        if (node->n_fields == DR__NODE_FIELDS)
            return dr__fail(err, DR_ERR_LIMIT, "%s: there are more than %d fields that it acts on; name some (fields=)",
                            node->op.def->name, DR__NODE_FIELDS);
        memcpy(node->in[node->n_fields], p->names[v], DR__NAME);
        memcpy(node->out[node->n_fields++], p->names[v], DR__NAME);
    }
    return DR_OK;
}

dr_status dr__program_name_fields(dr__program *p, int node_index, dr_error *err)
{
    const unsigned first = DR__KIND(IMAGE) | DR__KIND(VOLUME), then = DR__KIND(MASK) | DR__KIND(VOLUME_MASK);
    dr__node *node = &p->graph->nodes[node_index];
    if (node->n_fields)
        return DR_OK;
    const unsigned kinds = dr__op_kinds(&node->op);
    const char *standard = dr__default_fields(node->op.def);
    node->found = true;
    DR_TRY(name_fields_of_kind(p, node, kinds & first, err)); /* draws are made from the first field's size */
    if (node->n_fields || dr__program_find_value(p, standard) < 0) {
        DR_TRY(name_fields_of_kind(p, node, kinds & then, err));
        DR_TRY(name_fields_of_kind(p, node, kinds & ~(first | then), err));
    }
    if (node->n_fields)
        return DR_OK;
    snprintf(node->in[0], DR__NAME, "%s", standard); /* the op reports what is missing: a decoded image */
    snprintf(node->out[0], DR__NAME, "%s", standard);
    node->n_fields = 1;
    return DR_OK;
}

static bool has_field(const dr__program *p, int node, unsigned kinds)
{
    for (int f = 0; f < p->graph->nodes[node].n_fields; f++)
        if (is_of_kind(p, p->node_in[node][f], kinds))
            return true;
    return false;
}

dr_status dr__program_check_fields(const dr__program *p, int node, dr_error *err)
{
    const dr_op_def *def = p->graph->nodes[node].op.def;
    const unsigned images = DR__KIND(IMAGE) | DR__KIND(MASK), points = DR__KIND(BOXES) | DR__KIND(KEYPOINTS);
    if (def->needs && !has_field(p, node, def->needs))
        return dr__fail(err, DR_ERR_ARG, "%s: needs boxes among its fields (fields=\"image,boxes\")", def->name);
    if (!has_field(p, node, points) || def->flags & DR_OP_DROPS)
        return DR_OK;
    if (!has_field(p, node, images) && dr__op_kinds(&p->graph->nodes[node].op) & points)
        return dr__fail(err, DR_ERR_ARG, "%s: boxes need their image among the fields (fields=\"image,boxes\")",
                        def->name);
    if (has_field(p, node, images) && !is_of_kind(p, p->node_in[node][0], images))
        return dr__fail(err, DR_ERR_ARG, "%s: the image must stand before its boxes in fields", def->name);
    return DR_OK;
}

/* --- fields that must match --- */

/* Ops with the flag must treat followers as they treat leaders. */
struct relation {
    unsigned flag;
    unsigned leaders, followers;
    const char *verb, *base; /* for messages */
};

#define FOLLOW_IMAGES (DR__KIND(MASK) | DR__KIND(MASKS) | DR__KIND(BOXES) | DR__KIND(KEYPOINTS))

static const struct relation relations[] = {
    { DR_OP_MOVES, DR__ON_IMAGES, FOLLOW_IMAGES, "moves", "move" },
    { DR_OP_MOVES, DR__ON_VOLUMES, DR__KIND(VOLUME_MASK), "moves", "move" },
    { DR_OP_DROPS, DR__KIND(BOXES), DR__ON_INSTANCES & ~DR__KIND(BOXES), "drops rows of", "drop rows of" },
};

static bool has_flag(const dr__op *op, unsigned flag)
{
    return flag == DR_OP_MOVES ? dr__op_moves(op) : op->def->flags & flag;
}

/* The nodes with the flag that a value has passed, first to last. */
static int history_of(const dr__program *p, int value, unsigned flag, int nodes[DR__MAX_NODES])
{
    int n = 0;
    for (int s = p->n_steps - 1; s >= 0; s--) { /* a step comes after those that make its input */
        if (p->steps[s].out != value)
            continue;
        value = p->steps[s].in;
        if (has_flag(&p->graph->nodes[p->steps[s].node].op, flag))
            nodes[n++] = p->steps[s].node;
    }
    for (int i = 0; i < n / 2; i++) {
        const int other = nodes[n - 1 - i];
        nodes[n - 1 - i] = nodes[i];
        nodes[i] = other;
    }
    return n;
}

/* The first node that moved only one of two fields; -1: there is none.  *leader_moved: it moved the leader. */
static int first_difference(const dr__program *p, int leader, int follower, unsigned flag, bool *leader_moved)
{
    int a[DR__MAX_NODES], b[DR__MAX_NODES];
    int n_a = history_of(p, leader, flag, a), n_b = history_of(p, follower, flag, b), i = 0;
    while (i < n_a && i < n_b && a[i] == b[i])
        i++;
    *leader_moved = i < n_a;
    return i < n_a ? a[i] : i < n_b ? b[i] : -1;
}

static dr_status fail_left_behind(const dr__program *p, const struct relation *relation, int node, bool leader_moved,
                                  int leader, int follower, dr_error *err)
{
    const dr__op *op = &p->graph->nodes[node].op;
    const char *name = p->names[follower], *other = p->names[leader];
    const dr_kind kind = p->values[follower].kind;
    if (!leader_moved)
        return dr__fail(err, DR_ERR_ARG,
                        "%s: %s \"%s\", which is delivered, but not \"%s\": name both in its fields, or leave its "
                        "fields out (all that belongs together follows)",
                        op->def->name, relation->verb, name, other);
    if (!(dr__op_kinds(op) >> kind & 1))
        return dr__fail(err, DR_ERR_ARG,
                        "%s: %s \"%s\" but cannot %s %s, and \"%s\" is delivered: take another op, or leave \"%s\" out "
                        "of outputs",
                        op->def->name, relation->verb, other, relation->base, kind_words[kind], name, name);
    return dr__fail(err, DR_ERR_ARG,
                    "%s: %s \"%s\" but not \"%s\", which is delivered: add \"%s\" to its fields, leave its fields out "
                    "(all that belongs together follows), or leave \"%s\" out of outputs",
                    op->def->name, relation->verb, other, name, name, name);
}

/* Fails if no leader has the history of `follower`.  Leaders are those that are delivered, or, if none is, all. */
static dr_status check_follower(const dr__program *p, const struct relation *relation, int follower, dr_error *err)
{
    int node = -1, leader = -1;
    bool leader_moved = false;
    for (int delivered = 1; delivered >= 0 && leader < 0; delivered--)
        for (int v = 0; v < p->n_values; v++) {
            bool here;
            if (!is_of_kind(p, v, relation->leaders) || dr__program_find_value(p, p->names[v]) != v ||
                (delivered && dr__program_output_of(p, v) < 0))
                continue;
            const int difference = first_difference(p, v, follower, relation->flag, &here);
            if (difference < 0)
                return DR_OK;
            if (leader < 0)
                leader = v, node = difference, leader_moved = here;
        }
    return leader < 0 ? DR_OK : fail_left_behind(p, relation, node, leader_moved, leader, follower, err);
}

static dr_status check_batch_ops(const dr__program *p, int value, dr_error *err)
{
    for (int i = 0; i < p->n_batch_nodes && is_of_kind(p, value, relations[0].followers); i++) {
        const dr__op *op = &p->graph->nodes[p->batch_nodes[i]].op;
        if (dr__op_moves(op))
            return dr__fail(err, DR_ERR_ARG,
                            "%s: mixes images but cannot mix %s, and \"%s\" is delivered: leave \"%s\" out of outputs",
                            op->def->name, kind_words[p->values[value].kind], p->names[value], p->names[value]);
    }
    return DR_OK;
}

static bool is_among(const char *names, const char *name)
{
    const size_t n = strlen(name);
    for (const char *s = names; s && *s; s += strcspn(s, ","), s += *s == ',')
        if (strcspn(s, ",") == n && !memcmp(s, name, n))
            return true;
    return false;
}

dr_status dr__program_check_followers(const dr__program *p, const char *names, dr_error *err)
{
    for (int i = 0; i < p->n_outputs; i++) {
        const int value = p->outputs[i].value;
        if (names && !is_among(names, p->outputs[i].name))
            continue;
        DR_TRY(check_batch_ops(p, value, err));
        for (size_t b = 0; b < DR_COUNT(relations); b++)
            if (is_of_kind(p, value, relations[b].followers))
                DR_TRY(check_follower(p, &relations[b], value, err));
    }
    return DR_OK;
}

/* --- unused fields --- */

/* Marks the values that a step needs: its field, the first field of its node (whose size the draws depend on), all
 * fields if the op inspects, and the image that boxes and key points refer to. */
static void mark_inputs(const dr__program *p, const dr__step *step, bool *live)
{
    const dr__node *node = &p->graph->nodes[step->node];
    const unsigned points = DR__KIND(BOXES) | DR__KIND(KEYPOINTS), images = DR__KIND(IMAGE) | DR__KIND(MASK);
    for (int f = 0; f < node->n_fields; f++) {
        const int in = p->node_in[step->node][f];
        live[in] |= f == 0 || f == step->field || node->op.def->inspect ||
                    (is_of_kind(p, step->in, points) && is_of_kind(p, in, images));
    }
}

/* Removes a field from its node. */
static void drop_field(dr__program *p, int node_index, int field)
{
    dr__node *node = &p->graph->nodes[node_index];
    const size_t n = (size_t)(--node->n_fields - field);
    memmove(node->in[field], node->in[field + 1], n * DR__NAME);
    memmove(node->out[field], node->out[field + 1], n * DR__NAME);
    memmove(&p->node_in[node_index][field], &p->node_in[node_index][field + 1], n * sizeof p->node_in[0][0]);
    for (int s = 0; s < p->n_steps; s++)
        p->steps[s].field -= p->steps[s].node == node_index && p->steps[s].field > field;
}

void dr__program_prune(dr__program *p)
{
    bool live[DR__MAX_VALUES] = { false };
    for (int i = 0; i < p->n_outputs; i++)
        live[p->outputs[i].value] = true;
    for (int s = p->n_steps - 1; s >= 0; s--) {
        const dr__step *step = &p->steps[s];
        live[step->out] |= step->field == 0 || !p->graph->nodes[step->node].found;
        if (live[step->out])
            mark_inputs(p, step, live);
    }
    int n = 0;
    for (int s = 0; s < p->n_steps; s++) {
        if (!live[p->steps[s].out]) {
            drop_field(p, p->steps[s].node, p->steps[s].field);
            continue;
        }
        p->steps[n] = p->steps[s];
        p->steps[n].first = !n || p->steps[n - 1].node != p->steps[n].node;
        n++;
    }
    p->n_steps = n;
}
