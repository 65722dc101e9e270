/* pack.c: encodes records (wire.h). */
#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "trace/wire.h"

/* Writes without bounds checks: DR__MAX_RECORD holds the longest record of each kind. */
typedef struct pen {
    uint8_t *start, *at;
} pen;

static void put_bytes(pen *p, const void *bytes, size_t n)
{
    memcpy(p->at, bytes, n);
    p->at += n;
}

static void put_fixed(pen *p, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *p->at++ = (uint8_t)(value >> 8 * i);
}

static void put_number(pen *p, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *p->at++ = (uint8_t)(value | 0x80);
    *p->at++ = (uint8_t)value;
}

static uint64_t zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

static void put_time(pen *p, uint64_t start_ns, uint64_t time_ns)
{
    put_number(p, zigzag((int64_t)(time_ns - start_ns)));
}

static void put_float(pen *p, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_fixed(p, bits, 4);
}

static bool is_whole(double value)
{
    return value >= -9e15 && value <= 9e15 && value == (double)(int64_t)value && !(value == 0 && signbit(value));
}

static void put_double(pen *p, double value)
{
    if (is_whole(value)) {
        put_number(p, zigzag((int64_t)value) << 1);
        return;
    }
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_number(p, 1);
    put_fixed(p, bits, 8);
}

static void put_text(pen *p, const char *text, size_t room)
{
    const size_t n = strnlen(text, room - 1);
    put_number(p, n);
    put_bytes(p, text, n);
}

/* A share in [0, 1] as a whole number of steps. */
static uint64_t steps_of(double share, double steps)
{
    return share > 0 ? (uint64_t)(DR_MIN(share, 1) * steps + 0.5) : 0;
}

static size_t length_of(const pen *p)
{
    return (size_t)(p->at - p->start);
}

size_t dr__pack_time(uint64_t start_ns, uint64_t time_ns, uint8_t out[DR__MAX_TIME])
{
    pen p = { out, out };
    put_time(&p, start_ns, time_ns);
    return length_of(&p);
}

size_t dr__pack_snapshot(uint64_t start_ns, const dr_snapshot *s, uint8_t out[DR__MAX_RECORD])
{
    pen p = { out, out };
    const uint64_t present = s->present & (((uint64_t)1 << DR_N_SENSORS) - 1);
    put_time(&p, start_ns, s->time_ns);
    put_number(&p, s->number);
    put_number(&p, present);
    put_number(&p, s->modelled & present);
    for (int i = 0; i < DR_N_SENSORS; i++) {
        if (!(present >> i & 1))
            continue;
        put_float(&p, (float)s->value[i]);
        put_fixed(&p, steps_of(s->level[i], 65535), 2);
    }
    const uint32_t n_cpus = DR_MIN(s->n_cpus, (uint32_t)DR_MAX_CPUS);
    put_number(&p, n_cpus);
    for (uint32_t i = 0; i < n_cpus; i++)
        put_fixed(&p, steps_of((double)s->cpu[i], 255), 1);
    return length_of(&p);
}

size_t dr__pack_flow(uint64_t start_ns, uint64_t time_ns, const double *flow, int n, uint8_t out[DR__MAX_RECORD])
{
    pen p = { out, out };
    n = DR_MAX(DR_MIN(n, (int)DR__MAX_NAMES), 0);
    put_time(&p, start_ns, time_ns);
    put_number(&p, (uint64_t)n);
    for (int i = 0; i < n; i++)
        put_double(&p, flow[i]);
    return length_of(&p);
}

static void put_pairs(pen *p, const double *first, const double *second, int n)
{
    put_number(p, (uint64_t)n);
    for (int i = 0; i < n; i++) {
        put_double(p, first[i]);
        put_double(p, second[i]);
    }
}

size_t dr__pack_decision(uint64_t start_ns, const dr_decision *d, uint8_t out[DR__MAX_RECORD])
{
    pen p = { out, out };
    put_time(&p, start_ns, d->time_ns);
    put_number(&p, d->number);
    put_number(&p, (uint32_t)d->bound);
    put_number(&p, d->changed);
    put_number(&p, d->guarded);
    put_pairs(&p, d->before, d->after, DR_N_KNOBS);
    put_pairs(&p, d->term, d->weight, DR_N_TERMS);
    put_double(&p, d->reward);
    put_text(&p, d->reason, sizeof d->reason);
    return length_of(&p);
}

size_t dr__pack_span(uint64_t start_ns, const dr_span *s, uint8_t out[DR__MAX_RECORD])
{
    pen p = { out, out };
    put_time(&p, start_ns, s->begin_ns);
    put_number(&p, s->end_ns > s->begin_ns ? s->end_ns - s->begin_ns : 0);
    put_number(&p, (uint64_t)s->kind << 1 | (uint64_t)s->slow);
    put_number(&p, zigzag(s->thread));
    const uint64_t numbers[] = { s->epoch, s->batch, s->slot, s->position, s->id, s->bytes };
    for (size_t i = 0; i < DR_COUNT(numbers); i++)
        put_number(&p, numbers[i]);
    put_float(&p, s->cost);
    put_text(&p, s->key, sizeof s->key);
    put_number(&p, s->cpu_ns);
    return length_of(&p);
}

_Static_assert((int)DR_N_SENSORS < DR__MAX_NAMES && (int)DR_N_FLOWS <= DR__MAX_NAMES, "more rows than a trace numbers");
_Static_assert(DR_N_KNOBS <= 32 && DR_N_TERMS <= 32, "more knobs or terms than a record has room for");
_Static_assert(40 + 6 * DR_N_SENSORS + DR_MAX_CPUS <= DR__MAX_RECORD, "a snapshot has no room");
_Static_assert(20 + 10 * DR__MAX_NAMES <= DR__MAX_RECORD, "flow has no room");
_Static_assert(80 + 18 * (DR_N_KNOBS + DR_N_TERMS) + DR_MAX_REASON <= 1024, "a decision takes more than 1 KB");
