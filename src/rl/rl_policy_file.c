/* rl_policy_file.c: nothing of a file is used before its checksum is right, and no size in it is believed. */
#include "rl/rl_policy_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/compiler.h"
#include "base/cursor.h"
#include "pack/atomic_file.h"
#include "rl/rl_spec_json.h"

static const char MAGIC[8] = { 'D', 'R', 'A', 'P', 'P', 'S', 'R', 'L' };

enum { HEAD = sizeof MAGIC + 4 * 4, SUM = 8 };

static uint8_t *put(uint8_t *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *at++ = (uint8_t)(value >> (8 * i));
    return at;
}

static uint8_t *put_floats(uint8_t *at, const float *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &from[i], sizeof bits);
        at = put(at, bits, 4);
    }
    return at;
}

/* The text is jansson's: free(). */
static char *head_text(const dr__rl_policy *p, bool with_critic)
{
    dr__rl_shape shape = p->shape;
    shape.has_critic = with_critic && shape.has_critic;
    json_t *facts = p->facts ? json_loads(p->facts, 0, NULL) : json_object();
    json_t *o = json_pack("{s:o, s:o, s:o}", "schema", dr__rl_spec_json(&p->spec), "network",
                          dr__rl_shape_json(&shape), "facts", facts);
    char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
    json_decref(o);
    return text;
}

dr_status dr__rl_policy_encode(const dr__rl_policy *p, bool with_critic, uint8_t **out, size_t *size, dr_error *err)
{
    const size_t n_params = with_critic ? p->n_params : p->actor.n_params, n_obs = (size_t)p->heads.n_obs;
    char *text = head_text(p, with_critic);
    const size_t n_text = text ? strlen(text) : 0, total = HEAD + n_text + 4 * (2 * n_obs + n_params) + SUM;
    *out = text && total <= DR__RL_FILE_MOST ? dr__alloc(total) : NULL;
    if (!*out) {
        const bool is_large = text && total > DR__RL_FILE_MOST;
        free(text);
        if (is_large)
            return dr__fail(err, DR_ERR_LIMIT, "a policy must have at most %d bytes, got %zu (%zu parameters)",
                            DR__RL_FILE_MOST, total, n_params);
        return dr__fail(err, DR_ERR_NOMEM, "no memory for a policy of %zu parameters", n_params);
    }
    memcpy(*out, MAGIC, sizeof MAGIC);
    uint8_t *at = put(*out + sizeof MAGIC, DR__RL_FILE_VERSION, 4);
    at = put(at, n_text, 4);
    at = put(at, n_obs, 4);
    at = put(at, n_params, 4);
    memcpy(at, text, n_text);
    free(text);
    at = put_floats(at + n_text, p->mean, n_obs);
    at = put_floats(at, p->scale, n_obs);
    at = put_floats(at, p->params, n_params);
    put(at, XXH3_64bits(*out, total - SUM), 8);
    *size = total;
    return DR_OK;
}

typedef struct head {
    uint32_t n_text, n_obs, n_params;
    const uint8_t *text;
} head;

/* Everything before the floats; the cursor is left there. */
static dr_status read_head(dr_cursor *c, head *h, dr_error *err)
{
    const uint8_t *magic;
    uint32_t version;
    DR_TRY(dr__cursor_bytes(c, sizeof MAGIC, &magic, err));
    if (memcmp(magic, MAGIC, sizeof MAGIC) != 0)
        return dr__fail(err, DR_ERR_FORMAT, "%s: not a policy file", c->what);
    DR_TRY(dr__cursor_u32(c, &version, err));
    if (version != DR__RL_FILE_VERSION)
        return dr__fail(err, DR_ERR_FORMAT, "%s: has version %u, this build reads %d", c->what, version,
                        DR__RL_FILE_VERSION);
    DR_TRY(dr__cursor_u32(c, &h->n_text, err));
    DR_TRY(dr__cursor_u32(c, &h->n_obs, err));
    DR_TRY(dr__cursor_u32(c, &h->n_params, err));
    return dr__cursor_bytes(c, h->n_text, &h->text, err);
}

static dr_status read_floats(dr_cursor *c, float *to, size_t n, dr_error *err)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        DR_TRY(dr__cursor_u32(c, &bits, err));
        memcpy(&to[i], &bits, sizeof bits);
        if (!isfinite(to[i]))
            return dr__fail(err, DR_ERR_FORMAT, "%s: has a number that is not finite", c->what);
    }
    return DR_OK;
}

/* The policy that the JSON describes, without its numbers. */
static dr_status read_policy(const json_t *o, const char *name, dr__rl_policy **out, dr_error *err)
{
    dr__rl_spec spec;
    dr__rl_shape shape;
    const json_t *facts = json_object_get(o, "facts");
    if (!json_is_object(facts))
        return dr__fail(err, DR_ERR_FORMAT, "%s: facts must be an object", name);
    DR_TRY(dr__rl_spec_from_json(json_object_get(o, "schema"), name, &spec, err));
    DR_TRY(dr__rl_shape_from_json(json_object_get(o, "network"), name, &shape, err));
    const dr_status status = dr__rl_policy_new(&spec, &shape, out, err);
    if (status == DR_ERR_ARG) { /* of the file, not of a caller */
        dr__error_prefix(err, "%s", name);
        if (err)
            err->status = DR_ERR_FORMAT;
        return DR_ERR_FORMAT;
    }
    DR_TRY(status);
    char *text = json_dumps(facts, JSON_COMPACT);
    const dr_status kept = text ? dr__rl_policy_set_facts(*out, text, err)
                                : dr__fail(err, DR_ERR_NOMEM, "no memory for the facts of a policy");
    free(text);
    return kept;
}

