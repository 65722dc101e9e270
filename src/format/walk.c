/* walk.c: reading folder trees.
 *
 * Order is that of `sorted(os.walk(top, followlinks=True))` and `sorted(fnames)`: folders by their whole path, files
 * by name, both by code point.  Folders are read breadth first into a temporary list, then copied in order.
 *
 * Differences to os.walk: a link to a folder that contains it is not followed (os.walk follows it until the path is too
 * long), and a folder that cannot be read is an error (os.walk leaves it out silently).
 */
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "format/dataset_internal.h"
#include "format/listing.h"

enum { MAX_PATH = 4096, MAX_DIRS = 1 << 24 };

struct dir {
    size_t first, n; /* its files in walk.files */
    size_t parent;   /* SIZE_MAX: none */
    uint64_t id[2];  /* 0, 0: not known */
    int64_t mtime_ns;
    bool by_link; /* reached through a symbolic link */
    bool gone;    /* vanished, or a loop: as if it had not been there */
};

struct walk {
    dr__source_lister lister; /* of the folder being read */
    size_t at;                /* its number */
    dr__source_dir *root;     /* borrowed */
    const char *const *extensions;
    bool stop_at_first; /* end with the first file */
    bool only_dirs;     /* take no files of the folder being read */
    dr__names paths;    /* of dirs */
    struct dir *dirs;
    size_t dirs_cap;
    dr__names files;
    uint64_t root_hash, root_entries; /* see dr__listing */
};

static void walk_free(struct walk *w)
{
    dr__names_free(&w->paths);
    dr__names_free(&w->files);
    dr__free(w->dirs);
}

static dr_status no_memory(const struct walk *w, dr_error *err)
{
    return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory while listing", w->root->name);
}

static dr_status add_dir(struct walk *w, const char *path, size_t len, size_t parent, bool by_link, dr_error *err)
{
    if (w->paths.n >= MAX_DIRS)
        return dr__fail(err, DR_ERR_LIMIT, "%s: more than %d folders", w->root->name, MAX_DIRS);
    struct dir *dirs = dr__grow(w->dirs, &w->dirs_cap, w->paths.n + 1, sizeof *dirs);
    if (!dirs)
        return no_memory(w, err);
    w->dirs = dirs;
    dirs[w->paths.n] = (struct dir){ .parent = parent, .by_link = by_link };
    return dr__names_add(&w->paths, path, len) ? DR_OK : no_memory(w, err);
}

static dr_status add_subdir(struct walk *w, size_t parent, const char *name, bool by_link, dr_error *err)
{
    char path[MAX_PATH];
    size_t base = dr__names_len(&w->paths, parent), len = strlen(name);
    const char *base_path = dr__names_get(&w->paths, parent);
    if (base + len + 2 > sizeof path)
        return dr__fail(err, DR_ERR_LIMIT, "%s/%.200s...: path longer than %d bytes", w->root->name, base_path,
                        MAX_PATH);
    if (base) {
        memcpy(path, base_path, base);
        path[base++] = '/';
    }
    memcpy(path + base, name, len);
    return add_dir(w, path, base + len, parent, by_link, err);
}

static bool is_loop(const struct walk *w, size_t i)
{
    const struct dir *d = &w->dirs[i];
    for (size_t p = d->parent; d->by_link && p != SIZE_MAX; p = w->dirs[p].parent)
        if (!memcmp(w->dirs[p].id, d->id, sizeof d->id))
            return true;
    return false;
}

/* A sum, so that the order of the names does not matter.  Index files do not count. */
static void hash_name(const char *name, uint64_t *hash, uint64_t *n)
{
    static const char own[] = ".drapps-";
    if (!strncmp(name, own, sizeof own - 1))
        return;
    *hash += XXH3_64bits(name, strlen(name));
    ++*n;
}

static bool begin_dir(dr__source_lister *lister, const dr__source_facts *facts)
{
    struct walk *w = (struct walk *)lister;
    struct dir *d = &w->dirs[w->at];
    memcpy(d->id, facts->id, sizeof d->id);
    d->mtime_ns = facts->mtime_ns;
    d->gone = is_loop(w, w->at);
    return !d->gone;
}

static dr_status take_entry(dr__source_lister *lister, const dr__source_entry *entry, dr_error *err)
{
    struct walk *w = (struct walk *)lister;
    if (w->stop_at_first && w->files.n)
        return DR_END;
    if (w->at == 0)
        hash_name(entry->name, &w->root_hash, &w->root_entries);
    if (entry->is_dir)
        return add_subdir(w, w->at, entry->name, entry->by_link, err);
    size_t len = strlen(entry->name);
    if (w->only_dirs || !dr__has_extension(entry->name, len, w->extensions))
        return DR_OK;
    return dr__names_add(&w->files, entry->name, len) ? DR_OK : no_memory(w, err);
}

/* A folder that has vanished, or is no folder any more, is as if it had not been there. */
static dr_status read_dir(struct walk *w, size_t i, dr_error *err)
{
    const size_t first = w->files.n;
    w->lister = (dr__source_lister){ .begin = begin_dir, .take = take_entry };
    w->at = i;
    w->dirs[i].gone = true;
    dr_status status = dr__source_dir_list(w->root, dr__names_get(&w->paths, i), &w->lister, err);
    if (w->dirs[i].gone)
        return status == DR_ERR_NOT_FOUND ? DR_OK : status;
    w->dirs[i].first = first; /* after reading: dirs may have moved */
    w->dirs[i].n = w->files.n - first;
    return status;
}

