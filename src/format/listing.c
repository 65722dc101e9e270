/* listing.c: the listing itself: adding, finding, and the choice between index and walk. */
#include "format/listing.h"

#include <string.h>
#include <time.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/grow.h"

bool dr__listing_add_dir(dr__listing *l, const char *path, size_t len, int64_t mtime_ns)
{
    dr__listing_dir *dir = dr__grow(l->dir, &l->dir_cap, l->dirs.n + 1, sizeof *dir);
    if (!dir)
        return false;
    l->dir = dir;
    if (l->by_class && len && !memchr(path, '/', len))
        l->n_classes++;
    dir[l->dirs.n] = (dr__listing_dir){
        .first = l->files.n,
        .mtime_ns = mtime_ns,
        .label = l->n_classes ? (uint32_t)(l->n_classes - 1) : UINT32_MAX,
    };
    return dr__names_add(&l->dirs, path, len);
}

bool dr__listing_add_file(dr__listing *l, const char *name, size_t len)
{
    return dr__names_add(&l->files, name, len);
}

void dr__listing_free(dr__listing *l)
{
    dr__source_dir_close(&l->root);
    dr__names_free(&l->dirs);
    dr__names_free(&l->files);
    dr__free(l->dir);
    *l = (dr__listing){ 0 };
}

/* Drops what was listed but keeps the folder open. */
static void clear(dr__listing *l)
{
    dr__names_free(&l->dirs);
    dr__names_free(&l->files);
    dr__free(l->dir);
    *l = (dr__listing){ .root = l->root, .by_class = l->by_class };
}

size_t dr__listing_dir_of(const dr__listing *l, uint64_t i)
{
    size_t lo = 0, hi = l->dirs.n;
    while (hi - lo > 1) { /* the last folder that begins at or before i; empty ones share their successor's start */
        size_t mid = lo + (hi - lo) / 2;
        if (l->dir[mid].first <= i)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

size_t dr__listing_path(const dr__listing *l, uint64_t i, char *text, size_t size)
{
    size_t d = dr__listing_dir_of(l, i), dir_len = dr__names_len(&l->dirs, d);
    size_t name_len = dr__names_len(&l->files, i), used = 0;
    const char *parts[] = { dr__names_get(&l->dirs, d), "/", dr__names_get(&l->files, i) };
    size_t lens[] = { dir_len, dir_len ? 1 : 0, name_len };
    for (int k = 0; k < 3 && size; k++) {
        size_t n = lens[k] < size - 1 - used ? lens[k] : size - 1 - used;
        memcpy(text + used, parts[k], n);
        used += n;
    }
    if (size)
        text[used] = 0;
    return dir_len + (dir_len ? 1 : 0) + name_len;
}

const char **dr__listing_classes(const dr__listing *l)
{
    const char **names = dr__realloc(NULL, l->n_classes, sizeof *names);
    for (size_t d = 1; names && d < l->dirs.n; d++)
        if (l->dir[d].label != UINT32_MAX && !strchr(dr__names_get(&l->dirs, d), '/'))
            names[l->dir[d].label] = dr__names_get(&l->dirs, d);
    return names;
}

uint64_t dr__listing_fingerprint(const dr__listing *l)
{
    uint64_t h = XXH3_64bits_withSeed(l->files.block, l->files.used, l->by_class);
    h = XXH3_64bits_withSeed(l->dirs.block, l->dirs.used, h);
    for (size_t d = 0; d < l->dirs.n; d++)
        h = XXH3_64bits_withSeed(&l->dir[d].first, sizeof l->dir[d].first, h);
    return h;
}

size_t dr__listing_bytes(const dr__listing *l)
{
    return dr__names_bytes(&l->dirs) + dr__names_bytes(&l->files) + l->dir_cap * sizeof *l->dir;
}

static dr_status walk(const char *root, const char *const *extensions, bool use_index, dr__listing *l, dr_error *err)
{
    int64_t started_ns = (int64_t)dr__clock_ns(CLOCK_REALTIME);
    DR_TRY(dr__listing_walk(extensions, l, err));
    if (use_index)
        dr__listing_save(root, extensions, l, started_ns);
    return DR_OK;
}

dr_status dr__listing_open(const char *root, const dr__source_options *options, bool by_class,
                           const char *const *extensions, bool use_index, dr__listing *out, dr_error *err)
{
    *out = (dr__listing){ .by_class = by_class };
    DR_TRY(dr__source_dir_open(root, options, &out->root, err));
    dr_status status = DR_ERR_NOT_FOUND;
    if (use_index)
        status = dr__listing_load(root, extensions, out, NULL);
    if (status != DR_OK) {
        clear(out);
        status = walk(root, extensions, use_index, out, err);
    }
    if (status != DR_OK) {
        dr__listing_free(out);
        return status;
    }
    dr__names_shrink(&out->dirs);
    dr__names_shrink(&out->files);
    return DR_OK;
}
