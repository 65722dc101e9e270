/* codec_chain.c: chains from specs and from wire ids, and what they do to sizes and element types. */
#include "codec/chain/codec_chain.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"

enum { FAST_BLOCK_LOG = 18, ZSTD_BLOCK_LOG = 20, BYTES_BLOCK_LOG = 25 };

/* Names of stages that a build may lack. */
static const char *const optional[] = { "lz4", "lz4hc", "zstd", "snappy" };

static const char *name_of(const dr__chain_stage *stage)
{
    return stage->array ? stage->array->name : stage->bytes->name;
}

static dr__chain_stage find(const char *name, size_t len)
{
    for (const dr__array_stage *const *s = dr__array_stages; *s; s++)
        if (strlen((*s)->name) == len && !memcmp((*s)->name, name, len))
            return (dr__chain_stage){ .array = *s };
    for (const dr_byte_codec *const *c = dr__byte_codecs; *c; c++)
        if (strlen((*c)->name) == len && !memcmp((*c)->name, name, len))
            return (dr__chain_stage){ .bytes = *c, .param = (*c)->default_level };
    return (dr__chain_stage){ 0 };
}

static dr_status no_stage(const char *spec, const char *name, size_t len, dr_error *err)
{
    for (size_t i = 0; i < DR_COUNT(optional); i++)
        if (strlen(optional[i]) == len && !memcmp(optional[i], name, len))
            return dr__fail(err, DR_ERR_UNSUPPORTED, "codec \"%s\": this build has no %s", spec, optional[i]);
    char names[512] = "";
    size_t n = 0;
    for (const dr__array_stage *const *s = dr__array_stages; *s; s++)
        n += (size_t)snprintf(names + n, sizeof names - n, " %s", (*s)->name);
    for (const dr_byte_codec *const *c = dr__byte_codecs; *c; c++)
        n += (size_t)snprintf(names + n, sizeof names - n, " %s", (*c)->name);
    return dr__fail(err, DR_ERR_ARG, "codec \"%s\": no stage \"%.*s\"; stages:%s", spec, (int)DR_MIN(len, 40u), name,
                    names);
}

static dr_status push(dr__chain *chain, dr__chain_stage stage, const char *spec, dr_error *err)
{
    if (chain->n == DR__MAX_STAGES)
        return dr__fail(err, DR_ERR_ARG, "codec \"%s\": must have at most %d stages", spec, DR__MAX_STAGES);
    if (chain->n && chain->stages[chain->n - 1].bytes)
        return dr__fail(err, DR_ERR_ARG, "codec \"%s\": %s must be the last stage", spec,
                        chain->stages[chain->n - 1].bytes->name);
    chain->stages[chain->n++] = stage;
    if (stage.array && stage.array->kind == DR__STAGE_LOSSY)
        chain->n_lossy = chain->n;
    return DR_OK;
}

/* One stage of a spec: "zstd:3". */
static dr_status parse_stage(const char *spec, const char *text, size_t len, dr__chain *chain, dr_error *err)
{
    const char *colon = memchr(text, ':', len);
    const size_t name = colon ? (size_t)(colon - text) : len;
    dr__chain_stage stage = find(text, name);
    if (!stage.array && !stage.bytes)
        return no_stage(spec, text, name, err);
    if (!colon)
        return push(chain, stage, spec, err);
    const dr_byte_codec *bytes = stage.bytes;
    int64_t level;
    if (!bytes || !bytes->encode_at)
        return dr__fail(err, DR_ERR_ARG, "codec \"%s\": %s has no parameter", spec, name_of(&stage));
    if (!dr__parse_i64(colon + 1, len - name - 1, &level) || level < bytes->min_level || level > bytes->max_level)
        return dr__fail(err, DR_ERR_ARG, "codec \"%s\": the level of %s must be an integer from %d to %d, got \"%.*s\"",
                        spec, bytes->name, bytes->min_level, bytes->max_level, (int)DR_MIN(len - name - 1, 40u),
                        colon + 1);
    stage.param = (int)level;
    return push(chain, stage, spec, err);
}

dr_status dr__chain_parse(const char *spec, dr__chain *out, dr_error *err)
{
    *out = (dr__chain){ 0 };
    if (!spec || !*spec)
        return dr__fail(err, DR_ERR_ARG, "codec: the spec must not be empty");
    if (strlen(spec) >= DR_CODEC_SPEC_TEXT)
        return dr__fail(err, DR_ERR_ARG, "codec: the spec must have at most %d characters, got %zu",
                        DR_CODEC_SPEC_TEXT - 1, strlen(spec));
    for (const char *at = spec;; at++) {
        const size_t len = strcspn(at, "+");
        DR_TRY(parse_stage(spec, at, len, out, err));
        at += len;
        if (!*at)
            return DR_OK;
    }
}