/* Reads folder `top` and everything below it. */
static dr_status read_tree(struct walk *w, size_t top, dr_error *err)
{
    for (size_t i = top; i < w->paths.n && !(w->stop_at_first && w->files.n); i++)
        DR_TRY(read_dir(w, i, err));
    return DR_OK;
}

static const char **pointers(const dr__names *names, size_t first, size_t n)
{
    const char **p = dr__realloc(NULL, n, sizeof *p);
    for (size_t i = 0; p && i < n; i++)
        p[i] = dr__names_get(names, first + i);
    return p;
}

static bool copy_dir(const struct walk *w, size_t i, dr__listing *out)
{
    const struct dir *d = &w->dirs[i];
    if (!dr__listing_add_dir(out, dr__names_get(&w->paths, i), dr__names_len(&w->paths, i), d->mtime_ns))
        return false;
    const char **names = pointers(&w->files, d->first, d->n);
    bool good = names && dr__names_sort(names, d->n);
    for (size_t k = 0; good && k < d->n; k++)
        good = dr__listing_add_file(out, names[k], strlen(names[k]));
    dr__free(names);
    return good;
}

/* Which folder has this path: the pointer is one of the block's own. */
static size_t number_of(const dr__names *paths, const char *text)
{
    size_t lo = 0, hi = paths->n;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (dr__names_get(paths, mid) <= text)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* Folders from..n of the walk, in order, into the listing. */
static dr_status copy_sorted(const struct walk *w, size_t from, dr__listing *out, dr_error *err)
{
    size_t n = w->paths.n - from;
    const char **paths = pointers(&w->paths, from, n);
    bool good = paths && dr__names_sort(paths, n);
    for (size_t k = 0; good && k < n; k++) {
        size_t i = number_of(&w->paths, paths[k]);
        good = w->dirs[i].gone || copy_dir(w, i, out);
    }
    dr__free(paths);
    return good ? DR_OK : no_memory(w, err);
}

/* One class: folder `top` of the classes' walk, with its own temporary lists. */
static dr_status walk_class(const struct walk *classes, const char *name, bool by_link, dr__listing *out, dr_error *err)
{
    struct walk w = { .root = classes->root, .extensions = classes->extensions };
    dr_status status = add_dir(&w, "", 0, SIZE_MAX, false, err); /* the root, so that a link to it is seen as a loop */
    if (status == DR_OK) {
        w.dirs[0] = classes->dirs[0];
        w.dirs[0].gone = true; /* only there as an ancestor */
        w.dirs[0].n = 0;
        status = add_dir(&w, name, strlen(name), 0, by_link, err);
    }
    if (status == DR_OK)
        status = read_tree(&w, 1, err);
    if (status == DR_OK) {
        w.dirs[1].gone = false; /* a class without files is reported, not left out */
        status = copy_sorted(&w, 1, out, err);
    }
    walk_free(&w);
    return status;
}

static dr_status walk_classes(struct walk *w, dr__listing *out, dr_error *err)
{
    w->only_dirs = true;
    DR_TRY(read_dir(w, 0, err));
    if (!copy_dir(w, 0, out))
        return no_memory(w, err);
    size_t n = w->paths.n - 1;
    const char **names = pointers(&w->paths, 1, n);
    if (!names || !dr__names_sort(names, n)) {
        dr__free(names);
        return no_memory(w, err);
    }
    dr_status status = DR_OK;
    for (size_t k = 0; k < n && status == DR_OK; k++)
        status = walk_class(w, names[k], w->dirs[number_of(&w->paths, names[k])].by_link, out, err);
    dr__free(names);
    return status;
}

dr_status dr__listing_walk(const char *const *extensions, dr__listing *out, dr_error *err)
{
    struct walk w = { .root = out->root, .extensions = extensions };
    dr_status status = add_dir(&w, "", 0, SIZE_MAX, false, err);
    if (status == DR_OK && out->by_class) {
        status = walk_classes(&w, out, err);
    } else if (status == DR_OK) {
        status = read_tree(&w, 0, err);
        if (status == DR_OK)
            status = copy_sorted(&w, 0, out, err);
    }
    out->root_hash = w.root_hash;
    out->root_entries = w.root_entries;
    walk_free(&w);
    return status;
}

bool dr__listing_any_below(const char *root, const char *const *extensions)
{
    struct walk w = { .extensions = extensions, .only_dirs = true };
    dr_status status = dr__source_dir_open(root, NULL, &w.root, NULL);
    if (status != DR_OK)
        return status == DR_ERR_NOMEM; /* whoever opens it will meet the error, and can report it */
    status = add_dir(&w, "", 0, SIZE_MAX, false, NULL);
    if (status == DR_OK)
        status = read_dir(&w, 0, NULL);
    w.only_dirs = false;
    w.stop_at_first = true;
    if (status == DR_OK)
        status = read_tree(&w, 1, NULL);
    bool found = status != DR_OK || w.files.n; /* likewise */
    walk_free(&w);
    dr__source_dir_close(&w.root);
    return found;
}

struct name_hash {
    dr__source_lister lister;
    uint64_t hash, n;
};

static dr_status hash_entry(dr__source_lister *lister, const dr__source_entry *entry, dr_error *err)
{
    struct name_hash *h = (struct name_hash *)lister;
    (void)err;
    hash_name(entry->name, &h->hash, &h->n);
    return DR_OK;
}

dr_status dr__listing_hash_names(dr__source_dir *dir, uint64_t *hash, uint64_t *n)
{
    struct name_hash h = { .lister = { .take = hash_entry } };
    DR_TRY(dr__source_dir_list(dir, "", &h.lister, NULL));
    *hash = h.hash;
    *n = h.n;
    return DR_OK;
}
