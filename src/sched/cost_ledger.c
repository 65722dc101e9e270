/* cost_ledger.c: costs of samples in units, the length of a unit, and a model of costs by hints.
 *
 *   file: "drapps ledger 2\0"  u64 samples  f64 nanoseconds of a unit  u64 xxh3 of the 32 bytes before
 *         samples times f32: units; 0: never seen.  Little-endian
 *
 * Cells are atomic numbers that any thread reads; they are written with the lock.  A cell that is not finite or is
 * negative counts as never seen, so cells need no checksum: a wrong cost costs only time.
 */
#include <drapps/ledger.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/thread.h"
#include "index/index_file.h"
#include "source/file.h"

enum { HEAD_BYTES = 40, SUMMED_BYTES = 32, PENDING = 512, ENOUGH = 16, FEWEST = 20, FOLLOW = 8, CHUNK = 1 << 16 };

static const char magic[16] = "drapps ledger 2";
static const double KEEP = 0.5; /* part of the earlier cost in the new one: random augmentations make costs vary */
static const double SPREAD = 2; /* costs differ where the slowest twentieth costs so much more than the median */
static const double FAR = 1024; /* a typical cost of so many units, or so many times fewer, changes the unit */
static const double GUESSED_NS = 5e6;  /* of a typical sample, until one was seen: only proportions are known */
static const double MOST_HINT = 1e30;  /* of a guess: costs are kept in single precision */
static const float MOST_UNITS = 1e12f; /* a cell above is damaged */

typedef atomic_uint_least32_t cell; /* the bits of a float */

struct model {
    uint64_t n;
    double x, y, xx, xy, yy; /* sums */
};

struct dr_ledger {
    char *path; /* NULL: none, or it could not be written */
    uint64_t n_samples;
    cell *cells;
    _Atomic double unit_ns;

    pthread_mutex_t lock; /* for what follows, and for writing cells */
    struct model model;
    bool changed;                                    /* since it was read or saved */
    double guess_typical, guess_mean, guess_longest; /* hints; 0: no guess */

    atomic_uint_fast64_t n_added;
    atomic_uint_fast64_t pending[PENDING]; /* id << 32 | bits of the nanoseconds as a float; 0: empty */
};

/* --- numbers --- */

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Relaxed: each cell stands for itself. */
static float get(const dr_ledger *l, uint64_t id)
{
    const float x = float_of((uint32_t)atomic_load_explicit(&l->cells[id], memory_order_relaxed));
    return x > 0 && x < MOST_UNITS ? x : 0;
}

static void set(dr_ledger *l, uint64_t id, double units)
{
    atomic_store_explicit(&l->cells[id], bits_of((float)DR_MIN(units, (double)MOST_UNITS / 2)), memory_order_relaxed);
}

/* The value at a part of the sorted ones, by quickselect (Hoare); the values change their places. */
static double quantile(float *values, size_t n, double part)
{
    const int64_t at = (int64_t)(part * (double)(n - 1));
    int64_t low = 0, high = (int64_t)n - 1;
    while (low < high) {
        const float pivot = values[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (values[i] < pivot)
                i++;
            while (values[j] > pivot)
                j--;
            if (i <= j) {
                const float swap = values[i];
                values[i++] = values[j];
                values[j--] = swap;
            }
        }
        if (at > j && at < i)
            break;
        low = at >= i ? i : low;
        high = at <= j ? j : high;
    }
    return values[at];
}

/* Enough for it to matter, as far as some can tell. */
static bool differ(float *costs, size_t n)
{
    if (n < FEWEST)
        return false;
    const double median = quantile(costs, n, 0.5);
    return median > 0 && quantile(costs, n, 0.95) > SPREAD * median;
}

/* --- hints --- */

static void model_add(struct model *m, double x, double y)
{
    m->n++;
    m->x += x, m->y += y, m->xx += x * x, m->xy += x * y, m->yy += y * y;
}

