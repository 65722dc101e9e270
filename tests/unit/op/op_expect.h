/* op_expect.h: one call for "this op makes that of this image" and "this op refuses". */
#ifndef OP_EXPECT_H
#define OP_EXPECT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "op_harness.h"

/* A dense uint8 image of bytes that stay the caller's. */
static inline dr_view image_of(uint8_t *bytes, int64_t h, int64_t w, int64_t c)
{
    dr_desc d = dr__desc_image(DR_U8, h, w, c);
    return dr__view_dense(&d, bytes);
}

static inline void do_op(struct op_run *r, const char *op, const char *params, uint64_t seed, const dr_view *in)
{
    if (harness_do(r, op, params, seed, in) != DR_OK)
        fail_msg("%s %s: %s", op, params, r->err.text);
    if (!harness_guards_intact(r))
        fail_msg("%s %s: wrote outside its output or scratch", op, params);
}

static inline void expect_bytes(const char *op, const char *params, const dr_view *in, const uint8_t *want, size_t n)
{
    struct op_run r;
    do_op(&r, op, params, 0, in);
    assert_int_equal(r.out_bytes, n);
    for (size_t i = 0; i < n; i++)
        if (r.out.data[i] != want[i])
            fail_msg("%s %s: byte %d is %d, wanted %d", op, params, (int)i, r.out.data[i], want[i]);
    harness_close(&r);
}

/* Fails at some step, with that text in the message, which names the op. */
static inline void expect_refused(const char *op, const char *params, const dr_view *in, const char *text)
{
    struct op_run r;
    dr_status status = harness_do(&r, op, params, 0, in);
    if (status >= 0 || !strstr(r.err.text, text) || !strstr(r.err.text, op))
        fail_msg("%s %s: wanted \"%s\", got %d \"%s\"", op, params, text, (int)status, r.err.text);
    harness_close(&r);
}

#endif
