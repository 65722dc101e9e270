/* weights_schedule.c: weights that change with the time of day, as text and looked up. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "sched/tables.h"

enum { DAY_S = 86400, MAX_PART = 512 };

/* "HH:MM" or "HH:MM:SS" at *at; behind it afterwards. */
static bool read_time(const char **at, double *out)
{
    int hour, minute, second = 0, n = 0, more = 0;
    if (sscanf(*at, "%2d:%2d%n", &hour, &minute, &n) < 2 || n < 4)
        return false;
    if ((*at)[n] == ':' && (sscanf(*at + n, ":%2d%n", &second, &more) < 1 || more < 3))
        return false;
    *at += n + more;
    *out = 3600 * hour + 60 * minute + second;
    return hour >= 0 && minute >= 0 && minute < 60 && second >= 0 && second < 60 && *out <= DAY_S;
}

/* "HH:MM-HH:MM name=number,..." */
static dr_status add_span(const char *part, dr_weights_schedule *s, dr_error *err)
{
    const char *at = part;
    double from, to;
    if (s->n_spans == DR_MAX_SPANS)
        return dr__fail(err, DR_ERR_ARG, "weights: at most %d spans, \"%s\" is one more", DR_MAX_SPANS, part);
    bool sound = read_time(&at, &from) && *at++ == '-' && read_time(&at, &to) && *at == ' ' && from != to;
    if (!sound)
        return dr__fail(err, DR_ERR_ARG, "weights: \"%s\" is not HH:MM-HH:MM name=number,...", part);
    while (*at == ' ')
        at++;
    dr_weights w = s->otherwise;
    if (!*at)
        return dr__fail(err, DR_ERR_ARG, "weights: \"%s\" changes nothing", part);
    DR_TRY(dr__weights_change(at, false, &w, err));
    s->spans[s->n_spans].from = from;
    s->spans[s->n_spans].to = to;
    s->spans[s->n_spans++].weights = w;
    return DR_OK;
}

/* Copies the part up to the next ";" without spaces around it; the place behind it, NULL: it was the last. */
static const char *next_part(const char *at, char part[MAX_PART], bool *fits)
{
    at += strspn(at, " ");
    size_t n = strcspn(at, ";");
    const char *rest = at[n] ? at + n + 1 : NULL;
    while (n && at[n - 1] == ' ')
        n--;
    *fits = n < MAX_PART;
    n = *fits ? n : MAX_PART - 1;
    memcpy(part, at, n);
    part[n] = 0;
    return rest;
}

dr_status dr_weights_schedule_parse(const char *text, dr_weights_schedule *out, dr_error *err)
{
    dr_weights_schedule s = { .n_spans = 0 };
    char part[MAX_PART];
    bool fits;
    const char *at = next_part(text ? text : "", part, &fits);
    DR_TRY(dr_weights_parse(part, &s.otherwise, err));
    while (at && fits) {
        at = next_part(at, part, &fits);
        if (fits)
            DR_TRY(add_span(part, &s, err));
    }
    if (!fits)
        return dr__fail(err, DR_ERR_ARG, "weights: \"%.40s...\" must be shorter than %d bytes", part, MAX_PART);
    *out = s;
    return DR_OK;
}

static const dr_weights *weights_of(const dr_weights_schedule *s, double second)
{
    for (int i = s->n_spans - 1; i >= 0; i--) {
        double from = s->spans[i].from, to = s->spans[i].to;
        if (from < to ? second >= from && second < to : second >= from || second < to)
            return &s->spans[i].weights;
    }
    return &s->otherwise;
}

double dr_weights_at(const dr_weights_schedule *s, double second, dr_weights *now, dr_weights *next)
{
    const dr_weights *here = weights_of(s, second), *there = here;
    double soonest = 0;
    for (int i = 0; i < 2 * s->n_spans; i++) { /* they change at an end of a span */
        double at = fmod(i % 2 ? s->spans[i / 2].to : s->spans[i / 2].from, DAY_S), in = at - second;
        const dr_weights *then = weights_of(s, at);
        in += in <= 0 ? DAY_S : 0;
        if (memcmp(then, here, sizeof *then) != 0 && (soonest <= 0 || in < soonest)) {
            soonest = in;
            there = then;
        }
    }
    *now = *here;
    if (next)
        *next = *there;
    return soonest;
}
