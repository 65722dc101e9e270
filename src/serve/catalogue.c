/* catalogue.c: finds and opens the data sets below a folder. */
#include "serve/catalogue.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "format/names.h"
#include "format/remote_index.h"
#include "serve/beneath.h"

static atomic_uint_fast64_t numbers = 1; /* for sets: see dr__served_set.number */

enum { MOST_SETS = 10000, MOST_NAME = 200 };

typedef struct finding {
    const char *root; /* real path, or URL without a slash at its end */
    bool far;         /* it is a URL */
    void (*log)(void *user, const char *text);
    void *user;
    dr__catalogue *catalogue;
    dr__source_dir *dir;
    dr__names names; /* in the root */
} finding;

static void say(const finding *f, const char *name, const char *what)
{
    char text[DR_ERROR_TEXT + MOST_NAME + 8];
    snprintf(text, sizeof text, "%s: %s", name, what);
    if (f->log)
        f->log(f->user, text);
}

/* --- one set --- */

static void close_set(dr__served_set *s)
{
    dr_dataset_unref(&s->set);
    if (s->root_fd >= 0)
        close(s->root_fd);
    dr__source_dir_close(&s->far);
    dr__sections_free(&s->index, 1);
    dr__free(s->meta);
    dr__free(s->name);
    dr__free(s->root);
    dr__free(s->by_path);
    pthread_mutex_destroy(&s->lock);
}

static int first_bytes(const dr_dataset *set)
{
    for (int f = 0; f < set->n_fields; f++)
        if (set->fields[f].desc.kind == DR_KIND_BYTES)
            return f;
    return -1;
}

/* Every file in the folder of a set that does not tell where its samples are: none may be a link that leads out. */
typedef struct checking {
    dr__source_lister lister;
    const dr__served_set *set;
} checking;

static dr_status check_entry(dr__source_lister *lister, const dr__source_entry *entry, dr_error *err)
{
    const dr__served_set *s = ((checking *)lister)->set;
    struct stat st;
    int fd;
    if (entry->is_dir || !dr__remote_path_is_plain(entry->name))
        return DR_OK;
    if (dr__beneath_open(s->root_fd, entry->name, &fd, &st, NULL) != DR_OK)
        return dr__fail(err, DR_ERR_IO, "%s is a link that leads out of it, or cannot be read", entry->name);
    close(fd);
    return DR_OK;
}

static dr_status check_folder(const dr__served_set *s, dr_error *err)
{
    checking c = { .lister = { .take = check_entry }, .set = s };
    dr__source_dir *dir;
    DR_TRY(dr__source_dir_open(s->root, NULL, &dir, err));
    const dr_status status = dr__source_dir_list(dir, "", &c.lister, err);
    dr__source_dir_close(&dir);
    return status;
}

static bool tells_files(const dr__remote_index *x)
{
    for (int f = 0; f < x->n_fields; f++)
        if (x->values[f].form == DR__WHERE_RANGE)
            return true;
    return false;
}

/* Adds up what the index tells of sizes. */
static dr_status look_at_index(dr__served_set *s, dr_error *err)
{
    dr__remote_index x;
    DR_TRY(dr__remote_index_decode(s->index.data, s->index.size, &x, err));
    for (int f = 0; f < x.n_fields; f++)
        for (uint64_t i = 0; x.values[f].sizes && i < x.n_samples; i++)
            s->stored_bytes += x.values[f].sizes[i];
    const bool told = tells_files(&x) || s->far; /* stores have no links */
    dr__remote_index_free(&x);
    return told ? DR_OK : check_folder(s, err);
}

static dr_status make_index(dr__served_set *s, dr_error *err)
{
    DR_TRY(dr__remote_index_encode(s->set, s->root, s->name, &s->index, err));
    s->index_tag = XXH3_64bits(s->index.data, s->index.size);
    DR_TRY(dr__remote_index_meta(s->set, s->root, s->name, &s->meta, err));
    return look_at_index(s, err);
}

