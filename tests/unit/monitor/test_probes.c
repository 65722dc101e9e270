/* Probes on trees of machines: three written by hand in variants, one recorded; then damaged and cut short. */
#include "unit/cm.h"

#include <math.h>

#include "monitor/probe.h"
#include "monitor/sampler.h"
#include "unit/monitor/proc_tree.h"

static char root[64];
static dr_snapshot first, second;

static int setup(void **state)
{
    (void)state;
    tree_new(root);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tree_remove(root);
    return 0;
}

/* Two ticks, one second apart, between which the tree changes from a.txt to b.txt. */
static void watch(const char *machine)
{
    dr__sampler s;
    dr_error err;
    for (int i = 0; i < 2; i++) {
        char name[64];
        size_t size;
        snprintf(name, sizeof name, "%s/%c.txt", machine, 'a' + i);
        char *text = tree_load(name, &size);
        tree_write(root, text, size);
        free(text);
        if (i == 0)
            assert_ok(dr__sampler_open(&s, root, &err));
        dr__sampler_tick(&s, 5000000000u + (uint64_t)i * 1000000000u, i ? &second : &first);
    }
    dr__sampler_close(&s);
}

#define assert_near(got, want) assert_true(fabs((double)(got) - (double)(want)) <= 1e-6)

static void assert_sensor(dr_sensor sensor, double value, double level)
{
    if (!dr__is_present(&second, sensor) || fabs(second.value[sensor] - value) > 1e-6 * fmax(1, value) ||
        fabs(second.level[sensor] - level) > 1e-6)
        fail_msg("%s: present %d, value %g, level %g; expected %g, %g", dr_sensor_name(sensor),
                 dr__is_present(&second, sensor), second.value[sensor], second.level[sensor], value, level);
}

static void assert_absent(dr_sensor sensor)
{
    if (dr__is_present(&second, sensor))
        fail_msg("%s: present", dr_sensor_name(sensor));
}

/* What must hold of every snapshot, whatever was read. */
static void assert_sound(const dr_snapshot *s)
{
    for (int i = 0; i < DR_N_SENSORS; i++) {
        assert_true(isfinite(s->value[i]) && s->value[i] >= 0);
        assert_true(s->level[i] >= 0 && s->level[i] <= 1);
        if (!dr__is_present(s, i))
            assert_true(s->value[i] == 0 && s->level[i] == 0);
    }
    assert_true(s->n_cpus <= DR_MAX_CPUS);
    for (uint32_t i = 0; i < s->n_cpus; i++)
        assert_true(s->cpu[i] >= 0 && s->cpu[i] <= 1);
}

static void server_with_128_cpus(void **state)
{
    (void)state;
    watch("synthetic-server-128");
    assert_int_equal(second.n_cpus, 128);
    assert_sensor(DR_SENSOR_CPU_TOTAL, 32.25, 32.25 / 128);
    assert_sensor(DR_SENSOR_CPU_BUSIEST, 1, 1);
    assert_sensor(DR_SENSOR_CPU_OWN, 8, 8.0 / 128);
    assert_sensor(DR_SENSOR_CPU_FOREIGN, 24.25, 24.25 / 128);
    assert_sensor(DR_SENSOR_CPU_STEAL, 0.5, 0.5 / 128);
    assert_sensor(DR_SENSOR_IO_WAIT, 2, 2.0 / 128);
    assert_near(second.cpu[0], 1);
    assert_near(second.cpu[36], 0.25);
    assert_near(second.cpu[127], 0);
    assert_sensor(DR_SENSOR_PRESSURE_CPU, 0.25, 0.25);
    assert_sensor(DR_SENSOR_PRESSURE_MEMORY, 0, 0);
    assert_sensor(DR_SENSOR_PRESSURE_IO, 0.1, 0.1);
    assert_sensor(DR_SENSOR_MEM_USED, 132000000 * 1024.0, 0.25);
    assert_sensor(DR_SENSOR_MEM_AVAILABLE, 396000000 * 1024.0, 0.75);
    assert_sensor(DR_SENSOR_QUOTA_USED, 16, 16.0 / 128);
    assert_sensor(DR_SENSOR_THROTTLED, 0, 0);
}

