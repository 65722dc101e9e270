#include "unit/cm.h"
#include <time.h>
#include <drapps/sim.h>
static void run(void **state)
{
    (void)state;
    dr_error err = { 0 };
    static const char *const policies[] = { "fixed", "rules", "climb", "stages", "analytic" };
    const char *scenarios[] = { "stationary", "periodic", "tariff", "offload", "codec" };
    for (int i = 0; i < 5; i++)
    for (int k = 0; k < 5; k++) {
        dr_sim_options o;
        dr_sim *s;
        dr_sim_result r;
        dr_sim_defaults(&o);
        o.machine = "rtx3060";
        o.scenario = scenarios[i];
        o.seed = 1;
        assert_ok(dr_sim_open(&o, &s, &err));
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        assert_ok(dr_sim_run(s, policies[k], 120, NULL, NULL, &err));
        clock_gettime(CLOCK_MONOTONIC, &b);
        dr_sim_look(s, &r);
        double sec = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
        printf("%-12s %-9s %8.1f/s wait %.3f cpus %.2f lat %.3f reward %.3f workers %.1f readers %.1f prefetch %.1f  %.2f Mticks/s\n", scenarios[i], policies[k], r.samples / r.seconds, r.wait, r.cpus, r.latency,
               r.reward, r.knob[0], r.knob[1], r.knob[2], (double)r.ticks / sec / 1e6);
        dr_sim_close(&s);
    }
}
int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(run) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
