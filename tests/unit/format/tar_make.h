/* tar_make.h: tar archives in memory, header by header, for tests. */
#ifndef TESTS_UNIT_FORMAT_TAR_MAKE_H
#define TESTS_UNIT_FORMAT_TAR_MAKE_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct archive {
    uint8_t data[262144];
    size_t size;
};

static inline void tar_sum(uint8_t *h)
{
    unsigned sum = 0;
    memset(h + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += h[i];
    snprintf((char *)h + 148, 8, "%06o", sum);
}

/* A ustar header; returns it, for changes that need tar_sum again. */
static inline uint8_t *tar_header(struct archive *a, const char *name, char type, size_t size)
{
    uint8_t *h = a->data + a->size;
    memset(h, 0, 512);
    memcpy(h, name, strlen(name) < 100 ? strlen(name) : 100);
    snprintf((char *)h + 124, 12, "%011o", (unsigned)size);
    h[156] = (uint8_t)type;
    memcpy(h + 257, "ustar\00000", 8);
    tar_sum(h);
    a->size += 512;
    return h;
}

static inline void tar_data(struct archive *a, const void *data, size_t size)
{
    size_t blocks = (size + 511) / 512 * 512;
    memset(a->data + a->size, 0, blocks);
    memcpy(a->data + a->size, data, size);
    a->size += blocks;
}

static inline void tar_put(struct archive *a, const char *name, char type, const char *text)
{
    tar_header(a, name, type, strlen(text));
    tar_data(a, text, strlen(text));
}

static inline void tar_end(struct archive *a)
{
    memset(a->data + a->size, 0, 1024);
    a->size += 1024;
}

#endif
