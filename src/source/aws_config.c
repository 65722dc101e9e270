/* aws_config.c: credentials and places of S3. */
#include "source/aws_config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "source/source.h"

enum { MAX_FILE = 1 << 20 };

/* --- the files --- */

static void trim(const char **text, size_t *n)
{
    while (*n && isspace((unsigned char)**text))
        ++*text, --*n;
    while (*n && isspace((unsigned char)(*text)[*n - 1]))
        --*n;
}

static bool is(const char *text, size_t n, const char *what)
{
    return strlen(what) == n && !memcmp(text, what, n);
}

/* "[NAME]", in a configuration "[profile NAME]" or "[default]". */
static bool is_section(const char *line, size_t n, bool config, const char *profile)
{
    static const char word[] = "profile";
    line++;
    n -= 2;
    trim(&line, &n);
    if (config && n > sizeof word && !memcmp(line, word, sizeof word - 1) &&
        isspace((unsigned char)line[sizeof word - 1])) {
        line += sizeof word - 1;
        n -= sizeof word - 1;
        trim(&line, &n);
        return is(line, n, profile);
    }
    return is(line, n, profile) && (!config || !strcmp(profile, "default"));
}

static char *copy(const char *text, size_t n)
{
    char *out = dr__alloc(n + 1);
    if (out) {
        memcpy(out, text, n);
        out[n] = 0;
    }
    return out;
}

char *dr__aws_profile_value(const char *text, size_t size, bool config, const char *profile, const char *below,
                            const char *key, bool *found)
{
    bool inside = false, nested = false;
    char *value = NULL;
    *found = false;
    for (const char *at = text, *end = text + size; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at)), *line = at;
        size_t n = (size_t)((stop ? stop : end) - at);
        const bool indented = n && (at[0] == ' ' || at[0] == '\t');
        at = stop ? stop + 1 : end;
        trim(&line, &n);
        if (!n || *line == '#' || *line == ';')
            continue;
        if (*line == '[' && line[n - 1] == ']' && n > 2) {
            inside = is_section(line, n, config, profile);
            *found |= inside;
            nested = false;
            continue;
        }
        const char *equals = memchr(line, '=', n);
        if (!inside || !equals)
            continue;
        const char *name = line, *text_of = equals + 1;
        size_t name_len = (size_t)(equals - line), len = n - name_len - 1;
        trim(&name, &name_len);
        trim(&text_of, &len);
        if (!indented)
            nested = below && is(name, name_len, below) && !len;
        if (is(name, name_len, key) && (below ? indented && nested : !indented)) {
            dr__free(value); /* the last one counts */
            value = copy(text_of, len);
        }
    }
    return value;
}

/* The text of a file of ~/.aws, or where a variable says it is; NULL: there is none. */
static char *read_file(const char *variable, const char *name, size_t *size)
{
    char path[4096];
    const char *given = getenv(variable), *home = getenv("HOME");
    if (given && *given)
        snprintf(path, sizeof path, "%s", given);
    else if (!home || snprintf(path, sizeof path, "%s/.aws/%s", home, name) >= (int)sizeof path)
        return NULL;
    dr__source *file;
    uint64_t bytes;
    char *text = NULL;
    if (dr__source_open(path, NULL, &file, NULL) != DR_OK)
        return NULL;
    if (dr__source_size(file, &bytes, NULL) == DR_OK && bytes <= MAX_FILE && (text = dr__alloc((size_t)bytes + 1)) &&
        dr__source_read_at(file, text, (size_t)bytes, 0, size, NULL) != DR_OK) {
        dr__free(text);
        text = NULL;
    }
    dr__source_close(&file);
    return text;
}

/* --- the choice --- */

static char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? dr__strdup(value) : NULL;
}

static void set(char **to, char *value)
{
    if (*to)
        dr__free(value);
    else
        *to = value;
}

struct files {
    char *credentials, *config;
    size_t credentials_size, config_size;
};

