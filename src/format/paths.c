/* paths.c: folders are found again by open addressing over their texts. */
#include "format/paths.h"

#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/grow.h"

enum { NO_DIR = -1, FIRST_SLOTS = 64 };

static int64_t *find_slot(int64_t *slots, size_t n_slots, const dr__names *dirs, const char *text, size_t len)
{
    for (size_t i = (size_t)XXH3_64bits(text, len);; i++) {
        int64_t *slot = &slots[i & (n_slots - 1)];
        size_t d = (size_t)*slot;
        if (*slot == NO_DIR || (dr__names_len(dirs, d) == len && !memcmp(dr__names_get(dirs, d), text, len)))
            return slot;
    }
}

static bool more_slots(dr__paths *p)
{
    size_t n = p->n_slots ? p->n_slots * 2 : FIRST_SLOTS;
    int64_t *slots = dr__realloc(NULL, n, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < n; i++)
        slots[i] = NO_DIR;
    for (size_t d = 0; d < p->dirs.n; d++)
        *find_slot(slots, n, &p->dirs, dr__names_get(&p->dirs, d), dr__names_len(&p->dirs, d)) = (int64_t)d;
    dr__free(p->slots);
    p->slots = slots;
    p->n_slots = n;
    return true;
}

static bool dir_number(dr__paths *p, const char *text, size_t len, uint32_t *out)
{
    if (p->dirs.n * 2 >= p->n_slots && !more_slots(p))
        return false;
    int64_t *slot = find_slot(p->slots, p->n_slots, &p->dirs, text, len);
    if (*slot == NO_DIR) {
        if (p->dirs.n >= UINT32_MAX || !dr__names_add(&p->dirs, text, len))
            return false;
        *slot = (int64_t)p->dirs.n - 1;
    }
    *out = (uint32_t)*slot;
    return true;
}

bool dr__paths_add(dr__paths *p, const char *path, size_t len)
{
    const char *slash = strrchr(path, '/');
    size_t dir_len = slash ? (size_t)(slash - path) + 1 : 0;
    uint32_t *dir_of = dr__grow(p->dir_of, &p->dir_of_cap, p->files.n + 1, sizeof *dir_of);
    if (!dir_of)
        return false;
    p->dir_of = dir_of;
    return dir_number(p, path, dir_len, &dir_of[p->files.n]) && dr__names_add(&p->files, path + dir_len, len - dir_len);
}

void dr__paths_shrink(dr__paths *p)
{
    dr__names_shrink(&p->dirs);
    dr__names_shrink(&p->files);
    dr__free(p->slots);
    p->slots = NULL;
    p->n_slots = 0;
    uint32_t *dir_of = p->files.n ? dr__realloc(p->dir_of, p->files.n, sizeof *dir_of) : NULL;
    if (dir_of) {
        p->dir_of = dir_of;
        p->dir_of_cap = p->files.n;
    }
}

void dr__paths_free(dr__paths *p)
{
    dr__names_free(&p->dirs);
    dr__names_free(&p->files);
    dr__free(p->dir_of);
    dr__free(p->slots);
    *p = (dr__paths){ 0 };
}

size_t dr__paths_get(const dr__paths *p, size_t i, char *text, size_t size)
{
    size_t d = p->dir_of[i], dir_len = dr__names_len(&p->dirs, d), name_len = dr__names_len(&p->files, i);
    size_t a = DR_MIN(dir_len, size - 1), b = DR_MIN(name_len, size - 1 - a);
    memcpy(text, dr__names_get(&p->dirs, d), a);
    memcpy(text + a, dr__names_get(&p->files, i), b);
    text[a + b] = 0;
    return a + b;
}
