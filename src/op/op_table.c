/* op_table.c: every op, in alphabetical order. */
#include "op/op.h"

#include <string.h>
#include <xxhash.h>

#include "op/op_defs.h"

const dr_op_def *const dr__op_table[] = {
#define DR_OP_ROW(name) &dr__op_##name,
    DR_OP_ROWS(DR_OP_ROW)
#undef DR_OP_ROW
        NULL,
};

uint64_t dr__op_set(void)
{
    uint64_t h = 1;
    for (const dr_op_def *const *def = dr__op_table; *def; def++)
        h = XXH3_64bits_withSeed((*def)->name, strlen((*def)->name) + 1, h * 31 + (uint64_t)(*def)->version);
    return h;
}