/* Fills what is not set yet from a profile; false: no file has it. */
static bool from_profile(const struct files *f, const char *profile, bool with_keys, dr__aws_config *c)
{
    bool in_credentials = false, in_config = false;
    const struct {
        const char *text;
        size_t size;
        bool config, *found;
    } places[] = { { f->credentials, f->credentials_size, false, &in_credentials },
                   { f->config, f->config_size, true, &in_config } };
    for (int i = 0; i < 2; i++) {
        if (!places[i].text)
            continue;
#define VALUE(below, key)                                                                                              \
    dr__aws_profile_value(places[i].text, places[i].size, places[i].config, profile, below, key, places[i].found)
        if (with_keys && !c->key) { /* both of one file */
            set(&c->key, VALUE(NULL, "aws_access_key_id"));
            set(&c->secret, VALUE(NULL, "aws_secret_access_key"));
            set(&c->session, VALUE(NULL, "aws_session_token"));
        }
        set(&c->region, VALUE(NULL, "region"));
        set(&c->endpoint, VALUE(NULL, "endpoint_url"));
        char *style = VALUE("s3", "addressing_style");
#undef VALUE
        c->virtual_host |= style && !strcmp(style, "virtual");
        c->path_style |= style && !strcmp(style, "path");
        dr__free(style);
    }
    return in_credentials || in_config;
}

static void from_environment(bool with_keys, dr__aws_config *c)
{
    if (with_keys) {
        c->key = variable("AWS_ACCESS_KEY_ID");
        c->secret = c->key ? variable("AWS_SECRET_ACCESS_KEY") : NULL;
        c->session = c->key ? variable("AWS_SESSION_TOKEN") : NULL;
    }
    set(&c->region, variable("AWS_REGION"));
    set(&c->region, variable("AWS_DEFAULT_REGION"));
    set(&c->endpoint, variable("AWS_ENDPOINT_URL_S3"));
    set(&c->endpoint, variable("AWS_ENDPOINT_URL"));
    c->ca_file = variable("AWS_CA_BUNDLE");
}

static dr_status check(const dr__aws_config *c, bool anonymous, const char *name, dr_error *err)
{
    if (!c->region)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", name);
    if (!anonymous && (!c->key || !c->secret))
        return dr__fail(
            err, DR_ERR_ARG,
            "%s: no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile of "
            "~/.aws/credentials in AWS_PROFILE or credentials=, or give credentials=\"anonymous\" for public data",
            name);
    if (c->endpoint && strncmp(c->endpoint, "http://", 7) && strncmp(c->endpoint, "https://", 8))
        return dr__fail(err, DR_ERR_ARG, "%s: the endpoint must begin with http:// or https://, got %s", name,
                        c->endpoint);
    return DR_OK;
}

dr_status dr__aws_config_find(const char *credentials, const char *name, dr__aws_config *c, dr_error *err)
{
    const bool anonymous = credentials && !strcmp(credentials, "anonymous");
    const char *named = anonymous ? NULL : credentials, *chosen = getenv("AWS_PROFILE");
    const char *profile = named ? named : chosen && *chosen ? chosen : "default";
    struct files f = { 0 };
    *c = (dr__aws_config){ 0 };
    f.credentials = read_file("AWS_SHARED_CREDENTIALS_FILE", "credentials", &f.credentials_size);
    f.config = read_file("AWS_CONFIG_FILE", "config", &f.config_size);
    from_environment(!anonymous && !named, c);
    const bool found = from_profile(&f, profile, !anonymous && !c->key, c);
    dr__free(f.credentials);
    dr__free(f.config);
    if (!c->region)
        c->region = dr__strdup("us-east-1");
    dr_status status = check(c, anonymous, name, err);
    if (named && !found)
        status = dr__fail(err, DR_ERR_ARG, "%s: credentials must be \"anonymous\" or a profile of ~/.aws, got \"%s\"",
                          name, named);
    if (status != DR_OK)
        dr__aws_config_free(c);
    return status;
}

void dr__aws_config_free(dr__aws_config *c)
{
    char *owned[] = { c->key, c->secret, c->session, c->region, c->endpoint, c->ca_file };
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        dr__free(owned[i]);
    *c = (dr__aws_config){ 0 };
}
