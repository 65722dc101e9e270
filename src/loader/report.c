/* report.c: statistics, explanation and profile of a loader, and the samples it is working on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drapps/sched.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/text.h"
#include "exec/cache_stage.h"
#include "exec/offload_stage.h"
#include "kernel/cpu.h"
#include "loader/loader_internal.h"

static dr_status dump_json(json_t *o, char **text, dr_error *err)
{
    *text = o ? dr__canonical(o) : NULL;
    json_decref(o);
    return *text ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "out of memory");
}

static json_int_t count(const atomic_uint_fast64_t *v)
{
    return (json_int_t)atomic_load(v);
}

static void set_counter(json_t *o, const char *name, uint64_t value)
{
    json_object_set_new(o, name, json_integer((json_int_t)value));
}

static void set_flow(json_t *o, const char *name, double value)
{
    json_object_set_new(o, name, json_integer((json_int_t)value));
}

/* Adds the part of the flow that the statistics have. */
static void add_flow(json_t *o, dr__exec *e)
{
    double flow[DR_N_FLOWS] = { 0 };
    dr__exec_flow(e, flow);
    set_flow(o, "wait_ns", flow[DR_FLOW_WAIT] * 1e9);
    set_flow(o, "step_ns", flow[DR_FLOW_STEP] * 1e9);
    set_flow(o, "ready_batches", flow[DR_FLOW_READY]);
    set_flow(o, "active_workers", flow[DR_FLOW_ACTIVE]);
    set_flow(o, "parked_samples", flow[DR_FLOW_PARKED]);
    set_flow(o, "bytes_in_flight", flow[DR_FLOW_BYTES]);
}

static void add_seek_counts(json_t *o, dr__seek_store *store)
{
    dr__seek_counts c = { 0 };
    if (store)
        dr__seek_store_counts(store, &c);
    json_object_set_new(o, "seek_images", json_integer((json_int_t)c.images));
    json_object_set_new(o, "seek_memory_bytes", json_integer((json_int_t)c.memory_bytes));
    json_object_set_new(o, "seek_file_bytes", json_integer((json_int_t)c.file_bytes));
    json_object_set_new(o, "seek_found", json_integer((json_int_t)c.found));
    json_object_set_new(o, "seek_missed", json_integer((json_int_t)c.missed));
}

static void add_lanes(json_t *o, const dr__lanes *lanes)
{
    const uint64_t slow_ns = dr__predict_slow_ns(&lanes->predict);
    json_object_set_new(o, "slow_samples", json_integer(count(&lanes->slow_samples)));
    json_object_set_new(o, "lane_threshold_ns",
                        slow_ns == UINT64_MAX ? json_null() : json_integer((json_int_t)slow_ns));
    json_object_set_new(o, "prediction", dr__predict_json(&lanes->predict));
}

