/* supply.c: what a sample costs at the present conditions: storage, page cache, link, server, cache, step, quota. */
#include <math.h>

#include "base/compiler.h"
#include "codec/bytes/byte_codec.h"
#include "sim/twin.h"

static const double OFFLOAD_LAG_S = 0.5; /* what is planned goes to the server with requests that are not sent yet */

/* What a codec makes of decoded samples: compressed share, bytes a second. */
static const struct {
    int wire_id;
    double share, encode, decode;
} codecs[] = {
    { DR__BYTES_NONE, 1, 8e9, 8e9 },          { DR__BYTES_LZ4, 0.83, 600e6, 2.5e9 },
    { DR__BYTES_LZ4HC, 0.8, 40e6, 2.5e9 },    { DR__BYTES_ZSTD, 0.67, 300e6, 900e6 },
    { DR__BYTES_SNAPPY, 0.86, 500e6, 1.2e9 },
};

static size_t codec_now(const dr_sim *s)
{
    const int wanted = s->knob[DR_KNOB_CODEC] < 0 ? DR__BYTES_LZ4 : (int)s->knob[DR_KNOB_CODEC];
    for (size_t i = 0; i < DR_COUNT(codecs); i++)
        if (codecs[i].wire_id == wanted)
            return i;
    return 0;
}

static double epoch_of(const dr_sim *s)
{
    return floor(s->done / s->f.samples);
}

/* --- caches --- */

/* Others' memory leaves less to the page cache. */
static void keep_pages(dr_sim *s)
{
    const double left = DR_MAX(s->f.memory * (1 - s->signal[DR__SIGNAL_MEMORY]) - s->flow[DR_FLOW_BYTES], 0);
    const double all = s->f.samples * s->f.sample_bytes;
    s->pages = DR_MIN(DR_MIN(s->pages, all), DR_MIN(s->f.page_cache, left));
    const bool known = epoch_of(s) >= 1 || s->f.warm > 0;
    s->costs.page_hits = known && all > 0 && s->f.link_bw <= 0 ? s->pages / all : 0;
}

/* A cache takes samples until it is full.  What is put in has the present codec; what is in it keeps its own until it
 * is replaced, a part of it in each epoch. */
static void keep_samples(dr_sim *s)
{
    const size_t codec = codec_now(s);
    const double all = s->f.samples * s->f.prefix_bytes, put = DR_MAX(s->kept - s->kept_before, 0);
    if (s->f.cache <= 0 || all <= 0) {
        s->costs.hits = 0;
        return;
    }
    const double room = s->f.cache / DR_MAX(s->kept_ratio, 0.01);
    const double turned =
        DR_MIN(put + s->rate * DR__SIM_SNAPSHOT_S * s->costs.hits * s->f.prefix_bytes * 0.25, DR_MAX(s->kept, 1));
    const double part = s->kept > 0 ? turned / s->kept : 1;
    s->kept_ratio += part * (codecs[codec].share - s->kept_ratio);
    s->kept_decode += part * (s->f.prefix_bytes / codecs[codec].decode - s->kept_decode);
    s->kept = s->kept_before = DR_MIN(s->kept, DR_MIN(all, room));
    s->costs.hits = epoch_of(s) >= 1 || s->f.warm > 0 ? s->kept / all : 0;
}

/* --- what a sample takes --- */

/* The parts of a sample's way: a limit on the rate from each, and blocked time. */
static void add_limit(dr__sim_costs *c, double capacity, double each)
{
    if (each > 0)
        c->most_rate = DR_MIN(c->most_rate, DR_MAX(capacity / each, 1e-3));
}

static void supply_storage(dr_sim *s, double missed)
{
    dr__sim_costs *c = &s->costs;
    const double left = s->signal[DR__SIGNAL_DISK], from_disk = missed * (1 - c->page_hits);
    const double alone = s->f.read_latency / left + s->f.sample_bytes / (s->f.read_bw * left);
    c->disk_bytes = from_disk * s->f.sample_bytes;
    c->read = from_disk * alone + missed * c->page_hits * s->f.cached_read;
    add_limit(c, s->f.read_bw * left, c->disk_bytes);
    add_limit(c, s->f.read_depth * left, from_disk * s->f.read_latency);
}

