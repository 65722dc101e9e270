/* odd_jpeg.h: what encoders do not write: JPEG files changed in ways that are right but rare, or damaged. */
#ifndef DR_TESTS_ODD_JPEG_H
#define DR_TESTS_ODD_JPEG_H

#include "unit/codec/image/blob.h"

struct jpeg_change {
    const char *name;
    void (*apply)(struct blob *b, uint64_t *seed); /* does nothing where the file lacks what it changes */
};

/* A NULL name ends them. */
extern const struct jpeg_change jpeg_oddities[]; /* a good file stays one */
extern const struct jpeg_change jpeg_damages[];

/* One of all, by chance. */
const struct jpeg_change *any_jpeg_change(uint64_t *seed);

#endif
