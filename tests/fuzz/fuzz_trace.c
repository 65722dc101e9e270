/* fuzz_trace.c: any bytes as a trace.
 *
 * The first byte says how the rest is taken: 0 the file itself; 1 records behind the tables of this version, each u8
 * kind, u16 length, payload, framed with the checksums that would keep a fuzzer out; 2 the same, and the first is META.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct file {
    int fd;
    char path[64];
} file;

static void put(const file *f, const void *data, size_t size)
{
    if (write(f->fd, data, size) != (ssize_t)size)
        abort();
}

static void put_record(const file *f, int kind, const void *payload, size_t length)
{
    uint8_t frame[DR__FRAME];
    dr__frame_write(kind, payload, length, frame);
    put(f, frame, sizeof frame);
    put(f, payload, length);
}

static void put_records(const file *f, const uint8_t *data, size_t size)
{
    while (size >= 3) {
        const size_t claimed = data[1] | (size_t)data[2] << 8, length = claimed < size - 3 ? claimed : size - 3;
        put_record(f, data[0], data + 3, length);
        data += 3 + length;
        size -= 3 + length;
    }
}

/* Made once: it looks at the machine. */
static const char *own_meta(void)
{
    static char *meta;
    dr_trace_options o;
    dr_error err;
    dr_trace_defaults(&o);
    if (!meta && dr__meta_make(NULL, &o, 1000, &meta, &err) != DR_OK)
        abort();
    return meta;
}

static void put_start(const file *f, int own_tables)
{
    uint8_t header[DR__TRACE_HEADER];
    dr__header_write(1000, header);
    put(f, header, sizeof header);
    if (own_tables)
        put_record(f, DR_TRACE_META, own_meta(), strlen(own_meta()));
}

/* What comes out is within the tables, and texts end. */
static void check(const dr_trace_record *r)
{
    if (r->text && strlen(r->text) > DR__MAX_PAYLOAD)
        abort();
    if (r->snapshot && (r->snapshot->n_cpus > DR_MAX_CPUS || r->snapshot->present >> DR_N_SENSORS))
        abort();
    if (r->decision && (r->decision->bound < 0 || r->decision->bound >= DR_N_BOUNDS ||
                        r->decision->changed >> DR_N_KNOBS || strlen(r->decision->reason) >= DR_MAX_REASON))
        abort();
    if (r->span && (r->span->kind < 0 || r->span->kind >= DR_N_SPANS || strlen(r->span->key) > 63))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    file f = { .fd = memfd_create("trace", MFD_CLOEXEC) };
    snprintf(f.path, sizeof f.path, "/proc/self/fd/%d", f.fd);
    if (data[0] > 0) {
        put_start(&f, data[0] == 1);
        put_records(&f, data + 1, size - 1);
    } else {
        put(&f, data + 1, size - 1);
    }
    dr_trace_reader *r;
    dr_trace_record record;
    dr_error err;
    dr_trace_open_reader(f.path, &r, &err);
    while (dr_trace_next(r, &record, &err) == DR_OK)
        check(&record);
    dr_trace_close_reader(&r);
    close(f.fd);
    return 0;
}
