/* codec_chain.h: the stages of a codec, and what they do with one block.
 *
 * A block is a part of an array that passes through the chain on its own, small enough to stay in the cache between two
 * stages.  Stages at its end that do not make it smaller are left out.
 */
#ifndef DR_CODEC_CODEC_CHAIN_H
#define DR_CODEC_CODEC_CHAIN_H

#include <drapps/codec.h>

#include "base/error.h"
#include "codec/array/array_stage.h"
#include "codec/bytes/byte_codec.h"
#include "codec/chain/codec_dict.h"

enum { DR__MAX_STAGES = DR_CODEC_MAX_STAGES };

typedef struct dr__chain_stage {
    const dr__array_stage *array; /* or */
    const dr_byte_codec *bytes;   /* which ends the chain */
    int param;                    /* the level */
} dr__chain_stage;

typedef struct dr__chain {
    dr__chain_stage stages[DR__MAX_STAGES];
    unsigned n;
    unsigned n_lossy;                          /* stages up to the last lossy one: never left out */
    const dr__zstd_encoder_dict *encoder_dict; /* of the zstd stage, borrowed; NULL: none */
    const dr_codec_dict *decoder_dict;
} dr__chain;

/* A chain over elements of one type: what each stage gets. */
typedef struct dr__chain_plan {
    const dr__chain *chain;
    dr__elem in[DR__MAX_STAGES];
} dr__chain_plan;

/* A block of encoded data. */
typedef struct dr__block {
    unsigned n_stages;                /* applied, the first ones of the chain */
    size_t sizes[DR__MAX_STAGES + 1]; /* in bytes: raw, after the first stage, ... */
} dr__block;

dr_status dr__chain_parse(const char *spec, dr__chain *out, dr_error *err);

/* The canonical spec into a text of DR_CODEC_SPEC_TEXT bytes. */
void dr__chain_text(const dr__chain *chain, char *text);

/* Adds the stage with a wire id, as a frame has it. */
dr_status dr__chain_add(dr__chain *chain, unsigned wire_id, int param, dr_error *err);

uint8_t dr__chain_stage_id(const dr__chain_stage *stage);

/* Fails where a stage does not take what comes to it. */
dr_status dr__chain_plan_for(const dr__chain *chain, dr_dtype dtype, dr__chain_plan *out, dr_error *err);

/* The size of blocks that suits the chain, as a power of 2. */
unsigned dr__chain_block_log(const dr__chain *chain);

/* Most bytes that n elements become at any stage. */
size_t dr__chain_bound(const dr__chain_plan *plan, size_t n);

/* Encodes n > 0 elements into `out`; the encoded bytes are the last of out->sizes.  `cap` is dr__chain_bound at least.
 * DR_ERR_ARG: a lossy stage refuses an element; `first` is the number of the block's first element, for the text. */
dr_status dr__chain_encode(const dr__chain_plan *plan, const uint8_t *data, size_t n, uint64_t first, uint8_t *out,
                           size_t cap, dr__block *block, dr__stage_note *note, dr_error *err);

/* Whether encoded sizes are possible: `block` has the raw size, the number of stages and the sizes after stages that
 * are not fixed; the others are filled in, the last one must be as given. */
bool dr__chain_check(const dr__chain_plan *plan, dr__block *block);

/* Decodes a block that dr__chain_check accepts. */
dr_status dr__chain_decode(const dr__chain_plan *plan, const dr__block *block, const uint8_t *data, uint8_t *out,
                           dr_error *err);

#endif
