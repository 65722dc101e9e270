/* fuzz_policy.c: any bytes as a policy file, with a right checksum too; what is read is written again, and acts. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "rl/rl_policy_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void act(dr__rl_policy *p)
{
    static float obs[DR__RL_OBS], action[DR__RL_ACTION];
    static uint8_t mask[DR__RL_MASK];
    for (int i = 0; i < DR__RL_MASK; i++)
        mask[i] = i % 3 != 0;
    dr__rl_policy_act(p, obs, mask, NULL, action);
    for (int k = 0; k < p->heads.n_categoricals; k++)
        if (!(action[k] >= 0 && action[k] < (float)p->heads.cat[k].n))
            abort();
}

static void read_file(const uint8_t *data, size_t size)
{
    dr__rl_policy *p, *again;
    dr_error err = { 0 };
    uint8_t *bytes;
    size_t n;
    if (dr__rl_policy_decode(data, size, "fuzz", &p, &err) != DR_OK)
        return;
    act(p);
    const dr_status status = dr__rl_policy_encode(p, true, &bytes, &n, &err);
    if (status == DR_OK) {
        if (dr__rl_policy_decode(bytes, n, "fuzz", &again, &err) != DR_OK || again->n_params != p->n_params ||
            memcmp(again->params, p->params, p->n_params * sizeof *p->params) != 0)
            abort();
        dr__rl_policy_free(&again);
        dr__free(bytes);
    } else if (status != DR_ERR_LIMIT) { /* numbers as JSON may become longer */
        abort();
    }
    dr__rl_policy_free(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_file(data, size);
    uint8_t *copy = size >= 8 ? malloc(size) : NULL;
    if (copy) {
        memcpy(copy, data, size);
        const uint64_t sum = XXH3_64bits(copy, size - 8);
        for (int i = 0; i < 8; i++)
            copy[size - 8 + (size_t)i] = (uint8_t)(sum >> (8 * i));
        read_file(copy, size);
        free(copy);
    }
    return 0;
}
