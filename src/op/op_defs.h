/* op_defs.h: the one list of ops, in alphabetical order. */
#ifndef DR_OP_OP_DEFS_H
#define DR_OP_OP_DEFS_H

#include "op/op.h"

#define DR_OP_ROWS(X)                                                                                                  \
    X(decode)                                                                                                      \
    X(random_horizontal_flip)

#define DR_OP_DECLARE(name) extern const dr_op_def dr__op_##name;
DR_OP_ROWS(DR_OP_DECLARE)
#undef DR_OP_DECLARE

#endif
