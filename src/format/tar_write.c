/* tar_write.c: headers of tar archives. */
#include "format/tar_write.h"

#include <stdio.h>
#include <string.h>

enum { NAME_FIELD = 100, SIZE_AT = 124, SIZE_FIELD = 12, SUM_AT = 148, TYPE_AT = 156, MAGIC_AT = 257 };

static const uint64_t most_octal = UINT64_C(077777777777); /* 8 GB; a larger size is written as a binary number */

static void put_size(uint8_t *field, uint64_t size)
{
    if (size <= most_octal) {
        snprintf((char *)field, SIZE_FIELD, "%011llo", (unsigned long long)size);
        return;
    }
    field[0] = 0x80;
    for (int i = SIZE_FIELD - 1; i > 3; i--, size >>= 8)
        field[i] = (uint8_t)size;
}

static void put_block(dr__text *out, char type, const char *name, uint64_t size)
{
    uint8_t h[DR__TAR_BLOCK] = { 0 };
    const size_t len = strlen(name);
    unsigned sum = 0;
    memcpy(h, name, len < NAME_FIELD ? len : NAME_FIELD);
    memcpy(h + 100,
           "0000644\0"
           "0000000\0"
           "0000000\0",
           24); /* mode, owner, group */
    put_size(h + SIZE_AT, size);
    memcpy(h + 136, "00000000000", 12); /* time */
    memset(h + SUM_AT, ' ', 8);
    h[TYPE_AT] = (uint8_t)type;
    memcpy(h + MAGIC_AT, "ustar  ", 8);
    for (int i = 0; i < DR__TAR_BLOCK; i++)
        sum += h[i];
    snprintf((char *)h + SUM_AT, 7, "%06o", sum);
    dr__text_add(out, (const char *)h, sizeof h);
}

void dr__tar_put_header(dr__text *out, const char *name, uint64_t size)
{
    const size_t len = strlen(name) + 1;
    if (len > NAME_FIELD) {
        put_block(out, 'L', "././@LongLink", len);
        dr__text_add(out, name, len);
        dr__tar_put_padding(out, len);
    }
    put_block(out, '0', name, size);
}

void dr__tar_put_padding(dr__text *out, uint64_t size)
{
    static const char zeros[DR__TAR_BLOCK];
    dr__text_add(out, zeros, (DR__TAR_BLOCK - size % DR__TAR_BLOCK) % DR__TAR_BLOCK);
}
