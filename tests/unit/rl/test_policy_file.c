/* Policy files: what is written is read again, and nothing else is. */
#include "rl/rl_policy_file.h"

#include "unit/cm.h"

#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "unit/rl/toy_envs.h"

static dr_error err;

static dr__rl_policy *made(const dr__rl_spec *spec, int width)
{
    dr__rl_policy *p;
    const dr__rl_shape shape = { .hidden = { width, width }, .n_hidden = 2, .has_critic = true };
    assert_ok(dr__rl_policy_new(spec, &shape, &p, &err));
    dr__rl_policy_init(p, 3);
    p->mean[0] = 0.25f;
    p->scale[0] = 4;
    assert_ok(dr__rl_policy_set_facts(p, "{\"training\": {\"steps\": 7, \"seed\": 3}}", &err));
    return p;
}

static void files_come_back(void **state)
{
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "/tmp/drapps-policy-%d.rl", (int)getpid());
    const dr__rl_env_def *defs[] = { toy_reach(), toy_locks(), toy_ops(), toy_joint() };
    for (int i = 0; i < 8; i++) {
        const bool critic = i >= 4;
        dr__rl_policy *p = made(defs[i % 4]->spec, 16), *q;
        assert_ok(dr__rl_policy_save(p, critic, path, &err));
        assert_ok(dr__rl_policy_load(path, defs[i % 4]->spec, &q, &err));
        assert_ok(dr__rl_spec_same(&q->spec, &p->spec, "it", &err));
        assert_true(q->shape.has_critic == critic && q->n_params == (critic ? p->n_params : p->actor.n_params));
        assert_memory_equal(q->params, p->params, q->n_params * sizeof *q->params);
        assert_true(q->mean[0] == 0.25f && q->scale[0] == 4 &&
                    q->scale[q->heads.n_obs - 1] == p->scale[p->heads.n_obs - 1]);
        assert_non_null(strstr(q->facts, "\"steps\":7"));
        dr__rl_policy_free(&p);
        dr__rl_policy_free(&q);
    }
    dr__rl_policy *q;
    assert_fails(dr__rl_policy_load(path, toy_ops()->spec, &q, &err), DR_ERR_FORMAT, "must be for schema 'ops'");
    assert_null(q);
    remove(path);
    assert_fails(dr__rl_policy_load(path, NULL, &q, &err), DR_ERR_NOT_FOUND, path);
}

/* Decodes with the right checksum. */
static dr_status with_sum(uint8_t *data, size_t size, dr__rl_policy **out)
{
    const uint64_t sum = XXH3_64bits(data, size - 8);
    for (int i = 0; i < 8; i++)
        data[size - 8 + (size_t)i] = (uint8_t)(sum >> (8 * i));
    return dr__rl_policy_decode(data, size, "p.rl", out, &err);
}

static void damage_is_seen(void **state)
{
    (void)state;
    dr__rl_policy *p = made(toy_ops()->spec, 8), *q;
    uint8_t *data;
    size_t size;
    assert_ok(dr__rl_policy_encode(p, true, &data, &size, &err));
    for (size_t at = 0; at < size; at += 7) {
        data[at] ^= 4;
        assert_int_equal(dr__rl_policy_decode(data, size, "p.rl", &q, &err), DR_ERR_FORMAT);
        assert_non_null(strstr(err.text, "p.rl"));
        data[at] ^= 4;
    }
    for (size_t n = 0; n < size; n++)
        assert_int_equal(dr__rl_policy_decode(data, n, "p.rl", &q, &err), DR_ERR_FORMAT);
    data[0] = 'd';
    assert_fails(with_sum(data, size, &q), DR_ERR_FORMAT, "p.rl: not a policy file");
    data[0] = 'D';
    data[8] = 9;
    assert_fails(with_sum(data, size, &q), DR_ERR_FORMAT, "p.rl: has version 9, this build reads 1");
    data[8] = 1;
    data[20]++; /* parameters */
    assert_fails(with_sum(data, size, &q), DR_ERR_FORMAT, "parameters, its network");
    data[20]--;
    memset(data + size - 12, 0xff, 4);
    assert_fails(with_sum(data, size, &q), DR_ERR_FORMAT, "not finite");
    char *name = memmem(data, size, "\"tanh\"", 6);
    memcpy(name, "\"tenh\"", 6);
    assert_fails(with_sum(data, size, &q), DR_ERR_FORMAT, "activation must be 'tanh' or 'relu', got 'tenh'");
    memcpy(name, "\"tanh\"", 6);
    name = memmem(data, size, "\"options\":2", 11);
    name[10] = '1';
    assert_fails(with_sum(data, size, &q), DR_ERR_FORMAT, "p.rl: choice of an op 'place' must have between 2 and 32");
    dr__free(data);
    dr__rl_policy_free(&p);
}

