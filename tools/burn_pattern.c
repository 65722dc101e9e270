/* burn_pattern.c: the level of the load as a function of time, the same for the same arguments. */
#include "burn.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool burn_shape_parse(const char *name, enum burn_shape *out)
{
    static const char *const names[] = { "steady", "step", "periodic", "random" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(names[i], name)) {
            *out = (enum burn_shape)i;
            return true;
        }
    return false;
}

/* --- traces --- */

static bool add_step(struct burn_pattern *p, struct burn_step step)
{
    if (p->n_steps == BURN_MAX_STEPS)
        return false;
    if ((p->n_steps & (p->n_steps - 1)) == 0) { /* a power of two is full: room for the next */
        void *grown = realloc(p->steps, (p->n_steps ? p->n_steps * 2 : 1) * sizeof step);
        if (!grown)
            return false;
        p->steps = grown;
    }
    p->steps[p->n_steps++] = step;
    return true;
}

/* 1: a step, 0: nothing in the line, -1: wrong. */
static int read_step(const char *line, double after_s, struct burn_step *out)
{
    char extra;
    line += strspn(line, " \t\n\r");
    if (!*line || *line == '#')
        return 0;
    int n = sscanf(line, "%lf %lf %c", &out->at_s, &out->level, &extra);
    bool good = (n == 2 || (n == 3 && extra == '#')) && out->at_s >= after_s && out->level >= 0 && out->level <= 1;
    return good ? 1 : -1;
}

static bool read_steps(FILE *f, const char *path, struct burn_pattern *p)
{
    char line[256];
    double after_s = 0;
    for (int number = 1; fgets(line, sizeof line, f); number++) {
        struct burn_step step;
        int found = read_step(line, after_s, &step);
        if (found < 0 || (found && !add_step(p, step))) {
            fprintf(stderr, "burn: %s:%d: expected \"seconds level\", times in order, levels 0 to 1\n", path, number);
            return false;
        }
        after_s = found ? step.at_s : after_s;
    }
    if (!p->n_steps)
        fprintf(stderr, "burn: %s: no line \"seconds level\"\n", path);
    return p->n_steps > 0;
}

bool burn_trace_read(const char *path, struct burn_pattern *p)
{
    FILE *f = fopen(path, "r");
    if (!f) {
        perror(path);
        return false;
    }
    p->shape = BURN_TRACE;
    bool good = read_steps(f, path, p);
    fclose(f);
    return good;
}

/* --- levels --- */

/* A number in [0, 1) from seed and index. */
static double draw(uint64_t seed, uint64_t index)
{
    uint64_t x = seed * 0x9e3779b97f4a7c15u + index * 0xd1b54a32d192ed03u + 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (double)((x ^ x >> 31) >> 11) * 0x1p-53;
}

static double trace_level(const struct burn_pattern *p, double at_s)
{
    double level = 0;
    for (size_t i = 0; i < p->n_steps && p->steps[i].at_s <= at_s; i++)
        level = p->steps[i].level;
    return level;
}

double burn_level(const struct burn_pattern *p, double at_s)
{
    double periods = at_s / p->period_s;
    switch (p->shape) {
    case BURN_STEP:
        return (uint64_t)periods % 2 == 0 ? p->level : 0;
    case BURN_PERIODIC:
        return p->level * (0.5 - 0.5 * cos(2 * acos(-1.0) * periods));
    case BURN_RANDOM:
        return p->level * draw(p->seed, (uint64_t)periods);
    case BURN_TRACE:
        return trace_level(p, at_s);
    default:
        return p->level;
    }
}
