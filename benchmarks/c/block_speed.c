/* block_speed.c: what the size of blocks does to a chain of codecs: ratio and speed of one thread, by size.
 *
 *     blocks SPEC DTYPE FILE [SECONDS]
 *     blocks shuffle+lz4 float32 normalized.npy 0.5
 *
 * The bytes of the file are taken as elements of the type (the head of an .npy file, too, which is small).  Blocks of
 * 32 KiB to 32 MiB are encoded and decoded by the stages that drapps uses, in rounds over all sizes; each decoded block
 * is compared with the original.  Times are CPU times of the thread, the least of the rounds:
 *
 *   encode, decode   the chain alone
 *   hash hot         the checksum (XXH3) of each block right after it was decoded, as frames have it
 *   hash cold        the same after all blocks were decoded
 *
 * Prints a line of JSON for each size.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "codec/chain/codec_chain.h"
#include "codec/chain/scratch.h"

enum { LEAST_LOG = 15, MOST_LOG = 25, N_SIZES = MOST_LOG - LEAST_LOG + 1 };

typedef struct result {
    size_t encoded;
    uint64_t encode_ns, decode_ns, hot_ns, cold_ns; /* least so far */
} result;

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "blocks: %s: %s\n", what, why);
    exit(1);
}

static uint8_t *load(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END))
        fail(path, "cannot be read");
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t *data = malloc(*size + 1);
    if (!data || fread(data, 1, *size, file) != *size)
        fail(path, "cannot be read");
    fclose(file);
    return data;
}

static void keep_least(uint64_t *least, uint64_t begun_ns)
{
    const uint64_t ns = dr__thread_cpu_ns() - begun_ns;
    *least = *least ? DR_MIN(*least, ns) : ns;
}

/* One round of one size.  `hashed`: whether blocks are hashed while they are decoded. */
static void decode(const dr__chain_plan *plan, const dr__block *blocks, size_t n, const uint8_t *encoded, size_t step,
                   uint8_t *back, size_t block, bool hashed, uint64_t *sum, dr_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (dr__chain_decode(plan, &blocks[i], encoded + i * step, back + i * block, err) != DR_OK)
            fail("decode", err->text);
        if (hashed)
            *sum ^= XXH3_64bits(back + i * block, blocks[i].sizes[0]);
    }
}

static void measure(const dr__chain_plan *plan, unsigned log, const uint8_t *data, size_t size, result *r)
{
    const size_t elem = plan->in[0].size, block = (size_t)1 << log, n = (size + block - 1) / block;
    const size_t step = dr__chain_bound(plan, block / elem);
    uint8_t *encoded = malloc(n * step), *back = calloc(1, size);
    dr__block *blocks = calloc(n, sizeof *blocks);
    dr__stage_note note;
    dr_error err = { 0 };
    uint64_t sum = 0;
    if (!encoded || !back || !blocks)
        fail("memory", "there is not enough");
    memset(encoded, 0, n * step); /* pages that are there count for nothing */
    uint64_t begun = dr__thread_cpu_ns();
    r->encoded = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t bytes = DR_MIN(block, size - i * block);
        if (dr__chain_encode(plan, data + i * block, bytes / elem, i * block / elem, encoded + i * step, step,
                             &blocks[i], &note, &err) != DR_OK)
            fail("encode", err.text);
        r->encoded += blocks[i].sizes[blocks[i].n_stages];
    }
    keep_least(&r->encode_ns, begun);
    decode(plan, blocks, n, encoded, step, back, block, false, &sum, &err);
    if (memcmp(back, data, size) != 0)
        fail("decode", "gave something else than the original");
    begun = dr__thread_cpu_ns();
    decode(plan, blocks, n, encoded, step, back, block, false, &sum, &err);
    keep_least(&r->decode_ns, begun);
    begun = dr__thread_cpu_ns();
    decode(plan, blocks, n, encoded, step, back, block, true, &sum, &err);
    keep_least(&r->hot_ns, begun);
    begun = dr__thread_cpu_ns();
    decode(plan, blocks, n, encoded, step, back, block, false, &sum, &err);
    for (size_t i = 0; i < n; i++)
        sum ^= XXH3_64bits(back + i * block, blocks[i].sizes[0]);
    keep_least(&r->cold_ns, begun);
    if (sum != 0) /* hashed twice */
        fail("hash", "differs");
    dr__scratch_done();
    free(encoded);
    free(back);
    free(blocks);
}

static bool find_type(const char *name, dr_dtype *out)
{
#define TYPE(name, value, bytes, text) DR_##name,
    static const dr_dtype types[] = { DR_DTYPE_MAP(TYPE) };
#undef TYPE
    for (size_t i = 0; i < DR_COUNT(types); i++)
        if (!strcmp(dr_dtype_name(types[i]), name)) {
            *out = types[i];
            return true;
        }
    return false;
}

int main(int argc, char **argv)
{
    static result results[N_SIZES];
    dr__chain chain = { 0 };
    dr__chain_plan plan;
    dr_dtype dtype;
    dr_error err = { 0 };
    size_t size;
    if (argc < 4) {
        fprintf(stderr, "usage: blocks SPEC DTYPE FILE [SECONDS]\n");
        return 2;
    }
    if (dr__chain_parse(argv[1], &chain, &err) != DR_OK)
        fail(argv[1], err.text);
    if (!find_type(argv[2], &dtype) || dr__chain_plan_for(&chain, dtype, &plan, &err) != DR_OK)
        fail(argv[2], err.text[0] ? err.text : "no type of elements");
    if (chain.n_lossy)
        fail(argv[1], "is lossy");
    const uint8_t *data = load(argv[3], &size);
    size -= size % plan.in[0].size;
    const uint64_t end = dr__now_ns() + (uint64_t)((argc > 4 ? atof(argv[4]) : 1) * 1e9 * N_SIZES);
    do
        for (unsigned i = 0; i < N_SIZES; i++)
            measure(&plan, LEAST_LOG + i, data, size, &results[i]);
    while (dr__now_ns() < end);
    for (unsigned i = 0; i < N_SIZES; i++) {
        const result *r = &results[i];
        const double mb = (double)size * 1e3;
        printf("{\"spec\": \"%s\", \"block\": %u, \"ratio\": %.4f, \"encode_mb_s\": %.0f, \"decode_mb_s\": %.0f, "
               "\"hash_hot_mb_s\": %.0f, \"hash_cold_mb_s\": %.0f}\n",
               argv[1], 1u << (LEAST_LOG + i), (double)size / (double)r->encoded, mb / (double)r->encode_ns,
               mb / (double)r->decode_ns, mb / (double)r->hot_ns, mb / (double)r->cold_ns);
    }
    free((void *)data);
    return 0;
}
