/* chain_block.c: one block through the stages of a chain and back. */
#include <assert.h>
#include <string.h>

#include "base/compiler.h"
#include "codec/chain/codec_chain.h"
#include "codec/chain/scratch.h"

/* A stage pays where it saves one byte in 64: less than that is not worth the time of decoding. */
enum { PAYS = 64 };

/* The most bytes that a stage makes of `bytes`. */
static size_t stage_bound(const dr__chain_plan *plan, unsigned i, size_t bytes)
{
    const dr__chain_stage *s = &plan->chain->stages[i];
    if (s->array)
        return s->array->bound(bytes / plan->in[i].size, plan->in[i]);
    const size_t n = s->bytes->bound(bytes);
    return DR_MAX(n, bytes);
}

size_t dr__chain_bound(const dr__chain_plan *plan, size_t n)
{
    size_t bytes = n * plan->in[0].size, most = bytes;
    for (unsigned i = 0; i < plan->chain->n; i++) {
        bytes = stage_bound(plan, i, bytes);
        most = DR_MAX(most, bytes);
    }
    return most;
}

static size_t encode_bytes(const dr__chain *chain, const dr__chain_stage *s, const uint8_t *data, size_t size,
                           uint8_t *out, size_t cap)
{
    if (s->bytes->wire_id == DR__BYTES_ZSTD && chain->encoder_dict)
        return dr__zstd_dict_encode(chain->encoder_dict, data, size, out, cap);
    return s->bytes->encode_at ? s->bytes->encode_at(data, size, out, cap, s->param)
                               : s->bytes->encode(data, size, out, cap);
}

/* Puts data through the first `n` stages, or as many as take it; the last result is in `out` if it fits there surely,
 * else in scratch memory.  Returns where it is, NULL when memory is short. */
static const uint8_t *run(const dr__chain_plan *plan, const uint8_t *data, unsigned n, uint8_t *out, size_t cap,
                          dr__block *block, dr__stage_note *note)
{
    const uint8_t *at = data;
    for (block->n_stages = 0; block->n_stages < n; block->n_stages++) {
        const unsigned i = block->n_stages;
        const dr__chain_stage *s = &plan->chain->stages[i];
        const size_t bytes = block->sizes[i], bound = stage_bound(plan, i, bytes);
        const bool direct = i + 1 == n && cap >= bound;
        uint8_t *to = direct ? out : dr__scratch(i % 2 ? DR__SCRATCH_ODD : DR__SCRATCH_EVEN, bound);
        if (!to)
            return NULL;
        const size_t size = s->array ? s->array->encode(at, bytes / plan->in[i].size, plan->in[i], to, note)
                                     : encode_bytes(plan->chain, s, at, bytes, to, bound);
        if (!size)
            break;
        block->sizes[i + 1] = size;
        at = to;
    }
    return at;
}

/* How many stages pay. */
static unsigned worth(const dr__chain *chain, const dr__block *block)
{
    unsigned best = chain->n_lossy;
    for (unsigned i = best + 1; i <= block->n_stages; i++)
        if (block->sizes[i] < block->sizes[best] - block->sizes[best] / PAYS)
            best = i;
    return best;
}

static dr_status refused(const dr__chain_plan *plan, unsigned i, const uint8_t *data, uint64_t first, size_t bad,
                         dr_error *err)
{
    const dr__array_stage *s = plan->chain->stages[i].array;
    double value = 0;
    float f;
    if (plan->in[0].size == 8)
        memcpy(&value, data + bad * 8, 8);
    else if (plan->in[0].size == 4) {
        memcpy(&f, data + bad * 4, 4);
        value = f;
    }
    return dr__fail(err, DR_ERR_ARG, "codec stage %s: element %llu is %g, which %s", s->name,
                    (unsigned long long)(first + bad), value, s->reason);
}

dr_status dr__chain_encode(const dr__chain_plan *plan, const uint8_t *data, size_t n, uint64_t first, uint8_t *out,
                           size_t cap, dr__block *block, dr__stage_note *note, dr_error *err)
{
    const dr__chain *chain = plan->chain;
    *block = (dr__block){ .sizes = { n * plan->in[0].size } };
    const uint8_t *at = run(plan, data, chain->n, out, cap, block, note);
    if (at && block->n_stages < chain->n_lossy)
        return refused(plan, block->n_stages, data, first, note->bad, err);
    const unsigned keep = at ? worth(chain, block) : 0;
    if (at && keep < block->n_stages) /* the result of an earlier stage: that is rare enough to make it again */
        at = run(plan, data, keep, out, cap, block, note);
    if (!at)
        return dr__fail(err, DR_ERR_NOMEM, "codec: no memory for a block of %zu bytes", block->sizes[0]);
    const size_t size = block->sizes[keep];
    assert(size <= cap);
    if (at != out)
        memcpy(out, at, size);
    return DR_OK;
}

static uint32_t ratio_of(const dr__chain_stage *s)
{
    return s->array ? s->array->ratio : dr__byte_codec_ratio(s->bytes->wire_id);
}

bool dr__chain_check(const dr__chain_plan *plan, dr__block *block)
{
    if (block->n_stages < plan->chain->n_lossy || block->n_stages > plan->chain->n)
        return false;
    for (unsigned i = 0; i < block->n_stages; i++) {
        const dr__chain_stage *s = &plan->chain->stages[i];
        const size_t bytes = block->sizes[i], bound = stage_bound(plan, i, bytes);
        const bool fixed = s->array && s->array->fixed;
        if (fixed && i + 1 < block->n_stages)
            block->sizes[i + 1] = bound;
        const size_t size = block->sizes[i + 1];
        if (size == 0 || size > bound || (fixed && size != bound) || bytes / ratio_of(s) > size)
            return false;
    }
    return true;
}

static bool decode_bytes(const dr__chain *chain, const dr__chain_stage *s, const uint8_t *data, size_t size,
                         uint8_t *out, size_t out_size)
{
    if (s->bytes->wire_id == DR__BYTES_ZSTD && chain->decoder_dict)
        return dr__zstd_dict_decode(chain->decoder_dict, data, size, out, out_size);
    return s->bytes->decode(data, size, out, out_size);
}

dr_status dr__chain_decode(const dr__chain_plan *plan, const dr__block *block, const uint8_t *data, uint8_t *out,
                           dr_error *err)
{
    const uint8_t *at = data;
    if (!block->n_stages)
        memcpy(out, data, block->sizes[0]);
    for (unsigned i = block->n_stages; i-- > 0;) {
        const dr__chain_stage *s = &plan->chain->stages[i];
        const size_t size = block->sizes[i + 1], bytes = block->sizes[i];
        uint8_t *to = i ? dr__scratch(i % 2 ? DR__SCRATCH_ODD : DR__SCRATCH_EVEN, bytes) : out;
        if (!to)
            return dr__fail(err, DR_ERR_NOMEM, "codec: no memory for a block of %zu bytes", bytes);
        const bool good = s->array ? s->array->decode(at, size, to, bytes / plan->in[i].size, plan->in[i])
                                   : decode_bytes(plan->chain, s, at, size, to, bytes);
        if (!good)
            return dr__fail(err, DR_ERR_FORMAT, "frame: a block is damaged (%s)",
                            s->array ? s->array->name : s->bytes->name);
        at = to;
    }
    return DR_OK;
}