static void supply_link(dr_sim *s, double missed, double full)
{
    dr__sim_costs *c = &s->costs;
    const double bytes = (1 - s->offloaded) * s->f.sample_bytes + s->offloaded * s->f.prefix_bytes;
    const double link = s->f.link_bw * s->signal[DR__SIGNAL_LINK] / s->f.nodes;
    const double server = s->f.remote_cpus * s->signal[DR__SIGNAL_REMOTE] / s->f.nodes;
    c->link_bytes = missed * bytes;
    c->disk_bytes = 0;
    c->read = missed * (s->f.rtt + s->f.read_latency + bytes / link + s->offloaded * full * s->f.prefix);
    add_limit(c, link, c->link_bytes);
    add_limit(c, server, missed * s->offloaded * full * s->f.prefix);
}

static void supply_samples(dr_sim *s)
{
    dr__sim_costs *c = &s->costs;
    const double mean = s->f.cpu / s->f.cpu_speed * s->signal[DR__SIGNAL_COST], missed = 1 - c->hits;
    const double offload = s->f.link_bw > 0 ? s->offloaded : 0;
    c->most_rate = INFINITY;
    if (s->f.link_bw > 0)
        supply_link(s, missed, mean);
    else
        supply_storage(s, missed);
    double cpu = mean * (1 - s->f.prefix * (c->hits + missed * offload));
    if (s->f.cache > 0)
        cpu += c->hits * s->kept_decode + missed * s->f.prefix_bytes / codecs[codec_now(s)].encode;
    c->cpu = cpu / (1 + s->f.slow_share * (s->f.slow_factor - 1));
    c->slow_cpu = c->cpu * s->f.slow_factor;
}

static void supply_consumer(dr_sim *s)
{
    dr__sim_costs *c = &s->costs;
    const double each = s->f.cpu / s->f.cpu_speed, accel = s->signal[DR__SIGNAL_ACCEL];
    const double step =
        s->f.demand > 0 ? s->batch * each / (s->f.demand * s->f.cpus) : s->f.batch * s->f.step_each / s->f.accel_speed;
    const double ops = s->f.batch * s->f.accel_each / s->f.accel_speed;
    c->step_cpu = s->f.train_cpu * step * s->signal[DR__SIGNAL_STEP];
    c->step_s = c->step_cpu + ((1 - s->f.train_cpu) * step * s->signal[DR__SIGNAL_STEP] + ops) * accel;
    c->step_s = DR_MAX(c->step_s, 1e-5);
}

void dr__sim_window(dr_sim *s)
{
    const double each = s->batch * s->f.out_bytes, bytes = s->knob[DR_KNOB_PREFETCH_BYTES];
    double most = s->f.memory_limit > 0 ? s->f.memory_limit : s->f.memory / 4;
    if (bytes > 0)
        most = DR_MIN(most, bytes);
    const double fit = each > 0 ? DR_MAX(floor(most / each), 1) : INFINITY;
    s->window = DR_MIN(DR_MIN(s->knob[DR_KNOB_PREFETCH], fit), DR__SIM_RING / 2);
}

void dr__sim_supply(dr_sim *s)
{
    for (int i = 0; i < s->scenario->n_disturbs; i++)
        s->signal[s->disturb[i].row->signal] = dr__disturb_at(&s->disturb[i], s->time, &s->outside);
    s->offloaded += (s->knob[DR_KNOB_OFFLOAD] - s->offloaded) * DR__SIM_SNAPSHOT_S / OFFLOAD_LAG_S;
    keep_pages(s);
    keep_samples(s);
    supply_samples(s);
    supply_consumer(s);
    const double all = s->f.quota > 0 ? s->f.quota : s->f.cpus;
    const double quota = s->signal[DR__SIGNAL_QUOTA] < 1 ? s->signal[DR__SIGNAL_QUOTA] * s->f.cpus : all;
    s->costs.quota = DR_MIN(quota, all) < s->f.cpus ? DR_MIN(quota, all) : INFINITY;
    s->budget = s->costs.quota * DR__SIM_SNAPSHOT_S; /* its periods are as long as those of snapshots */
}