/* Partitions, dm-0 and loop0 of that tree, lo and docker0 do not count. */
static void server_devices(void **state)
{
    (void)state;
    watch("synthetic-server-128");
    double bytes = (2000000 + 48828) * 512.0;
    assert_sensor(DR_SENSOR_DISK_BANDWIDTH, bytes, 1); /* the highest so far */
    assert_sensor(DR_SENSOR_DISK_BUSY, 0.9, 0.9);
    assert_sensor(DR_SENSOR_DISK_QUEUE, 5, 5.0 / 32);
    assert_sensor(DR_SENSOR_DISK_LATENCY, 2.0 / 600, 2.0 / 60);
    assert_sensor(DR_SENSOR_NET_BANDWIDTH, 625e6, 0.5); /* of 10 Gbit/s */
    assert_sensor(DR_SENSOR_NET_RETRANSMITS, 0.01, 0.1);
    assert_absent(DR_SENSOR_NET_RTT);
    /* The first package's counter began again: 262143.32885 - 261900 + 20 J, and 90 J of the second. */
    assert_sensor(DR_SENSOR_POWER, 243.32885 + 20 + 90, 353.32885 / 560);
    assert_int_equal(second.modelled, 0);
    assert_absent(DR_SENSOR_GPU_BUSY);
    assert_absent(DR_SENSOR_MEM_BANDWIDTH);
    assert_absent(DR_SENSOR_FILL_BATCH);
}

static void check_half_core(const char *machine)
{
    uint64_t throttled_ns;
    watch(machine);
    assert_true(dr__throttled_ns(root, &throttled_ns));
    assert_int_equal(throttled_ns, 500000000);
    assert_sensor(DR_SENSOR_CPU_TOTAL, 8, 0.5);
    assert_sensor(DR_SENSOR_CPU_OWN, 0.4, 0.4 / 16);
    assert_sensor(DR_SENSOR_QUOTA_USED, 0.45, 0.9);
    assert_sensor(DR_SENSOR_THROTTLED, 0.3, 0.3);
    assert_sensor(DR_SENSOR_MEM_USED, 512.0 * 1048576, 0.5); /* 768 MB less 256 MB that can be dropped, of 1 GB */
    assert_sensor(DR_SENSOR_MEM_AVAILABLE, 512.0 * 1048576, 0.5);
    assert_sensor(DR_SENSOR_NET_BANDWIDTH, 12.5e6, 0.1); /* the link does not say its speed */
    assert_sensor(DR_SENSOR_POWER, 16 * 0.7 + 8 * 2.8, (16 * 0.7 + 8 * 2.8) / 56);
    assert_true(second.modelled == (uint64_t)1 << DR_SENSOR_POWER);
    assert_absent(DR_SENSOR_DISK_LATENCY);
}

static void half_a_core_of_version_2(void **state)
{
    (void)state;
    check_half_core("synthetic-half-core-v2");
    assert_sensor(DR_SENSOR_DISK_BANDWIDTH, 50e6, 0.5); /* io.stat: there is no diskstats */
}

static void half_a_core_of_version_1(void **state)
{
    (void)state;
    check_half_core("synthetic-half-core-v1");
    assert_absent(DR_SENSOR_DISK_BANDWIDTH);
}

/* A step of 250 ms is told at its end: no interval has more than it can, and the rest counts in what follows. */
static void who_runs_a_device_tells_of_it(void **state)
{
    (void)state;
    static const struct {
        unsigned told_ms;
        double share;
    } ticks[] = { { 50, 0.5 }, { 250, 1 }, { 0, 1 }, { 0, 0.5 }, { 0, 0 } };
    dr__sampler s;
    dr_error err;
    uint64_t now = 5000000000u;
    assert_ok(dr__sampler_open(&s, root, &err));
    dr__sampler_tick(&s, now, &second);
    dr__sampler_tick(&s, now += 100000000u, &second);
    assert_absent(DR_SENSOR_GPU_BUSY); /* nobody has told of one */
    for (size_t i = 0; i < DR_COUNT(ticks); i++) {
        atomic_fetch_add(&s.host.busy_ns, ticks[i].told_ms * 1000000ull);
        dr__sampler_tick(&s, now += 100000000u, &second);
        assert_sensor(DR_SENSOR_GPU_BUSY, ticks[i].share, ticks[i].share);
    }
    dr__sampler_close(&s);
}

