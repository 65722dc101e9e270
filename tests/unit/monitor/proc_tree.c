/* proc_tree.c: see proc_tree.h. */
#include "unit/monitor/proc_tree.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void tree_new(char *root)
{
    const char *memory = "/dev/shm"; /* a fuzzer makes thousands */
    snprintf(root, 64, "%s/drapps-tree-XXXXXX", access(memory, W_OK) == 0 ? memory : "/tmp");
    if (!mkdtemp(root))
        abort();
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

void tree_remove(const char *root)
{
    nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static void write_file(const char *root, const char *path, const char *text, size_t size)
{
    char full[512];
    if (*path != '/' || strstr(path, ".."))
        return;
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(full, 0700);
        *p = '/';
    }
    FILE *f = fopen(full, "w");
    if (!f)
        return;
    fwrite(text, 1, size, f);
    fclose(f);
}

/* The start of the next "== " at the begin of a line, or the end. */
static const char *next_head(const char *at, const char *end)
{
    for (; end - at >= 3; at++)
        if (!memcmp(at, "== ", 3) && at[-1] == '\n')
            return at;
    return end;
}

void tree_write(const char *root, const char *text, size_t size)
{
    const char *end = text + size;
    for (const char *head = size >= 3 && !memcmp(text, "== ", 3) ? text : end; head < end;) {
        char path[256];
        const char *line = memchr(head, '\n', (size_t)(end - head));
        if (!line)
            return;
        const char *next = next_head(line + 1, end);
        snprintf(path, sizeof path, "%.*s", (int)(line - head - 3), head + 3);
        write_file(root, path, line + 1, (size_t)(next - line - 1));
        head = next;
    }
}

#ifdef DR_TREES
char *tree_load(const char *name, size_t *size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", DR_TREES, name);
    FILE *f = fopen(path, "r");
    char *text = malloc(1 << 20);
    if (!f || !text)
        abort();
    *size = fread(text, 1, (1 << 20) - 1, f);
    text[*size] = 0;
    fclose(f);
    return text;
}
#endif
