/* cm.h: cmocka with what it needs included first. */
#ifndef DR_TESTS_CM_H
#define DR_TESTS_CM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What a test is built with: gcc and clang say it in different ways. */
#if defined(__has_feature)
#define DR_HAS_FEATURE(x) __has_feature(x)
#else
#define DR_HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || DR_HAS_FEATURE(address_sanitizer)
#define DR_TEST_ASAN 1
#else
#define DR_TEST_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__) || DR_HAS_FEATURE(thread_sanitizer)
#define DR_TEST_TSAN 1
#else
#define DR_TEST_TSAN 0
#endif

/* A status that must be DR_OK; prints the error's text. */
#define assert_ok(call)                                                                                                \
    do {                                                                                                               \
        dr_status status_ = (call);                                                                                    \
        if (status_ != DR_OK)                                                                                          \
            fail_msg("%s: %s: %s", #call, dr_status_name(status_), err.text);                                          \
    } while (0)

/* A call that must fail with this status and a text that contains `part`. */
#define assert_fails(call, want, part)                                                                                 \
    do {                                                                                                               \
        dr_status status_ = (call);                                                                                    \
        if (status_ != (want) || !strstr(err.text, part))                                                              \
            fail_msg("%s: %s: \"%s\", expected \"%s\"", #call, dr_status_name(status_), err.text, part);               \
    } while (0)

#endif
