/* error.h: making and passing on a dr_error. */
#ifndef DR_BASE_ERROR_H
#define DR_BASE_ERROR_H

#include <drapps/status.h>

#include "base/compiler.h"

/* Fills err (if not NULL) with the status and the formatted text; returns the status. */
dr_status dr__fail(dr_error *err, dr_status status, const char *format, ...) DR_PRINTF(3, 4);

/* As dr__fail, with ": " and the text of errno's current value at the end. */
dr_status dr__fail_errno(dr_error *err, dr_status status, const char *format, ...) DR_PRINTF(3, 4);

/* Puts "prefix: " before the text of a failed err; returns its status.  For naming the sample or op on the way up. */
dr_status dr__error_prefix(dr_error *err, const char *format, ...) DR_PRINTF(2, 3);

/* Returns from the enclosing function when a call failed; news (> 0) counts as failure of the straight path too. */
#define DR_TRY(call)                                                                                                   \
    do {                                                                                                               \
        dr_status dr_try_status = (call);                                                                              \
        if (dr_try_status != DR_OK)                                                                                    \
            return dr_try_status;                                                                                      \
    } while (0)

#endif
