/* group.c: finds the files of this process's cgroup.
 *
 * /proc/self/cgroup has a line "id:controllers:path" for each hierarchy; version 2 has no controllers.  Inside a
 * container the path is often one of the host and does not exist below the mount: then the mount's root is the group.
 */
#include <stdio.h>
#include <string.h>

#include "monitor/probe.h"

enum { GROUP_PATH = 512 };

/* Whether a list such as "cpu,cpuacct" contains the name. */
static bool has_name(const char *list, size_t n, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = list, *end = list + n; at + len <= end; at++)
        if (!strncmp(at, name, len) && (at == list || at[-1] == ',') && (at + len == end || at[len] == ','))
            return true;
    return false;
}

/* The controllers (as listed) and the path of the hierarchy with `controller`; "": version 2. */
static bool find_line(const char *text, const char *controller, char *names, char *path)
{
    for (; text; text = dr__next_line(text)) {
        size_t line = strcspn(text, "\n");
        const char *list = memchr(text, ':', line);
        const char *group = list ? memchr(list + 1, ':', line - (size_t)(list + 1 - text)) : NULL;
        if (!group)
            continue;
        size_t n_list = (size_t)(group - list - 1), n_path = line - (size_t)(group + 1 - text);
        if (n_list >= GROUP_PATH || n_path >= GROUP_PATH || group[1] != '/')
            continue;
        if (*controller ? !has_name(list + 1, n_list, controller) : n_list > 0)
            continue;
        snprintf(names, GROUP_PATH, "%.*s", (int)n_list, list + 1);
        snprintf(path, GROUP_PATH, "%.*s", (int)n_path, group + 1);
        return true;
    }
    return false;
}

/* Opens a file in the group and in each group above it. */
static int open_up_to_root(dr__host *host, const char *mount, const char *group, const char *name, dr__procfile *files,
                           int cap)
{
    char dir[GROUP_PATH];
    snprintf(dir, sizeof dir, "%s", strcmp(group, "/") ? group : "");
    for (int n = 0;;) {
        if (n < cap && dr__procfile_open(&files[n], host, "/sys/fs/cgroup%s%s/%s", mount, dir, name))
            n++;
        char *slash = strrchr(dir, '/');
        if (!slash || n == cap)
            return n;
        *slash = 0;
    }
}

int dr__group_open(dr__host *host, const char *controller, const char *v1_name, const char *v2_name,
                   dr__procfile *files, int cap, bool *v1)
{
    char names[GROUP_PATH], path[GROUP_PATH], mount[GROUP_PATH + 1], text[4096];
    dr__procfile table;
    *v1 = false;
    bool found = dr__procfile_open(&table, host, "/proc/self/cgroup") && dr__procfile_read(&table, host);
    dr__procfile_close(&table);
    if (!found)
        return 0;
    snprintf(text, sizeof text, "%s", host->text);
    int n = 0;
    if (find_line(text, controller, names, path)) {
        *v1 = true;
        snprintf(mount, sizeof mount, "/%s", names);
        n = open_up_to_root(host, mount, path, v1_name, files, cap);
        snprintf(mount, sizeof mount, "/%s", controller);
        return n ? n : open_up_to_root(host, mount, path, v1_name, files, cap);
    }
    if (find_line(text, "", names, path)) {
        n = open_up_to_root(host, "", path, v2_name, files, cap);
        return n ? n : open_up_to_root(host, "/unified", path, v2_name, files, cap);
    }
    return 0;
}
