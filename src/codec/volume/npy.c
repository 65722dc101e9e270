/* npy.c: the header of NumPy's .npy files: a Python dict with descr, fortran_order and shape.
 *
 * Three extents are depth, height, width; four have channels in front.
 */
#include <stdlib.h>
#include <string.h>

#include "codec/volume/volume.h"

enum { MAGIC = 6, MAX_TEXT = 4096 };

static bool probe(const uint8_t *data, size_t size)
{
    return size >= MAGIC && !memcmp(data, "\x93NUMPY", MAGIC);
}

/* The text of the header, terminated, and where the numbers begin. */
static dr_status read_text(const uint8_t *data, size_t size, char text[MAX_TEXT], uint64_t *data_at, dr_error *err)
{
    size_t start = size > MAGIC && data[MAGIC] == 1 ? 10 : 12, len;
    if (size < start)
        return dr__fail(err, DR_ERR_FORMAT, "npy: the file ends in its header");
    len = data[8] | (size_t)data[9] << 8;
    if (start == 12)
        len |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
    if (len >= MAX_TEXT || len > size - start)
        return dr__fail(err, DR_ERR_FORMAT, "npy: header must have at most %zu bytes, got %zu",
                        size - start < MAX_TEXT ? size - start : (size_t)MAX_TEXT - 1, len);
    memcpy(text, data + start, len);
    text[len] = 0;
    *data_at = start + len;
    return DR_OK;
}

/* Behind "'key':" and spaces; NULL: not there. */
static const char *value_of(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    if (!at)
        return NULL;
    at += strlen(key);
    return at + strspn(at, "'\": ");
}

static dr_status read_type(const char *text, dr__volume_info *info, dr_error *err)
{
    const uint16_t one = 1;
    const bool little = *(const uint8_t *)&one;
    const char *at = value_of(text, "'descr'");
    if (!at || !strchr("<>|=", *at) || !at[0] || !strchr("uifb", at[1]) || !at[1] || !strchr("1248", at[2]) || !at[2] ||
        (at[3] != '\'' && at[3] != '"') || (at[1] == 'f' && at[2] < '4'))
        return dr__fail(err, DR_ERR_UNSUPPORTED, "npy: elements of type %.12s are not supported", at ? at : "?");
    info->number = at[1] == 'b' ? 'u' : at[1];
    info->bytes = at[2] - '0';
    info->swap = info->bytes > 1 && at[0] == (little ? '>' : '<');
    return DR_OK;
}

static dr_status read_shape(const char *text, int64_t shape[4], int *n, dr_error *err)
{
    const char *at = value_of(text, "'shape'");
    *n = 0;
    if (!at || *at != '(')
        return dr__fail(err, DR_ERR_FORMAT, "npy: no shape in the header");
    for (at++; *at && *at != ')';) {
        char *end;
        long long extent = strtoll(at, &end, 10);
        if (end == at || extent < 1 || extent > INT32_MAX || *n == 4)
            return dr__fail(err, DR_ERR_UNSUPPORTED, "npy: a volume needs 3 or 4 extents of 1 to %d, not %.60s",
                            INT32_MAX, value_of(text, "'shape'"));
        shape[(*n)++] = extent;
        at = end + strspn(end, ", ");
    }
    if (*n >= 3)
        return DR_OK;
    return dr__fail(err, DR_ERR_UNSUPPORTED, "npy: a volume needs 3 or 4 extents, not %d", *n);
}

static dr_status header(const uint8_t *data, size_t size, const dr__volume_options *options, dr__volume_info *info,
                        dr_error *err)
{
    static const int plain[] = { 0, 1, 2, 3 }, turned[] = { 3, 2, 1, 0 }, turned3[] = { 0, 3, 2, 1 };
    char text[MAX_TEXT];
    int64_t shape[4];
    int n;
    (void)options;
    DR_TRY(read_text(data, size, text, &info->data_at, err));
    DR_TRY(read_type(text, info, err));
    DR_TRY(read_shape(text, shape, &n, err));
    const char *order = value_of(text, "'fortran_order'");
    bool fortran = order && !strncmp(order, "True", 4);
    info->stored[0] = 1;
    for (int i = 0; i < n; i++)
        info->stored[4 - n + i] = shape[fortran ? n - 1 - i : i];
    info->slope = 1;
    dr__volume_turn(info, !fortran ? plain : n == 4 ? turned : turned3);
    return DR_OK;
}

const dr_volume_codec dr__volume_codec_npy = {
    .name = "npy",
    .summary = "NumPy arrays of numbers",
    .probe = probe,
    .header = header,
};
