/* jpeg_kind.h: the kinds of JPEG that an encoder can write, systematically and by chance. */
#ifndef DR_TESTS_JPEG_KIND_H
#define DR_TESTS_JPEG_KIND_H

#include "unit/codec/image/make_image.h"

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
