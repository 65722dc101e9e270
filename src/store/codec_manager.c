/* codec_manager.c: utilities of codecs, and the means that they are made of.
 *
 * Means follow the latest measurements: a new one counts a quarter, and more where the older ones have faded.  One that
 * is far above the mean (the thread lost its CPU in the middle) is cut to eight times the mean.
 */
#include "store/codec_manager.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "codec/bytes/byte_codec.h"
#include "data/desc.h"

enum { MEAN_OF = 3, OUTLIER = 8, SLOW_CAP = 4, MEASURE_EVERY = 8, MEASURE_FIRST = 4, NO_CACHE = 4 };

#define SLOWDOWN_OF_NS 8e6 /* CPU time of the decompressions that the slow-down is of, about */
#define SLOWDOWN_PRIOR_NS 1e6

static const dr__codec_weights default_weights = {
    .alpha = 0.02, .beta = 0.02, .gamma = 1, .bonus = 0.02, .window = 64
};

/* --- setting up --- */

void dr__codec_manager_init_with(dr__codec_manager *m, const uint8_t *wire_ids, const char *const *names, int n)
{
    *m = (dr__codec_manager){ .weights = default_weights, .forced = DR__CODEC_AUTO };
    m->wall_ns = m->cpu_ns = SLOWDOWN_PRIOR_NS;
    m->resources.cores = 1;
    for (int i = 0; i < n && m->n < DR__CODECS_MOST; i++) {
        m->wire_id[m->n] = wire_ids[i];
        m->name[m->n++] = names[i];
    }
}

void dr__codec_manager_init(dr__codec_manager *m)
{
    uint8_t ids[DR__CODECS_MOST];
    const char *names[DR__CODECS_MOST];
    int n = 0;
    for (const dr_byte_codec *const *c = dr__byte_codecs; *c && n < DR__CODECS_MOST; c++) {
        ids[n] = (*c)->wire_id;
        names[n++] = (*c)->name;
    }
    dr__codec_manager_init_with(m, ids, names, n);
}

int dr__codec_index(const dr__codec_manager *m, unsigned wire_id)
{
    for (int i = 0; i < m->n; i++)
        if (m->wire_id[i] == wire_id)
            return i;
    return -1;
}

bool dr__codec_manager_force(dr__codec_manager *m, int wire_id)
{
    if (wire_id != DR__CODEC_AUTO && (wire_id < 0 || dr__codec_index(m, (unsigned)wire_id) < 0))
        return false;
    m->forced = wire_id;
    return true;
}

/* --- measurements --- */

static void add(double *mean, double n, double value)
{
    if (n >= 1 && value > OUTLIER * *mean && *mean > 0)
        value = OUTLIER * *mean;
    *mean += (value - *mean) / (1 + DR_MIN(n, MEAN_OF));
}

void dr__codec_note_encoded(dr__codec_manager *m, dr__data_class class, int which, size_t raw, size_t stored,
                            uint64_t cpu_ns)
{
    dr__codec_history *h = &m->history[class][which];
    if (!raw)
        return;
    add(&h->share, h->n, (double)stored / (double)raw);
    add(&h->encode_s, h->n, (double)cpu_ns * 1e-9 / (double)raw);
    h->n = DR_MIN(h->n + 1, m->weights.window);
}

void dr__codec_note_decoded(dr__codec_manager *m, dr__data_class class, int which, size_t raw, uint64_t cpu_ns,
                            uint64_t wall_ns)
{
    dr__codec_history *h = &m->history[class][which];
    if (!raw)
        return;
    add(&h->decode_s, h->n_decoded, (double)DR_MAX(cpu_ns, 1) * 1e-9 / (double)raw);
    h->n_decoded = DR_MIN(h->n_decoded + 1, m->weights.window);
    if (!wall_ns)
        return;
    if (m->cpu_ns > SLOWDOWN_OF_NS) {
        m->cpu_ns /= 2;
        m->wall_ns /= 2;
    }
    m->cpu_ns += (double)cpu_ns;
    m->wall_ns += (double)DR_MAX(wall_ns, cpu_ns);
}

/* Sums, not a mean of ratios: a thread that is without a CPU for long is so in few decompressions. */
static double slowdown_of(const dr__codec_manager *m)
{
    return m->wall_ns / m->cpu_ns;
}

void dr__codec_note_read(dr__codec_manager *m, uint64_t bytes, uint64_t ns)
{
    if (m->read_bytes > 4 * (uint64_t)DR__CODEC_READ) {
        m->read_bytes /= 2;
        m->read_ns /= 2;
    }
    m->read_bytes += bytes;
    m->read_ns += ns;
}

void dr__codec_note_probe(dr__codec_manager *m, uint64_t bytes, uint64_t cached_ns, uint64_t disk_ns)
{
    const double n = m->disk_s > 0 ? MEAN_OF : 0, each = 1e-9 / (double)DR_MAX(bytes, 1);
    add(&m->cached_s, n, (double)DR_MAX(cached_ns, 1) * each);
    add(&m->disk_s, n, (double)DR_MAX(disk_ns, 1) * each);
}