dr_status dr_loader_stats(dr_loader *l, char **text, dr_error *err)
{
    DR_TRY(dr__loader_check(l, err));
    dr__exec *e = &l->exec;
    json_t *o = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "samples", count(&e->stats.samples), "batches",
                          count(&e->stats.batches), "epochs", count(&e->stats.epochs), "bad_samples",
                          count(&e->stats.bad_samples), "bytes_read", count(&e->stats.bytes_read), "read_ns",
                          count(&e->stats.read_ns), "work_ns", count(&e->stats.work_ns));
    if (!o)
        return dr__fail(err, DR_ERR_NOMEM, "stats: out of memory");
    set_counter(o, "deaths", 0); /* of worker processes, which this kind of loader lacks */
    set_counter(o, "delivered_samples", atomic_load(&e->stats.delivered));
    json_object_set_new(o, "trace", dr__loader_trace_json(l));
    set_counter(o, "finish_ns", atomic_load(&e->stats.finish_ns));
    set_counter(o, "slow_work_ns", atomic_load(&e->stats.slow_ns));
    json_object_set_new(o, "wait", dr__histogram_json(&e->stats.wait));
    json_object_set_new(o, "batch_latency", dr__histogram_json(&e->stats.batch));
    dr__pool_lock();
    json_object_set_new(o, "workers", json_integer(e->knobs.workers));
    json_object_set_new(o, "prefetch", json_integer(e->knobs.prefetch));
    json_object_set_new(o, "open_batches", json_integer((json_int_t)(e->progress.opened - e->progress.delivered)));
    json_object_set_new(o, "epoch", json_integer((json_int_t)e->order.epoch));
    json_object_set_new(o, "batch_bytes", json_integer((json_int_t)(e->budget.batch_slots * e->budget.sample_bytes)));
    json_object_set_new(o, "slow_workers", json_integer(e->lanes.running));
    json_object_set_new(o, "parked_bytes", json_integer((json_int_t)e->lanes.bytes));
    dr__pool_unlock();
    add_lanes(o, &e->lanes);
    add_flow(o, e);
    json_object_set_new(o, "batch_budget_bytes", json_integer((json_int_t)e->budget.batch_bytes));
    json_object_set_new(o, "worker_budget_bytes", json_integer((json_int_t)e->budget.bench_bytes));
    add_seek_counts(o, e->seek);
    dr__ranges_stats(e, o);
    dr__cache_stats(e, o);
    dr__offload_stats(e, o);
    dr__adapt_stats(l, o);
    return dump_json(o, text, err);
}

/* "1.5 KB", in the form of `drapps info`. */
static const char *bytes_text(size_t bytes, char text[16])
{
    static const char *const units[] = { "B", "KB", "MB", "GB", "TB" };
    double n = (double)bytes;
    size_t u = 0;
    for (; n >= 1024 && u + 1 < DR_COUNT(units); u++)
        n /= 1024;
    snprintf(text, 16, u ? "%.1f %s" : "%.0f %s", n, units[u]);
    return text;
}

dr_status dr_loader_explain(dr_loader *l, char **text, dr_error *err)
{
    DR_TRY(dr__loader_check(l, err));
    dr__exec *e = &l->exec;
    char *ops = dr__program_explain(e->program), cache[2048], ranges[256], offload[2048], policy[256], batch[16],
         batches[16], worker[16];
    char order[128] = "";
    dr__cache_explain(e, cache, sizeof cache);
    dr__ranges_explain(e, ranges, sizeof ranges);
    dr__offload_explain(e, offload, sizeof offload);
    dr__adapt_explain(l, policy, sizeof policy);
    dr__pool_lock();
    int workers = e->knobs.workers, prefetch = e->knobs.prefetch;
    dr__pool_unlock();
    if (e->o.shuffle && !e->o.pushed_order)
        snprintf(order, sizeof order, "order: shuffled by seed %llu and epoch, the same in every process\n",
                 (unsigned long long)e->o.seed);
    size_t room = (ops ? strlen(ops) : 0) + strlen(e->set->name) + strlen(cache) + strlen(offload) + 1024;
    *text = ops ? dr__alloc(room) : NULL;
    if (*text)
        snprintf(*text, room,
                 "data: %s (%s, %llu samples)\n%s%s%s%s%s%sruns: %d worker%s, %d batches ahead, %s order, %s kernels; "
                 "a batch takes %s; limits, which are mostly not reached: %s for all batches, %s for a worker\n",
                 e->set->name, e->set->format, (unsigned long long)e->set->n_places, ops, cache, ranges, offload,
                 policy, order, workers, workers == 1 ? "" : "s", prefetch,
                 e->o.pushed_order ? "pushed"
                 : e->o.in_order   ? "fixed"
                                   : "free",
                 dr__cpu_name(e->o.reference ? DR__CPU_C : dr__cpu_use()),
                 bytes_text(e->o.batch_size * e->budget.sample_bytes, batch),
                 bytes_text(e->budget.batch_bytes, batches), bytes_text(e->budget.bench_bytes, worker));
    dr__free(ops);
    return *text ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "explain: out of memory");
}

/* --- profile --- */

