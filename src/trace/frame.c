/* frame.c: the header of a trace and the frame of each record. */
#include <string.h>
#include <xxhash.h>

#include "trace/wire.h"

static const uint8_t magic[8] = { 0x89, 'D', 'R', 'T', 'R', 'A', 'C', '\n' };

static void put(uint8_t *out, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        out[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get(const uint8_t *in, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--)
        value = value << 8 | in[i];
    return value;
}

static uint32_t sum_of(const void *data, size_t size)
{
    return (uint32_t)XXH3_64bits(data, size);
}

void dr__header_write(uint64_t start_ns, uint8_t out[DR__TRACE_HEADER])
{
    memcpy(out, magic, sizeof magic);
    put(out + 8, DR__TRACE_VERSION, 4);
    put(out + 12, start_ns, 8);
    put(out + 20, sum_of(out, 20), 4);
}

dr_status dr__header_read(const uint8_t in[DR__TRACE_HEADER], uint64_t *start_ns, dr_error *err)
{
    if (memcmp(in, magic, sizeof magic))
        return dr__fail(err, DR_ERR_FORMAT, "not a trace of drapps: its first bytes are not those of one");
    if (get(in + 20, 4) != sum_of(in, 20))
        return dr__fail(err, DR_ERR_FORMAT, "damaged between bytes 8 and 24");
    if (get(in + 8, 4) != DR__TRACE_VERSION)
        return dr__fail(err, DR_ERR_FORMAT, "byte 8: a trace of version %u; this program reads version %d",
                        (unsigned)get(in + 8, 4), DR__TRACE_VERSION);
    *start_ns = get(in + 12, 8);
    return DR_OK;
}

/* Never 0 for zeros, so that a file filled with zeros by a crash has no valid records. */
static uint8_t check_of(const uint8_t in[4])
{
    return (uint8_t)(0xA5 ^ in[0] ^ in[1] ^ in[2] ^ in[3]);
}

void dr__frame_write(int kind, const void *payload, size_t length, uint8_t out[DR__FRAME])
{
    out[0] = (uint8_t)kind;
    put(out + 1, length, 3);
    out[4] = check_of(out);
    put(out + 5, sum_of(payload, length), 4);
}

bool dr__frame_read(const uint8_t in[DR__FRAME], int *kind, size_t *length)
{
    *kind = in[0];
    *length = (size_t)get(in + 1, 3);
    return in[4] == check_of(in);
}

bool dr__frame_holds(const uint8_t in[DR__FRAME], const void *payload, size_t length)
{
    return get(in + 5, 4) == sum_of(payload, length);
}
