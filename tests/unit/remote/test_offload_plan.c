/* What the policies choose: on sets like those of the paper, on random ones, and against all choices of small ones. */
#include "remote/offload_plan.h"

#include "unit/cm.h"

#include <math.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/rng.h"

enum { MOST_CUTS = 6, MOST = 4096 };

static dr_error err;

typedef struct world {
    dr__offload_point p[MOST][MOST_CUTS];
    int n_cuts;
} world;

static world w;

static void points(const void *user, uint64_t sample, dr__offload_point *out)
{
    const world *from = user;
    memcpy(out, from->p[sample], (size_t)from->n_cuts * sizeof *out);
}

static dr__offload_work work_of(uint64_t n, int n_cuts, int resize_cut)
{
    w.n_cuts = n_cuts;
    return (dr__offload_work){ .n = n, .n_cuts = n_cuts, .resize_cut = resize_cut, .points = points, .user = &w };
}

static dr__offload_plan made(const char *policy, const dr__offload_work *work, const dr__offload_rates *rates)
{
    dr__offload_plan plan;
    assert_ok(dr__offload_plan_make(dr__offload_policy_find(policy), work, rates, &plan, &err));
    return plan;
}

static dr__offload_times times_with(const char *policy, const dr__offload_work *work, const dr__offload_rates *rates)
{
    dr__offload_plan plan = made(policy, work, rates);
    const dr__offload_times t = plan.after;
    dr__offload_plan_free(&plan);
    return t;
}

static dr_rng seeded(uint64_t seed)
{
    return dr__rng_open(&(dr__rng_name){ .seed = seed }, 0);
}

/* --- sets like those of the paper: decode, crop and resize, mirror, to floats, normalise --- */

static void imagenet_ops(uint64_t sample, double stored)
{
    const double decode = 2e-3 * stored / 1e5, crop = 6e-4, rest = 1e-3;
    const float sizes[] = { (float)stored, 600000, 150528, 150528, 602112, 602112 };
    const double server[] = {
        0, decode, decode + crop, decode + crop + 1e-5, decode + crop + rest / 2, decode + crop + rest
    };
    for (int k = 0; k < 6; k++)
        w.p[sample][k] = (dr__offload_point){ sizes[k], (float)(server[5] - server[k]), (float)server[k] };
}

static dr__offload_work lognormal_set(double mu, double sigma)
{
    dr_rng rng = seeded(1);
    for (uint64_t i = 0; i < MOST; i++)
        imagenet_ops(i, exp(mu + sigma * dr__rng_normal(&rng)));
    return work_of(MOST, 6, 2);
}

static const dr__offload_rates ample = { .link_bytes_s = 62.5e6, .client_cpus = 48, .server_cpus = 48 };

static void figures_of_open_images(void **state)
{
    (void)state;
    const dr__offload_work work = lognormal_set(log(240.6e3), 0.664);
    const double raw = times_with("no-off", &work, &ample).bytes;
    dr__offload_plan plan = made("sophon", &work, &ample);
    assert_true(fabs((double)plan.n_offloaded / MOST - 0.76) < 0.02);
    assert_int_equal(plan.per_cut[2], plan.n_offloaded);
    assert_true(fabs(raw / plan.after.bytes - 2.14) < 0.1);
    dr__offload_plan_free(&plan);
    assert_true(fabs(raw / times_with("resize-off", &work, &ample).bytes - 1.99) < 0.1);
    assert_true(fabs(times_with("all-off", &work, &ample).bytes / raw - 2.0) < 0.1);
    assert_true(times_with("fastflow", &work, &ample).bytes == raw); /* declines, as in the paper */
}

