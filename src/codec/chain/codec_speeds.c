/* codec_speeds.c: figures of codecs: kept ones in a file for each CPU model and set of libraries, else built-in ones.
 *
 *   $XDG_CACHE_HOME/drapps/codecs/HASH.json
 *   {"cpu": "...", "libraries": "...", "rows": [{"spec", "class", "encode", "decode", "ratio"}, ...]}
 *
 * The file is read when figures are first asked for.  It is replaced as a whole, by renaming a new one, with the rows
 * that another process kept meanwhile.  One that is damaged counts as empty.
 */
#include "codec/chain/codec_speeds.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>
#include <xxhash.h>

#include "base/cache_folder.h"
#include "base/compiler.h"

enum { PATH_CAP = 4096, TEXT_CAP = 512 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of `rows` */
static json_t *rows;                                     /* by "class spec"; NULL: not read yet */

/* ---- Built-in figures ------------------------------------------------------------------------------------------- */

/* Bytes per second of a core, rounded, and the ratio of the class that a stage is meant for. */
static const struct stage_figures {
    const char *name;
    double encode, decode;
} figures[] = {
    { "none", 8e9, 8e9 },       { "lz4", 600e6, 2.5e9 }, { "lz4hc", 40e6, 2.5e9 },   { "zstd", 300e6, 900e6 },
    { "snappy", 500e6, 1.2e9 }, { "shuffle", 8e9, 8e9 }, { "bitshuffle", 4e9, 4e9 }, { "delta", 4e9, 4e9 },
    { "bf16", 2e9, 3e9 },       { "fp16", 600e6, 1e9 },  { "int8", 300e6, 1e9 },     { "u16", 3e9, 4e9 },
    { "u24", 2e9, 2e9 },        { "bitpack", 1e9, 6e9 }, { "svb", 600e6, 3e9 },
};

static const struct class_ratios {
    dr_codec_class data_class;
    double fast, strong, filtered; /* of lz4; of zstd; of either after array stages, in place of the first two */
} ratios[] = {
    { DR_CODEC_MEDIA, 1, 1, 1 },    { DR_CODEC_TEXT, 1.8, 2.8, 2 },   { DR_CODEC_TOKENS, 1.6, 2.2, 2.2 },
    { DR_CODEC_INTS, 1.5, 2, 2.5 }, { DR_CODEC_FLOATS, 1, 1.1, 1.3 }, { DR_CODEC_PIXELS, 1.2, 1.5, 1.6 },
    { DR_CODEC_OTHER, 1.5, 2, 2 },
};

dr_codec_speed dr__codec_guess(const dr__chain *chain, dr_codec_class data_class)
{
    double encode = 0, decode = 0, ratio = 1;
    for (unsigned i = 0; i < chain->n; i++) {
        const dr__chain_stage *s = &chain->stages[i];
        const char *name = s->array ? s->array->name : s->bytes->name;
        for (size_t k = 0; k < DR_COUNT(figures); k++) {
            if (strcmp(figures[k].name, name) != 0)
                continue;
            /* Each level of zstd takes a third more time to encode; decoding hardly differs. */
            const double slower = s->bytes && s->bytes->wire_id == DR__BYTES_ZSTD ? pow(1.33, s->param - 1) : 1;
            encode += slower / figures[k].encode;
            decode += 1 / figures[k].decode;
        }
    }
    for (size_t k = 0; k < DR_COUNT(ratios); k++) {
        if (ratios[k].data_class != data_class)
            continue;
        const dr_byte_codec *last = chain->stages[chain->n - 1].bytes;
        const bool is_strong = last && last->wire_id == DR__BYTES_ZSTD;
        ratio = chain->n > 1 || !last ? ratios[k].filtered : is_strong ? ratios[k].strong : ratios[k].fast;
        if (last && last->wire_id == DR__BYTES_NONE)
            ratio = 1;
    }
    return (dr_codec_speed){ .encode_bytes_per_s = 1 / encode, .decode_bytes_per_s = 1 / decode, .ratio = ratio };
}

/* ---- The file --------------------------------------------------------------------------------------------------- */

/* "model name" of x86, "CPU part" of ARM; as much as tells models apart. */
static void cpu_model(char *text, size_t size)
{
    static const char *const keys[] = { "model name", "CPU part", "CPU implementer" };
    char line[TEXT_CAP];
    size_t n = 0;
    text[0] = 0;
    FILE *f = fopen("/proc/cpuinfo", "r");
    unsigned seen = 0;
    while (f && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        for (unsigned k = 0; colon && k < DR_COUNT(keys); k++) {
            if (seen >> k & 1 || strncmp(line, keys[k], strlen(keys[k])) != 0)
                continue;
            seen |= 1u << k;
            line[strcspn(line, "\n")] = 0;
            n += (size_t)snprintf(text + n, size - n, "%s%s", n ? " " : "", colon + 2);
            n = DR_MIN(n, size - 1);
        }
    }
    if (f)
        fclose(f);
}

static void libraries(char *text, size_t size)
{
    size_t n = (size_t)snprintf(text, size, "drapps " DR_VERSION);
    for (const dr_byte_codec *const *c = dr__byte_codecs; *c && n < size; c++)
        if ((*c)->library)
            n += (size_t)snprintf(text + n, size - n, ", %s", (*c)->library);
}

/* The path of the file of this machine; false: the user has no cache folder. */
static bool file_path(char *path, char *cpu, char *libs)
{
    char folder[PATH_CAP - 64], both[2 * TEXT_CAP + 2];
    cpu_model(cpu, TEXT_CAP);
    libraries(libs, TEXT_CAP);
    snprintf(both, sizeof both, "%s|%s", cpu, libs);
    if (!dr__cache_folder(folder, sizeof folder))
        return false;
    snprintf(path, PATH_CAP, "%s/codecs/%016llx.json", folder, (unsigned long long)XXH3_64bits(both, strlen(both)));
    return true;
}

static bool is_figure(const json_t *value)
{
    const double x = json_number_value(value);
    return json_is_number(value) && isfinite(x) && x > 0;
}

static void add_row(json_t *to, const json_t *row)
{
    const char *spec = json_string_value(json_object_get(row, "spec"));
    const char *name = json_string_value(json_object_get(row, "class"));
    char key[2 * DR_CODEC_SPEC_TEXT];
    if (!spec || !name || strlen(spec) >= DR_CODEC_SPEC_TEXT || strlen(name) >= 64 ||
        !is_figure(json_object_get(row, "encode")) || !is_figure(json_object_get(row, "decode")) ||
        !is_figure(json_object_get(row, "ratio")))
        return;
    snprintf(key, sizeof key, "%s %s", name, spec);
    json_object_set_new(to, key, json_deep_copy(row));
}

static json_t *read_rows(void)
{
    char path[PATH_CAP], cpu[TEXT_CAP], libs[TEXT_CAP];
    json_t *found = json_object(), *file = file_path(path, cpu, libs) ? json_load_file(path, 0, NULL) : NULL, *row;
    size_t i;
    json_array_foreach(json_object_get(file, "rows"), i, row) add_row(found, row);
    json_decref(file);
    return found;
}

static void make_folders(char *path)
{
    for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = 0;
        (void)mkdir(path, 0700);
        *p = '/';
    }
}

