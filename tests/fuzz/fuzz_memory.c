/* fuzz_memory.c: a tier in memory whose file anybody writes to, while samples are looked up in it.
 *
 * The input is a row of patches: u32 where, u8 what (0 rows, 1 entries, 2 blocks, else the first 64 KB of data), u8 how
 * many bytes, bytes.  Lookups must stay within the file and end; what they find is checked by its checksums, as a store
 * does.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "store/data_file.h"
#include "store/memory_parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SAMPLES = 6, LIMIT = 1 << 20, MOST = 1 << 16 };

static dr_store_key key_of(uint64_t i)
{
    return (dr_store_key){ XXH3_64bits(&i, sizeof i), i };
}

static void fill(dr__memory_tier *t)
{
    static uint8_t bytes[MOST];
    for (uint64_t i = 0; i < SAMPLES; i++) {
        dr_stored s = { .n_fields = 1, .key = key_of(i) };
        s.fields[0] = (dr_desc){ .dtype = DR_U8, .n_dims = 1, .dims = { (int64_t)(64 << i) * 16 } };
        if (!dr__data_layout(&s))
            abort();
        s.payload_bytes = s.bytes;
        memset(bytes, (int)i + 1, s.bytes);
        if (dr__memory_put(t, &s, bytes, &(dr__use){ .next = i + 1 }) != DR__MEMORY_KEPT)
            abort();
    }
}

static void patch(dr__memory_tier *t, uint32_t where, unsigned what, const uint8_t *bytes, size_t n)
{
    uint8_t *parts[] = { (uint8_t *)t->rows, (uint8_t *)t->entries, (uint8_t *)t->blocks };
    const size_t sizes[] = { t->head->n_rows * sizeof *t->rows, t->head->n_blocks * sizeof *t->entries,
                             t->head->n_blocks * sizeof *t->blocks };
    if (what > 2) {
        if (pwrite(t->fd, bytes, n, (off_t)(t->head->data_at + where % MOST)) < 0)
            abort();
        return;
    }
    where %= sizes[what];
    memcpy(parts[what] + where, bytes, n < sizes[what] - where ? n : sizes[what] - where);
}

/* A sample that passes its checksum is the one that was put. */
static void look(dr__memory_tier *t, uint64_t i)
{
    static uint8_t bytes[MOST];
    dr_stored f;
    const dr_store_key key = key_of(i);
    if (!dr__memory_find(t, &key, &f) || f.payload_bytes > sizeof bytes || !dr__memory_read(t, &f, bytes))
        return;
    if (XXH3_64bits(bytes, f.payload_bytes) != f.payload_sum)
        return;
    for (uint64_t k = 0; k < f.payload_bytes; k++)
        if (bytes[k] != i + 1)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dr__memory_tier *t;
    setenv("DRAPPS_SHM", "/proc/none", 1); /* in memory of this process */
    if (dr__memory_open(&(dr_store_key){ 1, 2 }, LIMIT, &t, NULL) != DR_OK)
        return 0;
    fill(t);
    while (size > 6) {
        uint32_t where;
        memcpy(&where, data, sizeof where);
        const unsigned what = data[4];
        const size_t n = data[5] < size - 6 ? data[5] : size - 6;
        patch(t, where, what % 4, data + 6, n);
        data += 6 + n;
        size -= 6 + n;
        for (uint64_t i = 0; i < SAMPLES; i++)
            look(t, i);
    }
    dr__memory_close(&t);
    return 0;
}
