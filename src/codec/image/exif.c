/* exif.c: finds tag 0x0112 in the first directory of a TIFF block, or tiff:Orientation in XMP.
 *
 * The block comes from the file and is not to be trusted: every read is checked against its end, and whatever does
 * not make sense counts as "no orientation".
 */
#include "codec/image/exif.h"

#include <stdbool.h>
#include <string.h>

enum { TAG_ORIENTATION = 0x0112, TYPE_BYTE = 1, TYPE_SHORT = 3, TYPE_LONG = 4, ENTRY_BYTES = 12 };

struct tiff {
    const uint8_t *data;
    size_t size;
    bool big_endian;
};

/* An unsigned number of n bytes; 0 beyond the end. */
static uint32_t number(const struct tiff *t, size_t at, size_t n)
{
    uint32_t v = 0;
    if (at > t->size || n > t->size - at)
        return 0;
    for (size_t i = 0; i < n; i++)
        v = v << 8 | t->data[at + (t->big_endian ? i : n - 1 - i)];
    return v;
}

static int entry_value(const struct tiff *t, size_t at)
{
    uint32_t count = number(t, at + 4, 4);
    if (count == 0)
        return 0;
    uint32_t value = 0;
    switch (number(t, at + 2, 2)) {
    case TYPE_BYTE:
        value = number(t, at + 8, 1);
        break;
    case TYPE_SHORT:
        value = number(t, at + 8, 2);
        break;
    case TYPE_LONG:
        value = number(t, at + 8, 4);
        break;
    }
    return value >= 1 && value <= 8 ? (int)value : 0;
}

static int directory_orientation(const struct tiff *t)
{
    size_t at = number(t, 4, 4);
    uint32_t n = number(t, at, 2);
    int found = 0;
    for (at += 2; n > 0 && at < t->size && t->size - at >= ENTRY_BYTES; n--, at += ENTRY_BYTES)
        if (number(t, at, 2) == TAG_ORIENTATION)
            found = entry_value(t, at);
    return found;
}

int dr__exif_orientation(const uint8_t *data, size_t size)
{
    while (size >= 6 && memcmp(data, "Exif\0\0", 6) == 0) {
        data += 6;
        size -= 6;
    }
    struct tiff t = { .data = data, .size = size };
    if (size < 8)
        return 0;
    if (memcmp(data, "MM\0*", 4) == 0)
        t.big_endian = true;
    else if (memcmp(data, "II*\0", 4) != 0)
        return 0;
    return directory_orientation(&t);
}

int dr__xmp_orientation(const uint8_t *data, size_t size)
{
    static const char key[] = "tiff:Orientation";
    const uint8_t *end = data + size;
    for (const uint8_t *p = data; (p = memmem(p, (size_t)(end - p), key, sizeof(key) - 1)) != NULL;) {
        p += sizeof(key) - 1;
        size_t left = (size_t)(end - p);
        if (left >= 2 && p[0] == '>')
            p += 1;
        else if (left >= 3 && p[0] == '=' && p[1] == '"')
            p += 2;
        else
            continue;
        if (*p >= '0' && *p <= '9')
            return *p >= '1' && *p <= '8' ? *p - '0' : 0;
    }
    return 0;
}
