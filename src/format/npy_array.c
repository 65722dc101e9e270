/* npy_array.c: the header of an .npy file: a Python dict with descr, fortran_order and shape. */
#include "format/npy_array.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "data/desc.h"

enum { ALIGN = 64, FIXED = 10, MAX_HEADER = 1024 };

static const char magic[8] = { '\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0 };

static const char *type_text(dr_dtype dtype)
{
    switch (dtype) {
    case DR_U8:
        return "|u1";
    case DR_I8:
        return "|i1";
    case DR_U16:
    case DR_BF16:
        return "<u2";
    case DR_I16:
        return "<i2";
    case DR_I32:
        return "<i4";
    case DR_I64:
        return "<i8";
    case DR_F16:
        return "<f2";
    case DR_F32:
        return "<f4";
    case DR_F64:
        return "<f8";
    case DR_BOOL:
        return "|b1";
    }
    return "?";
}

void dr__npy_put_header(dr__text *out, const dr_desc *desc)
{
    char text[MAX_HEADER];
    int n = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (", type_text(desc->dtype));
    for (int i = 0; i < desc->n_dims; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%" PRId64 "%s", i ? ", " : "", desc->dims[i],
                      desc->n_dims == 1 ? "," : "");
    n += snprintf(text + n, sizeof text - (size_t)n, "), }");
    while ((FIXED + n + 1) % ALIGN)
        text[n++] = ' ';
    text[n++] = '\n';
    const char length[2] = { (char)(n & 0xFF), (char)(n >> 8) };
    dr__text_add(out, magic, sizeof magic);
    dr__text_add(out, length, sizeof length);
    dr__text_add(out, text, (size_t)n);
}

/* Behind "'key':" and spaces; NULL: not there. */
static const char *value_of(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at ? at + strlen(key) + strspn(at + strlen(key), ": ") : NULL;
}

/* An extent without sign, and what stands behind it; false: none, or more than an array can have. */
static bool take_extent(const char **at, int64_t *out)
{
    int64_t v = 0;
    const char *p = *at;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (v > (INT64_MAX - 9) / 10)
            return false;
        v = v * 10 + (*p - '0');
    }
    if (p == *at)
        return false;
    *out = v;
    *at = p + strspn(p, ", ");
    return true;
}

static bool read_shape(const char *at, dr_desc *desc)
{
    int n = 0;
    if (!at || *at++ != '(')
        return false;
    for (; *at && *at != ')'; n++) {
        int64_t extent;
        if (n == desc->n_dims || !take_extent(&at, &extent))
            return false;
        if (desc->dims[n] != DR_UNKNOWN && desc->dims[n] != extent)
            return false;
        desc->dims[n] = extent;
    }
    return *at == ')' && n == desc->n_dims;
}

dr_status dr__npy_read(const uint8_t *data, size_t size, const dr_desc *want, dr_view *out, dr_error *err)
{
    char text[MAX_HEADER + 1], wanted[128];
    size_t len = size >= FIXED ? (size_t)(data[8] | data[9] << 8) : 0, bytes;
    dr_desc desc = *want;
    if (size < FIXED || memcmp(data, magic, sizeof magic) || len > MAX_HEADER || len > size - FIXED)
        return dr__fail(err, DR_ERR_FORMAT, "npy: no header of version 1");
    memcpy(text, data + FIXED, len);
    text[len] = 0;
    const char *type = value_of(text, "'descr'"), *order = value_of(text, "'fortran_order'");
    const char *name = type_text(desc.dtype);
    if (!type || *type != '\'' || strncmp(type + 1, name, 3) || type[4] != '\'' || !order ||
        strncmp(order, "False", 5) || !read_shape(value_of(text, "'shape'"), &desc))
        return dr__fail(err, DR_ERR_FORMAT, "npy: holds %.100s; expected is %s", text,
                        dr__desc_text_of(want, wanted, sizeof wanted));
    if (!dr__desc_bytes_dense(&desc, &bytes) || bytes != size - FIXED - len)
        return dr__fail(err, DR_ERR_FORMAT, "npy: %zu bytes of numbers do not fit %.100s", size - FIXED - len, text);
    *out = dr__view_dense(&desc, (void *)(data + FIXED + len));
    return DR_OK;
}
