/* pack_codecs.c: which codec each field of a packed set gets. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "data/desc.h"
#include "pack/pack_internal.h"

/* The spec that `codec` gives a field, into `spec`; false: none.  *named: by its name. */
static bool spec_of(const char *codec, const char *field, char spec[DR_CODEC_SPEC_TEXT], bool *named)
{
    bool found = false;
    *named = false;
    if (!strchr(codec, '=')) {
        snprintf(spec, DR_CODEC_SPEC_TEXT, "%s", codec);
        return true;
    }
    for (const char *at = codec; at && !*named; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        const size_t n = strcspn(at, "=,"), len = at[n] == '=' ? strcspn(at + n + 1, ",") : 0;
        const bool star = n == 1 && *at == '*';
        if (at[n] != '=' || (!star && (strlen(field) != n || strncmp(at, field, n))))
            continue;
        snprintf(spec, DR_CODEC_SPEC_TEXT, "%.*s", (int)len, at + n + 1);
        *named = !star;
        found = true;
    }
    return found;
}

/* Does every name in "name=spec,..." name a field? */
static dr_status check_names(const dr_pack *p, const char *codec, dr_error *err)
{
    for (const char *at = codec; at && strchr(codec, '='); at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        const size_t n = strcspn(at, "=,");
        bool known = n == 1 && *at == '*';
        for (int i = 0; i < p->m.n_fields; i++)
            known = known || (strlen(p->m.fields[i].field.name) == n && !strncmp(p->m.fields[i].field.name, at, n));
        if (at[n] != '=')
            return dr__fail(err, DR_ERR_ARG, "codec must be a spec, or \"field=spec,...\", got \"%.200s\"", codec);
        if (!known)
            return dr__fail(err, DR_ERR_ARG, "codec: no field \"%.*s\" is stored", (int)n, at);
    }
    return DR_OK;
}

/* What a codec is for: arrays, texts, and bytes that are not compressed already; no bytes tell nothing. */
static bool may_compress(const dr__set_field *f, const dr_view *value, bool named)
{
    if (f->stored == DR__STORED_NPY || (f->stored == DR__STORED_FILE && f->field.desc.kind == DR_KIND_TEXT))
        return true;
    if (f->stored == DR__STORED_FILE && !value->desc.dims[0])
        return named;
    return f->stored == DR__STORED_FILE && dr_codec_classify(&value->desc, value->data) != DR_CODEC_MEDIA;
}

static dr_status set_codec(dr_pack *p, int i, const char *spec, bool named, dr_error *err)
{
    dr__set_field *f = &p->m.fields[i];
    dr_codec *codec;
    if (dr_codec_open(spec, NULL, &codec, err) != DR_OK)
        return err ? dr__error_prefix(err, "codec \"%s\"", spec) : DR_ERR_ARG;
    const dr_codec_facts facts = dr_codec_about(codec);
    if (!dr_codec_takes(codec, f->field.desc.dtype)) {
        dr_codec_close(&codec);
        if (!named)
            return DR_OK;
        return dr__fail(err, DR_ERR_ARG, "codec: \"%s\" does not take field \"%s\" of type %s", spec, f->field.name,
                        dr_dtype_name(f->field.desc.dtype));
    }
    p->recipe.codecs[i] = codec;
    snprintf(f->codec, sizeof f->codec, "%s", facts.spec);
    snprintf(f->packed, sizeof f->packed, "%s", facts.extension ? facts.extension : ".drz");
    f->lossy = !facts.lossless;
    return DR_OK;
}

static dr_status choose(dr_pack *p, int i, const char *codec, const dr_view *value, dr_error *err)
{
    const dr__set_field *f = &p->m.fields[i];
    char spec[DR_CODEC_SPEC_TEXT];
    dr_codec_choice choice;
    bool named;
    if (!spec_of(codec, f->field.name, spec, &named) || !strcmp(spec, "none"))
        return DR_OK;
    if (!may_compress(f, value, named)) {
        if (!named || !strcmp(spec, "auto"))
            return DR_OK;
        return dr__fail(err, DR_ERR_ARG,
                        "codec: field \"%s\" cannot be compressed: it is compressed already, or a label",
                        f->field.name);
    }
    if (!strcmp(spec, "auto")) {
        DR_TRY(dr_codec_choose(&value->desc, value->data, NULL, &choice, err));
        if (!strcmp(choice.spec, "none"))
            return DR_OK;
        snprintf(spec, sizeof spec, "%s", choice.spec);
    }
    return set_codec(p, i, spec, named, err);
}

/* The first sample that can be made, on the bench. */
static dr_status first_sample(dr_pack *p, dr__workbench *bench, const dr__record **record, dr_error *err)
{
    dr_status status = DR_ERR_FORMAT;
    for (uint64_t id = 0; id < p->set->n_samples && id < 16 && status != DR_OK; id++)
        status = dr__made_read(&p->recipe, bench, id, record, NULL, err);
    return status;
}

dr_status dr__pack_choose_codecs(dr_pack *p, const char *codec, dr_error *err)
{
    const dr__record *record;
    p->n_codecs = p->m.n_fields;
    p->recipe.codecs = dr__alloc_zero((size_t)p->n_codecs, sizeof *p->recipe.codecs);
    if (!p->recipe.codecs)
        return dr__fail(err, DR_ERR_NOMEM, "pack: out of memory");
    if (!strcmp(codec, "none"))
        return DR_OK;
    DR_TRY(check_names(p, codec, err));
    dr__workbench *bench = dr__workbench_new();
    dr_status status =
        bench ? first_sample(p, bench, &record, err) : dr__fail(err, DR_ERR_NOMEM, "pack: out of memory");
    for (int i = 0; status == DR_OK && i < p->m.n_fields; i++)
        status = choose(p, i, codec, dr__made_value(&p->recipe, record, i), err);
    dr__workbench_free(&bench);
    return status;
}
