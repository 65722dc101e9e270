/* pack_keys.c: names of members.
 *
 * In WebDataset form the key of a sample ends at the first dot of its file's name.  Files whose names have one dot keep
 * them, so that a tar of a packed folder extracts to that folder.  Where one name would be ambiguous or unsafe, all
 * samples are numbered, and each has its key in a member of its own.
 */
#include "pack/pack_keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "codec/file_types.h"

enum { MAX_NAME = 3900 };

/* Field of the manifest to field of the data set. */
static int set_field(const dr__recipe *r, int field)
{
    return dr__dataset_find_field(r->set, r->manifest->fields[field].field.name);
}

static dr_status file_of(const dr__recipe *r, uint64_t id, int field, char path[DR__KEY_BYTES])
{
    const int f = set_field(r, field);
    return f < 0 ? DR_ERR_NOT_FOUND : dr__dataset_file(r->set, id, f, path, DR__KEY_BYTES, NULL);
}

bool dr__pack_has_file(const dr__recipe *r, uint64_t id, int field)
{
    char path[DR__KEY_BYTES];
    return file_of(r, id, field, path) == DR_OK;
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Can it be extracted anywhere, below the folder that one is in? */
static bool is_plain(const char *path)
{
    const size_t len = strlen(path);
    if (!len || len > MAX_NAME)
        return false;
    for (const char *part = path; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL) {
        const size_t n = strcspn(part, "/");
        if (!n || (n == 1 && part[0] == '.') || (n == 2 && part[0] == '.' && part[1] == '.'))
            return false;
    }
    for (const unsigned char *p = (const unsigned char *)path; *p; p++)
        if (*p < 0x20 || *p == 0x7F)
            return false;
    return true;
}

static bool lower(const char *text, char out[DR__KEY_EXT])
{
    size_t i = 0;
    for (; text[i] && i < DR__KEY_EXT - 1; i++)
        out[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];
    out[i] = 0;
    return i && !text[i];
}

static bool is_of_field(const dr__recipe *r, const char *ext, int field)
{
    char low[DR__KEY_EXT];
    return lower(ext, low) && dr__manifest_field_of(r->manifest, low) == field;
}

/* Splits a path that can be a member's name; false: it cannot be that of this field. */
static bool split(const dr__recipe *r, int field, char *path, const char **ext)
{
    char *dot = strchr(base_of(path), '.');
    if (!is_plain(path) || !dot || dot == base_of(path) || !is_of_field(r, dot + 1, field))
        return false;
    *dot = 0;
    *ext = dot + 1;
    return true;
}

static bool same_stems(const dr__recipe *r, uint64_t id, const char *stem)
{
    char path[DR__KEY_BYTES];
    const char *ext;
    for (int f = 0; f < r->manifest->n_fields; f++)
        if (r->manifest->fields[f].stored == DR__STORED_FILE && file_of(r, id, f, path) == DR_OK &&
            (!split(r, f, path, &ext) || strcmp(path, stem) != 0))
            return false;
    return true;
}

/* The name of a sample in this form, into `stem`; false: it cannot have one. */
static bool stem_in_form(const dr__recipe *r, dr__key_form form, uint64_t id, char stem[DR__KEY_BYTES])
{
    char key[DR__KEY_BYTES];
    const char *ext;
    r->set->def->key(r->set, id, key, sizeof key);
    if (form == DR__KEY_STEM) {
        memcpy(stem, key, strlen(key) + 1);
        return is_plain(key) && !strchr(base_of(key), '.') && same_stems(r, id, key);
    }
    if (r->first_field < 0 || file_of(r, id, r->first_field, stem) != DR_OK || strcmp(stem, key) != 0)
        return false;
    return split(r, r->first_field, stem, &ext) && same_stems(r, id, stem);
}

static uint64_t hash_of(const char *stem)
{
    return XXH3_64bits(stem, strlen(stem));
}

/* The name that a sample of a packed set has, if it is not numbered: that up to the first dot of its key. */
static uint64_t present_hash(const dr_dataset *set, uint64_t id)
{
    char key[DR__KEY_BYTES];
    set->def->key(set, id, key, sizeof key);
    char *dot = strchr(base_of(key), '.');
    if (dot)
        *dot = 0;
    return hash_of(key);
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Can all samples have names of this form?  `hashes` has room for those of the samples and of `present`. */
static bool fits(const dr__recipe *r, dr__key_form form, const dr_dataset *present, uint64_t *hashes)
{
    char stem[DR__KEY_BYTES];
    size_t n = 0;
    for (uint64_t id = 0; id < r->set->n_samples; id++) {
        if (!stem_in_form(r, form, id, stem))
            return false;
        hashes[n++] = hash_of(stem);
    }
    for (uint64_t id = 0; present && id < present->n_samples; id++)
        hashes[n++] = present_hash(present, id);
    qsort(hashes, n, sizeof *hashes, by_value);
    for (size_t i = 1; i < n; i++)
        if (hashes[i] == hashes[i - 1])
            return false;
    return true;
}

dr_status dr__pack_choose_keys(dr__recipe *r, const dr_dataset *present, dr_error *err)
{
    static const dr__key_form forms[] = { DR__KEY_PATH, DR__KEY_STEM };
    const uint64_t n = r->set->n_samples + (present ? present->n_samples : 0);
    uint64_t *hashes = dr__alloc_zero(n, sizeof *hashes);
    if (!hashes)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory for the names of %" PRIu64 " samples", r->set->name, n);
    r->keys = DR__KEY_NUMBER;
    for (int i = 0; i < 2 && r->keys == DR__KEY_NUMBER; i++)
        if (fits(r, forms[i], present, hashes))
            r->keys = forms[i];
    dr__free(hashes);
    return DR_OK;
}

dr_status dr__pack_stem(const dr__recipe *r, uint64_t id, const char *key, char stem[DR__KEY_BYTES], dr_error *err)
{
    if (r->keys == DR__KEY_NUMBER) {
        snprintf(stem, DR__KEY_BYTES, "%09" PRIu64, r->first_number + id);
        return DR_OK;
    }
    if (stem_in_form(r, r->keys, id, stem))
        return DR_OK;
    return dr__fail(err, DR_ERR_STATE, "%s: sample \"%s\": has changed since packing began", r->set->name, key);
}

/* What bytes of an image look like: an extension of the codec that reads them. */
static const char *sniff(const void *data, size_t size)
{
    const dr_image_codec *codec;
    if (dr__image_probe(data, size, &codec, NULL) == DR_OK)
        for (const dr__file_type *t = dr__file_types; t->extension; t++)
            if (!strcmp(t->codec, codec->name))
                return t->extension + 1;
    return "bin";
}

dr_status dr__pack_ext(const dr__recipe *r, uint64_t id, int field, const void *data, size_t size,
                       char ext[DR__KEY_EXT], dr_error *err)
{
    const dr__set_field *f = &r->manifest->fields[field];
    char path[DR__KEY_BYTES] = "";
    const bool has_file = file_of(r, id, field, path) == DR_OK;
    const char *base = base_of(path), *first = strchr(base, '.'), *last = strrchr(base, '.');
    if (has_file && first && is_of_field(r, first + 1, field)) {
        if (r->keys == DR__KEY_PATH)
            snprintf(ext, DR__KEY_EXT, "%s", first + 1); /* with its capitals */
        else
            lower(first + 1, ext);
        return DR_OK;
    }
    if (has_file && last && is_of_field(r, last + 1, field)) {
        lower(last + 1, ext);
        return DR_OK;
    }
    char guess[DR__KEY_EXT];
    const bool image = !strcmp(f->field.name, "image") && f->field.desc.kind == DR_KIND_BYTES;
    if (!has_file || !last || !lower(last + 1, guess) || strlen(guess) > 8 || !strcmp(guess, "npy"))
        snprintf(guess, sizeof guess, "%s",
                 f->field.desc.kind == DR_KIND_TEXT ? "txt"
                 : image                            ? sniff(data, size)
                                                    : "bin");
    if (is_of_field(r, guess, field))
        memcpy(ext, guess, sizeof guess);
    else
        snprintf(ext, DR__KEY_EXT, "%.48s.%.8s", f->member, guess);
    if (is_of_field(r, ext, field))
        return DR_OK;
    return dr__fail(err, DR_ERR_UNSUPPORTED, "its field \"%s\" has no name in a tar", f->field.name);
}
