/* fuzz_ledger.c: any bytes as the file of a ledger.
 *
 * The first byte says how the rest is taken: 0 the file itself; else the cells of a file of so many samples, whose head
 * is made right: its checksum would keep a fuzzer out.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include <drapps/ledger.h>

#include "index/index_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD_BYTES = 40, SAMPLES = 64 };

/* Whatever was in the file, costs are numbers that can be used and learnt upon. */
static void check(dr_ledger *l, uint64_t n)
{
    for (int round = 0; round < 3; round++) {
        for (uint64_t id = 0; id < n + 2; id++) {
            const double ns = id % 5 ? 1e6 : 2e7;
            float cost;
            dr_ledger_predict(l, &id, 1, &cost);
            if (!(cost >= 0) || (id >= n && cost != 0))
                abort();
            dr_ledger_note(l, &id, &ns, NULL, 1);
        }
        const dr_ledger_facts f = dr_ledger_look(l);
        if (f.n_seen != n || (n && !(f.unit_ns > 0 && isfinite(f.mean_ns) && f.longest_ns >= f.median_ns)))
            abort();
    }
}

static void open_bytes(const void *data, size_t size, uint64_t n)
{
    char path[64];
    dr_ledger *l;
    int fd = memfd_create("ledger", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd < 0 || !dr__write_all(fd, data, size) || dr_ledger_open(path, n, &l, NULL) != DR_OK)
        abort();
    check(l, n);
    dr_ledger_close(&l);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    if (!data[0]) {
        open_bytes(data + 1, size - 1, SAMPLES);
        return 0;
    }
    const uint64_t n = data[0];
    uint8_t file[HEAD_BYTES + 4 * 255] = "drapps ledger 2";
    file[16] = (uint8_t)n;
    const double unit_ns = 1e6;
    memcpy(file + 24, &unit_ns, sizeof unit_ns);
    const uint64_t sum = XXH3_64bits(file, 32);
    memcpy(file + 32, &sum, sizeof sum);
    memcpy(file + HEAD_BYTES, data + 1, size - 1 < 4 * n ? size - 1 : 4 * n);
    open_bytes(file, HEAD_BYTES + 4 * n, n);
    return 0;
}
