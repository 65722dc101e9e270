/* fake_nvml.c: stands in for NVIDIA's management library: three GPUs with fixed values. */
struct use {
    unsigned gpu, memory;
};
struct memory {
    unsigned long long total, free, used;
};

static int gpus[3];

static unsigned number(const void *device)
{
    return (unsigned)((const int *)device - gpus);
}

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *n);
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **device);
int nvmlDeviceGetUtilizationRates(void *device, struct use *out);
int nvmlDeviceGetMemoryInfo(void *device, struct memory *out);
int nvmlDeviceGetPowerUsage(void *device, unsigned *mw);
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *mw);

int nvmlInit_v2(void)
{
    return 0;
}

int nvmlShutdown(void)
{
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned *n)
{
    *n = 3;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **device)
{
    *device = &gpus[i];
    return 0;
}

int nvmlDeviceGetUtilizationRates(void *device, struct use *out)
{
    *out = (struct use){ 20 + 30 * number(device), 10 * number(device) };
    return 0;
}

int nvmlDeviceGetMemoryInfo(void *device, struct memory *out)
{
    *out = (struct memory){ 1000, 1000 - 100 * (number(device) + 1), 100 * (number(device) + 1) };
    return 0;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *mw)
{
    *mw = 50000 + 1000 * number(device);
    return 0;
}

int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *mw)
{
    (void)device;
    *mw = 200000;
    return 0;
}