bool dr__codec_knows_reads(const dr__codec_manager *m)
{
    return m->resources.bytes_per_s > 0 || m->read_bytes >= DR__CODEC_READ;
}

/* The part of the stored bytes that the page cache will have when they are read: of a shuffled epoch, where it drops
 * what was not used for longest (docs/plan.md). */
static double found_in_cache(const dr__codec_manager *m, double share)
{
    const dr__codec_resources *r = &m->resources;
    if (m->cached_s * NO_CACHE > m->disk_s) /* storage in memory, or that the system does not cache */
        return 0;
    const double stored = r->wanted * share, room = stored > 0 ? DR_MIN(r->page_cache / stored, 1) : 0;
    return room < 1 ? room + (1 - room) * log(1 - room) : 1;
}

double dr__codec_bytes_per_s(const dr__codec_manager *m, double share)
{
    if (m->resources.bytes_per_s > 0)
        return m->resources.bytes_per_s;
    if (m->read_bytes >= DR__CODEC_READ)
        return (double)m->read_bytes / ((double)DR_MAX(m->read_ns, 1) * 1e-9);
    if (!(m->disk_s > 0))
        return DR__DISK_BYTES_PER_S;
    const double found = found_in_cache(m, share);
    const double threads = DR_MAX(m->resources.cores, 1); /* they copy side by side, and share the disk */
    return 1 / (found * m->cached_s / threads + (1 - found) * m->disk_s);
}

uint64_t dr__disk_ns(uint64_t bytes)
{
    return (uint64_t)((double)bytes * (1e9 / DR__DISK_BYTES_PER_S));
}

/* --- utilities --- */

/* t for a raw byte. */
static double seconds_of(const dr__codec_manager *m, const dr__codec_history *h)
{
    const dr__codec_resources *r = &m->resources;
    const double cores = DR_MAX(r->cores, 1e-9), read = h->share / dr__codec_bytes_per_s(m, h->share);
    const double slowdown = slowdown_of(m);
    const double cpu = (h->decode_s + (r->reuse > 0 ? h->encode_s / r->reuse : 0)) * slowdown / cores;
    const double hit = r->overlapped ? DR_MAX(read, cpu) : read + cpu;
    if (!(r->capacity > 0) || !(r->wanted > 0))
        return hit;
    const double kept = DR_MIN(1, r->capacity / (r->wanted * DR_MAX(h->share, 1e-9)));
    return kept * hit + (1 - kept) * r->make_s * slowdown / cores;
}

static bool is_known(const dr__codec_history *h)
{
    return h->n > 0 && h->n_decoded > 0;
}

/* v, rho and t of those that were measured; what the greatest of them are. */
static dr__codec_terms measure(const dr__codec_manager *m, const dr__codec_history *h, dr__codec_choice *out,
                               double *least_s)
{
    dr__codec_terms most = { 0 };
    *least_s = INFINITY;
    for (int i = 0; i < m->n; i++) {
        dr__codec_terms *t = &out->terms[i];
        *t = (dr__codec_terms){ 0 };
        if (!is_known(&h[i]))
            continue;
        t->v = 1 / h[i].decode_s;
        t->rho = 1 / DR_MAX(h[i].share, 1e-9);
        t->seconds = seconds_of(m, &h[i]);
        most.v = DR_MAX(most.v, t->v);
        most.rho = DR_MAX(most.rho, t->rho);
        *least_s = DR_MIN(*least_s, t->seconds);
        most.seconds = DR_MAX(most.seconds, t->seconds);
    }
    return most;
}

static void weigh(const dr__codec_manager *m, const dr__codec_history *h, dr__codec_choice *out)
{
    const dr__codec_weights *w = &m->weights;
    double total = 1, least_s;
    const dr__codec_terms most = measure(m, h, out, &least_s);
    const double slowest = DR_MIN(most.seconds, SLOW_CAP * least_s);
    for (int i = 0; i < m->n; i++)
        total += h[i].n;
    for (int i = 0; i < m->n; i++) {
        dr__codec_terms *t = &out->terms[i];
        if (!is_known(&h[i])) {
            t->bonus = t->utility = INFINITY;
            continue;
        }
        t->v /= most.v;
        t->rho /= most.rho;
        t->compat = slowest > 0 ? 1 - DR_MIN(t->seconds, slowest) / slowest : 0;
        t->bonus = w->bonus * sqrt(log(total) / h[i].n);
        t->utility = w->alpha * t->v + w->beta * t->rho + w->gamma * t->compat + t->bonus;
    }
}

static int greatest(const dr__codec_choice *c, bool with_bonus)
{
    int best = 0;
    double most = -INFINITY;
    for (int i = 0; i < c->n; i++) {
        const bool known = isfinite(c->terms[i].bonus);
        const double u = with_bonus ? c->terms[i].utility : known ? c->terms[i].utility - c->terms[i].bonus : -INFINITY;
        if (u > most) {
            most = u;
            best = i;
        }
    }
    return best;
}