static dr_status read_numbers(dr_cursor *c, const head *h, dr__rl_policy *p, dr_error *err)
{
    if (h->n_obs != (uint32_t)p->heads.n_obs || h->n_params != p->n_params)
        return dr__fail(err, DR_ERR_FORMAT, "%s: has %u inputs and %u parameters, its network %d and %zu", c->what,
                        h->n_obs, h->n_params, p->heads.n_obs, p->n_params);
    DR_TRY(read_floats(c, p->mean, h->n_obs, err));
    DR_TRY(read_floats(c, p->scale, h->n_obs, err));
    DR_TRY(read_floats(c, p->params, h->n_params, err));
    if (dr__cursor_left(c))
        return dr__fail(err, DR_ERR_FORMAT, "%s: has %zu bytes too many", c->what, dr__cursor_left(c));
    return DR_OK;
}

static dr_status check_sum(const uint8_t *data, size_t size, const char *name, dr_error *err)
{
    uint64_t sum;
    if (size > DR__RL_FILE_MOST)
        return dr__fail(err, DR_ERR_FORMAT, "%s: a policy file has at most %d bytes, this one %zu", name,
                        DR__RL_FILE_MOST, size);
    if (size < HEAD + SUM)
        return dr__fail(err, DR_ERR_FORMAT, "%s: a policy file has at least %d bytes, this one %zu", name, HEAD + SUM,
                        size);
    dr_cursor c = dr__cursor(data + size - SUM, SUM, name);
    DR_TRY(dr__cursor_u64(&c, &sum, err));
    if (sum != XXH3_64bits(data, size - SUM))
        return dr__fail(err, DR_ERR_FORMAT, "%s: is damaged: its checksum is wrong", name);
    return DR_OK;
}

dr_status dr__rl_policy_decode(const void *data, size_t size, const char *name, dr__rl_policy **out, dr_error *err)
{
    head h;
    *out = NULL;
    dr_cursor c = dr__cursor(data, size < SUM ? 0 : size - SUM, name);
    if (size >= sizeof MAGIC && memcmp(data, MAGIC, sizeof MAGIC) != 0)
        return dr__fail(err, DR_ERR_FORMAT, "%s: not a policy file", name);
    DR_TRY(check_sum(data, size, name, err));
    DR_TRY(read_head(&c, &h, err));
    json_t *o = json_loadb((const char *)h.text, h.n_text, JSON_REJECT_DUPLICATES, NULL);
    dr_status status = o ? read_policy(o, name, out, err)
                         : dr__fail(err, DR_ERR_FORMAT, "%s: its description is not JSON", name);
    json_decref(o);
    if (status == DR_OK)
        status = read_numbers(&c, &h, *out, err);
    if (status != DR_OK)
        dr__rl_policy_free(out);
    return status;
}

dr_status dr__rl_policy_save(const dr__rl_policy *policy, bool with_critic, const char *path, dr_error *err)
{
    uint8_t *data;
    size_t size;
    char folder[DR__ATOMIC_PATH];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const int n = slash ? (int)DR_MAX(slash - path, 1) : 1;
    if (!*name || n >= DR__ATOMIC_PATH)
        return dr__fail(err, DR_ERR_ARG, "the path of a policy must name a file, got '%.200s'", path);
    snprintf(folder, sizeof folder, "%.*s", n, slash ? path : ".");
    DR_TRY(dr__rl_policy_encode(policy, with_critic, &data, &size, err));
    const dr_status status = dr__atomic_save(folder, name, data, size, err);
    dr__free(data);
    return status;
}

dr_status dr__rl_policy_load(const char *path, const dr__rl_spec *want, dr__rl_policy **out, dr_error *err)
{
    *out = NULL;
    FILE *file = fopen(path, "rb");
    if (!file)
        return dr__fail_errno(err, errno == ENOENT ? DR_ERR_NOT_FOUND : DR_ERR_IO, "%s: could not be opened", path);
    const size_t room = DR__RL_FILE_MOST + 1; /* one more, to see that it is too large */
    uint8_t *data = dr__alloc(room);
    const size_t size = data ? fread(data, 1, room, file) : 0;
    dr_status status = DR_OK;
    if (!data)
        status = dr__fail(err, DR_ERR_NOMEM, "no memory to read %s", path);
    else if (ferror(file))
        status = dr__fail_errno(err, DR_ERR_IO, "%s: could not be read", path);
    fclose(file);
    if (status == DR_OK)
        status = dr__rl_policy_decode(data, size, path, out, err);
    dr__free(data);
    if (status == DR_OK && want)
        status = dr__rl_spec_same(&(*out)->spec, want, path, err);
    if (status != DR_OK)
        dr__rl_policy_free(out);
    return status;
}
