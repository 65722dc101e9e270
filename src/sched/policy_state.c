/* policy_state.c: the state of a policy as bytes and as a file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "index/index_file.h"
#include "sched/policy.h"
#include "source/file.h"

enum { FORMAT_VERSION = 1, NAME_BYTES = 16, HEAD_BYTES = 8 + 4 + 4 + NAME_BYTES + 8 + 8, SUM_BYTES = 8 };

static const char magic[8] = { 'D', 'R', 'P', 'O', 'L', 'I', 'C', 'Y' };

static uint8_t *put(uint8_t *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *at++ = (uint8_t)(value >> 8 * i);
    return at;
}

size_t dr__policy_saved_bytes(const dr__policy_def *def)
{
    return HEAD_BYTES + def->state_bytes + SUM_BYTES;
}

void dr__policy_save(const dr__policy_def *def, const void *state, uint64_t now_ns, uint8_t *out)
{
    char name[NAME_BYTES] = { 0 };
    memcpy(name, def->name, DR_MIN(strlen(def->name), sizeof name));
    memcpy(out, magic, sizeof magic);
    uint8_t *at = put(out + sizeof magic, FORMAT_VERSION, 4);
    at = put(at, def->state_version, 4);
    memcpy(at, name, sizeof name);
    at = put(at + sizeof name, now_ns, 8);
    at = put(at, def->state_bytes, 8);
    if (def->state_bytes)
        memcpy(at, state, def->state_bytes);
    at += def->state_bytes;
    put(at, XXH3_64bits(out, (size_t)(at - out)), SUM_BYTES);
}

typedef struct head {
    uint32_t format, version;
    const uint8_t *name;
    uint64_t time_ns, bytes;
} head;

/* The head, and the cursor at the state; DR_ERR_FORMAT on bytes that are damaged or no saved state. */
static dr_status read_head(dr_cursor *c, size_t size, head *h, dr_error *err)
{
    const uint8_t *start = c->at, *mark;
    uint64_t sum;
    if (size < HEAD_BYTES + SUM_BYTES || memcmp(start, magic, sizeof magic))
        return dr__fail(err, DR_ERR_FORMAT, "policy state: not a saved state");
    dr_cursor end = dr__cursor(start + size - SUM_BYTES, SUM_BYTES, c->what);
    DR_TRY(dr__cursor_u64(&end, &sum, err));
    if (sum != XXH3_64bits(start, size - SUM_BYTES))
        return dr__fail(err, DR_ERR_FORMAT, "policy state: damaged, the checksum differs");
    DR_TRY(dr__cursor_bytes(c, sizeof magic, &mark, err));
    DR_TRY(dr__cursor_u32(c, &h->format, err));
    DR_TRY(dr__cursor_u32(c, &h->version, err));
    DR_TRY(dr__cursor_bytes(c, NAME_BYTES, &h->name, err));
    DR_TRY(dr__cursor_u64(c, &h->time_ns, err));
    DR_TRY(dr__cursor_u64(c, &h->bytes, err));
    return DR_OK;
}

static dr_status check_head(const dr__policy_def *def, const head *h, size_t left, dr_error *err)
{
    if (strncmp((const char *)h->name, def->name, NAME_BYTES))
        return dr__fail(err, DR_ERR_FORMAT, "policy state: of policy '%.*s', expected '%s'", NAME_BYTES, h->name,
                        def->name);
    if (h->format != FORMAT_VERSION || h->version != def->state_version)
        return dr__fail(err, DR_ERR_FORMAT, "policy state: version %u.%u of '%s', expected %d.%u", h->format,
                        h->version, def->name, FORMAT_VERSION, def->state_version);
    if (h->bytes != def->state_bytes || left != def->state_bytes + SUM_BYTES)
        return dr__fail(err, DR_ERR_FORMAT, "policy state: %llu bytes of '%s', expected %zu",
                        (unsigned long long)h->bytes, def->name, def->state_bytes);
    return DR_OK;
}

dr_status dr__policy_load(const dr__policy_def *def, void *state, uint64_t now_ns, const uint8_t *data, size_t size,
                          dr_error *err)
{
    dr_cursor c = dr__cursor(data, size, "policy state");
    head h;
    DR_TRY(read_head(&c, size, &h, err));
    DR_TRY(check_head(def, &h, dr__cursor_left(&c), err));
    void *loaded = dr__alloc(DR_MAX(def->state_bytes, 1)); /* `c.at` need not be aligned */
    if (!loaded)
        return dr__fail(err, DR_ERR_NOMEM, "policy state: out of memory");
    memcpy(loaded, c.at, def->state_bytes);
    const bool sound = !def->check || def->check(loaded);
    if (sound) {
        memcpy(state, loaded, def->state_bytes);
        if (def->shift_time)
            def->shift_time(state, (int64_t)(now_ns - h.time_ns));
    }
    dr__free(loaded);
    return sound ? DR_OK : dr__fail(err, DR_ERR_FORMAT, "policy state: values of '%s' are out of range", def->name);
}

/* --- files --- */

dr_status dr__policy_load_file(const dr__policy_def *def, void *state, uint64_t now_ns, const char *path, dr_error *err)
{
    struct stat st;
    int fd;
    DR_TRY(dr__file_open(AT_FDCWD, NULL, path, &fd, &st, err));
    const size_t cap = dr__policy_saved_bytes(def) + 1; /* a file that is longer is seen to be */
    uint8_t *data = dr__alloc(cap);
    size_t got = 0;
    dr_status status = data ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", path);
    if (status == DR_OK && dr__file_pread(fd, data, cap, 0, &got))
        status = dr__fail(err, dr__errno_status(errno), "%s: %s", path, strerror(errno));
    else if (status == DR_OK && (status = dr__policy_load(def, state, now_ns, data, got, err)) != DR_OK)
        dr__error_prefix(err, "%s", path);
    close(fd);
    dr__free(data);
    return status;
}

static dr_status fail_write(const char *path, dr_error *err)
{
    return dr__fail(err, dr__errno_status(errno), "%s: %s", path, strerror(errno));
}

static dr_status write_anew(const char *path, const uint8_t *data, size_t size, dr_error *err)
{
    char temp[4096];
    if (snprintf(temp, sizeof temp, "%s.%ld.tmp", path, (long)getpid()) >= (int)sizeof temp)
        return dr__fail(err, DR_ERR_ARG, "%s: path too long", path);
    int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return fail_write(path, err);
    bool good = dr__write_all(fd, data, size) && !fsync(fd);
    good = !close(fd) && good && !rename(temp, path);
    dr_status status = good ? DR_OK : fail_write(path, err);
    if (!good)
        unlink(temp);
    return status;
}

dr_status dr__policy_save_file(const dr__policy_def *def, const void *state, uint64_t now_ns, const char *path,
                               dr_error *err)
{
    const size_t size = dr__policy_saved_bytes(def);
    uint8_t *data = dr__alloc(size);
    if (!data)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", path);
    dr__policy_save(def, state, now_ns, data);
    dr_status status = write_anew(path, data, size, err);
    dr__free(data);
    return status;
}
