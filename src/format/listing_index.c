/* listing_index.c: keeping a listing, so that a large folder is read once.
 *
 *   section 1  text: kind, extensions; in the cache folder also the root's real path
 *   section 2  u64 root_hash, u64 n_dirs, u64 n_files; then for each folder: u64 mtime_ns, u64 first, path, zero byte
 *   section 3  the file names, each with a zero byte
 *
 * A listing is valid while no folder in it has another mtime: adding, removing or renaming a file changes that of its
 * folder.  The content of files may change freely, since only names are kept.  An index beside the data changes the
 * mtime of the root itself, so there the names in the root are compared instead; it is put there only when they are few
 * compared with the files.  Small folders get no index.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "format/dataset_internal.h"
#include "index/index_file.h"
#include "format/listing.h"

enum { SECTION_WHAT = 1, SECTION_DIRS = 2, SECTION_NAMES = 3, N_SECTIONS = 3 };
enum { WORTH_FILES = 1000, FILES_PER_ROOT_ENTRY = 8, WHAT_SIZE = PATH_MAX + 512 };

/* The resolution of a file system's clock may be this coarse: a folder that changed less than this ago may change again
 * with the same mtime. */
static const int64_t fresh_ns = 2000000000;

struct place {
    dr__index_paths path;
    char beside_what[512], cached_what[WHAT_SIZE];
};

static bool place_make(struct place *p, const char *root, bool by_class, const char *const *extensions)
{
    char real[PATH_MAX], beside[PATH_MAX + 32], list[400];
    if (!dr__source_real_name(root, real, sizeof real))
        return false;
    const char *kind = by_class ? "folder" : "flat";
    dr__extensions_text(extensions, list, sizeof list);
    snprintf(p->beside_what, sizeof p->beside_what, "%s %s", kind, list);
    snprintf(p->cached_what, sizeof p->cached_what, "%s %s %s", kind, list, real);
    snprintf(beside, sizeof beside, "%s/.drapps-index", real);
    bool usual = by_class && extensions == dr__extensions(NULL); /* others would take turns in overwriting it */
    dr__index_paths_make(&p->path, usual ? beside : NULL, p->cached_what);
    return true;
}

static bool good_name(const char *name, size_t len)
{
    return len && !memchr(name, '/', len) && strcmp(name, ".") && strcmp(name, "..");
}

/* No index leads outside its root. */
static bool good_path(const char *path)
{
    char part[NAME_MAX + 1];
    for (;;) {
        size_t n = strcspn(path, "/");
        if (n > NAME_MAX)
            return false;
        memcpy(part, path, n);
        part[n] = 0;
        if (!good_name(part, n))
            return false;
        if (!path[n])
            return true;
        path += n + 1;
    }
}

static dr_status decode_dir(dr_cursor *c, dr_cursor *names, uint64_t end, dr__listing *out, dr_error *err)
{
    const char *name;
    size_t len;
    while (out->files.n < end) {
        DR_TRY(dr__cursor_text(names, &name, &len, err));
        if (!good_name(name, len))
            return dr__fail(err, DR_ERR_FORMAT, "%s: a file name is not one", c->what);
        if (!dr__listing_add_file(out, name, len))
            return dr__fail(err, DR_ERR_NOMEM, "index: out of memory");
    }
    return DR_OK;
}

static dr_status decode_dirs(dr_cursor *c, dr_cursor *names, dr__listing *out, dr_error *err)
{
    uint64_t n_dirs, n_files, mtime, first;
    const char *path;
    size_t len;
    DR_TRY(dr__cursor_u64(c, &out->root_hash, err));
    DR_TRY(dr__cursor_u64(c, &n_dirs, err));
    DR_TRY(dr__cursor_u64(c, &n_files, err));
    for (uint64_t d = 0; d < n_dirs; d++) {
        DR_TRY(dr__cursor_u64(c, &mtime, err));
        DR_TRY(dr__cursor_u64(c, &first, err));
        DR_TRY(dr__cursor_text(c, &path, &len, err));
        if ((d == 0 && (len || first)) || (d && !good_path(path)) || first < out->files.n || first > n_files)
            return dr__fail(err, DR_ERR_FORMAT, "%s: folder %llu is wrong", c->what, (unsigned long long)d);
        DR_TRY(decode_dir(c, names, first, out, err)); /* the files of the folder before */
        if (!dr__listing_add_dir(out, path, len, (int64_t)mtime))
            return dr__fail(err, DR_ERR_NOMEM, "index: out of memory");
    }
    DR_TRY(decode_dir(c, names, n_files, out, err));
    if (!n_dirs || dr__cursor_left(names) || dr__cursor_left(c))
        return dr__fail(err, DR_ERR_FORMAT, "%s: counts do not fit", c->what);
    return DR_OK;
}