static void resize_off_loses_where_server_cpus_are_scarce(void **state)
{
    (void)state;
    const dr__offload_work work = lognormal_set(log(240.6e3), 0.664);
    double last = INFINITY;
    for (int tenths = 1; tenths <= 20; tenths++) {
        dr__offload_rates r = ample;
        r.server_cpus = tenths / 10.0;
        const double sophon = times_with("sophon", &work, &r).epoch_s;
        const double plus = times_with("sophon+", &work, &r).epoch_s;
        for (int i = 0; i < dr__n_offload_policies; i++)
            assert_true(plus <= times_with(dr__offload_policies[i].name, &work, &r).epoch_s);
        assert_true(sophon <= times_with("resize-off", &work, &r).epoch_s);
        assert_true(sophon <= last);
        last = sophon;
    }
    dr__offload_rates scarce = ample;
    scarce.server_cpus = 0.1;
    assert_true(times_with("resize-off", &work, &scarce).epoch_s > times_with("no-off", &work, &scarce).epoch_s);
}

static void nothing_goes_where_the_network_is_not_the_limit(void **state)
{
    (void)state;
    const dr__offload_work work = lognormal_set(log(240.6e3), 0.664);
    dr__offload_rates r = ample;
    r.trainer_s = 1e4;
    for (int i = 0; i < 2; i++) {
        dr__offload_plan plan = made(i ? "sophon" : "sophon+", &work, &r);
        assert_int_equal(plan.n_offloaded, 0);
        assert_non_null(strstr(plan.why, "trainer"));
        dr__offload_plan_free(&plan);
    }
    r = ample;
    r.client_cpus = 0.01;
    dr__offload_plan plan = made("sophon", &work, &r);
    assert_int_equal(plan.n_offloaded, 0);
    assert_non_null(strstr(plan.why, "client CPU"));
    dr__offload_plan_free(&plan);
    r = ample;
    r.link_bytes_s = 0; /* unknown */
    assert_int_equal(times_with("sophon", &work, &r).net_s, 0);
}

/* --- random sets --- */

static double between(dr_rng *rng, double least, double most)
{
    return least * pow(most / least, dr__rng_unit(rng));
}

static dr__offload_work random_work(dr_rng *rng, uint64_t n, int n_cuts)
{
    for (uint64_t i = 0; i < n; i++) {
        double spent = 0, steps[MOST_CUTS] = { 0 };
        const double speed = 0.5 + dr__rng_unit(rng); /* of the server */
        for (int k = 1; k < n_cuts; k++)
            steps[k] = spent += dr__rng_unit(rng) < 0.1 ? 0 : between(rng, 1e-5, 1e-2);
        for (int k = 0; k < n_cuts; k++) {
            const bool closed = k && dr__rng_unit(rng) < 0.1;
            w.p[i][k] = (dr__offload_point){ .bytes = closed ? INFINITY : (float)between(rng, 1e3, 1e6),
                                             .client_s = (float)(spent - steps[k]),
                                             .server_s = (float)(steps[k] * speed) };
        }
        if (dr__rng_unit(rng) < 0.5) /* now and then more than the whole sample, which no plan then takes */
            w.p[i][0].segments = (float)(w.p[i][0].bytes * between(rng, 0.05, 1.1));
    }
    return work_of(n, n_cuts, 1 + (int)dr__rng_below(rng, (uint64_t)n_cuts - 1));
}

static dr__offload_rates random_rates(dr_rng *rng, uint64_t n)
{
    return (dr__offload_rates){ .link_bytes_s = dr__rng_unit(rng) < 0.1 ? 0 : between(rng, 1e5, 1e9),
                                .trainer_s = dr__rng_unit(rng) < 0.5 ? 0 : (double)n * between(rng, 1e-6, 1e-1),
                                .client_cpus = between(rng, 0.1, 64),
                                .server_cpus = between(rng, 0.1, 64) };
}

