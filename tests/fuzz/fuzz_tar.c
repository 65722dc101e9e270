/* fuzz_tar.c: any bytes as a tar archive: headers, names, grouping. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "format/tar_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Members lie within the archive, whatever its headers said. */
static void check(const dr__tar_index *x, size_t size)
{
    for (size_t s = 0; s < x->keys.n; s++) {
        size_t end = s + 1 < x->keys.n ? x->samples[s + 1].first : x->n_parts;
        for (size_t i = x->samples[s].first; i < end; i++)
            if (x->samples[s].header + x->parts[i].offset + x->parts[i].size > size || x->part_ext[i] >= x->exts.n)
                abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dr__source *source;
    dr__tar_index index;
    dr_error err;
    if (dr__source_memory(data, size, "fuzz", &source, &err) != DR_OK)
        return 0;
    if (dr__tar_index_build(source, &index, &err) == DR_OK) {
        check(&index, size);
        dr__tar_index_free(&index);
    }
    dr__source_close(&source);
    return 0;
}