void dr__codec_choose(dr__codec_manager *m, dr__data_class class, dr__codec_choice *out)
{
    dr__codec_history *h = m->history[class];
    *out = (dr__codec_choice){ .class = class, .n = m->n };
    weigh(m, h, out);
    const int forced = m->forced == DR__CODEC_AUTO ? -1 : dr__codec_index(m, (unsigned)m->forced);
    out->which = forced >= 0 ? forced : greatest(out, true);
    out->why = forced >= 0 ? DR__CODEC_FORCED : out->which == greatest(out, false) ? DR__CODEC_BEST : DR__CODEC_PROBE;
    const uint64_t number = m->n_choices[class]++;
    out->measure = forced < 0 && (out->why == DR__CODEC_PROBE || h[out->which].n_decoded < MEASURE_FIRST ||
                                  number % MEASURE_EVERY == 0);
    for (int i = 0; i < m->n; i++) {
        h[i].n *= 1 - 1 / m->weights.window;
        h[i].n_decoded *= 1 - 1 / m->weights.window;
    }
}

/* --- classes --- */

static dr__data_class class_of(const dr_desc *d)
{
    if (d->kind == DR_KIND_BYTES)
        return DR__CLASS_ENCODED;
    if (d->kind == DR_KIND_TEXT)
        return DR__CLASS_TEXT;
    if (d->dtype == DR_F16 || d->dtype == DR_BF16 || d->dtype == DR_F32 || d->dtype == DR_F64)
        return DR__CLASS_FLOATS;
    return dr_dtype_size(d->dtype) == 1 ? DR__CLASS_PIXELS : DR__CLASS_INTEGERS;
}

dr__data_class dr__data_class_of(const dr_desc *fields, int n)
{
    size_t bytes[DR__N_CLASSES] = { 0 };
    int most = DR__CLASS_PIXELS;
    for (int i = 0; i < n; i++) {
        size_t size = 0;
        dr__desc_bytes_dense(&fields[i], &size);
        bytes[class_of(&fields[i])] += size;
    }
    for (int i = 0; i < DR__N_CLASSES; i++)
        if (bytes[i] > bytes[most])
            most = i;
    return (dr__data_class)most;
}

const char *dr__data_class_name(dr__data_class class)
{
    static const char *const names[] = {
#define DR__CLASS_NAME(id, name) name,
        DR__CLASS_MAP(DR__CLASS_NAME)
#undef DR__CLASS_NAME
    };
    return names[class];
}

/* --- telling --- */

static const char *const whys[] = { "set", "best", "probe" };

const char *dr__codec_explain(const dr__codec_manager *m, const dr__codec_choice *c, char *text, size_t size)
{
    const dr__codec_history *h = m->history[c->class];
    size_t used = (size_t)snprintf(text, size, "%s for %s data (%s)", m->name[c->which], dr__data_class_name(c->class),
                                   whys[c->why]);
    for (int i = 0; i < m->n && used < size; i++)
        if (is_known(&h[i]))
            used += (size_t)snprintf(text + used, size - used,
                                     "; %s: %.0f%% of the bytes, unpacked at %.0f MB/s, U %.3f", m->name[i],
                                     100 * h[i].share, 1e-6 / h[i].decode_s, c->terms[i].utility - c->terms[i].bonus);
    if (used < size)
        snprintf(text + used, size - used, "; reads at %.0f MB/s, unpacking takes %.1f times its CPU time",
                 dr__codec_bytes_per_s(m, h[c->which].share) * 1e-6, slowdown_of(m));
    return text;
}

/* A number of JSON whatever the locale is: millionths. */
static size_t put_number(char *text, size_t size, const char *name, double value)
{
    if (!isfinite(value))
        return (size_t)snprintf(text, size, ",\"%s\":null", name);
    const int64_t millionths = llround(value * 1e6);
    const uint64_t n = (uint64_t)llabs(millionths);
    return (size_t)snprintf(text, size, ",\"%s\":%s%" PRIu64 ".%06" PRIu64, name, millionths < 0 ? "-" : "",
                            n / 1000000, n % 1000000);
}

const char *dr__codec_choice_json(const dr__codec_manager *m, const dr__codec_choice *c, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "\"class\":\"%s\",\"codec\":\"%s\",\"why\":\"%s\",\"terms\":[",
                                   dr__data_class_name(c->class), m->name[c->which], whys[c->why]);
    for (int i = 0; i < c->n && used + 200 < size; i++) {
        const dr__codec_terms *t = &c->terms[i];
        used += (size_t)snprintf(text + used, size - used, "%s{\"codec\":\"%s\"", i ? "," : "", m->name[i]);
        const bool known = isfinite(t->bonus);
        used += put_number(text + used, size - used, "v", known ? t->v : NAN);
        used += put_number(text + used, size - used, "rho", known ? t->rho : NAN);
        used += put_number(text + used, size - used, "compat", known ? t->compat : NAN);
        used += put_number(text + used, size - used, "bonus", t->bonus);
        used += put_number(text + used, size - used, "u", t->utility);
        used += (size_t)snprintf(text + used, size - used, "}");
    }
    snprintf(text + used, size - used, "]");
    return text;
}