static json_t *step_json(const dr__program *p, int s, const dr__step_time *t, uint64_t samples)
{
    const dr__node *node = &p->graph->nodes[p->steps[s].node];
    double n = (double)DR_MAX(samples, 1);
    return json_pack("{s:s, s:I, s:s, s:f, s:f, s:f}", "op", node->op.def->name, "id", (json_int_t)node->id, "field",
                     node->out[p->steps[s].field], "us", (double)t->ns / 1e3 / n, "in_bytes", (double)t->in_bytes / n,
                     "out_bytes", (double)t->out_bytes / n);
}

/* Runs one sample of a program and discards the results. */
static dr_status profile_sample(dr__exec *e, const dr__program *p, dr__workbench *bench, uint64_t position,
                                uint64_t *read_ns, uint64_t *store_ns, dr_error *err)
{
    dr__sample_ref ref = dr__order_sample(e->set, e->o.seed, e->order.epoch, e->o.shuffle, position);
    uint64_t start = dr__thread_cpu_ns();
    DR_TRY(dr__sample_read(bench, e->set, ref.id, err));
    *read_ns += dr__thread_cpu_ns() - start;
    dr__rng_name name = { e->o.seed, e->order.epoch, ref.id, ref.occurrence };
    DR_TRY(dr__sample_plan(p, bench, &name, err));
    DR_TRY(dr__sample_run(p, bench, err));
    for (int i = 0; i < p->n_outputs; i++) {
        size_t bytes;
        dr_desc desc = dr__sample_desc(p, bench, i);
        if (!dr__desc_bytes_dense(&desc, &bytes))
            continue;
        void *place = dr__alloc_aligned(bytes);
        if (!place)
            return dr__fail(err, DR_ERR_NOMEM, "out of memory");
        start = dr__thread_cpu_ns();
        dr_status status = dr__sample_store(p, bench, i, place, err);
        *store_ns += dr__thread_cpu_ns() - start;
        dr__free_aligned(place);
        DR_TRY(status);
    }
    return DR_OK;
}

typedef struct profile {
    uint64_t samples, bad;
    uint64_t read_ns, store_ns, cpu_ns; /* op by op: reading, storing, and everything */
    uint64_t fused_ns;                  /* the loader's own program: everything */
} profile;

static json_t *profile_json(const dr__program *p, const dr__step_time *times, const profile *f)
{
    double n = (double)DR_MAX(f->samples, 1), sum = ((double)f->read_ns + (double)f->store_ns) / 1e3 / n;
    json_t *ops = json_array();
    for (int s = 0; s < p->n_steps; s++) {
        json_array_append_new(ops, step_json(p, s, &times[s], f->samples));
        sum += (double)times[s].ns / 1e3 / n;
    }
    return json_pack("{s:I, s:I, s:o, s:f, s:f, s:f, s:f, s:f}", "samples", (json_int_t)f->samples, "bad",
                     (json_int_t)f->bad, "ops", ops, "read_us", (double)f->read_ns / 1e3 / n, "store_us",
                     (double)f->store_ns / 1e3 / n, "sum_us", sum, "cpu_us", (double)f->cpu_ns / 1e3 / n, "fused_us",
                     (double)f->fused_ns / 1e3 / n);
}

/* Compiles the graph without fusion, so that each op can be timed alone. */
static dr_status compile_unfused(const dr__exec *e, dr__program **out, dr_error *err)
{
    dr__text outputs = { 0 };
    for (int i = 0; i < e->program->n_outputs; i++) {
        dr__text_say(&outputs, i ? "," : "");
        dr__text_say(&outputs, e->program->outputs[i].name);
    }
    dr__program_options po = { .outputs = outputs.text, .reference = true, .any_shape = true };
    dr_status status = outputs.failed
                           ? dr__fail(err, DR_ERR_NOMEM, "profile: out of memory")
                           : dr__program_compile(e->program->graph, e->set->fields, e->set->n_fields, &po, out, err);
    if (status == DR_OK)
        (*out)->kernels = e->program->kernels;
    dr__free(outputs.text);
    return status;
}

