/* test_shmpool_controller.c: the controller of worker processes: knobs, proposals, its end. */
#include "../shmpool/shmpool_helper.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <drapps/shmpool_controller.h>
#include <drapps/trace.h>

#include "shmpool/shared.h"
#include "loader/shmpool_plant.h"

static dr_shmpool_adapt_options options_of(uint32_t pinned)
{
    dr_shmpool_adapt_options o;
    dr_shmpool_adapt_defaults(&o);
    o.policy = "fixed";
    o.workers = 2;
    o.prefetch = 4;
    o.pinned = pinned;
    o.memory_limit = 1 << 20;
    o.most_workers = 8;
    return o;
}

static dr_shmpool_controller *open_controller(dr_shmpool *shmpool, const dr_shmpool_adapt_options *o)
{
    dr_error err;
    dr_shmpool_controller *controller;
    assert_ok(dr_shmpool_adapt(shmpool, o, &controller, &err));
    return controller;
}

static void knobs_are_the_users(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool *shmpool = open_shmpool(4, 4, true);
    const dr_shmpool_adapt_options o = options_of(0);
    dr_shmpool_controller *controller = open_controller(shmpool, &o);
    assert_float_equal(dr_shmpool_controller_get(controller, DR_KNOB_WORKERS), 2, 0);
    assert_float_equal(dr_shmpool_controller_get(controller, DR_KNOB_LANE_THRESHOLD), 4, 0);
    assert_ok(dr_shmpool_controller_set(controller, DR_KNOB_PREFETCH, 9, &err));
    assert_ok(dr_shmpool_controller_set(controller, DR_KNOB_PREFETCH_BYTES, 1000, &err));
    assert_ok(dr_shmpool_controller_set(controller, DR_KNOB_LANE_THRESHOLD, 7, &err));
    assert_float_equal(dr_shmpool_controller_get(controller, DR_KNOB_CPU_CEILING), 0, 0);
    assert_ok(dr_shmpool_controller_set(controller, DR_KNOB_CPU_CEILING, 1.5, &err));
    assert_float_equal(dr_shmpool_controller_get(controller, DR_KNOB_CPU_CEILING), 1.5, 0);
    assert_fails(dr_shmpool_controller_set(controller, DR_KNOB_CPU_CEILING, 513, &err), DR_ERR_ARG,
                 "cpu_ceiling must be 0 to 512, got 513");
    assert_float_equal(dr_shmpool_controller_get(controller, DR_KNOB_PREFETCH), 9, 0);
    assert_float_equal(dr_shmpool_controller_get(controller, DR_KNOB_PREFETCH_BYTES), 1000, 0);
    assert_float_equal(dr_shmpool_controller_get(controller, DR_KNOB_LANE_THRESHOLD), 7, 0);
    assert_ok(dr_shmpool_controller_set(controller, DR_KNOB_WORKERS, 9, &err)); /* the most is for the policy */
    assert_int_equal(dr_shmpool_controller_set(controller, DR_KNOB_WORKERS, 257, &err), DR_ERR_ARG);
    assert_int_equal(dr_shmpool_controller_set(controller, DR_KNOB_READERS, 1, &err), DR_ERR_ARG);
    dr_shmpool_controller_close(&controller);
    dr_shmpool_unref(&shmpool);
}

/* Texts of a trace that have this in them. */
static int n_told(const char *path, const char *what)
{
    int n = 0;
    dr_error err;
    dr_trace_reader *reader;
    dr_trace_record record;
    assert_ok(dr_trace_open_reader(path, &reader, &err));
    while (dr_trace_next(reader, &record, &err) == DR_OK)
        n += record.kind == DR_TRACE_TEXT && strstr(record.text, what);
    dr_trace_close_reader(&reader);
    return n;
}

