/* jpeg_part.c: see jpeg_part.h. */
#include "unit/codec/image/jpeg_part.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PARTS = 600 };

static bool stands_alone(int marker)
{
    return marker == 0x01 || (marker >= RST0 && marker <= EOI);
}

/* Where the next marker begins, or `size`. */
static size_t next_marker(const uint8_t *data, size_t size, size_t at)
{
    while (at + 1 < size && !(data[at] == 0xff && data[at + 1] != 0 && data[at + 1] != 0xff))
        at++;
    return at + 1 < size ? at : size;
}

int jpeg_split(const uint8_t *data, size_t size, struct jpeg_part *parts, int max)
{
    int n = 0;
    for (size_t at = 0; at < size && n < max; n++) {
        size_t marker = next_marker(data, size, at), end = marker;
        if (marker == at) {
            end = at + 2;
            if (!stands_alone(data[at + 1]) && end + 2 <= size)
                end += (size_t)data[end] << 8 | data[end + 1];
            if (end > size)
                end = size;
        }
        parts[n] = (struct jpeg_part){ marker == at ? data[at + 1] : 0, at, end - at };
        at = end;
    }
    return n;
}

void blob_splice(struct blob *b, size_t at, size_t remove, const uint8_t *bytes, size_t n)
{
    size_t size = b->size - remove + n;
    uint8_t *data = malloc(size ? size : 1);
    assert(data && at <= b->size && remove <= b->size - at);
    memcpy(data, b->data, at);
    if (n)
        memcpy(data + at, bytes, n);
    memcpy(data + at + n, b->data + at + remove, b->size - at - remove);
    free(b->data);
    *b = (struct blob){ data, size };
}

/* The parts of a file, for the functions below. */
struct file {
    struct jpeg_part parts[MAX_PARTS];
    int n;
};

static struct file *split(const struct blob *b)
{
    static struct file file;
    file.n = jpeg_split(b->data, b->size, file.parts, MAX_PARTS);
    return &file;
}

const struct jpeg_part *part_any(const struct blob *b, int lo, int hi, uint64_t *s)
{
    const struct file *f = split(b);
    const struct jpeg_part *found = NULL;
    int seen = 0;
    for (int i = 0; i < f->n; i++)
        if (f->parts[i].marker >= lo && f->parts[i].marker <= hi && random_in(s, 0, seen++) == 0)
            found = &f->parts[i];
    return found;
}

/* Frame headers share their numbers with DHT, JPG and DAC. */
const struct jpeg_part *part_frame(const struct blob *b)
{
    const struct file *f = split(b);
    for (int i = 0; i < f->n; i++) {
        int m = f->parts[i].marker;
        if (m >= SOF0 && m <= 0xcf && m != DHT && m != 0xc8 && m != 0xcc && f->parts[i].size >= 13)
            return &f->parts[i];
    }
    return NULL;
}

const struct jpeg_part *part_scan(const struct blob *b, size_t least, uint64_t *s)
{
    const struct file *f = split(b);
    const struct jpeg_part *found = NULL;
    int seen = 0;
    for (int i = 1; i < f->n; i++) {
        bool follows = f->parts[i - 1].marker == SOS || (f->parts[i - 1].marker & 0xf8) == RST0;
        if (f->parts[i].marker == 0 && follows && f->parts[i].size >= least && random_in(s, 0, seen++) == 0)
            found = &f->parts[i];
    }
    return found;
}

struct jpeg_part part_of_all(const struct blob *b, uint64_t *s)
{
    const struct file *f = split(b);
    return f->n ? f->parts[random_in(s, 0, f->n - 1)] : (struct jpeg_part){ 0 };
}

void part_move(struct blob *b, struct jpeg_part from, size_t to)
{
    struct blob copy = blob_copy(b->data + from.at, from.size);
    blob_splice(b, from.at, from.size, NULL, 0);
    blob_splice(b, to > from.at ? to - from.size : to, 0, copy.data, copy.size);
    blob_free(&copy);
}

void part_put(struct blob *b, const struct jpeg_part *before, const uint8_t *bytes, size_t n)
{
    if (before)
        blob_splice(b, before->at, 0, bytes, n);
}