static void check_plan(const dr__offload_plan *plan, const dr__offload_work *work, uint64_t seed)
{
    uint64_t n = 0, n_cut = 0;
    for (int k = 0; k < DR__OFFLOAD_CUTS; k++)
        n += plan->per_cut[k];
    for (uint64_t i = 0; i < work->n; i++) {
        if (plan->cuts[i] >= work->n_cuts || isinf(w.p[i][plan->cuts[i]].bytes))
            fail_msg("seed %d: sample %d is cut at %d", (int)seed, (int)i, plan->cuts[i]);
        n_cut += plan->cuts[i] > 0;
    }
    assert_int_equal(n, work->n);
    assert_int_equal(n_cut, plan->n_offloaded);
    assert_true(plan->n_segments <= plan->per_cut[0]);
    assert_non_null(memchr(plan->why, 0, sizeof plan->why));
    assert_true(plan->why[0] != 0);
}

/* The point of cut 0 for sophon+, which sends segments where they are fewer bytes. */
static dr__offload_point in_segments(const dr__offload_point *p)
{
    dr__offload_point out = p[0];
    if (p[0].segments > 0 && p[0].segments < p[0].bytes)
        out.bytes = p[0].segments;
    return out;
}

static dr__offload_point point_of(const dr__offload_plan *plan, uint64_t i)
{
    return plan->cuts[i] ? w.p[i][plan->cuts[i]] : in_segments(w.p[i]);
}

/* Whether one sample could go as it is stored without a longer epoch. */
static bool is_minimal(const dr__offload_plan *plan, const dr__offload_work *work, const dr__offload_rates *r)
{
    double bytes = 0, client = 0, server = 0;
    for (uint64_t i = 0; i < work->n; i++) {
        const dr__offload_point p = point_of(plan, i);
        bytes += p.bytes;
        client += p.client_s;
        server += p.server_s;
    }
    for (uint64_t i = 0; i < work->n; i++) {
        const dr__offload_point is = point_of(plan, i), was = in_segments(w.p[i]);
        const double net_s = r->link_bytes_s > 0 ? (bytes - is.bytes + was.bytes) / r->link_bytes_s : 0;
        const double client_s = (client - is.client_s + was.client_s) / r->client_cpus;
        const double server_s = (server - is.server_s + was.server_s) / r->server_cpus;
        const double epoch = fmax(fmax(net_s, client_s), fmax(server_s, r->trainer_s));
        if (plan->cuts[i] && (epoch < plan->after.epoch_s * (1 - 1e-9) || epoch == plan->after.epoch_s))
            return false;
    }
    return true;
}

static void one_random_set(uint64_t seed)
{
    dr_rng rng = seeded(seed);
    const uint64_t n = dr__rng_below(&rng, 60);
    const dr__offload_work work = random_work(&rng, n, 2 + (int)dr__rng_below(&rng, MOST_CUTS - 1));
    const dr__offload_rates r = random_rates(&rng, n);
    const dr__offload_times none = times_with("no-off", &work, &r), all = times_with("all-off", &work, &r);
    double plus = 0, least = INFINITY;
    for (int i = 0; i < dr__n_offload_policies; i++) {
        const char *name = dr__offload_policies[i].name;
        dr__offload_plan plan = made(name, &work, &r);
        check_plan(&plan, &work, seed);
        assert_true(plan.before.epoch_s == none.epoch_s);
        least = fmin(least, plan.after.epoch_s);
        if (!strcmp(name, "sophon")) {
            const dr__offload_times *t = &plan.after;
            assert_true(t->epoch_s <= none.epoch_s * (1 + 1e-9));
            if (t->client_s < t->epoch_s) /* all-off may relieve a slow client, which sophon does not look at */
                assert_true(t->epoch_s <= all.epoch_s * (1 + 1e-6));
        }
        if (!strcmp(name, "sophon+")) {
            plus = plan.after.epoch_s;
            if (!is_minimal(&plan, &work, &r))
                fail_msg("seed %d: the plan of sophon+ is not minimal", (int)seed);
        }
        dr__offload_plan_free(&plan);
    }
    if (plus > least * (1 + 1e-9) || plus > none.epoch_s * (1 + 1e-9) || plus > all.epoch_s * (1 + 1e-9))
        fail_msg("seed %d: sophon+ takes %g s, another policy %g s", (int)seed, plus, least);
}

