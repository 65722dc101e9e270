/* sim_presets.c: machines, workloads and models, a row each.
 *
 * Figures of storage and accelerators are round numbers of data sheets and public benchmarks; those of workloads are
 * for one CPU of a current server.  A profile of `drapps scheduler calibrate` replaces them by measured ones.
 */
#include "sim/sim_presets.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"

const dr__sim_preset dr__sim_machines[] = {
    { "laptop", "2 CPUs, SSD, no accelerator to speak of",
      "cpus=2,cpu_speed=0.9,crowd=0.3,memory=8e9,memory_bw=15e9,page_cache=2e9,read_latency=1.5e-4,read_depth=8,"
      "read_bw=5e8,accel_speed=0.06,idle_power=3,full_power=20" },
    { "a100x8", "8 A100, 128 CPUs, NVMe",
      "cpus=128,cpu_speed=1.2,crowd=0.5,memory=1e12,memory_bw=350e9,page_cache=5e11,read_latency=1e-4,read_depth=256,"
      "read_bw=12e9,accels=8,accel_speed=2.5,idle_power=120,full_power=560" },
    { "rtx3090x4", "4 RTX 3090, 32 CPUs, SATA SSD",
      "cpus=32,cpu_speed=1.1,crowd=0.5,memory=128e9,memory_bw=80e9,page_cache=60e9,read_latency=2e-4,read_depth=32,"
      "read_bw=5.2e8,accels=4,accel_speed=1.3,idle_power=40,full_power=250" },
    { "rtx3060", "1 RTX 3060, 8 CPUs, hard disk",
      "cpus=8,cpu_speed=1,crowd=0.3,memory=32e9,memory_bw=40e9,page_cache=16e9,read_latency=9e-3,read_depth=1.5,"
      "read_bw=1.6e8,accel_speed=0.6,idle_power=15,full_power=95" },
    { "v100x16", "16 V100 on 4 nodes, which share storage behind a link of 25 Gbit/s; one node",
      "cpus=48,cpu_speed=0.9,crowd=0.5,memory=384e9,memory_bw=200e9,page_cache=2e11,read_latency=3e-4,read_depth=512,"
      "read_bw=2e10,link_bw=3.1e9,rtt=2e-4,remote_cpus=32,nodes=4,accels=4,accel_speed=1,idle_power=80,"
      "full_power=400" },
    { "vm2", "2 CPUs of a shared virtual machine, network disk",
      "cpus=2,cpu_speed=1,crowd=0.3,memory=8e9,memory_bw=15e9,page_cache=3e9,read_latency=1e-3,read_depth=16,"
      "read_bw=1.5e8,accel_speed=0.05,idle_power=3,full_power=15" },
    { "any", "drawn by the seed: 1 to 128 CPUs, storage from hard disk to NVMe, links of 10 Mbit/s to 100 Gbit/s", "" },
    { NULL },
};

const dr__sim_preset dr__sim_workloads[] = {
    { "image", "photos of 110 kB, decoded, cropped to 224 x 224 and flipped", "" },
    { "text", "documents of 4 kB, decoded to tokens of 2048",
      "samples=1e7,sample_bytes=4000,cpu=2.5e-4,cpu_cv=0.9,batch=32,out_bytes=16384,moved_bytes=60e3,prefix=0.9,"
      "prefix_bytes=8192,step_each=9e-3" },
    { "detection", "photos of 800 x 600 with boxes, mosaics among them: one sample in twenty is much slower",
      "samples=118e3,sample_bytes=160e3,cpu=0.022,cpu_cv=0.7,slow_share=0.05,slow_factor=6,batch=16,out_bytes=4.9e6,"
      "moved_bytes=3e7,prefix=0.45,prefix_bytes=1.4e6,step_each=0.03" },
    { "volumes", "compressed volumes of 60 MB, cropped to 128 x 128 x 128; few, large and uneven",
      "samples=168,sample_bytes=6e7,cpu=0.55,cpu_cv=1.2,batch=2,out_bytes=8.4e6,moved_bytes=6e8,prefix=0.8,"
      "prefix_bytes=1.4e8,step_each=0.18,cached_read=0.012" },
    { NULL },
};

const dr__sim_preset dr__sim_models[] = {
    { "workload", "the workload's own: a network of the usual size for it", "" },
    { "resnet18", "ResNet-18 at 224 x 224, mixed precision", "step_each=7e-4" },
    { "resnet50", "ResNet-50 at 224 x 224, mixed precision", "step_each=1.3e-3" },
    { "vit_b", "ViT-B/16 at 224 x 224, mixed precision", "step_each=3.3e-3" },
    { "bert_base", "BERT base, 512 tokens", "step_each=9e-3" },
    { "retinanet", "RetinaNet at 800 x 600", "step_each=0.03" },
    { "unet3d", "3D U-Net, 128 x 128 x 128", "step_each=0.18" },
    { "fast", "a network that is always faster than the loader", "step_each=1e-6,train_cpu=0" },
    { NULL },
};

const dr__sim_draw dr__sim_any_machine[] = {
    { "cpus", 1, 128, 1, NULL },
    { "crowd", 0, 0.6, 0, NULL },
    { "cpu_speed", 0.4, 2, 1, NULL },
    { "memory", 2e9, 8e9, 0, "cpus" },
    { "memory_bw", 3e9, 12e9, 1, "cpus" },
    { "page_cache", 0.1, 0.5, 0, "memory" },
    { "read_latency", 5e-5, 1e-2, 1, NULL },
    { "read_depth", 1.5, 256, 1, NULL },
    { "read_bw", 1e8, 1e10, 1, NULL },
    { "link_bw", 1.25e6, 1.25e10, 1, NULL },
    { "rtt", 1e-4, 3e-2, 1, NULL },
    { "full_power", 3, 8, 0, "cpus" },
    { "idle_power", 0.1, 0.4, 0, "full_power" },
    { NULL },
};

static dr_status no_such(const char *kind, const char *name, const char *all, dr_error *err)
{
    return dr__fail(err, DR_ERR_ARG, "simulator: %s must be one of %s, got \"%.40s\"", kind, all, name);
}

static void add_name(char *all, size_t cap, const char *name)
{
    const size_t used = strlen(all);
    snprintf(all + used, cap - used, "%s%s", used ? ", " : "", name);
}

dr_status dr__sim_preset_find(const dr__sim_preset *rows, const char *kind, const char *name,
                              const dr__sim_preset **out, dr_error *err)
{
    char all[300] = "";
    *out = rows;
    if (!name || !*name)
        return DR_OK;
    for (; (*out)->name; ++*out) {
        if (!strcmp((*out)->name, name))
            return DR_OK;
        add_name(all, sizeof all, (*out)->name);
    }
    return no_such(kind, name, all, err);
}

dr_status dr__sim_scenario_find(const char *name, const dr__sim_scenario **out, dr_error *err)
{
    char all[300] = "";
    *out = dr__sim_scenarios;
    if (!name || !*name)
        return DR_OK;
    for (; (*out)->name; ++*out) {
        if (!strcmp((*out)->name, name))
            return DR_OK;
        add_name(all, sizeof all, (*out)->name);
    }
    return no_such("scenario", name, all, err);
}