static void knobs_that_are_turned_are_in_the_trace(void **state)
{
    (void)state;
    dr_error err;
    dr_trace *trace;
    char path[] = "/tmp/test-shmpool-controller-XXXXXX";
    close(mkstemp(path));
    dr_shmpool *shmpool = open_shmpool(4, 4, true);
    dr_shmpool_adapt_options o = options_of(0);
    assert_ok(dr_trace_open(path, NULL, NULL, &trace, &err));
    o.trace = trace;
    dr_shmpool_controller *controller = open_controller(shmpool, &o);
    assert_ok(dr_shmpool_controller_set(controller, DR_KNOB_WORKERS, 3, &err));
    assert_ok(dr_shmpool_controller_set(controller, DR_KNOB_LANE_THRESHOLD, 2.5, &err));
    assert_int_equal(dr_shmpool_controller_set(controller, DR_KNOB_READERS, 1, &err), DR_ERR_ARG);
    assert_ok(dr__shmpool_plant_set((dr__shmpool_plant *)controller, DR_KNOB_PREFETCH, 5, false,
                                    &err)); /* as a decision does */
    dr_shmpool_controller_stop(controller);
    dr_trace_close(&trace);
    assert_ok(dr_shmpool_controller_set(controller, DR_KNOB_PREFETCH, 6, &err)); /* to nobody */
    dr_shmpool_controller_close(&controller);
    dr_shmpool_unref(&shmpool);
    assert_int_equal(n_told(path, "\"event\":\"set\""), 3);
    assert_int_equal(n_told(path, "\"knob\":\"workers\",\"value\":3}"), 1);
    assert_int_equal(n_told(path, "\"knob\":\"lane_threshold\",\"value\":2.5}"), 1);
    assert_int_equal(n_told(path, "\"knob\":\"prefetch\",\"value\":5}"), 1);
    unlink(path);
}

static void unknown_words_are_errors(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool_controller *controller;
    dr_shmpool *shmpool = open_shmpool(4, 4, true);
    dr_shmpool_adapt_options o = options_of(0);
    o.policy = "magic";
    assert_int_equal(dr_shmpool_adapt(shmpool, &o, &controller, &err), DR_ERR_ARG);
    o = options_of(0);
    o.weights = "beauty=1";
    assert_int_equal(dr_shmpool_adapt(shmpool, &o, &controller, &err), DR_ERR_ARG);
    o = options_of(0);
    o.cpu_limit = 0.001;
    assert_fails(dr_shmpool_adapt(shmpool, &o, &controller, &err), DR_ERR_ARG, "got 0.001");
    assert_null(controller);
    dr_shmpool_unref(&shmpool);
}

/* Also with a policy that decides nothing, and before it would. */
static void the_cpu_limit_is_the_ceiling(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool *shmpool = open_shmpool(4, 4, true);
    dr_shmpool_adapt_options o = options_of(0);
    o.cpu_limit = 0.75;
    dr_shmpool_controller *controller = open_controller(shmpool, &o);
    assert_float_equal(dr__shmpool_ceiling(shmpool), 0.75, 0);
    assert_float_equal(dr_shmpool_controller_get(controller, DR_KNOB_CPU_CEILING), 0.75, 0);
    dr__shmpool_plant *plant = (dr__shmpool_plant *)controller; /* its first member */
    assert_int_equal(dr__shmpool_plant_set(plant, DR_KNOB_CPU_CEILING, 0, false, &err), DR_ERR_STATE);
    assert_ok(dr_shmpool_controller_set(controller, DR_KNOB_CPU_CEILING, 2, &err));
    assert_float_equal(dr__shmpool_ceiling(shmpool), 2, 0);
    dr_shmpool_controller_close(&controller);
    dr_shmpool_unref(&shmpool);
}

static void a_memory_limit_beyond_all_memory_is_none(void **state)
{
    (void)state;
    dr_shmpool *shmpool = open_shmpool(4, 4, true);
    dr_shmpool_adapt_options o = options_of(0);
    o.memory_limit = UINT64_MAX;
    dr_shmpool_controller *controller = open_controller(shmpool, &o);
    dr_shmpool_controller_close(&controller);
    dr_shmpool_unref(&shmpool);
}

