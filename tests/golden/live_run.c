/* live_run SECONDS NAME...: shows a pipeline for each name as a loader would, ten times a second: the real machine, and
 * a flow of its own with 640 samples and 10 batches a second of which the consumer waits for a tenth of the time.  Ends
 * by itself.  Prints a line when all are shown. */
#include <stdio.h>
#include <stdlib.h>

#include <drapps/drapps.h>

enum { MAX_NAMES = 16 };

static struct {
    dr_live *live[MAX_NAMES];
    int n;
    uint64_t first_ns;
    uint64_t decided;
} shown;

static void decide(double seconds)
{
    dr_decision d = { .number = ++shown.decided, .bound = DR_BOUND_WORKERS, .reward = 0.8 };
    d.time_ns = shown.first_ns + (uint64_t)(seconds * 1e9);
    if (d.number % 4 == 1) {
        d.changed = 1u << DR_KNOB_WORKERS;
        d.before[DR_KNOB_WORKERS] = 2;
        d.after[DR_KNOB_WORKERS] = 3;
        snprintf(d.reason, sizeof d.reason, "waits 12 %% at 2 workers, 1.2 of 2 CPUs free: workers 2 -> 3");
    } else
        snprintf(d.reason, sizeof d.reason, "waits 10 %% at 3 workers: nothing to gain");
    for (int i = 0; i < shown.n; i++)
        dr_live_decision(shown.live[i], &d);
}

static void tick(void *user, const dr_snapshot *snapshot)
{
    (void)user;
    if (!shown.first_ns)
        shown.first_ns = snapshot->time_ns;
    const double t = (double)(snapshot->time_ns - shown.first_ns) * 1e-9;
    double flow[DR_N_FLOWS] = { 0 }, knobs[DR_N_KNOBS] = { 0 };
    flow[DR_FLOW_SAMPLES] = flow[DR_FLOW_WORKED] = 640 * t;
    flow[DR_FLOW_BATCHES] = 10 * t;
    flow[DR_FLOW_WAIT] = 0.1 * t;
    flow[DR_FLOW_STEP] = 0.9 * t;
    flow[DR_FLOW_WORK] = flow[DR_FLOW_CPU] = 1.5 * t;
    flow[DR_FLOW_BYTES_READ] = 64e6 * t;
    flow[DR_FLOW_READY] = 3, flow[DR_FLOW_OPEN] = 5, flow[DR_FLOW_ACTIVE] = 2;
    flow[DR_FLOW_BYTES] = 130e6, flow[DR_FLOW_BYTES_LIMIT] = 512e6, flow[DR_FLOW_BATCH_SAMPLES] = 64;
    knobs[DR_KNOB_WORKERS] = 3, knobs[DR_KNOB_PREFETCH] = 8, knobs[DR_KNOB_LANE_THRESHOLD] = 3;
    for (int i = 0; i < shown.n; i++)
        dr_live_put(shown.live[i], snapshot, flow, DR_N_FLOWS, knobs, DR_N_KNOBS);
    if (t > (double)shown.decided)
        decide(t);
}

int main(int argc, char **argv)
{
    dr_monitor *monitor;
    dr_error err;
    int token;
    const double seconds = argc > 1 ? atof(argv[1]) : 0;
    for (int i = 2; i < argc && shown.n < MAX_NAMES; i++)
        shown.live[shown.n++] = dr_live_open(argv[i], "analytic");
    if (dr_monitor_open(NULL, &monitor, &err) != DR_OK ||
        dr_monitor_subscribe(monitor, tick, NULL, &token, &err) != DR_OK) {
        fprintf(stderr, "live_run: %s\n", err.text);
        return 1;
    }
    dr_snapshot s = { .number = 1 };
    for (int i = 0; i < (int)(seconds * 10) + 2; i++) {
        dr_monitor_wait(monitor, s.number, 1000, &s);
        if (i == 1) {
            puts("shown");
            fflush(stdout);
        }
    }
    dr_monitor_unref(&monitor);
    for (int i = 0; i < shown.n; i++)
        dr_live_close(&shown.live[i]);
    return 0;
}