/* benches: [0] runs the ops one by one, [1] the loader's own program. */
static dr_status run_profile(dr__exec *e, const dr__program *p, dr__workbench *benches[2], uint64_t samples,
                             uint64_t end_ns, char **text, dr_error *err)
{
    profile f = { 0 };
    uint64_t within = 0;
    for (uint64_t i = 0; i < samples && (i == 0 || dr__now_ns() < end_ns); i++) {
        const uint64_t position = i % e->set->n_places, start = dr__thread_cpu_ns();
        dr_status status = profile_sample(e, p, benches[0], position, &f.read_ns, &f.store_ns, err);
        const uint64_t middle = dr__thread_cpu_ns();
        if (status == DR_OK)
            status = profile_sample(e, e->program, benches[1], position, &within, &within, err);
        if (status == DR_ERR_NOMEM)
            return status;
        f.cpu_ns += middle - start;
        f.fused_ns += dr__thread_cpu_ns() - middle;
        f.samples += status == DR_OK;
        f.bad += status != DR_OK;
    }
    return dump_json(profile_json(p, benches[0]->times, &f), text, err);
}

dr_status dr__loader_profile(dr_loader *l, uint64_t samples, uint64_t end_ns, char **text, dr_error *err)
{
    dr__program *program = NULL;
    DR_TRY(compile_unfused(&l->exec, &program, err));
    dr__workbench *benches[] = { dr__workbench_new(), dr__workbench_new() };
    dr__step_time *times = dr__alloc_zero(DR__MAX_STEPS, sizeof *times);
    dr_status status = DR_ERR_NOMEM;
    if (benches[0] && benches[1] && times) {
        for (int i = 0; i < 2; i++) {
            benches[i]->memory_limit = l->exec.budget.bench_bytes;
            benches[i]->seek = l->exec.seek;
        }
        benches[0]->times = times;
        status = run_profile(&l->exec, program, benches, samples, end_ns, text, err);
    } else {
        dr__fail(err, DR_ERR_NOMEM, "profile: out of memory");
    }
    dr__free(times);
    for (int i = 0; i < 2; i++)
        dr__workbench_free(&benches[i]);
    dr__program_free(&program);
    return status;
}

dr_status dr_loader_profile(dr_loader *l, uint64_t samples, char **text, dr_error *err)
{
    DR_TRY(dr__loader_check(l, err));
    return dr__loader_profile(l, samples, UINT64_MAX, text, err);
}

/* --- samples in work --- */

static int longest_first(const void *a, const void *b)
{
    const uint64_t x = ((const dr__running_sample *)a)->since_ns, y = ((const dr__running_sample *)b)->since_ns;
    return (x > y) - (x < y);
}

static json_t *running_json(const dr__exec *e, const dr__running_sample *at, uint64_t now)
{
    char key[512];
    e->set->def->key(e->set, at->id, key, sizeof key);
    json_t *row = json_pack("{s:I, s:i, s:f}", "id", (json_int_t)at->id, "worker", at->worker, "seconds",
                            (double)(now - DR_MIN(at->since_ns, now)) * 1e-9);
    json_object_set_new(row, "key", json_string(key)); /* omitted if it is not UTF-8 */
    return row;
}

dr_status dr_loader_running(dr_loader *l, char **text, dr_error *err)
{
    DR_TRY(dr__loader_check(l, err));
    dr__running_sample at[2 * DR__MAX_WORKERS];
    dr__pool_lock();
    const size_t n = dr__pool_running(&l->exec, at, sizeof at / sizeof *at);
    dr__pool_unlock();
    const uint64_t now = dr__now_ns();
    qsort(at, n, sizeof *at, longest_first);
    json_t *rows = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(rows, running_json(&l->exec, &at[i], now));
    return dump_json(rows, text, err);
}

dr_status dr_loader_unreported_bad(dr_loader *l, char **text, dr_error *err)
{
    DR_TRY(dr__loader_check(l, err));
    dr__pool_lock();
    json_t *rows = l->exec.bad.unreported;
    l->exec.bad.unreported = NULL;
    dr__pool_unlock();
    return dump_json(rows ? rows : json_array(), text, err);
}