/* cost = a + b x by least squares; false: it explains less than a third of the differences. */
static bool model_line(const struct model *m, double *a, double *b)
{
    const double n = (double)DR_MAX(m->n, 1), x = m->x / n, y = m->y / n;
    const double vx = m->xx / n - x * x, vy = m->yy / n - y * y, cxy = m->xy / n - x * y;
    if (m->n < ENOUGH || !(vx > 0 && vy > 0 && cxy * cxy > vx * vy / 3))
        return false;
    *b = cxy / vx;
    *a = y - *b * x;
    return true;
}

static double typical_ns(const dr_ledger *l)
{
    const double unit_ns = atomic_load(&l->unit_ns);
    return unit_ns > 0 ? unit_ns : GUESSED_NS;
}

/* lock */
static bool guesses(const dr_ledger *l)
{
    return l->guess_typical > 0 && l->model.n < ENOUGH;
}

void dr_ledger_guess(dr_ledger *l, const double *hints, size_t n)
{
    float *copy = dr__alloc(DR_MAX(n, 1) * sizeof *copy);
    double sum = 0, longest = 0;
    bool good = copy && n;
    for (size_t i = 0; i < n && good; i++) {
        good = hints[i] >= 0 && hints[i] < MOST_HINT;
        copy[i] = good ? (float)hints[i] : 0;
        sum += hints[i];
        longest = DR_MAX(longest, hints[i]);
    }
    pthread_mutex_lock(&l->lock);
    l->guess_typical = good && differ(copy, n) ? quantile(copy, n, 0.5) : 0;
    l->guess_mean = n ? sum / (double)n : 0;
    l->guess_longest = longest;
    pthread_mutex_unlock(&l->lock);
    dr__free(copy);
}

dr_ledger_basis dr_ledger_estimates_by(dr_ledger *l)
{
    double a, b;
    pthread_mutex_lock(&l->lock);
    const dr_ledger_basis basis = guesses(l)                      ? DR_LEDGER_GUESS
                                  : model_line(&l->model, &a, &b) ? DR_LEDGER_MODEL
                                                                  : DR_LEDGER_NOTHING;
    pthread_mutex_unlock(&l->lock);
    return basis;
}

void dr_ledger_estimate(dr_ledger *l, const double *hints, size_t n, float *ns)
{
    double a = 0, b = 0;
    pthread_mutex_lock(&l->lock);
    if (guesses(l))
        b = typical_ns(l) / l->guess_typical;
    else if (!model_line(&l->model, &a, &b))
        a = b = 0;
    pthread_mutex_unlock(&l->lock);
    for (size_t i = 0; i < n; i++) {
        const double cost = a + b * hints[i];
        ns[i] = isfinite(cost) && cost > 0 ? (float)DR_MIN(cost, 1e30) : 0;
    }
}

/* --- learning --- */

/* lock: costs that vary pull the unit down a little each time, and the numbers up: they would leave their range. */
static void stay_near_one(dr_ledger *l, double typical)
{
    if (typical > 1 / FAR && typical < FAR)
        return;
    for (uint64_t id = 0; id < l->n_samples; id++)
        if (get(l, id) > 0)
            set(l, id, get(l, id) / typical);
    atomic_store(&l->unit_ns, atomic_load(&l->unit_ns) * typical);
}

/* lock: a machine that is faster or slower than the ledger's changes the unit, not each cost. */
static void follow_machine(dr_ledger *l, const uint64_t *ids, const double *ns, size_t n, float *ratios, float *known)
{
    const double unit_ns = atomic_load(&l->unit_ns);
    size_t seen = 0;
    for (size_t i = 0; i < n; i++) {
        const float units = get(l, ids[i]);
        if (units > 0) {
            ratios[seen] = (float)(ns[i] / (units * unit_ns));
            known[seen++] = units;
        }
    }
    if (seen < FOLLOW)
        return;
    const double ratio = DR_MIN(DR_MAX(quantile(ratios, seen, 0.5), 0.5), 2.0);
    atomic_store(&l->unit_ns, unit_ns * pow(ratio, 1 - KEEP));
    stay_near_one(l, quantile(known, seen, 0.5));
}