static dr_status open_root(dr__served_set *s, dr_read_options *o, dr_error *err)
{
    const dr__source_options options = { .timeout_ns = UINT64_C(1000000000) * DR__SERVE_FAR_TIMEOUT_S };
    if (!dr__source_is_remote(s->root))
        return dr__beneath_root(s->root, &s->root_fd, err);
    o->timeout_s = DR__SERVE_FAR_TIMEOUT_S;
    return dr__source_dir_open(s->root, &options, &s->far, err);
}

/* path: of the set; root: its folder. */
static dr_status open_set(dr__served_set *s, const char *name, const char *path, const char *root, dr_error *err)
{
    dr_read_options o;
    *s = (dr__served_set){ .root_fd = -1 };
    pthread_mutex_init(&s->lock, NULL);
    dr_read_defaults(&o);
    o.name = name;
    s->name = dr__strdup(name);
    s->root = dr__strdup(root);
    if (!s->name || !s->root)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", name);
    DR_TRY(open_root(s, &o, err));
    DR_TRY(dr_dataset_open(path, &o, &s->set, err));
    s->image = first_bytes(s->set);
    s->number = atomic_fetch_add(&numbers, 1);
    return make_index(s, err);
}

static bool is_below(const char *path, const char *root)
{
    const size_t n = strlen(root);
    return !strncmp(path, root, n) && (!path[n] || path[n] == '/' || !strcmp(root, "/"));
}

static dr_status add_set(finding *f, const char *name, const char *path, bool is_folder, dr_error *err)
{
    dr__catalogue *c = f->catalogue;
    char real[PATH_MAX];
    dr_error why = { 0 };
    if (f->far)
        snprintf(real, sizeof real, "%s", path);
    else if (!realpath(path, real) || !is_below(real, f->root)) {
        say(f, name, "left out: it leads out of the folder that is served");
        return DR_OK;
    }
    dr__served_set *grown = dr__grow(c->sets, &c->cap, c->n_sets + 1, sizeof *grown);
    if (!grown)
        return dr__fail(err, DR_ERR_NOMEM, "serve: out of memory");
    c->sets = grown;
    dr__served_set *s = &c->sets[c->n_sets];
    const dr_status status = open_set(s, name, real, is_folder ? real : f->root, &why);
    if (status == DR_OK) {
        c->n_sets++;
        return DR_OK;
    }
    close_set(s);
    if (status == DR_ERR_NOMEM)
        return dr__fail(err, status, "%s", why.text);
    say(f, name, why.text);
    return DR_OK;
}

/* --- all sets --- */

typedef struct listing_root {
    dr__source_lister lister;
    dr__names *names;
} listing_root;

static dr_status take_name(dr__source_lister *lister, const dr__source_entry *entry, dr_error *err)
{
    dr__names *names = ((listing_root *)lister)->names;
    if (entry->name[0] == '.' || strlen(entry->name) > MOST_NAME || !dr__remote_path_is_plain(entry->name))
        return DR_OK;
    return dr__names_add(names, entry->name, strlen(entry->name)) ? DR_OK
                                                                  : dr__fail(err, DR_ERR_NOMEM, "serve: out of memory");
}

static dr_status list_root(finding *f, dr_error *err)
{
    listing_root l = { .lister = { .take = take_name }, .names = &f->names };
    DR_TRY(dr__source_dir_open(f->root, NULL, &f->dir, err));
    return dr__source_dir_list(f->dir, "", &l.lister, err);
}

typedef struct candidate {
    const char *name;
    bool is_folder;
    const dr_format_def *format;
} candidate;

static bool is_collection(const candidate *all, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (all[i].is_folder && all[i].format && strcmp(all[i].format->name, "flat") != 0)
            return true;
    return false;
}

static int by_name(const void *a, const void *b)
{
    return dr__name_compare(((const candidate *)a)->name, ((const candidate *)b)->name);
}

