#include "unit/sched/fluid.h"

#include "unit/cm.h"

#include <math.h>
#include <string.h>

#include "base/compiler.h"

static const double DT = 0.01;

fluid fluid_ordinary(uint64_t seed)
{
    fluid f = { .n_cpus = 2,
                .cpu = 0.002,
                .step = 0.05,
                .batch_samples = 32,
                .batch_bytes = 4e6,
                .lag = 0.02,
                .memory_limit = 1e9,
                .mem_level = 0.3,
                .noise = 0.03,
                .seed = seed * 2654435761u + 12345 };
    f.knob[DR_KNOB_WORKERS] = 2;
    f.knob[DR_KNOB_PREFETCH] = 2;
    return f;
}

dr__terms_of_use fluid_use(const fluid *f)
{
    dr__terms_of_use use = { .knobs = 1u << DR_KNOB_WORKERS | 1u << DR_KNOB_READERS | 1u << DR_KNOB_PREFETCH |
                                      1u << DR_KNOB_PREFETCH_BYTES | 1u << DR_KNOB_PRIORITY | 1u << DR_KNOB_CPU_CEILING,
                             .tells_delay = f->block > 0,
                             .works_ahead = true,
                             .affinity_cpus = f->n_cpus };
    dr_weights_parse("step", &use.weights, NULL);
    use.least[DR_KNOB_WORKERS] = use.least[DR_KNOB_PREFETCH] = 1;
    use.most[DR_KNOB_WORKERS] = use.most[DR_KNOB_PREFETCH] = use.most[DR_KNOB_READERS] = 64;
    use.most[DR_KNOB_PREFETCH_BYTES] = 1e12;
    use.least[DR_KNOB_PRIORITY] = -1;
    use.most[DR_KNOB_PRIORITY] = 1;
    use.most[DR_KNOB_CPU_CEILING] = 512;
    return use;
}

double fluid_random(fluid *f)
{
    f->seed = f->seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(f->seed >> 11) * 0x1p-53;
}

static double noisy(fluid *f, double x)
{
    return x * (1 + f->noise * (2 * fluid_random(f) - 1));
}

/* --- one step of time --- */

/* Threads of the pipeline that are at a sample, as far as there is room for batches. */
static double busy_workers(const fluid *f)
{
    double room = f->knob[DR_KNOB_PREFETCH] * f->batch_samples - f->ready;
    return room > 0 ? f->knob[DR_KNOB_WORKERS] : 0;
}

/* Seconds of a thread for a sample, at that share of a CPU. */
static double each_of(const fluid *f, double share)
{
    return f->cpu / share + f->block + (f->knob[DR_KNOB_READERS] > 0 ? 0 : f->read);
}

/* CPUs that our threads use when one that wants a CPU gets that share of it. */
static double used(const fluid *f, double workers, double consumer, double share)
{
    return workers * f->cpu / each_of(f, share) + consumer * share;
}

/* The share at which no more is used than there is, found by halving. */
static double share_of(const fluid *f, double workers, double consumer)
{
    double low = 1e-6, high = 1;
    for (int i = 0; i < 40; i++) {
        double share = (low + high) / 2, ours = used(f, workers, consumer, share);
        bool fits = ours + f->foreign * share <= f->n_cpus && (f->quota <= 0 || ours <= f->quota);
        *(fits ? &low : &high) = share;
    }
    return low;
}

/* Samples that workers make in DT with that share: by CPU, by blocking, by room. */
static double make(fluid *f, double workers, double share)
{
    bool split = f->knob[DR_KNOB_READERS] > 0;
    double each = each_of(f, share), n = workers * DT / each;
    double ceiling = f->knob[DR_KNOB_CPU_CEILING];
    if (split)
        n = DR_MIN(n, f->knob[DR_KNOB_READERS] * DT / DR_MAX(f->read, 1e-9));
    if (ceiling > 0)
        n = DR_MIN(n, ceiling * DT / f->cpu);
    n = DR_MIN(n, DR_MAX(f->knob[DR_KNOB_PREFETCH] * f->batch_samples - f->ready, 0));
    f->flow[DR_FLOW_WORKED] += n;
    f->flow[DR_FLOW_READ] += n * f->read;
    f->flow[DR_FLOW_WORK] += n * (f->cpu / share + f->block);
    f->flow[DR_FLOW_DELAY] += n * (f->cpu / share - f->cpu);
    f->flow[DR_FLOW_CPU] += n * f->cpu;
    f->flow[DR_FLOW_ACTIVE] = workers;
    f->used_workers += n * f->cpu;
    f->ready += n;
    return each;
}

/* Seconds of a step in which all threads of the consumer compute. */
static double computing(const fluid *f)
{
    return f->step_threads > 0 ? f->step_cpu / f->step_threads : 0;
}

static double step_seconds(const fluid *f)
{
    return f->step + (f->step_threads > 0 ? computing(f) : f->step_cpu);
}

/* Threads of the consumer that want a CPU. */
static double consumer_threads(const fluid *f)
{
    if (f->step_left <= 0 || f->away)
        return 0;
    if (f->step_threads > 0)
        return f->step_left <= computing(f) ? f->step_threads : 0;
    return f->step_cpu / (f->step + f->step_cpu);
}