/* Ours has no limit and uses 1 GB; a neighbour has nearly used up the limit of the group above. */
static void the_group_with_the_least_room_counts(void **state)
{
    (void)state;
    static const char text[] = "== /proc/meminfo\nMemTotal: 67108864 kB\nMemAvailable: 50331648 kB\n"
                               "== /proc/self/cgroup\n0::/slice/ours\n"
                               "== /sys/fs/cgroup/slice/ours/memory.max\nmax\n"
                               "== /sys/fs/cgroup/slice/ours/memory.current\n1073741824\n"
                               "== /sys/fs/cgroup/slice/ours/memory.stat\ninactive_file 0\n"
                               "== /sys/fs/cgroup/slice/memory.max\n8589934592\n"
                               "== /sys/fs/cgroup/slice/memory.current\n8053063680\n"
                               "== /sys/fs/cgroup/slice/memory.stat\ninactive_file 536870912\n";
    dr__sampler s;
    dr_error err;
    tree_write(root, text, sizeof text - 1);
    assert_ok(dr__sampler_open(&s, root, &err));
    dr__sampler_tick(&s, 5000000000u, &second);
    dr__sampler_close(&s);
    assert_sensor(DR_SENSOR_MEM_USED, 7516192768.0, 0.875);
    assert_sensor(DR_SENSOR_MEM_AVAILABLE, 1073741824.0, 0.125);
}

static void machine_without_pressure_and_groups(void **state)
{
    (void)state;
    watch("synthetic-bare");
    assert_sensor(DR_SENSOR_CPU_TOTAL, 1, 0.5);
    assert_sensor(DR_SENSOR_MEM_USED, 2000000 * 1024.0, 0.25);
    for (int i = 0; i < DR_N_SENSORS; i++)
        if ((i < DR_SENSOR_CPU_TOTAL || i > DR_SENSOR_IO_WAIT) && i != DR_SENSOR_MEM_USED &&
            i != DR_SENSOR_MEM_AVAILABLE && i != DR_SENSOR_POWER)
            assert_absent((dr_sensor)i);
    assert_absent(DR_SENSOR_CPU_OWN);
}

static void recorded_machine(void **state)
{
    (void)state;
    watch("recorded-2-cpus");
    assert_sound(&second);
    assert_int_equal(second.n_cpus, 2);
    const dr_sensor there[] = { DR_SENSOR_CPU_OWN,       DR_SENSOR_PRESSURE_IO,    DR_SENSOR_MEM_USED,
                                DR_SENSOR_QUOTA_USED,    DR_SENSOR_THROTTLED,      DR_SENSOR_DISK_LATENCY,
                                DR_SENSOR_NET_BANDWIDTH, DR_SENSOR_NET_RETRANSMITS };
    for (size_t i = 0; i < DR_COUNT(there); i++)
        assert_true(dr__is_present(&second, there[i]));
}

static void first_tick_has_no_rates(void **state)
{
    (void)state;
    watch("synthetic-server-128");
    assert_true(dr__is_present(&first, DR_SENSOR_MEM_USED));
    assert_false(dr__is_present(&first, DR_SENSOR_CPU_TOTAL));
    assert_false(dr__is_present(&first, DR_SENSOR_DISK_BANDWIDTH));
    assert_int_equal(first.n_cpus, 128);
}

/* Below 90 ms the use of the CPUs is repeated, not measured anew. */
static void close_ticks_repeat(void **state)
{
    (void)state;
    dr__sampler s;
    dr_error err;
    size_t size;
    char *text = tree_load("synthetic-bare/a.txt", &size);
    tree_write(root, text, size);
    free(text);
    assert_ok(dr__sampler_open(&s, root, &err));
    dr__sampler_tick(&s, 1000000000u, &second);
    text = tree_load("synthetic-bare/b.txt", &size);
    tree_write(root, text, size);
    free(text);
    dr__sampler_tick(&s, 1010000000u, &second);
    assert_absent(DR_SENSOR_CPU_TOTAL);
    dr__sampler_tick(&s, 2000000000u, &second);
    assert_sensor(DR_SENSOR_CPU_TOTAL, 1, 0.5);
    dr__sampler_tick(&s, 2010000000u, &second);
    assert_sensor(DR_SENSOR_CPU_TOTAL, 1, 0.5);
    assert_near(second.cpu[0], 1);
    dr__sampler_close(&s);
}

/* --- damage --- */

