/* tree.h: temporary folders with files in them, for tests. */
#ifndef TESTS_UNIT_FORMAT_TREE_H
#define TESTS_UNIT_FORMAT_TREE_H

#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <drapps/dataset.h>

/* The root of the test at hand: a new folder, removed by tree_remove.  The user's cache folder is moved into it, so
 * that no test writes to the real one. */
static char tree_root[256];

static int tree_make(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(tree_root, sizeof tree_root, "%s/drapps-test-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(tree_root))
        return -1;
    char cache[300];
    snprintf(cache, sizeof cache, "%s-cache", tree_root);
    mkdir(cache, 0700);
    return setenv("XDG_CACHE_HOME", cache, 1);
}

static inline int tree_unlink(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static int tree_remove(void **state)
{
    (void)state;
    nftw(tree_root, tree_unlink, 16, FTW_DEPTH | FTW_PHYS);
    nftw(getenv("XDG_CACHE_HOME"), tree_unlink, 16, FTW_DEPTH | FTW_PHYS);
    return 0;
}

/* A path below the root; four may be in use at once. */
static inline const char *at(const char *format, ...)
{
    static char text[4][1024];
    static int next;
    char *t = text[next++ % 4];
    int n = snprintf(t, sizeof text[0], "%s/", tree_root);
    va_list args;
    va_start(args, format);
    vsnprintf(t + n, sizeof text[0] - (size_t)n, format, args);
    va_end(args);
    return t;
}

/* Writes a file, with the folders above it. */
static inline void put_file(const char *path, const void *data, size_t size)
{
    char folder[1024];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *p = folder + strlen(tree_root) + 1; (p = strchr(p, '/')); *p++ = '/') {
        *p = 0;
        mkdir(folder, 0755);
    }
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static inline void put_text(const char *path, const char *text)
{
    put_file(path, text, strlen(text));
}

static inline bool exists(const char *path)
{
    struct stat st;
    return !lstat(path, &st);
}

static inline int tree_age(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)ftw;
    static long n; /* no two alike, as real ones */
    n++;
    struct timespec old[2] = { { time(NULL) - 60, n }, { time(NULL) - 60, n } };
    return flag == FTW_DP ? utimensat(AT_FDCWD, path, old, 0) : 0;
}

/* Makes all folders a minute old: fresh ones are not remembered in an index. */
static inline void age_folders(void)
{
    assert_int_equal(nftw(tree_root, tree_age, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static inline int count_files(const char *folder)
{
    char command[1200];
    int n = -1;
    snprintf(command, sizeof command, "find '%s' -type f | wc -l", folder);
    FILE *p = popen(command, "r");
    assert_non_null(p);
    assert_int_equal(fscanf(p, "%d", &n), 1);
    pclose(p);
    return n;
}

static inline void expect_key(const dr_dataset *set, uint64_t id, const char *want)
{
    char text[1024];
    assert_int_equal(dr_dataset_key(set, id, text, sizeof text, NULL), DR_OK);
    assert_string_equal(text, want);
}

#define expect_in(text, part)                                                                                          \
    do {                                                                                                               \
        if (!strstr(text, part))                                                                                       \
            fail_msg("\"%s\" is not in \"%s\"", part, text);                                                           \
    } while (0)

#endif