static void wishes_are_made_of_what_the_policy_turns(void **state)
{
    (void)state;
    dr_error err;
    dr__shmpool_plant plant;
    dr_shmpool *shmpool = open_shmpool(4, 4, true);
    const dr_shmpool_adapt_options o = options_of(0);
    dr__shmpool_plant_init(&plant, shmpool, &o);
    assert_ok(dr__shmpool_plant_set(&plant, DR_KNOB_WORKERS, 3, false, &err));
    assert_ok(dr__shmpool_plant_set(&plant, DR_KNOB_WORKERS, 3, false, &err)); /* is so already */
    assert_ok(dr__shmpool_plant_set(&plant, DR_KNOB_PREFETCH, 5, false, &err));
    assert_int_equal(plant.proposals, 1);
    assert_ok(dr__shmpool_plant_set(&plant, DR_KNOB_WORKERS, 4, true, &err));
    assert_int_equal(plant.proposals, 1);
    assert_int_equal(dr__shmpool_plant_set(&plant, DR_KNOB_WORKERS, 1, false, &err), DR_ERR_STATE);
    assert_float_equal(dr__shmpool_plant_get(&plant, DR_KNOB_WORKERS), 4, 0);
    dr__shmpool_plant_free(&plant);
    dr_shmpool_unref(&shmpool);
}

/* What a policy may have is the limit, wherever it has put the knob. */
static void the_limit_stays_when_the_knob_goes_down(void **state)
{
    (void)state;
    dr_error err;
    dr__shmpool_plant plant;
    double flow[DR_N_FLOWS] = { 0 };
    dr_shmpool *shmpool = open_shmpool(4, 4, true);
    const dr_shmpool_adapt_options o = options_of(0);
    dr__shmpool_plant_init(&plant, shmpool, &o);
    assert_ok(dr__shmpool_plant_set(&plant, DR_KNOB_PREFETCH_BYTES, 1000, false, &err));
    const dr_plant seen = dr__shmpool_plant_of(&plant);
    seen.flow(seen.user, flow);
    assert_true(flow[DR_FLOW_BYTES_LIMIT] == 1 << 20);
    dr__shmpool_plant_free(&plant);
    dr_shmpool_unref(&shmpool);
}

static void ranks_on_a_machine_share_its_memory(void **state)
{
    (void)state;
    dr__shmpool_plant one, of_eight;
    dr_shmpool *shmpool = open_shmpool(4, 4, true);
    dr_shmpool_adapt_options o = options_of(0);
    o.memory_limit = 0;
    dr__shmpool_plant_init(&one, shmpool, &o);
    setenv("LOCAL_WORLD_SIZE", "8", 1);
    dr__shmpool_plant_init(&of_eight, shmpool, &o);
    unsetenv("LOCAL_WORLD_SIZE");
    assert_true(8 * of_eight.memory_limit == one.memory_limit);
    dr__shmpool_plant_free(&one);
    dr__shmpool_plant_free(&of_eight);
    dr_shmpool_unref(&shmpool);
}

static void *wait_for_end(void *controller)
{
    dr_shmpool_proposal proposal = { 0 };
    return (void *)(intptr_t)dr_shmpool_controller_wait(controller, -1, &proposal);
}

static void who_waits_hears_of_the_end(void **state)
{
    (void)state;
    void *status;
    pthread_t thread;
    dr_shmpool_proposal proposal = { 0 };
    dr_shmpool *shmpool = open_shmpool(4, 4, true);
    const dr_shmpool_adapt_options o = options_of(0);
    dr_shmpool_controller *controller = open_controller(shmpool, &o);
    assert_int_equal(dr_shmpool_controller_wait(controller, 1, &proposal), DR_AGAIN);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_end, controller), 0);
    dr_shmpool_controller_stop(controller);
    pthread_join(thread, &status);
    assert_int_equal((intptr_t)status, DR_END);
    dr_shmpool_controller_close(&controller);
    dr_shmpool_unref(&shmpool);
}