void dr__chain_text(const dr__chain *chain, char *text)
{
    size_t n = 0;
    text[0] = 0;
    for (unsigned i = 0; i < chain->n; i++) {
        const dr__chain_stage *s = &chain->stages[i];
        n += (size_t)snprintf(text + n, DR_CODEC_SPEC_TEXT - n, "%s%s", i ? "+" : "", name_of(s));
        if (s->bytes && s->bytes->encode_at)
            n += (size_t)snprintf(text + n, DR_CODEC_SPEC_TEXT - n, ":%d", s->param);
    }
}

uint8_t dr__chain_stage_id(const dr__chain_stage *stage)
{
    return stage->array ? stage->array->wire_id : stage->bytes->wire_id;
}

dr_status dr__chain_add(dr__chain *chain, unsigned wire_id, int param, dr_error *err)
{
    static const char *const names[] = { "none", "lz4", "lz4hc", "zstd", "snappy" };
    dr__chain_stage stage = { .array = dr__array_stage_find(wire_id), .bytes = dr__byte_codec_find(wire_id) };
    if (!stage.array && !stage.bytes && wire_id < DR_COUNT(names))
        return dr__fail(err, DR_ERR_UNSUPPORTED, "frame: this build has no %s", names[wire_id]);
    if (!stage.array && !stage.bytes)
        return dr__fail(err, DR_ERR_UNSUPPORTED, "frame: it has a stage, number %u, that this version does not know",
                        wire_id);
    const int least = stage.bytes ? stage.bytes->min_level : 0, most = stage.bytes ? stage.bytes->max_level : 0;
    if (param < least || param > most || chain->n == DR__MAX_STAGES || (chain->n && chain->stages[chain->n - 1].bytes))
        return dr__fail(err, DR_ERR_FORMAT, "frame: its list of stages is damaged");
    stage.param = param;
    return push(chain, stage, "frame", err);
}

static bool elem_of(dr_dtype dtype, dr__elem *out)
{
    switch (dtype) {
    case DR_U8:
    case DR_BOOL:
        *out = (dr__elem){ DR__ELEM_UINT, 1 };
        return true;
    case DR_I8:
        *out = (dr__elem){ DR__ELEM_INT, 1 };
        return true;
    case DR_U16:
        *out = (dr__elem){ DR__ELEM_UINT, 2 };
        return true;
    case DR_I16:
        *out = (dr__elem){ DR__ELEM_INT, 2 };
        return true;
    case DR_I32:
        *out = (dr__elem){ DR__ELEM_INT, 4 };
        return true;
    case DR_I64:
        *out = (dr__elem){ DR__ELEM_INT, 8 };
        return true;
    case DR_F16:
        *out = (dr__elem){ DR__ELEM_FLOAT, 2 };
        return true;
    case DR_BF16:
        *out = (dr__elem){ DR__ELEM_BFLOAT, 2 };
        return true;
    case DR_F32:
        *out = (dr__elem){ DR__ELEM_FLOAT, 4 };
        return true;
    case DR_F64:
        *out = (dr__elem){ DR__ELEM_FLOAT, 8 };
        return true;
    }
    return false;
}

dr_status dr__chain_plan_for(const dr__chain *chain, dr_dtype dtype, dr__chain_plan *out, dr_error *err)
{
    dr__elem elem;
    if (!elem_of(dtype, &elem))
        return dr__fail(err, DR_ERR_ARG, "codec: dtype must be a dr_dtype, got %d", (int)dtype);
    *out = (dr__chain_plan){ .chain = chain };
    for (unsigned i = 0; i < chain->n; i++) {
        const dr__chain_stage *s = &chain->stages[i];
        out->in[i] = s->bytes ? DR__ELEM_BYTES : elem;
        if (s->bytes)
            break;
        if (!s->array->takes(elem)) {
            char spec[DR_CODEC_SPEC_TEXT];
            dr__chain_text(chain, spec);
            return dr__fail(err, DR_ERR_ARG, "codec \"%s\": %s does not take %s%s", spec, s->array->name,
                            dr_dtype_name(dtype), i ? " after the stages before it" : "");
        }
        elem = s->array->makes(elem);
    }
    return DR_OK;
}

unsigned dr__chain_block_log(const dr__chain *chain)
{
    const dr_byte_codec *last = chain->stages[chain->n - 1].bytes;
    if (last && chain->n == 1)
        return BYTES_BLOCK_LOG;
    return last && last->wire_id == DR__BYTES_ZSTD ? ZSTD_BLOCK_LOG : FAST_BLOCK_LOG;
}