static void what_always_holds(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 2000; seed++)
        one_random_set(seed);
}

static void no_cpu_no_offload(void **state)
{
    (void)state;
    dr_rng rng = seeded(7);
    const dr__offload_work work = random_work(&rng, 50, 5);
    dr__offload_rates r = random_rates(&rng, 50);
    r.server_cpus = 0;
    for (int i = 0; i < dr__n_offload_policies; i++) {
        dr__offload_plan plan = made(dr__offload_policies[i].name, &work, &r);
        assert_int_equal(plan.n_offloaded, 0);
        assert_true(plan.after.server_s == 0 && plan.after.bytes <= plan.before.bytes);
        assert_true(plan.after.bytes == plan.before.bytes || dr__offload_policies[i].plus);
        dr__offload_plan_free(&plan);
    }
}

/* The shortest epoch of all choices, by trying them. */
static double shortest(const dr__offload_work *work, const dr__offload_rates *r, uint64_t i, double bytes,
                       double client_s, double server_s)
{
    if (i == work->n)
        return fmax(fmax(bytes / r->link_bytes_s, client_s / r->client_cpus),
                    fmax(server_s / r->server_cpus, r->trainer_s));
    double least = INFINITY;
    for (int k = 0; k < work->n_cuts; k++) {
        const dr__offload_point p = k ? w.p[i][k] : in_segments(w.p[i]);
        if (!isinf(p.bytes))
            least =
                fmin(least, shortest(work, r, i + 1, bytes + p.bytes, client_s + p.client_s, server_s + p.server_s));
    }
    return least;
}

/* A greedy choice is off by no more than what the largest sample weighs (the bound of fractional knapsacks). */
static void near_the_optimum(void **state)
{
    (void)state;
    double sum = 0, worst = 0;
    const int n_sets = 200;
    for (uint64_t seed = 0; seed < (uint64_t)n_sets; seed++) {
        dr_rng rng = seeded(seed + 5000);
        for (uint64_t i = 0; i < 12; i++)
            imagenet_ops(i, exp(log(240.6e3) + 0.664 * dr__rng_normal(&rng)));
        for (uint64_t i = 0; i < 12; i++) { /* two places to cut at, for all choices to be few */
            w.p[i][1] = w.p[i][2];
            w.p[i][0].segments = seed % 2 ? (float)(w.p[i][0].bytes * between(&rng, 0.1, 1)) : 0;
        }
        const dr__offload_work work = work_of(12, 2, 1);
        const dr__offload_rates r = { .link_bytes_s = 62.5e6, .client_cpus = 48, .server_cpus = between(&rng, 0.1, 2) };
        const double least = shortest(&work, &r, 0, 0, 0, 0);
        const double plus = times_with("sophon+", &work, &r).epoch_s;
        double one = 0;
        for (int i = 0; i < 12; i++)
            one = fmax(one, fmax(w.p[i][0].bytes / r.link_bytes_s, w.p[i][1].server_s / r.server_cpus));
        assert_true(plus >= least * (1 - 1e-9));
        assert_true(plus <= least + one);
        sum += plus / least - 1;
        worst = fmax(worst, plus / least - 1);
    }
    print_message("12 samples: %.3f %% above the optimum in the mean, %.3f %% at worst\n", sum / n_sets * 100,
                  worst * 100);
    assert_true(sum / n_sets < 0.01);
}