/* The step goes on for at most `left` seconds; how many it did. */
static double go_on(fluid *f, double share, double left)
{
    double threads = consumer_threads(f), pace = 1, until = 0;
    if (f->step_threads > 0 && threads <= 0)
        until = computing(f);
    else if (f->step_threads > 0)
        pace = share;
    else if (f->step_cpu > 0)
        pace = 1 / (f->step + f->step_cpu / share) * (f->step + f->step_cpu);
    double t = DR_MIN(left, (f->step_left - until) / pace);
    f->step_left -= t * pace;
    f->flow[DR_FLOW_STEP] += t;
    f->used_own += t * pace * threads;
    return DR_MAX(t, 1e-9);
}

/* The consumer works on, or takes a batch, or waits. */
static void train(fluid *f, double share, double each)
{
    double left = DT;
    if (f->away) {
        f->flow[DR_FLOW_STEP] += DT;
        f->flow[DR_FLOW_CONSUMERS] = 0;
        return;
    }
    while (left > 1e-12) {
        if (f->step_left > 1e-12) {
            left -= go_on(f, share, left);
        } else if (f->ready >= f->batch_samples) {
            f->ready -= f->batch_samples;
            f->flow[DR_FLOW_BATCHES] += 1;
            f->flow[DR_FLOW_SAMPLES] += f->batch_samples;
            f->flow[DR_FLOW_LATENCY] += f->lag + f->batch_samples * each / f->knob[DR_KNOB_WORKERS];
            f->step_left = step_seconds(f);
        } else {
            f->flow[DR_FLOW_WAIT] += left;
            f->flow[DR_FLOW_CONSUMERS] = 1;
            return;
        }
    }
    f->flow[DR_FLOW_CONSUMERS] = 0;
}

static void advance(fluid *f)
{
    double workers = busy_workers(f);
    double consumer = consumer_threads(f);
    double share = share_of(f, workers, consumer), before = f->used_workers;
    double each = make(f, workers, share);
    double spare = f->n_cpus - (f->used_workers - before) / DT - consumer * share;
    f->used_foreign += DR_MIN(f->foreign, DR_MAX(spare, 0)) * DT;
    train(f, share, each);
    f->time += DT;
}

/* --- snapshots --- */

static void sense(dr_snapshot *s, int sensor, double value, double full)
{
    s->present |= 1ull << sensor;
    s->value[sensor] = value;
    s->level[sensor] = DR_MIN(DR_MAX(value / full, 0), 1);
}

void fluid_go(fluid *f, dr_snapshot *s)
{
    f->used_own = f->used_foreign = f->used_workers = 0;
    for (int i = 0; i < 10; i++)
        advance(f);
    memset(s, 0, sizeof *s);
    s->time_ns = (uint64_t)(f->time * 1e9) + 1000000000u;
    s->number = ++f->n_snapshots;
    s->n_cpus = (uint32_t)f->n_cpus;
    double own = noisy(f, (f->used_own + f->used_workers) / 0.1), foreign = noisy(f, f->used_foreign / 0.1);
    sense(s, DR_SENSOR_CPU_OWN, own, f->n_cpus);
    sense(s, DR_SENSOR_CPU_FOREIGN, foreign, f->n_cpus);
    sense(s, DR_SENSOR_CPU_TOTAL, DR_MIN(own + foreign, f->n_cpus), f->n_cpus);
    sense(s, DR_SENSOR_QUOTA_USED, own, f->quota > 0 ? f->quota : f->n_cpus);
    sense(s, DR_SENSOR_POWER, 0.7 * f->n_cpus + 2.8 * DR_MIN(own + foreign, f->n_cpus), 3.5 * f->n_cpus);
    if (f->step_threads > 0 && f->used_own > 0)
        sense(s, DR_SENSOR_OWN_THREADS, f->step_threads, f->n_cpus);
    sense(s, DR_SENSOR_MEM_USED, f->mem_level * 4e9, 4e9);
    f->flow[DR_FLOW_READY] = floor(f->ready / f->batch_samples);
    f->flow[DR_FLOW_BYTES] = f->ready / f->batch_samples * f->batch_bytes;
    f->flow[DR_FLOW_BYTES_LIMIT] = f->memory_limit;
    f->flow[DR_FLOW_BATCH_BYTES] = f->batch_bytes;
    f->flow[DR_FLOW_BATCH_SAMPLES] = f->batch_samples;
}

dr__policy_choice fluid_policy(const char *text)
{
    dr__policy_choice choice;
    dr_error err = { 0 };
    assert_ok(dr__policy_choose(text, &choice, &err));
    return choice;
}

void fluid_run(fluid *f, dr__control *control, double seconds, fluid_fn *seen, void *user)
{
    for (double end = f->time + seconds; f->time < end - 1e-9;) {
        dr_snapshot s;
        dr_decision d;
        fluid_go(f, &s);
        bool decided = f->away && f->told ? dr__control_rest(control, &s, f->flow, f->knob, &d)
                                          : dr__control_step(control, &s, f->flow, f->knob, &d);
        if (!decided)
            continue;
        for (int i = 0; i < DR_N_KNOBS; i++)
            if (d.changed >> i & 1)
                f->knob[i] = d.after[i];
        if (seen)
            seen(user, f, &d);
    }
}
