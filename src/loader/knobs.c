/* knobs.c: settings that change while a loader runs. */
#include <string.h>

#include "loader/loader.h"

typedef struct knob {
    const char *name;
    size_t offset; /* of an int in dr__exec; pool lock */
    int min, max;
} knob;

static const knob knobs[] = {
    { "workers", offsetof(dr__exec, workers), 0, DR__MAX_WORKERS },
    { "prefetch", offsetof(dr__exec, prefetch), 1, DR__MAX_PREFETCH },
};

static dr_status find_knob(const char *name, const knob **out, dr_error *err)
{
    for (size_t i = 0; i < DR_COUNT(knobs); i++)
        if (!strcmp(knobs[i].name, name)) {
            *out = &knobs[i];
            return DR_OK;
        }
    return dr__fail(err, DR_ERR_NOT_FOUND, "no knob \"%s\"; there are workers and prefetch", name);
}

/* Sets it; returns what it was. */
static int turn(dr__exec *e, const knob *k, int value)
{
    dr__pool_lock();
    int *at = (int *)((char *)e + k->offset), before = *at;
    *at = value;
    dr__bufpool_keep(e->buffers, (e->prefetch + 2) * e->program->n_outputs);
    dr__cond_broadcast(&e->changed); /* a consumer may have to work itself now */
    dr__pool_unlock();
    return before;
}

static dr_status turn_by_name(dr_loader *l, const char *name, double value, dr_error *err)
{
    const knob *k = NULL;
    DR_TRY(find_knob(name, &k, err));
    if (!(value >= k->min && value <= k->max) || value != (int)value)
        return dr__fail(err, DR_ERR_ARG, "%s is %g, allowed are whole numbers %d to %d", name, value, k->min, k->max);
    int before = turn(&l->exec, k, (int)value);
    dr_status status = dr__pool_resize(err);
    if (status != DR_OK) { /* no thread at all could be started: as it was */
        turn(&l->exec, k, before);
        return status;
    }
    dr__trace_event(l->exec.trace, "set", "\"knob\":\"%s\",\"value\":%d", name, (int)value);
    return DR_OK;
}

dr_status dr__loader_turn(dr_loader *l, int which, double value, dr_error *err)
{
    return turn_by_name(l, dr_knob_name(which), value, err);
}

dr_status dr_loader_set(dr_loader *l, const char *name, double value, dr_error *err)
{
    const knob *k = NULL;
    DR_TRY(dr__loader_check(l, err));
    DR_TRY(find_knob(name, &k, err));
    return dr__adapt_set(l, dr_knob_find(name), value, err);
}

dr_status dr_loader_get(dr_loader *l, const char *name, double *value, dr_error *err)
{
    const knob *k = NULL;
    DR_TRY(dr__loader_check(l, err));
    DR_TRY(find_knob(name, &k, err));
    dr__pool_lock();
    *value = *(const int *)((const char *)&l->exec + k->offset);
    dr__pool_unlock();
    return DR_OK;
}
