/* GPUs as fake_nvml.c says: what comes from the library goes into the snapshot unchanged. */
#include "unit/cm.h"

#include <math.h>

#include "monitor/sampler.h"

static dr_snapshot read_gpus(const char *visible)
{
    dr__sampler s;
    dr_error err;
    dr_snapshot out;
    if (visible)
        setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    else
        unsetenv("CUDA_VISIBLE_DEVICES");
    assert_ok(dr__sampler_open(&s, "", &err));
    dr__sampler_tick(&s, 1000000000u, &out);
    dr__sampler_close(&s);
    return out;
}

static void assert_value(const dr_snapshot *s, dr_sensor sensor, double value, double level)
{
    assert_true(dr__is_present(s, sensor));
    assert_true(fabs(s->value[sensor] - value) < 1e-9 && fabs(s->level[sensor] - level) < 1e-9);
}

static void all_gpus(void **state)
{
    (void)state;
    dr_snapshot s = read_gpus(NULL);
    assert_value(&s, DR_SENSOR_GPU_BUSY, 0.5, 0.5);
    assert_value(&s, DR_SENSOR_GPU_BANDWIDTH, 0.1, 0.1);
    assert_value(&s, DR_SENSOR_GPU_MEMORY, 600, 0.2);
    assert_value(&s, DR_SENSOR_GPU_POWER, 153, 153.0 / 600);
}

static void visible_gpus_only(void **state)
{
    (void)state;
    dr_snapshot s = read_gpus("0,2");
    assert_value(&s, DR_SENSOR_GPU_MEMORY, 400, 0.2);
    s = read_gpus("1");
    assert_value(&s, DR_SENSOR_GPU_BUSY, 0.5, 0.5);
    s = read_gpus("GPU-a"); /* names: all */
    assert_value(&s, DR_SENSOR_GPU_MEMORY, 600, 0.2);
    s = read_gpus("7");
    assert_false(dr__is_present(&s, DR_SENSOR_GPU_BUSY));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_gpus),
        cmocka_unit_test(visible_gpus_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
