/* fuzz_inet.c: any bytes as the kernel's list of TCP connections. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "monitor/inet_dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dr__round_trips found = { 0 };
    dr__dump_state state = dr__inet_dump_parse(data, size, &found);
    assert(state == DR__DUMP_MORE || state == DR__DUMP_END || state == DR__DUMP_BAD);
    assert(found.n <= size && found.sum_s >= 0 && found.sum_s <= found.n * (UINT32_MAX * 1e-6));
    return 0;
}