/* lock: n samples, all of them sound; scratch: 2 n numbers. */
static void learn(dr_ledger *l, const uint64_t *ids, const double *ns, size_t n, float *scratch)
{
    if (!(atomic_load(&l->unit_ns) > 0)) {
        for (size_t i = 0; i < n; i++)
            scratch[i] = (float)ns[i];
        atomic_store(&l->unit_ns, DR_MAX(quantile(scratch, n, 0.5), 1));
    }
    follow_machine(l, ids, ns, n, scratch, scratch + n);
    l->changed = true;
    const double unit_ns = atomic_load(&l->unit_ns);
    for (size_t i = 0; i < n; i++) {
        const double old = get(l, ids[i]), now = ns[i] / unit_ns;
        set(l, ids[i], old > 0 ? KEEP * old + (1 - KEEP) * now : now);
    }
}

static bool is_sound(const dr_ledger *l, uint64_t id, double ns)
{
    return id < l->n_samples && ns > 0 && ns < 1e18;
}

void dr_ledger_note(dr_ledger *l, const uint64_t *ids, const double *ns, const double *hints, size_t n)
{
    uint64_t *sound_ids = dr__alloc(DR_MAX(n, 1) * sizeof *sound_ids);
    double *sound_ns = dr__alloc(DR_MAX(n, 1) * sizeof *sound_ns);
    float *scratch = dr__alloc(DR_MAX(2 * n, 1) * sizeof *scratch);
    size_t sound = 0;
    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < n && sound_ids && sound_ns; i++) {
        if (!is_sound(l, ids[i], ns[i]))
            continue;
        sound_ids[sound] = ids[i];
        sound_ns[sound++] = ns[i];
        if (hints && isfinite(hints[i]))
            model_add(&l->model, hints[i], ns[i]);
    }
    if (sound && scratch)
        learn(l, sound_ids, sound_ns, sound, scratch);
    pthread_mutex_unlock(&l->lock);
    dr__free(sound_ids);
    dr__free(sound_ns);
    dr__free(scratch);
}

/* lock: what was added; numbers that other threads are just adding wait for the next time. */
static void drain(dr_ledger *l)
{
    uint64_t ids[PENDING];
    double ns[PENDING];
    float scratch[2 * PENDING];
    size_t n = 0;
    for (int i = 0; i < PENDING; i++) {
        const uint64_t pair = atomic_exchange(&l->pending[i], 0);
        const double cost = float_of((uint32_t)pair);
        if (!pair || !is_sound(l, pair >> 32, cost))
            continue;
        ids[n] = pair >> 32;
        ns[n++] = cost;
    }
    if (n)
        learn(l, ids, ns, n, scratch);
}

/* Every PENDING samples one thread learns, unless another is at it. */
void dr_ledger_add(dr_ledger *l, uint64_t id, uint64_t ns)
{
    if (id >= l->n_samples)
        return;
    const uint64_t at = atomic_fetch_add_explicit(&l->n_added, 1, memory_order_relaxed) % PENDING;
    atomic_store(&l->pending[at], id << 32 | bits_of((float)ns));
    if (at == PENDING - 1 && !pthread_mutex_trylock(&l->lock)) {
        drain(l);
        pthread_mutex_unlock(&l->lock);
    }
}

void dr_ledger_predict(const dr_ledger *l, const uint64_t *ids, size_t n, float *ns)
{
    const float unit_ns = (float)atomic_load(&l->unit_ns);
    for (size_t i = 0; i < n; i++)
        ns[i] = ids[i] < l->n_samples ? get(l, ids[i]) * unit_ns : 0;
}

void dr_ledger_units(const dr_ledger *l, float *units)
{
    for (uint64_t id = 0; id < l->n_samples; id++)
        units[id] = get(l, id);
}

