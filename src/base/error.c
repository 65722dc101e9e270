/* error.c: texts of statuses, and filling a dr_error. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *dr_status_text(dr_status status)
{
    switch (status) {
#define DR_STATUS_CASE(name, value, text)                                                                              \
    case DR_##name:                                                                                                    \
        return text;
        DR_STATUS_MAP(DR_STATUS_CASE)
#undef DR_STATUS_CASE
    }
    return "unknown status";
}

const char *dr_status_name(dr_status status)
{
    switch (status) {
#define DR_STATUS_CASE(name, value, text)                                                                              \
    case DR_##name:                                                                                                    \
        return #name;
        DR_STATUS_MAP(DR_STATUS_CASE)
#undef DR_STATUS_CASE
    }
    return "?";
}

dr_status dr__fail(dr_error *err, dr_status status, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        err->status = status;
        vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
    }
    return status;
}

dr_status dr__fail_errno(dr_error *err, dr_status status, const char *format, ...)
{
    int code = errno;
    if (err) {
        va_list args;
        va_start(args, format);
        err->status = status;
        int n = vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
        char reason[128];
        /* The GNU form returns the text, which need not be in the buffer. */
        const char *text = strerror_r(code, reason, sizeof reason);
        if (n >= 0 && (size_t)n < sizeof err->text)
            snprintf(err->text + n, sizeof err->text - (size_t)n, ": %s", text);
    }
    return status;
}

dr_status dr__error_prefix(dr_error *err, const char *format, ...)
{
    if (!err)
        return DR_ERR_ARG;
    char old[DR_ERROR_TEXT];
    memcpy(old, err->text, sizeof old);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof err->text)
        snprintf(err->text + n, sizeof err->text - (size_t)n, ": %s", old);
    return err->status;
}
