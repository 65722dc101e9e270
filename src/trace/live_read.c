/* live_read.c: reads live files and writes them as JSON.
 *
 * A file is copied, not mapped: if it is truncated meanwhile, the copy is short and no signal is raised.
 */
#include <drapps/live.h>

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "trace/live_layout.h"
#include "trace/live_place.h"

enum { TRIES = 200 };

/* A copy of a file. */
typedef struct live_copy {
    dr__live_head head;
    char *bytes; /* the whole file; NULL: another format, of which only the common part of the head is valid */
    const uint64_t *state;
    dr__live_map map;
    const char **names; /* of all tables, one after another */
} live_copy;

static void free_copy(live_copy *p)
{
    dr__free(p->bytes);
    dr__free(p->names);
}

/* --- copying --- */

/* Copies the state; retries until the sequence number is even and the same before and after. */
static bool copy_state(int fd, live_copy *p)
{
    const struct timespec pause = { .tv_nsec = 50000 };
    const off_t at = (off_t)p->head.state_at;
    const size_t size = p->map.words * 8;
    for (int i = 0; i < TRIES; i++) {
        uint64_t before, after;
        if (pread(fd, &before, sizeof before, at) != sizeof before)
            return false;
        atomic_thread_fence(memory_order_acquire);
        if (pread(fd, p->bytes + at, size, at) != (ssize_t)size)
            return false;
        atomic_thread_fence(memory_order_acquire);
        if (pread(fd, &after, sizeof after, at) != sizeof after)
            return false;
        if (before == after && !(before & 1))
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

static bool find_names(live_copy *p)
{
    size_t n = 0;
    for (int i = 0; i < DR__N_LIVE_TABLES; i++)
        n += p->head.n[i];
    p->names = dr__alloc_zero(n + 1, sizeof *p->names);
    const char *at = p->bytes + p->head.names_at, *end = at + p->head.names_bytes;
    for (size_t i = 0; p->names && i < n; i++) {
        const char *stop = memchr(at, 0, (size_t)(end - at));
        if (!stop)
            return false;
        p->names[i] = at;
        at = stop + 1;
    }
    return p->names;
}

static bool copy_file(int fd, live_copy *p)
{
    if (!dr__live_head_is_valid(&p->head))
        return false;
    p->bytes = dr__alloc_zero(1, p->head.bytes);
    if (!p->bytes || pread(fd, p->bytes, p->head.bytes, 0) != (ssize_t)p->head.bytes)
        return false;
    dr__live_map_of(&p->head, &p->map);
    p->state = (const uint64_t *)(p->bytes + p->head.state_at);
    return copy_state(fd, p) && find_names(p);
}

/* --- JSON --- */

/* A JSON string of a text that may not be UTF-8 or may end within a character. */
static json_t *text_json(const char *text, size_t room)
{
    char copy[4097];
    size_t n = strnlen(text, room < sizeof copy ? room : sizeof copy - 1);
    json_t *value = json_stringn(text, n);
    if (value)
        return value;
    for (size_t i = 0; i < n; i++)
        copy[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
    return json_stringn(copy, n);
}

static double number(const live_copy *p, size_t at)
{
    double value;
    memcpy(&value, &p->state[at], sizeof value);
    return value;
}

static const char *name_of(const live_copy *p, dr__live_table table, size_t i)
{
    for (int t = 0; t < (int)table; t++)
        i += p->head.n[t];
    return p->names[i];
}

/* {name: value} of the rows in the mask; jansson leaves out values that are not finite. */
static json_t *table_json(const live_copy *p, dr__live_table table, size_t at, uint64_t mask)
{
    json_t *o = json_object();
    for (size_t i = 0; i < p->head.n[table]; i++)
        if (i >= 64 || mask >> i & 1)
            json_object_set_new(o, name_of(p, table, i), json_real(number(p, at + i)));
    return o;
}

static json_t *modelled_json(const live_copy *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < p->head.n[DR__LIVE_SENSORS]; i++)
        if (p->state[DR__LIVE_MODELLED] >> i & 1)
            json_array_append_new(list, json_string(name_of(p, DR__LIVE_SENSORS, i)));
    return list;
}

/* {name: count} */
static json_t *counts_json(const live_copy *p, dr__live_table table, size_t at)
{
    json_t *o = json_object();
    for (size_t i = 0; i < p->head.n[table]; i++)
        json_object_set_new(o, name_of(p, table, i), json_integer((json_int_t)p->state[at + i]));
    return o;
}

static json_t *spread_json(const live_copy *p, size_t at)
{
    json_t *bins = json_array();
    for (size_t i = 0; i < p->head.n_bins; i++) {
        const size_t bin = at + DR__LIVE_BINS + 2 * i;
        json_t *end = json_real(number(p, bin)); /* NULL: infinite */
        json_array_append_new(bins, json_pack("[o, I]", end ? end : json_null(), (json_int_t)p->state[bin + 1]));
    }
    return json_pack("{s:f, s:o}", "sum", number(p, at + DR__LIVE_SUM), "bins", bins);
}

static json_t *spreads_json(const live_copy *p)
{
    json_t *o = json_object();
    for (size_t i = 0; i < p->head.n[DR__LIVE_SPREADS]; i++)
        json_object_set_new(o, name_of(p, DR__LIVE_SPREADS, i),
                            spread_json(p, p->map.spreads + i * p->map.spread_words));
    return o;
}

static json_t *cpu_json(const live_copy *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < p->state[DR__LIVE_CPUS] && i < p->head.n_cpus; i++)
        json_array_append_new(list, json_real(number(p, p->map.cpu + i)));
    return list;
}

static json_t *changes_json(const live_copy *p, size_t at)
{
    json_t *o = json_object();
    const size_t n = p->head.n[DR__LIVE_KNOBS];
    for (size_t i = 0; i < n; i++)
        if (p->state[at + DR__LIVE_CHANGED] >> i & 1)
            json_object_set_new(
                o, name_of(p, DR__LIVE_KNOBS, i),
                json_pack("[f, f]", number(p, at + DR__LIVE_BEFORE + i), number(p, at + DR__LIVE_BEFORE + n + i)));
    return o;
}

static json_t *decision_json(const live_copy *p, size_t slot)
{
    const size_t at = p->map.decisions + slot * p->map.decision_words;
    const uint64_t bound = p->state[at + DR__LIVE_BOUND];
    const char *reason = (const char *)&p->state[at + DR__LIVE_BEFORE + (size_t)2 * p->head.n[DR__LIVE_KNOBS]];
    json_t *o = json_pack("{s:I, s:I, s:b}", "number", (json_int_t)p->state[at + DR__LIVE_NUMBER], "time_ns",
                          (json_int_t)p->state[at + DR__LIVE_WHEN], "guarded", p->state[at + DR__LIVE_GUARDED] != 0);
    json_object_set_new(
        o, "bound", json_string(bound < p->head.n[DR__LIVE_BOUNDS] ? name_of(p, DR__LIVE_BOUNDS, bound) : "unknown"));
    json_object_set_new(o, "reward", json_real(number(p, at + DR__LIVE_REWARD)));
    json_object_set_new(o, "reason", text_json(reason, p->head.reason_bytes));
    json_object_set_new(o, "changes", changes_json(p, at));
    return o;
}

static json_t *decisions_json(const live_copy *p)
{
    json_t *list = json_array();
    const uint64_t all = p->state[DR__LIVE_DECIDED], kept = p->head.n_kept;
    for (uint64_t i = all > kept ? all - kept : 0; i < all; i++)
        json_array_append_new(list, decision_json(p, (size_t)(i % kept)));
    return list;
}

/* The last decision; null: there is none. */
static json_t *last_json(const live_copy *p)
{
    json_t *last = decision_json(p, p->head.n_kept);
    if (json_integer_value(json_object_get(last, "number")) > 0)
        return last;
    json_decref(last);
    return json_null();
}

static json_t *identity_json(const live_copy *p)
{
    json_t *o = json_pack("{s:i, s:i}", "pid", (int)p->head.pid, "loader", (int)p->head.loader);
    json_object_set_new(o, "command", text_json(p->head.command, sizeof p->head.command));
    json_object_set_new(o, "version", text_json(p->head.version, sizeof p->head.version));
    return o;
}

static json_t *live_json(const live_copy *p)
{
    json_t *o = identity_json(p);
    json_object_set_new(o, "name", text_json(p->head.name, sizeof p->head.name));
    json_object_set_new(o, "policy", text_json(p->head.policy, sizeof p->head.policy));
    json_object_set_new(o, "started_ns", json_integer((json_int_t)p->head.started_ns));
    json_object_set_new(o, "time_ns", json_integer((json_int_t)p->state[DR__LIVE_TIME]));
    const uint64_t present = p->state[DR__LIVE_PRESENT];
    json_object_set_new(o, "sensors", table_json(p, DR__LIVE_SENSORS, p->map.values, present));
    json_object_set_new(o, "levels", table_json(p, DR__LIVE_SENSORS, p->map.levels, present));
    json_object_set_new(o, "modelled", modelled_json(p));
    json_object_set_new(o, "cpu", cpu_json(p));
    json_object_set_new(o, "flow", table_json(p, DR__LIVE_FLOWS, p->map.flow, UINT64_MAX));
    json_object_set_new(o, "knobs", table_json(p, DR__LIVE_KNOBS, p->map.knobs, UINT64_MAX));
    json_object_set_new(o, "bounds", counts_json(p, DR__LIVE_BOUNDS, p->map.bounds));
    json_object_set_new(o, "turns", counts_json(p, DR__LIVE_KNOBS, p->map.turns));
    json_object_set_new(o, "spreads", spreads_json(p));
    json_object_set_new(o, "decisions", decisions_json(p));
    json_object_set_new(o, "last", last_json(p));
    return o;
}

static json_t *other_format_json(const live_copy *p)
{
    char text[160];
    json_t *o = identity_json(p);
    snprintf(text, sizeof text, "written in format %u by another version of drapps; this one reads format %d",
             (unsigned)p->head.format, DR__LIVE_FORMAT);
    json_object_set_new(o, "unreadable", json_string(text));
    return o;
}

/* --- folders --- */

/* Compares pid and pid namespace: containers that share the folder each have a process 1. */
static bool is_of_process(const dr__live_head *head, int pid)
{
    return pid == 0 || (pid == head->pid && (!head->pid_space || head->pid_space == dr__live_pid_namespace()));
}

/* NULL: not a live file, or one of another process. */
static json_t *read_one(int folder, const char *name, int pid)
{
    live_copy p = { 0 };
    json_t *o = NULL;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    ssize_t n = pread(fd, &p.head, sizeof p.head, 0);
    if (n >= DR__LIVE_COMMON && !memcmp(p.head.magic, DR__LIVE_MAGIC, sizeof p.head.magic) &&
        is_of_process(&p.head, pid)) {
        if (p.head.format != DR__LIVE_FORMAT)
            o = other_format_json(&p);
        else if (n == sizeof p.head && copy_file(fd, &p))
            o = live_json(&p);
    }
    close(fd);
    free_copy(&p);
    return o;
}

static void read_folder(int folder, int pid, json_t *list)
{
    DIR *entries = fdopendir(folder);
    if (!entries) {
        close(folder);
        return;
    }
    for (const struct dirent *e; (e = readdir(entries));) {
        size_t n = strlen(e->d_name), suffix = strlen(DR__LIVE_SUFFIX);
        json_t *o = NULL;
        if (n > suffix && !strcmp(e->d_name + n - suffix, DR__LIVE_SUFFIX))
            o = read_one(folder, e->d_name, pid);
        if (o)
            json_array_append_new(list, o);
    }
    closedir(entries);
}

static json_int_t when_started(const json_t *o)
{
    return json_integer_value(json_object_get(o, "started_ns"));
}

/* Sorts by start time, so that the order stays the same while programs start and end. */
static json_t *sorted(json_t *list)
{
    for (size_t i = 1; i < json_array_size(list); i++) {
        json_t *o = json_incref(json_array_get(list, i));
        size_t k = i;
        while (k > 0 && when_started(json_array_get(list, k - 1)) > when_started(o))
            k--;
        json_array_remove(list, i);
        json_array_insert_new(list, k, o);
    }
    return list;
}

static dr_status dump_json(json_t *list, char **json, dr_error *err)
{
    size_t n = json_dumpb(list, NULL, 0, JSON_COMPACT);
    *json = n ? dr__alloc(n + 1) : NULL;
    if (!*json)
        return dr__fail(err, DR_ERR_NOMEM, "live: out of memory");
    json_dumpb(list, *json, n, JSON_COMPACT);
    (*json)[n] = 0;
    return DR_OK;
}

dr_status dr_live_read(int pid, char **json, dr_error *err)
{
    if (pid < 0)
        return dr__fail(err, DR_ERR_ARG, "live: pid must be 0 (all) or a process id, got %d", pid);
    json_t *list = json_array();
    for (int i = 0; i < DR__LIVE_FOLDERS; i++) {
        int folder = dr__live_folder_open(i);
        if (folder < 0)
            continue;
        dr__live_sweep(folder);
        read_folder(folder, pid, list);
    }
    dr_status status = dump_json(sorted(list), json, err);
    json_decref(list);
    return status;
}
