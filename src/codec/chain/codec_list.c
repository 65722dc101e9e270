/* codec_list.c: the tables of stages as JSON. */
#include "base/table_text.h"
#include "codec/chain/codec_chain.h"
#include "codec/chain/codec_files.h"

static const char *const kinds[] = {
    [DR__STAGE_FILTER] = "filter", [DR__STAGE_TOKEN] = "token", [DR__STAGE_LOSSY] = "lossy"
};

/* The element types that a chain of this stage alone takes. */
static json_t *types_of(dr__chain_stage stage)
{
    json_t *list = json_array();
    const dr__chain chain = { .stages = { stage }, .n = 1 };
    dr__chain_plan plan;
#define ADD_TYPE(name, value, bytes, text)                                                                             \
    if (dr__chain_plan_for(&chain, DR_##name, &plan, NULL) == DR_OK)                                                   \
        json_array_append_new(list, json_string(text));
    DR_DTYPE_MAP(ADD_TYPE)
#undef ADD_TYPE
    return list;
}

static json_t *parameter_of(const dr_byte_codec *c)
{
    if (!c || !c->encode_at)
        return json_null();
    return json_pack("{s:s, s:i, s:i, s:i}", "name", "level", "min", c->min_level, "max", c->max_level, "default",
                     c->default_level);
}

static json_t *row(dr__chain_stage s)
{
    const bool is_array = s.array;
    return json_pack(
        "{s:s, s:s, s:s, s:o, s:s?, s:o, s:s?, s:s?}", "name", is_array ? s.array->name : s.bytes->name, "kind",
        is_array ? kinds[s.array->kind] : "bytes", "summary", is_array ? s.array->summary : s.bytes->summary, "types",
        types_of(s), "library", is_array ? NULL : s.bytes->library, "parameter", parameter_of(s.bytes), "extension",
        is_array ? NULL : dr__codec_extension(s.bytes->wire_id), "error", is_array ? s.array->error : NULL);
}

static json_t *list_stages(void)
{
    json_t *list = json_array();
    for (const dr_byte_codec *const *c = dr__byte_codecs; *c; c++)
        json_array_append_new(list, row((dr__chain_stage){ .bytes = *c }));
    for (const dr__array_stage *const *s = dr__array_stages; *s; s++)
        json_array_append_new(list, row((dr__chain_stage){ .array = *s }));
    return list;
}

const char *dr_codec_stages_json(void)
{
    static dr__table_text text;
    return dr__table_text_of(&text, list_stages);
}
