/* live_layout.c: computes the layout of a live file. */
#include "trace/live_layout.h"

#include <string.h>

#include "base/compiler.h"

static const char *const names[] = {
#define SENSOR(id, name, unit, full, doc) name,
#define FLOW(id, name, kind, unit, doc) name,
#define KNOB(id, name, unit, least, most, cooldown, doc) name,
#define BOUND(id, name, doc) name,
#define SPREAD(id, name, doc) name,
    DR_SENSOR_MAP(SENSOR) DR_FLOW_MAP(FLOW) DR_KNOB_MAP(KNOB) DR_BOUND_MAP(BOUND) DR_SPREAD_MAP(SPREAD)
#undef SENSOR
#undef FLOW
#undef KNOB
#undef BOUND
#undef SPREAD
};

static uint32_t names_size(void)
{
    size_t size = 0;
    for (size_t i = 0; i < DR_COUNT(names); i++)
        size += strlen(names[i]) + 1;
    return (uint32_t)(size + 7) & ~7u;
}

void dr__live_write_names(char *out)
{
    for (size_t i = 0; i < DR_COUNT(names); i++) {
        size_t size = strlen(names[i]) + 1;
        memcpy(out, names[i], size);
        out += size;
    }
}

void dr__live_map_of(const dr__live_head *head, dr__live_map *out)
{
    out->values = DR__LIVE_FIXED;
    out->levels = out->values + head->n[DR__LIVE_SENSORS];
    out->cpu = out->levels + head->n[DR__LIVE_SENSORS];
    out->flow = out->cpu + head->n_cpus;
    out->knobs = out->flow + head->n[DR__LIVE_FLOWS];
    out->bounds = out->knobs + head->n[DR__LIVE_KNOBS];
    out->turns = out->bounds + head->n[DR__LIVE_BOUNDS];
    out->spreads = out->turns + head->n[DR__LIVE_KNOBS];
    out->spread_words = DR__LIVE_BINS + (size_t)2 * head->n_bins;
    out->decisions = out->spreads + head->n[DR__LIVE_SPREADS] * out->spread_words;
    out->decision_words = DR__LIVE_BEFORE + (size_t)2 * head->n[DR__LIVE_KNOBS] + head->reason_bytes / 8;
    out->words = out->decisions + (head->n_kept + 1) * out->decision_words;
}

void dr__live_head_init(dr__live_head *head)
{
    dr__live_map map;
    memcpy(head->magic, DR__LIVE_MAGIC, sizeof head->magic);
    head->format = DR__LIVE_FORMAT;
    head->n[DR__LIVE_SENSORS] = DR_N_SENSORS;
    head->n[DR__LIVE_FLOWS] = DR_N_FLOWS;
    head->n[DR__LIVE_KNOBS] = DR_N_KNOBS;
    head->n[DR__LIVE_BOUNDS] = DR_N_BOUNDS;
    head->n[DR__LIVE_SPREADS] = DR_N_SPREADS;
    head->n_cpus = DR_MAX_CPUS;
    head->n_kept = DR__LIVE_KEPT;
    head->n_bins = DR_SPREAD_BINS;
    head->reason_bytes = (DR_MAX_REASON + 7) & ~7;
    head->names_at = sizeof *head;
    head->names_bytes = names_size();
    head->state_at = head->names_at + head->names_bytes;
    dr__live_map_of(head, &map);
    head->bytes = head->state_at + (uint32_t)(map.words * 8);
}

_Static_assert(sizeof(dr__live_head) % 8 == 0, "the state begins at a whole word");

bool dr__live_head_is_valid(const dr__live_head *head)
{
    dr__live_map map;
    for (int i = 0; i < DR__N_LIVE_TABLES; i++)
        if (head->n[i] > 1024)
            return false;
    if (head->n[DR__LIVE_SENSORS] > 64 || head->n[DR__LIVE_KNOBS] > 32 || head->n_cpus > 65536 || head->n_kept > 1024 ||
        head->n_bins > 1024 || head->reason_bytes > 4096 || head->reason_bytes % 8 || head->reason_bytes == 0)
        return false;
    if (head->bytes > DR__LIVE_MAX_BYTES || head->names_at < sizeof *head || head->names_at > head->bytes ||
        head->names_bytes > head->bytes - head->names_at || head->state_at % 8 || head->state_at > head->bytes)
        return false;
    dr__live_map_of(head, &map);
    return map.words <= (head->bytes - head->state_at) / 8;
}