/* lock */
static void look_at_seen(dr_ledger *l, dr_ledger_facts *out)
{
    float *seen = out->unit_ns > 0 ? dr__alloc(DR_MAX(l->n_samples, 1) * sizeof *seen) : NULL;
    double sum = 0, longest = 0;
    size_t n = 0;
    for (uint64_t id = 0; id < l->n_samples && seen; id++) {
        const float units = get(l, id);
        if (!(units > 0))
            continue;
        seen[n++] = units;
        sum += units;
        longest = DR_MAX(longest, units);
    }
    out->n_seen = n;
    if (n) {
        out->median_ns = quantile(seen, n, 0.5) * out->unit_ns;
        out->mean_ns = sum / (double)n * out->unit_ns;
        out->longest_ns = longest * out->unit_ns;
        out->differs = differ(seen, n);
    }
    dr__free(seen);
}

/* lock */
static dr_ledger_facts look(dr_ledger *l)
{
    drain(l);
    dr_ledger_facts facts = { .unit_ns = atomic_load(&l->unit_ns) };
    look_at_seen(l, &facts);
    if (guesses(l)) {
        facts.median_ns = typical_ns(l);
        facts.mean_ns = facts.median_ns * l->guess_mean / l->guess_typical;
        facts.longest_ns = facts.median_ns * l->guess_longest / l->guess_typical;
    }
    return facts;
}

dr_ledger_facts dr_ledger_look(dr_ledger *l)
{
    pthread_mutex_lock(&l->lock);
    const dr_ledger_facts facts = look(l);
    pthread_mutex_unlock(&l->lock);
    return facts;
}

/* --- the file --- */

static void put_u64(uint8_t *at, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static void make_head(uint8_t head[HEAD_BYTES], uint64_t n_samples, double unit_ns)
{
    uint64_t bits;
    memcpy(&bits, &unit_ns, sizeof bits);
    memcpy(head, magic, sizeof magic);
    put_u64(head + 16, n_samples);
    put_u64(head + 24, bits);
    put_u64(head + SUMMED_BYTES, XXH3_64bits(head, SUMMED_BYTES));
}

/* Nanoseconds of a unit; 0: not the head of a ledger of so many samples. */
static double read_head(const uint8_t head[HEAD_BYTES], uint64_t n_samples)
{
    dr_cursor c = dr__cursor(head + 24, 8, "ledger");
    uint8_t want[HEAD_BYTES];
    uint64_t bits;
    double unit_ns;
    dr__cursor_u64(&c, &bits, NULL);
    memcpy(&unit_ns, &bits, sizeof unit_ns);
    make_head(want, n_samples, unit_ns);
    return !memcmp(head, want, HEAD_BYTES) && unit_ns > 0 && unit_ns < 1e15 ? unit_ns : 0;
}

/* lock: takes cells that are not known here, in units of the ledger, or in the file's where it has none yet. */
static void take_cells(dr_ledger *l, uint64_t first, const uint8_t *bytes, size_t n, double scale)
{
    dr_cursor c = dr__cursor(bytes, 4 * n, "ledger");
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = 0;
        dr__cursor_u32(&c, &bits, NULL);
        const float units = float_of(bits);
        if (units > 0 && units < MOST_UNITS && !(get(l, first + i) > 0))
            set(l, first + i, units * scale);
    }
}

/* lock: merges what the file has; anything odd counts as nothing. */
static void merge_open_file(dr_ledger *l, int fd, uint64_t size)
{
    uint8_t head[HEAD_BYTES], *bytes = dr__alloc(CHUNK);
    size_t got;
    if (bytes && size == HEAD_BYTES + 4 * l->n_samples && !dr__file_pread(fd, head, sizeof head, 0, &got) &&
        got == sizeof head) {
        const double theirs = read_head(head, l->n_samples), ours = atomic_load(&l->unit_ns);
        if (theirs > 0 && !(ours > 0))
            atomic_store(&l->unit_ns, theirs);
        const double scale = ours > 0 ? theirs / ours : 1;
        for (uint64_t at = 0; theirs > 0 && at < l->n_samples; at += CHUNK / 4) {
            if (dr__file_pread(fd, bytes, CHUNK, HEAD_BYTES + 4 * at, &got))
                break;
            take_cells(l, at, bytes, (size_t)DR_MIN(got / 4, l->n_samples - at), scale);
        }
    }
    dr__free(bytes);
}