static dr_status write_rows(const json_t *all, dr_error *err)
{
    char path[PATH_CAP], part[PATH_CAP + 32], cpu[TEXT_CAP], libs[TEXT_CAP];
    if (!file_path(path, cpu, libs))
        return dr__fail(err, DR_ERR_IO, "codec speeds: the user has no cache folder (XDG_CACHE_HOME, HOME)");
    json_t *list = json_array(), *row;
    const char *key;
    json_object_foreach((json_t *)all, key, row) json_array_append(list, row);
    make_folders(path);
    snprintf(part, sizeof part, "%s.%ld.part", path, (long)getpid());
    json_t *file = json_pack("{s:s, s:s, s:o}", "cpu", cpu, "libraries", libs, "rows", list);
    const bool written = file && json_dump_file(file, part, JSON_INDENT(1)) == 0 && rename(part, path) == 0;
    const int reason = errno;
    json_decref(file);
    if (written)
        return DR_OK;
    unlink(part);
    errno = reason;
    return dr__fail_errno(err, DR_ERR_IO, "codec speeds: %s cannot be written", path);
}

/* ---- Keeping and asking ----------------------------------------------------------------------------------------- */

static dr_status canonical(const char *spec, dr__chain *chain, char *text, dr_error *err)
{
    DR_TRY(dr__chain_parse(spec, chain, err));
    dr__chain_text(chain, text);
    return DR_OK;
}

static bool is_class(dr_codec_class data_class)
{
    return strcmp(dr_codec_class_name(data_class), "?") != 0;
}

dr_status dr_codec_keep(const char *spec, dr_codec_class data_class, const dr_codec_speed *speed, dr_error *err)
{
    char text[DR_CODEC_SPEC_TEXT];
    dr__chain chain;
    DR_TRY(canonical(spec, &chain, text, err));
    if (!is_class(data_class))
        return dr__fail(err, DR_ERR_ARG, "codec speeds: data_class must be a dr_codec_class, got %d", (int)data_class);
    json_t *row =
        json_pack("{s:s, s:s, s:f, s:f, s:f}", "spec", text, "class", dr_codec_class_name(data_class), "encode",
                  speed->encode_bytes_per_s, "decode", speed->decode_bytes_per_s, "ratio", speed->ratio);
    if (!row || !is_figure(json_object_get(row, "encode")) || !is_figure(json_object_get(row, "decode")) ||
        !is_figure(json_object_get(row, "ratio"))) {
        json_decref(row);
        return dr__fail(err, DR_ERR_ARG, "codec speeds: the figures of \"%s\" must be above 0 and finite", text);
    }
    pthread_mutex_lock(&lock);
    json_t *now = read_rows();
    add_row(now, row);
    const dr_status status = write_rows(now, err);
    json_decref(rows);
    rows = now;
    pthread_mutex_unlock(&lock);
    json_decref(row);
    return status;
}

dr_status dr_codec_measured(const char *spec, dr_codec_class data_class, dr_codec_speed *out, dr_error *err)
{
    char text[DR_CODEC_SPEC_TEXT], key[2 * DR_CODEC_SPEC_TEXT];
    dr__chain chain;
    DR_TRY(canonical(spec, &chain, text, err));
    if (!is_class(data_class))
        return dr__fail(err, DR_ERR_NOT_FOUND, "codec speeds: data_class must be a dr_codec_class, got %d",
                        (int)data_class);
    snprintf(key, sizeof key, "%s %s", dr_codec_class_name(data_class), text);
    pthread_mutex_lock(&lock);
    if (!rows)
        rows = read_rows();
    const json_t *row = json_object_get(rows, key);
    *out = row ? (dr_codec_speed){ .encode_bytes_per_s = json_number_value(json_object_get(row, "encode")),
                                   .decode_bytes_per_s = json_number_value(json_object_get(row, "decode")),
                                   .ratio = json_number_value(json_object_get(row, "ratio")),
                                   .measured = true }
               : dr__codec_guess(&chain, data_class);
    pthread_mutex_unlock(&lock);
    return DR_OK;
}