static void files_are_small(void **state)
{
    (void)state;
    uint8_t *data;
    size_t size;
    dr__rl_policy *p = made(toy_locks()->spec, 256);
    assert_fails(dr__rl_policy_encode(p, true, &data, &size, &err), DR_ERR_LIMIT, "at most 262144 bytes");
    dr__rl_policy_free(&p);
    p = made(toy_locks()->spec, 64);
    assert_ok(dr__rl_policy_encode(p, true, &data, &size, &err));
    assert_true(size < 64 << 10);
    dr__free(data);
    assert_fails(dr__rl_policy_set_facts(p, "[1]", &err), DR_ERR_ARG, "must be a JSON object");
    dr__rl_policy_free(&p);
}

static void short_memory_is_survived(void **state)
{
    (void)state;
    dr__rl_policy *p = made(toy_ops()->spec, 8), *q = NULL;
    uint8_t *data;
    size_t size;
    assert_ok(dr__rl_policy_encode(p, true, &data, &size, &err));
    for (long n = 1;; n++) {
        dr__alloc_fail_at(n, false);
        const dr_status status = dr__rl_policy_decode(data, size, "p.rl", &q, &err);
        const bool is_done = dr__alloc_fail_at(0, false) < n;
        dr__rl_policy_free(&q);
        if (is_done) {
            assert_int_equal(status, DR_OK);
            break;
        }
        assert_int_equal(status, DR_ERR_NOMEM);
    }
    dr__free(data);
    dr__rl_policy_free(&p);
}

static void acting_allocates_nothing(void **state)
{
    (void)state;
    enum { N = 20000 };
    static dr__rl_spec spec = {
        .name = "large", .version = 1, .n_inputs = 68, .n_choices = 8, .choices = { { "c", 5 } }
    };
    for (int i = 0; i < 68; i++)
        snprintf(spec.inputs[i], DR__RL_NAME, "x%d", i);
    for (int i = 1; i < 8; i++)
        spec.choices[i] = spec.choices[0];
    float obs[68] = { 0.5f }, action[8];
    uint8_t mask[40];
    memset(mask, 1, sizeof mask);
    dr__rl_policy *p = made(&spec, 64);
    dr__alloc_fail_at(0, false);
    const uint64_t start = dr__thread_cpu_ns();
    for (int i = 0; i < N; i++)
        dr__rl_policy_act(p, obs, mask, NULL, action);
    print_message("68 inputs, two layers of 64, 8 choices of 5: %.2f us a decision\n",
                  (double)(dr__thread_cpu_ns() - start) * 1e-3 / N);
    assert_int_equal(dr__alloc_fail_at(0, false), 0);
    dr__rl_policy_free(&p);
}

static void policies_lean(void **state)
{
    (void)state;
    float obs[9] = { 0.3f, -0.4f }, action[4];
    const uint8_t mask[9] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    dr__rl_policy *p = made(toy_locks()->spec, 16);
    for (int option = 0; option < 4; option++) {
        dr__rl_policy_lean(p, 1, option, 5.0f * (float)(option + 1));
        dr__rl_policy_act(p, obs, mask, NULL, action);
        assert_true(action[1] == (float)option);
    }
    dr__rl_policy_free(&p);
    p = made(toy_ops()->spec, 16);
    for (int option = 0; option < 2; option++) {
        dr__rl_policy_lean(p, 2, option, 5.0f * (float)(option + 1));
        dr__rl_policy_act(p, obs, mask, NULL, action);
        for (int op = 0; op < 4; op++)
            assert_true(action[op] == (float)option);
    }
    dr__rl_policy_free(&p);
}

/* Inputs for the fuzzer: DRAPPS_POLICY_SEEDS names a folder for them. */
static void seeds_are_written(void **state)
{
    (void)state;
    const char *folder = getenv("DRAPPS_POLICY_SEEDS");
    const dr__rl_env_def *defs[] = { toy_reach(), toy_locks(), toy_ops(), toy_joint() };
    char path[4096];
    for (int i = 0; folder && i < 4; i++) {
        dr__rl_policy *p = made(defs[i]->spec, 2 + i);
        snprintf(path, sizeof path, "%s/%s", folder, defs[i]->name);
        assert_ok(dr__rl_policy_save(p, i % 2, path, &err));
        dr__rl_policy_free(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_come_back),
        cmocka_unit_test(damage_is_seen),
        cmocka_unit_test(files_are_small),
        cmocka_unit_test(short_memory_is_survived),
        cmocka_unit_test(acting_allocates_nothing),
        cmocka_unit_test(seeds_are_written),
        cmocka_unit_test(policies_lean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