static void tick_on(const char *text, size_t size, const char *after, size_t after_size)
{
    dr__sampler s;
    dr_error err;
    tree_write(root, text, size);
    assert_ok(dr__sampler_open(&s, root, &err));
    dr__sampler_tick(&s, 1000000000u, &first);
    tree_write(root, after, after_size);
    dr__sampler_tick(&s, 1100000000u, &second);
    dr__sampler_close(&s);
    assert_sound(&first);
    assert_sound(&second);
}

static void damaged_files_make_sensors_absent(void **state)
{
    (void)state;
    const char *const broken =
        "== /proc/stat\ncpu  12 34\ncpu0 x\n== /proc/meminfo\nMemTotal: 99999999999999999999999 kB\n"
        "== /proc/pressure/cpu\nsome avg10=1 total=\n== /proc/diskstats\n8 0 sda 1 2 3\n"
        "== /proc/net/dev\neth0: 1 2\n== /proc/net/snmp\nTcp: OutSegs\n"
        "== /proc/self/cgroup\n::\n0:\n\n";
    tick_on(broken, strlen(broken), broken, strlen(broken));
    assert_int_equal(second.present, 0);
}

static void counters_that_wrap_stay_shares(void **state)
{
    (void)state;
    const char *const a = "== /proc/stat\ncpu  0 0 0 0\ncpu0 0 0 0 0\n";
    const char *const b = "== /proc/stat\ncpu  18446744073709551615 0 0 9\ncpu0 18446744073709551615 0 0 9\n";
    tick_on(a, strlen(a), b, strlen(b));
    assert_sensor(DR_SENSOR_CPU_TOTAL, 1, 1);
    tick_on(b, strlen(b), a, strlen(a)); /* and back: nothing went on */
    assert_sensor(DR_SENSOR_CPU_TOTAL, 0, 0);
}

/* One second, in which ticks found a CPU busy for 0.4 of it or 0.6, though it was idle for half of it. */
static void busy_is_what_was_not_idle(void **state)
{
    (void)state;
    const char *const a = "== /proc/stat\ncpu  0 0 0 0 0\ncpu0 0 0 0 0 0\ncpu1 0 0 0 0 0\n";
    const char *const b = "== /proc/stat\ncpu  100 0 0 80 20\ncpu0 40 0 0 40 10\ncpu1 60 0 0 40 10\n";
    dr__sampler s;
    dr_error err;
    tree_write(root, a, strlen(a));
    assert_ok(dr__sampler_open(&s, root, &err));
    dr__sampler_tick(&s, 1000000000u, &first);
    tree_write(root, b, strlen(b));
    dr__sampler_tick(&s, 2000000000u, &second);
    dr__sampler_close(&s);
    assert_near(second.cpu[0], 0.5);
    assert_near(second.cpu[1], 0.5);
    assert_sensor(DR_SENSOR_CPU_TOTAL, 1, 0.5);
    assert_sensor(DR_SENSOR_IO_WAIT, 0.2, 0.1);
}

static void cut_short_anywhere(void **state)
{
    (void)state;
    size_t size, size_b;
    char *a = tree_load("synthetic-half-core-v2/a.txt", &size), *b = tree_load("synthetic-half-core-v2/b.txt", &size_b);
    for (size_t n = 0; n < size_b; n += 7)
        tick_on(a, size, b, n);
    free(a);
    free(b);
}

static void random_bytes_changed(void **state)
{
    (void)state;
    size_t size, size_b;
    char *a = tree_load("recorded-2-cpus/a.txt", &size), *b = tree_load("recorded-2-cpus/b.txt", &size_b);
    uint64_t seed = 7;
    for (int round = 0; round < 500; round++) {
        for (int i = 0; i < 8; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            b[(seed >> 33) % size_b] = "0123456789 -\n:x"[(seed >> 20) % 15];
        }
        tick_on(a, size, b, size_b);
    }
    free(a);
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        T(server_with_128_cpus),
        T(server_devices),
        T(half_a_core_of_version_2),
        T(half_a_core_of_version_1),
        T(the_group_with_the_least_room_counts),
        T(who_runs_a_device_tells_of_it),
        T(machine_without_pressure_and_groups),
        T(recorded_machine),
        T(first_tick_has_no_rates),
        T(close_ticks_repeat),
        T(damaged_files_make_sensors_absent),
        T(counters_that_wrap_stay_shares),
        T(busy_is_what_was_not_idle),
        T(cut_short_anywhere),
        T(random_bytes_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
