/* op_table.c: every op, in alphabetical order. */
#include "op/op.h"

#include "op/op_defs.h"

const dr_op_def *const dr__op_table[] = {
#define DR_OP_ROW(name) &dr__op_##name,
    DR_OP_ROWS(DR_OP_ROW)
#undef DR_OP_ROW
        NULL,
};
