/* odd_jpeg.h: what encoders do not write: JPEG files changed in ways that are legal but rare, or damaged.
 *
 * Works on any bytes, so that a fuzzer can use it on what earlier changes have left.
 */
#ifndef DR_TESTS_ODD_JPEG_H
#define DR_TESTS_ODD_JPEG_H

#include "unit/codec/make_image.h"

/* A marker with its segment, or (marker 0) the bytes between two markers: entropy-coded data, or rubbish. */
struct jpeg_part {
    int marker; /* 0xC0 to 0xFE */
    size_t at, size;
};

/* The parts of these bytes in their order, at most `max`; together they are all of them if max is enough. */
int jpeg_split(const uint8_t *data, size_t size, struct jpeg_part *parts, int max);

/* Replaces `remove` bytes at `at` by n others. */
void blob_splice(struct blob *b, size_t at, size_t remove, const uint8_t *bytes, size_t n);

/* Changes, by number from 0 on; NULL ends them.  `keeps` are those after which a good file still is one. */
struct jpeg_oddity {
    const char *name;
    void (*apply)(struct blob *b, uint64_t *seed); /* does nothing where the file lacks what it changes */
    bool keeps;
};
extern const struct jpeg_oddity jpeg_oddities[];
int jpeg_n_oddities(void);

/* Sampling factors that encoders can write: of three components, and a name. */
struct jpeg_sampling {
    const char *name;
    int h[3], v[3];
};
extern const struct jpeg_sampling jpeg_samplings[]; /* a NULL name ends them */
int jpeg_n_samplings(void);

/* A JPEG of any kind, mostly of those that sequential decoders read, at most `side` wide and high. */
struct jpeg_spec random_kind(uint64_t *seed, int side);

/* What was drawn, for messages. */
void describe_kind(const struct jpeg_spec *spec, char *text, size_t cap);

#endif