static void a_cheap_cut_before_a_dear_one(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 100; i++) {
        w.p[i][0] = (dr__offload_point){ 1e6f, 0.05f, 0 };
        w.p[i][1] = (dr__offload_point){ 2e5f, 0.04f, 0.01f };
        w.p[i][2] = (dr__offload_point){ 1.5e5f, 0, 0.05f };
    }
    const dr__offload_work work = work_of(100, 3, 2);
    const dr__offload_rates r = { .link_bytes_s = 1e7, .client_cpus = 100, .server_cpus = 0.4 };
    dr__offload_plan paper = made("sophon", &work, &r), plus = made("sophon+", &work, &r);
    assert_int_equal(paper.per_cut[1], 0);
    assert_true(plus.per_cut[1] > 90);
    assert_true(plus.after.epoch_s < paper.after.epoch_s / 2);
    assert_true(plus.theta > 0);
    dr__offload_plan_free(&paper);
    dr__offload_plan_free(&plus);
}

/* Segments of ImageNet's files, as they were measured: 0.12 to 1 of a file, 0.57 in the mean. */
static void segments_before_any_cpu_time(void **state)
{
    (void)state;
    dr_rng rng = seeded(11);
    const dr__offload_work work = lognormal_set(log(95e3), 0.6);
    for (uint64_t i = 0; i < MOST; i++)
        w.p[i][0].segments = (float)(w.p[i][0].bytes * fmin(1, 0.12 + 0.9 * dr__rng_unit(&rng)));
    dr__offload_rates r = ample;
    const double raw = times_with("no-off", &work, &r).bytes, sophon = times_with("sophon", &work, &r).bytes;
    for (int tenths = 0; tenths <= 10; tenths++) {
        r.server_cpus = tenths / 10.0;
        dr__offload_plan plan = made("sophon+", &work, &r);
        assert_true(plan.before.bytes == raw);
        assert_true(plan.after.bytes < 0.6 * raw && plan.after.bytes < 0.7 * sophon);
        assert_true(plan.n_segments > MOST / 2);
        assert_true(tenths > 0 || (plan.n_offloaded == 0 && plan.after.server_s == 0));
        for (uint64_t i = 0; i < MOST; i++) /* no CPU time for what segments do better */
            assert_true(!plan.cuts[i] || w.p[i][plan.cuts[i]].bytes < w.p[i][0].segments);
        dr__offload_plan_free(&plan);
    }
    for (int i = 0; i < dr__n_offload_policies; i++) { /* the others stay as they are in the papers */
        const dr__offload_policy *p = &dr__offload_policies[i];
        dr__offload_plan plan = made(p->name, &work, &ample);
        assert_true(p->plus == !strcmp(p->name, "sophon+") && (p->plus || plan.n_segments == 0));
        dr__offload_plan_free(&plan);
    }
}

static void memory_may_be_short(void **state)
{
    (void)state;
    dr_rng rng = seeded(3);
    const dr__offload_work work = random_work(&rng, 300, 4);
    const dr__offload_rates r = { .link_bytes_s = 1e5, .client_cpus = 64, .server_cpus = 64 };
    for (int i = 0; i < dr__n_offload_policies; i++) {
        dr_status status = DR_ERR_NOMEM;
        for (long n = 1; status == DR_ERR_NOMEM && n < 100; n++) {
            dr__offload_plan plan;
            dr__alloc_fail_at(n, false);
            status = dr__offload_plan_make(&dr__offload_policies[i], &work, &r, &plan, &err);
            dr__alloc_fail_at(0, false);
            dr__offload_plan_free(&plan);
        }
        assert_int_equal(status, DR_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_of_open_images),
        cmocka_unit_test(resize_off_loses_where_server_cpus_are_scarce),
        cmocka_unit_test(nothing_goes_where_the_network_is_not_the_limit),
        cmocka_unit_test(what_always_holds),
        cmocka_unit_test(no_cpu_no_offload),
        cmocka_unit_test(near_the_optimum),
        cmocka_unit_test(a_cheap_cut_before_a_dear_one),
        cmocka_unit_test(segments_before_any_cpu_time),
        cmocka_unit_test(memory_may_be_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