dr_status dr__listing_decode(const void *data, size_t size, const char *what, dr__listing *out, dr_error *err)
{
    dr_cursor c, names;
    const char *text;
    size_t len;
    DR_TRY(dr__index_section(data, size, SECTION_WHAT, &c, err));
    DR_TRY(dr__cursor_text(&c, &text, &len, err));
    if (strcmp(text, what))
        return dr__fail(err, DR_ERR_FORMAT, "index: of something else");
    DR_TRY(dr__index_section(data, size, SECTION_DIRS, &c, err));
    DR_TRY(dr__index_section(data, size, SECTION_NAMES, &names, err));
    return decode_dirs(&c, &names, out, err);
}

static bool holds(const dr__listing *l, bool beside)
{
    dr__source_facts facts;
    uint64_t hash, n;
    for (size_t d = beside ? 1 : 0; d < l->dirs.n; d++)
        if (dr__source_dir_stat(l->root, dr__names_get(&l->dirs, d), &facts, NULL) != DR_OK ||
            facts.kind != DR__SOURCE_DIR || facts.mtime_ns != l->dir[d].mtime_ns)
            return false;
    return !beside || (dr__listing_hash_names(l->root, &hash, &n) == DR_OK && hash == l->root_hash);
}

static dr_status try_load(const char *path, const char *what, bool beside, dr__listing *out, dr_error *err)
{
    size_t size;
    uint8_t *data = dr__index_load(path, &size);
    if (!data)
        return dr__fail(err, DR_ERR_NOT_FOUND, "no index");
    dr__listing l = { .root = out->root, .by_class = out->by_class };
    dr_status status = dr__listing_decode(data, size, what, &l, err);
    dr__free(data);
    if (status == DR_OK && !holds(&l, beside))
        status = dr__fail(err, DR_ERR_FORMAT, "index: the folders have changed");
    if (status == DR_OK) {
        *out = l;
        return DR_OK;
    }
    l.root = NULL; /* still the caller's */
    dr__listing_free(&l);
    return status;
}

dr_status dr__listing_load(const char *root, const char *const *extensions, dr__listing *out, dr_error *err)
{
    struct place p;
    if (!place_make(&p, root, out->by_class, extensions))
        return dr__fail(err, DR_ERR_NOT_FOUND, "no index");
    dr_status status = try_load(p.path.beside, p.beside_what, true, out, err);
    if (status != DR_OK)
        status = try_load(p.path.cached, p.cached_what, false, out, err);
    dr__index_paths_free(&p.path);
    return status;
}

bool dr__listing_known_below(const char *root, const char *const *extensions, bool *below)
{
    dr__listing l = { 0 };
    bool known = dr__source_dir_open(root, NULL, &l.root, NULL) == DR_OK &&
                 dr__listing_load(root, extensions, &l, NULL) == DR_OK;
    if (known)
        *below = l.dirs.n > 1 && l.files.n > l.dir[1].first; /* the root comes first in the order */
    dr__listing_free(&l);
    return known;
}

static bool worth_keeping(const dr__listing *l, int64_t started_ns)
{
    if (l->root->def->remote) /* no mtime of a folder tells that the listing still holds */
        return false;
    for (size_t d = 0; d < l->dirs.n; d++)
        if (l->dir[d].mtime_ns > started_ns - fresh_ns)
            return false;
    return l->files.n >= WORTH_FILES;
}

static void encode(dr__section sections[N_SECTIONS], const char *what, const dr__listing *l)
{
    dr__section *dirs = &sections[1];
    dr__put_bytes(&sections[0], what, strlen(what) + 1);
    dr__put_u64(dirs, l->root_hash);
    dr__put_u64(dirs, l->dirs.n);
    dr__put_u64(dirs, l->files.n);
    for (size_t d = 0; d < l->dirs.n; d++) {
        dr__put_u64(dirs, (uint64_t)l->dir[d].mtime_ns);
        dr__put_u64(dirs, l->dir[d].first);
        dr__put_bytes(dirs, dr__names_get(&l->dirs, d), dr__names_len(&l->dirs, d) + 1);
    }
    dr__put_bytes(&sections[2], l->files.block, l->files.used);
}

static bool save_as(const char *path, bool beside, const char *what, const dr__listing *l)
{
    dr__section sections[N_SECTIONS] = { { .id = SECTION_WHAT }, { .id = SECTION_DIRS }, { .id = SECTION_NAMES } };
    encode(sections, what, l);
    bool good = dr__index_save(path, beside, sections, N_SECTIONS);
    dr__sections_free(sections, N_SECTIONS);
    return good;
}

void dr__listing_save(const char *root, const char *const *extensions, const dr__listing *l, int64_t started_ns)
{
    struct place p;
    if (!worth_keeping(l, started_ns) || !place_make(&p, root, l->by_class, extensions))
        return;
    bool few = l->root_entries * FILES_PER_ROOT_ENTRY <= l->files.n;
    if (!(p.path.beside && few && save_as(p.path.beside, true, p.beside_what, l)) && p.path.cached)
        save_as(p.path.cached, false, p.cached_what, l);
    dr__index_paths_free(&p.path);
}
