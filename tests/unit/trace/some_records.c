/* some_records.c: random records. */
#include "unit/trace/some_records.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

dr_rng random_of(uint64_t seed)
{
    return dr__rng_open(&(dr__rng_name){ .seed = seed }, 0);
}

static uint64_t any_u64(dr_rng *rng)
{
    const uint64_t x = (uint64_t)dr__rng_u32(rng) << 32 | dr__rng_u32(rng);
    return x >> dr__rng_below(rng, 64); /* of any length */
}

double random_number(dr_rng *rng)
{
    switch (dr__rng_below(rng, 8)) {
    case 0:
        return 0;
    case 1:
        return -0.0;
    case 2:
        return (double)dr__rng_below(rng, 1000) - 500;
    case 3:
        return (double)any_u64(rng);
    case 4:
        return dr__rng_unit(rng) * 1e-300;
    case 5:
        return (double)INFINITY;
    case 6:
        return (double)NAN;
    default:
        return dr__rng_normal(rng) * 1e6;
    }
}

dr_snapshot random_snapshot(dr_rng *rng, uint64_t time_ns)
{
    dr_snapshot s = { .time_ns = time_ns, .number = any_u64(rng) };
    for (int i = 0; i < DR_N_SENSORS; i++) {
        if (dr__rng_below(rng, 4) == 0)
            continue;
        s.present |= (uint64_t)1 << i;
        s.modelled |= (uint64_t)dr__rng_below(rng, 2) << i;
        s.value[i] = dr__rng_unit(rng) * (double)any_u64(rng);
        s.level[i] = dr__rng_unit(rng);
    }
    s.n_cpus = (uint32_t)dr__rng_below(rng, DR_MAX_CPUS + 1);
    for (uint32_t i = 0; i < s.n_cpus; i++)
        s.cpu[i] = (float)dr__rng_unit(rng);
    return s;
}

static void random_text(dr_rng *rng, char *text, size_t room)
{
    const size_t n = dr__rng_below(rng, room);
    for (size_t i = 0; i < n; i++)
        text[i] = (char)(1 + dr__rng_below(rng, 255));
    text[n] = '\0';
}

dr_decision random_decision(dr_rng *rng, uint64_t time_ns)
{
    dr_decision d = { .time_ns = time_ns, .number = any_u64(rng) };
    d.bound = (int32_t)dr__rng_below(rng, DR_N_BOUNDS);
    d.changed = (uint32_t)dr__rng_below(rng, 1u << DR_N_KNOBS);
    for (int i = 0; i < DR_N_KNOBS; i++) {
        d.before[i] = random_number(rng);
        d.after[i] = random_number(rng);
    }
    for (int i = 0; i < DR_N_TERMS; i++) {
        d.term[i] = random_number(rng);
        d.weight[i] = random_number(rng);
    }
    d.reward = random_number(rng);
    d.guarded = dr__rng_below(rng, 2);
    random_text(rng, d.reason, sizeof d.reason);
    return d;
}

dr_span random_span(dr_rng *rng, uint64_t time_ns)
{
    dr_span s = { .end_ns = time_ns, .begin_ns = time_ns - dr__rng_below(rng, 1000000000) };
    s.kind = (int32_t)dr__rng_below(rng, DR_N_SPANS);
    s.thread = (int32_t)any_u64(rng);
    s.epoch = any_u64(rng);
    s.batch = any_u64(rng);
    s.slot = any_u64(rng);
    s.position = any_u64(rng);
    s.id = any_u64(rng);
    s.bytes = any_u64(rng);
    s.cpu_ns = any_u64(rng);
    s.cost = (float)dr__rng_unit(rng) * 1e6f;
    s.slow = dr__rng_below(rng, 2);
    random_text(rng, s.key, sizeof s.key);
    return s;
}

void assert_same_double(double got, double want)
{
    if (memcmp(&got, &want, sizeof got) && !(isnan(got) && isnan(want)))
        fail_msg("%.17g came back as %.17g", want, got);
}

void assert_snapshot(const dr_snapshot *got, const dr_snapshot *want)
{
    assert_true(got->time_ns == want->time_ns && got->number == want->number);
    assert_true(got->present == want->present && got->modelled == want->modelled);
    assert_int_equal(got->n_cpus, want->n_cpus);
    for (int i = 0; i < DR_N_SENSORS; i++) {
        assert_true(fabs(got->value[i] - want->value[i]) <= 1e-7 * want->value[i]);
        assert_true(fabs(got->level[i] - want->level[i]) <= 1e-5);
    }
    for (uint32_t i = 0; i < want->n_cpus; i++)
        assert_true(fabs((double)got->cpu[i] - (double)want->cpu[i]) <= 0.51 / 255);
}

void assert_decision(const dr_decision *got, const dr_decision *want)
{
    assert_true(got->time_ns == want->time_ns && got->number == want->number);
    assert_int_equal(got->bound, want->bound);
    assert_int_equal(got->changed, want->changed);
    assert_int_equal(got->guarded, want->guarded);
    for (int i = 0; i < DR_N_KNOBS; i++) {
        assert_same_double(got->before[i], want->before[i]);
        assert_same_double(got->after[i], want->after[i]);
    }
    for (int i = 0; i < DR_N_TERMS; i++) {
        assert_same_double(got->term[i], want->term[i]);
        assert_same_double(got->weight[i], want->weight[i]);
    }
    assert_same_double(got->reward, want->reward);
    assert_string_equal(got->reason, want->reason);
}

void assert_span(const dr_span *got, const dr_span *want)
{
    assert_true(got->begin_ns == want->begin_ns && got->end_ns == want->end_ns);
    assert_true(got->kind == want->kind && got->thread == want->thread && got->slow == want->slow);
    assert_true(got->epoch == want->epoch && got->batch == want->batch && got->slot == want->slot);
    assert_true(got->position == want->position && got->id == want->id && got->bytes == want->bytes);
    assert_true(got->cpu_ns == want->cpu_ns);
    assert_same_double((double)got->cost, (double)want->cost);
    assert_string_equal(got->key, want->key);
}

void make_path(char path[64])
{
    strcpy(path, "/tmp/drapps-test-XXXXXX");
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
}

void remove_file(const char *path)
{
    unlink(path);
}

size_t file_size(const char *path)
{
    struct stat s;
    assert_int_equal(stat(path, &s), 0);
    return (size_t)s.st_size;
}

uint8_t *read_whole(const char *path, size_t *size)
{
    *size = file_size(path);
    uint8_t *data = malloc(*size + 1);
    FILE *f = fopen(path, "rb");
    assert_true(data && f && fread(data, 1, *size, f) == *size);
    fclose(f);
    return data;
}

void write_whole(const char *path, const uint8_t *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_true(f && fwrite(data, 1, size, f) == size);
    assert_int_equal(fclose(f), 0);
}