static int use_in_child(dr_shmpool_controller *controller)
{
    dr_error err;
    dr_decision d;
    dr_shmpool_proposal proposal = { 0 };
    alarm(20); /* a lock that another thread of the parent held */
    if (dr_shmpool_controller_get(controller, DR_KNOB_WORKERS) != 2)
        return 1;
    if (dr_shmpool_controller_set(controller, DR_KNOB_WORKERS, 1, &err) != DR_ERR_FORKED)
        return 2;
    if (dr_shmpool_controller_wait(controller, -1, &proposal) != DR_END)
        return 3;
    if (dr_shmpool_controller_decisions(controller, 0, &d, 1) != 0)
        return 4;
    dr_shmpool_controller_hold(controller, true);
    dr_shmpool_controller_pause(controller, true);
    if (dr_shmpool_controller_set_weights(controller, NULL, &err) != DR_ERR_FORKED)
        return 6;
    dr_shmpool_controller_watch(controller, getpid());
    dr_shmpool_controller_stop(controller);
    dr_shmpool_controller_close(&controller);
    return controller ? 5 : 0;
}

/* The fork comes at the worst moment: with the locks held. */
static void a_forked_child_leaves_it_alone(void **state)
{
    (void)state;
    int status;
    dr_shmpool *shmpool = open_shmpool(4, 4, true);
    const dr_shmpool_adapt_options o = options_of(0);
    dr_shmpool_controller *controller = open_controller(shmpool, &o);
    dr__shmpool_plant *plant = (dr__shmpool_plant *)controller; /* its first member */
    pthread_mutex_lock(&plant->lock);
    const pid_t child = fork();
    if (child == 0)
        _exit(use_in_child(controller));
    pthread_mutex_unlock(&plant->lock);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    dr_shmpool_controller_close(&controller);
    dr_shmpool_unref(&shmpool);
}

/* A process that works counts with its CPU, and as own. */
static void cpu_is_that_of_the_workers(void **state)
{
    (void)state;
    dr_error err;
    dr__shmpool_plant plant;
    dr_monitor *monitor;
    double flow[DR_N_FLOWS] = { 0 };
    dr_shmpool *shmpool = open_shmpool(4, 4, true);
    const dr_shmpool_adapt_options o = options_of(0);
    dr__shmpool_plant_init(&plant, shmpool, &o);
    assert_ok(dr_monitor_open(NULL, &monitor, &err));
    plant.monitor = monitor;
    assert_ok(dr_shmpool_attach(shmpool, 0, getpid(), &err));
    const dr_plant as_plant = dr__shmpool_plant_of(&plant);
    as_plant.flow(as_plant.user, flow);
    assert_true(flow[DR_FLOW_CPU] > 0);
    assert_true(flow[DR_FLOW_BYTES_LIMIT] == 1048576);
    dr_monitor_unref(&monitor);
    dr__shmpool_plant_free(&plant);
    dr_shmpool_unref(&shmpool);
}

int main(void)
{
    setenv("DRAPPS_LIVE", "off", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knobs_are_the_users),
        cmocka_unit_test(knobs_that_are_turned_are_in_the_trace),
        cmocka_unit_test(unknown_words_are_errors),
        cmocka_unit_test(the_cpu_limit_is_the_ceiling),
        cmocka_unit_test(a_memory_limit_beyond_all_memory_is_none),
        cmocka_unit_test(wishes_are_made_of_what_the_policy_turns),
        cmocka_unit_test(the_limit_stays_when_the_knob_goes_down),
        cmocka_unit_test(ranks_on_a_machine_share_its_memory),
        cmocka_unit_test(who_waits_hears_of_the_end),
        cmocka_unit_test(a_forked_child_leaves_it_alone),
        cmocka_unit_test(cpu_is_that_of_the_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