static candidate candidate_of(const finding *f, const char *name)
{
    char path[PATH_MAX];
    dr__source_facts facts;
    candidate c = { .name = name };
    if (snprintf(path, sizeof path, "%s/%s", f->root, name) >= (int)sizeof path ||
        dr__source_stat(path, &facts, NULL) != DR_OK)
        return c;
    c.is_folder = facts.kind == DR__SOURCE_DIR;
    c.format = dr__format_probe(path);
    if (!c.is_folder && c.format &&
        strcmp(c.format->name, "list") != 0) /* a shard beside others: its folder is a set */
        c.format = NULL;
    return c;
}

static dr_status add_candidates(finding *f, const candidate *all, size_t n, bool folders, dr_error *err)
{
    char path[PATH_MAX];
    for (size_t i = 0; i < n; i++) {
        if (!all[i].format || (all[i].is_folder && !folders))
            continue;
        if (f->catalogue->n_sets == MOST_SETS)
            return dr__fail(err, DR_ERR_LIMIT, "%s: more than %d sets", f->root, MOST_SETS);
        snprintf(path, sizeof path, "%s/%s", f->root, all[i].name);
        DR_TRY(add_set(f, all[i].name, path, all[i].is_folder, err));
    }
    return DR_OK;
}

static dr_status add_root(finding *f, dr_error *err)
{
    const char *slash = strrchr(f->root, '/');
    return add_set(f, slash && slash[1] ? slash + 1 : "root", f->root, true, err);
}

static dr_status find_sets(finding *f, dr_error *err)
{
    const dr_format_def *own = dr__format_probe(f->root);
    if (own && !strcmp(own->name, "tar"))
        return add_root(f, err);
    DR_TRY(list_root(f, err));
    candidate *all = dr__alloc_zero(f->names.n ? f->names.n : 1, sizeof *all);
    if (!all)
        return dr__fail(err, DR_ERR_NOMEM, "serve: out of memory");
    for (size_t i = 0; i < f->names.n; i++)
        all[i] = candidate_of(f, dr__names_get(&f->names, i));
    qsort(all, f->names.n, sizeof *all, by_name);
    const bool many = is_collection(all, f->names.n);
    dr_status status = !many && own ? add_root(f, err) : DR_OK;
    if (status == DR_OK)
        status = add_candidates(f, all, f->names.n, many || !own, err);
    dr__free(all);
    return status;
}

/* The real path of a folder; of a URL itself, without slashes at its end. */
static dr_status real_root(const char *root, bool far, char real[PATH_MAX], dr_error *err)
{
    size_t n = strlen(root);
    if (!far && !realpath(root, real))
        return dr__fail_errno(err, errno == ENOENT ? DR_ERR_NOT_FOUND : DR_ERR_IO, "%s: cannot serve", root);
    if (!far)
        return DR_OK;
    while (n && root[n - 1] == '/')
        n--;
    if (strpbrk(root, "?#@") || n >= PATH_MAX - MOST_NAME - 1)
        return dr__fail(err, DR_ERR_ARG, "%s: cannot serve a URL with any of ?#@, or of more than %d bytes", root,
                        PATH_MAX - MOST_NAME - 2);
    memcpy(real, root, n);
    real[n] = 0;
    return DR_OK;
}

dr_status dr__catalogue_open(const char *root, void (*log)(void *user, const char *text), void *user,
                             dr__catalogue **out, dr_error *err)
{
    char real[PATH_MAX];
    const bool far = dr__source_is_remote(root);
    *out = NULL;
    DR_TRY(real_root(root, far, real, err));
    finding f = {
        .root = real, .far = far, .log = log, .user = user, .catalogue = dr__alloc_zero(1, sizeof *f.catalogue)
    };
    if (!f.catalogue)
        return dr__fail(err, DR_ERR_NOMEM, "serve: out of memory");
    atomic_init(&f.catalogue->refs, 1);
    dr_status status = find_sets(&f, err);
    dr__source_dir_close(&f.dir);
    dr__names_free(&f.names);
    if (status == DR_OK && !f.catalogue->n_sets)
        status = dr__fail(err, DR_ERR_NOT_FOUND,
                          "%s: no data set in it: it needs sub-folders with folders of classes or shards, or lists, or "
                          "images itself",
                          root);
    if (status != DR_OK)
        dr__catalogue_unref(&f.catalogue);
    *out = f.catalogue;
    return status;
}

