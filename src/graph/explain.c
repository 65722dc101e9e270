/* explain.c: describes a program for people. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/program.h"

typedef struct buffer {
    char *text;
    size_t used, cap;
} buffer;

static void append(buffer *p, const char *format, ...) DR_PRINTF(2, 3);

static void append(buffer *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (p->used < p->cap) {
        int n = vsnprintf(p->text + p->used, p->cap - p->used, format, args);
        p->used += n > 0 ? (size_t)n : 0;
    }
    va_end(args);
}

/* Whether a tail takes the step's rows as they are decoded. */
static bool streams(const dr__program *p, const dr__step *step)
{
    for (int t = 0; t < p->n_tails; t++)
        if (p->tails[t].decode_step >= 0 && &p->steps[p->tails[t].decode_step] == step)
            return true;
    return false;
}

static void append_step(buffer *out, const dr__program *p, const dr__step *step)
{
    const dr__node *node = &p->graph->nodes[step->node];
    char shape[128];
    json_t *params = dr__params_write(node->op.def->params, node->op.conf, 0);
    char *text = params ? dr__canonical(params) : NULL;
    append(out, "  %-3u %s%s", node->id, node->op.def->name, text && strcmp(text, "{}") ? text : "");
    if (strcmp(node->in[step->field], "image") || strcmp(node->out[step->field], "image"))
        append(out, " [%s -> %s]", node->in[step->field], node->out[step->field]);
    append(out, " -> %s", dr__desc_text_of(&p->values[step->out], shape, sizeof shape));
    if (node->op.def->note) {
        char note[256];
        node->op.def->note(node->op.conf, !p->fused, note, sizeof note);
        append(out, "; %s", note);
    }
    if (step->windowed)
        append(out, "; decodes only what is read%s", streams(p, step) ? ", JPEG row by row into the batch" : "");
    if (step->tail >= 0)
        append(out, "; fused, row by row, into the batch");
    append(out, "\n");
    dr__free(text);
    json_decref(params);
}

char *dr__program_explain(const dr__program *p)
{
    static const char *const rules[] = { "stack", "pad", "ragged", "list" };
    char shape[128];
    buffer out = { .text = dr__alloc(64 * 1024), .cap = 64 * 1024 };
    if (!out.text)
        return NULL;
    append(&out, "fields of a sample:\n");
    for (int i = 0; i < p->n_inputs; i++)
        append(&out, "      %s: %s\n", p->names[i], dr__desc_text_of(&p->values[i], shape, sizeof shape));
    append(&out, "ops:\n");
    for (int s = 0; s < p->n_steps; s++)
        append_step(&out, p, &p->steps[s]);
    for (int i = 0; i < p->n_batch_nodes; i++)
        append(&out, "  %-3u %s on whole batches\n", p->graph->nodes[p->batch_nodes[i]].id,
               p->graph->nodes[p->batch_nodes[i]].op.def->name);
    append(&out, "outputs:\n");
    for (int i = 0; i < p->n_outputs; i++)
        append(&out, "      %s: %s, %s\n", p->outputs[i].name,
               dr__desc_text_of(&p->outputs[i].delivered, shape, sizeof shape), rules[p->outputs[i].collate]);
    return out.text;
}

dr_status dr_graph_explain(dr_graph *graph, const dr_dataset *set, char **text, dr_error *err)
{
    dr__program_options options = { .any_shape = true };
    dr__program *program = NULL;
    DR_TRY(dr__program_compile(graph, set->fields, set->n_fields, &options, &program, err));
    *text = dr__program_explain(program);
    dr__program_free(&program);
    return *text ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "explain: out of memory");
}
