/* fuzz_proc.c: any bytes as the files of /proc and /sys that the monitor reads, in the form of proc_tree.h. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "monitor/sampler.h"
#include "unit/monitor/proc_tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const dr_snapshot *s)
{
    for (int i = 0; i < DR_N_SENSORS; i++)
        assert(s->value[i] >= 0 && s->level[i] >= 0 && s->level[i] <= 1);
    for (uint32_t i = 0; i < s->n_cpus; i++)
        assert(s->cpu[i] >= 0 && s->cpu[i] <= 1);
}

/* The first half is the machine at first, all of it a moment later. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char root[64];
    dr__sampler s;
    dr_snapshot out;
    dr_error err;
    tree_new(root);
    tree_write(root, (const char *)data, size / 2);
    if (dr__sampler_open(&s, root, &err) == DR_OK)
        for (uint64_t i = 1; i < 4; i++) {
            dr__sampler_tick(&s, i * 1000000000u, &out);
            check(&out);
            tree_write(root, (const char *)data, size);
        }
    dr__sampler_close(&s);
    tree_remove(root);
    return 0;
}
