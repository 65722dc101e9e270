/* probe.c: the table of probes, and their common functions for files and text. */
#include "monitor/probe.h"

#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DR_PROBE(name) extern const dr__probe_def dr__probe_##name;
#include "monitor/probe_defs.h"
#undef DR_PROBE

const dr__probe_def *const dr__probe_table[] = {
#define DR_PROBE(name) &dr__probe_##name,
#include "monitor/probe_defs.h"
#undef DR_PROBE
    NULL,
};

/* --- files --- */

static int open_below(const dr__host *host, const char *format, va_list args)
{
    char path[1024];
    int n = snprintf(path, sizeof path, "%s", host->root);
    if (n < 0 || (size_t)n >= sizeof path)
        return -1;
    int m = vsnprintf(path + n, sizeof path - (size_t)n, format, args);
    if (m < 0 || (size_t)m >= sizeof path - (size_t)n)
        return -1;
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

bool dr__procfile_open(dr__procfile *file, const dr__host *host, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    file->fd = open_below(host, format, args);
    va_end(args);
    return file->fd >= 0;
}

void dr__procfile_close(dr__procfile *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

/* A read of a /proc file may return only a page. */
bool dr__procfile_read(const dr__procfile *file, dr__host *host)
{
    size_t n = 0;
    while (file->fd >= 0 && n < host->text_cap - 1) {
        ssize_t got = pread(file->fd, host->text + n, host->text_cap - 1 - n, (off_t)n);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    host->text[n] = 0;
    return n > 0;
}

bool dr__procfile_u64(const dr__procfile *file, dr__host *host, uint64_t *out)
{
    const char *at = host->text;
    return dr__procfile_read(file, host) && dr__next_u64(&at, out);
}

bool dr__procfile_once(dr__host *host, uint64_t *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    dr__procfile file = { open_below(host, format, args) };
    va_end(args);
    bool found = dr__procfile_u64(&file, host, out);
    dr__procfile_close(&file);
    return found;
}

/* --- text --- */

bool dr__next_u64(const char **at, uint64_t *out)
{
    const char *p = *at + strspn(*at, " \t");
    if (*p < '0' || *p > '9')
        return false;
    uint64_t value = 0;
    for (; *p >= '0' && *p <= '9'; p++) {
        unsigned digit = (unsigned)(*p - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *at = p;
    *out = value;
    return true;
}

int dr__next_u64s(const char **at, uint64_t *out, int cap)
{
    int n = 0;
    while (n < cap && dr__next_u64(at, &out[n]))
        n++;
    return n;
}

const char *dr__next_line(const char *at)
{
    at = strchr(at, '\n');
    return at && at[1] ? at + 1 : NULL;
}

const char *dr__after_key(const char *text, const char *key)
{
    size_t n = strlen(key);
    for (; text; text = dr__next_line(text))
        if (!strncmp(text, key, n))
            return text + n;
    return NULL;
}

/* --- snapshots --- */

void dr__sense(dr_snapshot *out, dr_sensor sensor, double value, double full)
{
    if (!isfinite(value) || !(value >= 0) || !(full > 0))
        return;
    out->value[sensor] = value;
    out->level[sensor] = DR_MIN(value / full, 1.0);
    out->present |= (uint64_t)1 << sensor;
}
