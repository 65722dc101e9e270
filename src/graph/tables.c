/* tables.c: the tables of ops, codecs and formats as JSON, for front ends. */
#include <string.h>

#include "base/table_text.h"
#include "codec/audio/audio.h"
#include "codec/bytes/byte_codec.h"
#include "codec/file_types.h"
#include "codec/image/image.h"
#include "codec/volume/volume.h"
#include "format/dataset_internal.h"
#include "graph/graph_internal.h"

static const char *const type_names[] = { "", "real", "int", "bool", "enum", "reals", "ints", "ops", "text" };

static json_t *param_json(const dr_param *p)
{
    json_t *o = json_pack("{s:s, s:s, s:s}", "name", p->name, "type", type_names[p->type], "doc", p->doc);
    if (p->fallback)
        json_object_set_new(o, "default", json_loads(p->fallback, JSON_DECODE_ANY, NULL));
    else
        json_object_set_new(o, "required", json_true());
    if (p->type == DR_P_REAL || p->type == DR_P_INT || p->type == DR_P_REALS || p->type == DR_P_INTS) {
        json_object_set_new(o, "min", json_real(p->min));
        json_object_set_new(o, "max", json_real(p->max));
    }
    if (p->n_max) {
        json_object_set_new(o, "n_min", json_integer(p->n_min));
        json_object_set_new(o, "n_max", json_integer(p->n_max));
    }
    if (p->choices) {
        json_t *choices = json_array();
        for (int i = 0; p->choices[i]; i++)
            json_array_append_new(choices, json_string(p->choices[i]));
        json_object_set_new(o, "choices", choices);
    }
    return o;
}

static json_t *params_json(const dr_param *params)
{
    json_t *list = json_array();
    for (const dr_param *p = params; p && p->name; p++)
        json_array_append_new(list, param_json(p));
    return list;
}

static json_t *flags_json(unsigned flags)
{
    static const char *const names[] = { "random", "inexact",  "window", "pointwise_u8", "batch",
                                         "decode", "resample", "early",  "moves",        "drops" };
    json_t *list = json_array();
    for (unsigned i = 0; i < DR_COUNT(names); i++)
        if (flags >> i & 1)
            json_array_append_new(list, json_string(names[i]));
    return list;
}

/* The kinds that an op acts on if a node names no fields. */
static json_t *kinds_json(unsigned kinds)
{
    static const char *const names[] = {
        [DR_KIND_ARRAY] = "array",         [DR_KIND_IMAGE] = "image",
        [DR_KIND_MASK] = "mask",           [DR_KIND_BOXES] = "boxes",
        [DR_KIND_BYTES] = "bytes",         [DR_KIND_TEXT] = "text",
        [DR_KIND_VOLUME] = "volume",       [DR_KIND_VOLUME_MASK] = "volume_mask",
        [DR_KIND_KEYPOINTS] = "keypoints", [DR_KIND_LABELS] = "labels",
        [DR_KIND_MASKS] = "masks",
    };
    json_t *list = json_array();
    for (unsigned i = 0; i < DR_COUNT(names); i++)
        if (kinds >> i & 1)
            json_array_append_new(list, json_string(names[i]));
    return list;
}

static json_t *list_ops(void)
{
    json_t *list = json_array();
    for (const dr_op_def *const *d = dr__op_table; *d; d++)
        json_array_append_new(list, json_pack("{s:s, s:i, s:s, s:o, s:o, s:o, s:o, s:s?, s:s?}", "name", (*d)->name,
                                              "version", (*d)->version, "summary", (*d)->summary, "params",
                                              params_json((*d)->params), "draws", params_json((*d)->draws), "flags",
                                              flags_json((*d)->flags), "kinds", kinds_json((*d)->kinds), "reads",
                                              (*d)->reads, "makes", (*d)->makes));
    return list;
}

static json_t *list_extensions(const char *codec)
{
    json_t *list = json_array();
    for (const dr__file_type *type = dr__file_types; type->extension; type++)
        if (!strcmp(type->codec, codec))
            json_array_append_new(list, json_string(type->extension));
    return list;
}

static void add_codec(json_t *list, const char *kind, const char *name, const char *summary, const char *library)
{
    json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s?, s:o}", "name", name, "kind", kind, "summary", summary,
                                          "library", library, "extensions", list_extensions(name)));
}

static json_t *list_codecs(void)
{
    json_t *list = json_array();
    char text[128];
    for (const dr_image_codec *const *c = dr__image_codecs; *c; c++)
        add_codec(list, "image", (*c)->name, (*c)->summary, dr__image_decoder_text(*c, false, text, sizeof text));
    for (const dr_volume_codec *const *c = dr__volume_codecs; *c; c++)
        add_codec(list, "volume", (*c)->name, (*c)->summary, NULL);
    for (const dr_audio_codec *const *c = dr__audio_codecs; *c; c++)
        add_codec(list, "audio", (*c)->name, (*c)->summary, (*c)->library);
    for (const dr_byte_codec *const *c = dr__byte_codecs; *c; c++)
        add_codec(list, "bytes", (*c)->name, (*c)->summary, (*c)->library);
    return list;
}

static json_t *list_formats(void)
{
    json_t *list = json_array();
    for (const dr_format_def *const *f = dr__format_table; *f; f++)
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:s}", "name", (*f)->name, "summary", (*f)->summary, "uses", (*f)->uses));
    return list;
}

const char *dr_ops_json(void)
{
    static dr__table_text text;
    return dr__table_text_of(&text, list_ops);
}

const char *dr_codecs_json(void)
{
    static dr__table_text text;
    return dr__table_text_of(&text, list_codecs);
}

const char *dr_formats_json(void)
{
    static dr__table_text text;
    return dr__table_text_of(&text, list_formats);
}