dr__catalogue *dr__catalogue_ref(dr__catalogue *c)
{
    atomic_fetch_add(&c->refs, 1);
    return c;
}

void dr__catalogue_unref(dr__catalogue **catalogue)
{
    dr__catalogue *c = *catalogue;
    *catalogue = NULL;
    if (!c || atomic_fetch_sub(&c->refs, 1) > 1)
        return;
    for (size_t i = 0; i < c->n_sets; i++)
        close_set(&c->sets[i]);
    dr__free(c->sets);
    dr__free(c);
}

dr__served_set *dr__catalogue_find(dr__catalogue *c, const char *name)
{
    for (size_t i = 0; i < c->n_sets; i++) /* mostly a few */
        if (!strcmp(c->sets[i].name, name))
            return &c->sets[i];
    return NULL;
}

/* --- samples by path --- */

static bool path_of(const dr__served_set *s, uint64_t id, dr__where *w, const char **path)
{
    dr__dataset_where(s->set, id, s->image, w);
    *path = w->form == DR__WHERE_RANGE && w->size == DR__WHOLE_FILE ? dr__where_below(w, s->root) : NULL;
    return *path != NULL;
}

/* Twice as many places as samples; the next free one is taken.  NULL without memory. */
static void make_table(dr__served_set *s, dr__where *w)
{
    const char *path;
    size_t n = 16;
    while (n < s->set->n_samples * 2)
        n *= 2;
    if (s->set->n_samples >= UINT32_MAX || !(s->by_path = dr__alloc_zero(n, sizeof *s->by_path)))
        return;
    s->n_by_path = n;
    for (uint64_t id = 0; id < s->set->n_samples; id++) {
        if (!path_of(s, id, w, &path))
            continue;
        size_t at = (size_t)XXH3_64bits(path, strlen(path)) & (n - 1);
        while (s->by_path[at])
            at = (at + 1) & (n - 1);
        s->by_path[at] = (uint32_t)id + 1;
    }
}

static bool find_path(const dr__served_set *s, const char *wanted, dr__where *w, uint64_t *id)
{
    const char *path;
    if (!s->n_by_path)
        return false;
    size_t at = (size_t)XXH3_64bits(wanted, strlen(wanted)) & (s->n_by_path - 1);
    for (; s->by_path[at]; at = (at + 1) & (s->n_by_path - 1)) {
        *id = s->by_path[at] - 1;
        if (path_of(s, *id, w, &path) && !strcmp(path, wanted))
            return true;
    }
    return false;
}

bool dr__served_sample(dr__served_set *s, const char *path, uint64_t *id)
{
    dr__where *w = s->image >= 0 ? dr__alloc(sizeof *w) : NULL;
    if (!w)
        return false;
    pthread_mutex_lock(&s->lock);
    if (!s->by_path)
        make_table(s, w);
    pthread_mutex_unlock(&s->lock);
    const bool found = find_path(s, path, w, id);
    dr__free(w);
    return found;
}

dr_status dr__served_check(const dr__served_set *s, uint64_t id, dr__where *w, dr_error *err)
{
    struct stat st;
    int fd;
    for (int f = 0; f < s->set->n_fields; f++) {
        dr__dataset_where(s->set, id, f, w);
        if (w->form != DR__WHERE_RANGE)
            continue;
        const char *path = dr__where_below(w, s->root);
        if (!path)
            return dr__fail(err, DR_ERR_NOT_FOUND, "its file lies outside of the folder of the set");
        if (s->far)
            continue;
        DR_TRY(dr__beneath_open(s->root_fd, path, &fd, &st, err));
        close(fd);
    }
    return DR_OK;
}
