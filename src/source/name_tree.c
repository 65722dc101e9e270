/* name_tree.c: a sorted list of paths; what lies below a directory is a run of it. */
#include "source/name_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"

/* Slashes before all other bytes, so that a directory's paths stand together, before those of "directory.txt". */
static int compare_paths(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    const int x = *a == '/' ? 1 : *a ? 1 + (unsigned char)*a : 0, y = *b == '/' ? 1 : *b ? 1 + (unsigned char)*b : 0;
    return x - y;
}

static bool is_clean(const char *path, size_t n)
{
    if (memchr(path, 0, n))
        return false;
    for (size_t i = 0; i <= n;) {
        const char *slash = i < n ? memchr(path + i, '/', n - i) : NULL;
        const size_t len = slash ? (size_t)(slash - path) - i : n - i;
        if (!len || (len == 1 && path[i] == '.') || (len == 2 && path[i] == '.' && path[i + 1] == '.'))
            return false;
        i += len + 1;
    }
    return true;
}

bool dr__name_tree_add(dr__name_tree *t, const char *path, size_t n)
{
    if (!is_clean(path, n))
        return false;
    size_t *begin = dr__grow(t->begin, &t->cap, t->n + 1, sizeof *begin);
    if (!begin) {
        t->block.failed = true;
        return false;
    }
    t->begin = begin;
    begin[t->n] = t->block.n;
    dr__text_add(&t->block, path, n);
    dr__text_add(&t->block, "", 1);
    t->n += !t->block.failed;
    return !t->block.failed;
}

static int compare(const void *a, const void *b, void *block)
{
    return compare_paths((const char *)block + *(const size_t *)a, (const char *)block + *(const size_t *)b);
}

void dr__name_tree_finish(dr__name_tree *t)
{
    if (!t->n)
        return;
    qsort_r(t->begin, t->n, sizeof *t->begin, compare, t->block.text);
    size_t kept = 1;
    for (size_t i = 1; i < t->n; i++)
        if (strcmp(t->block.text + t->begin[kept - 1], t->block.text + t->begin[i]))
            t->begin[kept++] = t->begin[i];
    t->n = kept;
}

/* The first path that is not before `path`. */
static size_t lower_bound(const dr__name_tree *t, const char *path)
{
    size_t lo = 0, hi = t->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (compare_paths(t->block.text + t->begin[mid], path) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* One entry, and the next path that is not below it. */
static dr_status hand_over(const dr__name_tree *t, size_t *i, size_t skip, dr__text *name, dr__source_lister *lister,
                           dr_error *err)
{
    const char *path = t->block.text + t->begin[*i] + skip, *slash = strchr(path, '/');
    const size_t len = slash ? (size_t)(slash - path) : strlen(path);
    name->n = 0;
    dr__text_add(name, path, len);
    if (name->failed)
        return dr__fail(err, DR_ERR_NOMEM, "out of memory");
    const dr__source_entry entry = { .name = name->text, .is_dir = slash };
    do
        ++*i;
    while (slash && *i < t->n && !strncmp(t->block.text + t->begin[*i], path - skip, skip + len + 1));
    return lister->take(lister, &entry, err);
}

dr_status dr__name_tree_list(const dr__name_tree *t, const char *path, dr__source_lister *lister, dr_error *err)
{
    dr__text prefix = { 0 }, name = { 0 };
    const dr__source_facts facts = { .kind = DR__SOURCE_DIR };
    if (*path) {
        dr__text_say(&prefix, path);
        dr__text_say(&prefix, "/");
        if (prefix.failed)
            return dr__fail(err, DR_ERR_NOMEM, "out of memory");
    }
    size_t i = prefix.n ? lower_bound(t, prefix.text) : 0;
    dr_status status = DR_OK;
    if (i == t->n || (prefix.n && strncmp(t->block.text + t->begin[i], prefix.text, prefix.n)))
        status = dr__fail(err, DR_ERR_NOT_FOUND, "%s: no such folder", path);
    else if (!lister->begin || lister->begin(lister, &facts))
        while (status == DR_OK && i < t->n &&
               (!prefix.n || !strncmp(t->block.text + t->begin[i], prefix.text, prefix.n)))
            status = hand_over(t, &i, prefix.n, &name, lister, err);
    dr__free(prefix.text);
    dr__free(name.text);
    return status == DR_END ? DR_OK : status;
}

void dr__name_tree_free(dr__name_tree *t)
{
    dr__free(t->block.text);
    dr__free(t->begin);
    *t = (dr__name_tree){ 0 };
}