static void merge_file(dr_ledger *l)
{
    struct stat st;
    int fd;
    if (dr__file_open(AT_FDCWD, NULL, l->path, &fd, &st, NULL) != DR_OK)
        return;
    merge_open_file(l, fd, (uint64_t)st.st_size);
    close(fd);
}

static bool write_cells(const dr_ledger *l, int fd)
{
    uint8_t *bytes = dr__alloc(CHUNK);
    uint64_t at = 0;
    bool good = bytes;
    while (good && at < l->n_samples) {
        const size_t n = (size_t)DR_MIN((uint64_t)CHUNK / 4, l->n_samples - at);
        for (size_t i = 0; i < n; i++) {
            const uint32_t bits = bits_of(get(l, at + i));
            for (int k = 0; k < 4; k++)
                bytes[4 * i + (size_t)k] = (uint8_t)(bits >> 8 * k);
        }
        good = dr__write_all(fd, bytes, 4 * n);
        at += n;
    }
    dr__free(bytes);
    return good;
}

/* mkdir -p of the folder of a path. */
static void make_folder(const char *path)
{
    char folder[4096];
    if (strlen(path) >= sizeof folder)
        return;
    memcpy(folder, path, strlen(path) + 1);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(folder, 0777);
        *slash = '/';
    }
}

/* lock */
static bool write_file(const dr_ledger *l)
{
    char temp[4096];
    uint8_t head[HEAD_BYTES];
    make_head(head, l->n_samples, atomic_load(&l->unit_ns));
    make_folder(l->path);
    if (snprintf(temp, sizeof temp, "%s.XXXXXX", l->path) >= (int)sizeof temp)
        return false;
    int fd = mkostemp(temp, O_CLOEXEC);
    if (fd < 0)
        return false;
    bool good = dr__write_all(fd, head, sizeof head) && write_cells(l, fd);
    good = !close(fd) && good && !rename(temp, l->path);
    if (!good)
        unlink(temp);
    return good;
}

bool dr_ledger_save(dr_ledger *l)
{
    bool good = true;
    pthread_mutex_lock(&l->lock);
    drain(l);
    if (l->path && l->changed && look(l).differs) {
        merge_file(l);
        good = write_file(l);
        l->changed = false;
        if (!good) { /* a folder that cannot be written, a full disk: go on without */
            dr__free(l->path);
            l->path = NULL;
        }
    }
    pthread_mutex_unlock(&l->lock);
    return good;
}

/* --- opening --- */

dr_status dr_ledger_open(const char *path, uint64_t n_samples, dr_ledger **out, dr_error *err)
{
    *out = NULL;
    if (n_samples > DR_LEDGER_MAX_SAMPLES)
        return dr__fail(err, DR_ERR_LIMIT, "ledger: samples must be at most %d, got %llu", DR_LEDGER_MAX_SAMPLES,
                        (unsigned long long)n_samples);
    dr_ledger *l = dr__alloc_zero(1, sizeof *l);
    if (!l)
        return dr__fail(err, DR_ERR_NOMEM, "ledger: out of memory");
    pthread_mutex_init(&l->lock, NULL);
    l->n_samples = n_samples;
    l->cells = dr__alloc_zero(DR_MAX(n_samples, 1), sizeof *l->cells);
    l->path = path ? dr__strdup(path) : NULL;
    if (!l->cells || (path && !l->path)) {
        dr_ledger_close(&l);
        return dr__fail(err, DR_ERR_NOMEM, "ledger: out of memory for %llu samples", (unsigned long long)n_samples);
    }
    if (l->path)
        merge_file(l);
    *out = l;
    return DR_OK;
}

void dr_ledger_close(dr_ledger **ledger)
{
    dr_ledger *l = *ledger;
    *ledger = NULL;
    if (!l)
        return;
    pthread_mutex_destroy(&l->lock);
    dr__free(l->path);
    dr__free(l->cells);
    dr__free(l);
}
