/* work.h: the work of imagenet-train-224 on one sample, bare: what the programs of this folder measure.
 *
 * A rectangle is decoded by libjpeg-turbo itself, with the margin that makes the pixels those of decoding everything,
 * and not through drapps' codecs, so that these can be measured against it; or by drapps' codec.  Then PIL's integer
 * resize; mirror; normalised float32 planes.
 */
#ifndef DR_BENCH_WORK_H
#define DR_BENCH_WORK_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

#include "codec/image/image.h"
#include "codec/image/jpeg_seek.h"
#include "kernel/resize.h"

enum { SIDE = 224, PLANE = SIDE * SIDE, SAMPLE = 3 * PLANE };

/* A crop, as torchvision's RandomResizedCrop draws it, and whether it is mirrored. */
struct box {
    int x, y, w, h;
    bool flip;
};

struct box draw_box(uint64_t *rng, int width, int height);

/* An encoded file in memory. */
struct file {
    uint8_t *data;
    size_t size;
    int width, height;
    struct box box;
};

/* Memory that grows and is kept. */
struct warm {
    uint8_t *data;
    size_t cap;
};

uint8_t *warm_get(struct warm *block, size_t size);
void warm_free(struct warm *block);

/* libjpeg-turbo with its buffer, for one thread. */
struct bare {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jmp_buf back;
    struct warm pixels;
};

void bare_open(struct bare *bare);
void bare_close(struct bare *bare);

/* Sets the size of the file; false where libjpeg cannot give RGB (CMYK, damaged headers). */
bool bare_look(struct bare *bare, struct file *file);

/* The first pixel of the box, rows *stride apart, valid until the next call.  Ends the program for damaged data. */
const uint8_t *bare_decode(struct bare *bare, const struct file *file, const struct box *box, ptrdiff_t *stride);

/* Resize, mirror, normalise, for one thread. */
struct finish {
    const dr__kernels *kernels;
    struct warm scratch;
    dr__resize plan;
    dr__lut_f32 table;
    float *out;
    bool mirror;
};

void finish_open(struct finish *finish);
void finish_close(struct finish *finish);

/* Makes ready for pixels of the box, whose sample goes to `out`. */
void finish_plan(struct finish *finish, const struct box *box, float *out);

/* Takes a finished row: a dr__resize_sink whose user is the struct finish. */
void finish_row(void *finish, const uint8_t *row, int y);

/* All of it on pixels that are in memory. */
void finish_sample(struct finish *finish, const uint8_t *pixels, ptrdiff_t stride, const struct box *box, float *out);

/* All of it with drapps' codec: rows go from the decoder into the resize while they are in the cache, as in a loader.
 * points: NULL, or those of the file.  Ends the program for damaged data. */
void finish_stream(struct finish *finish, dr_codec_state *codecs, const struct file *file, const struct box *box,
                   dr__seek_points *points, float *out);

/* Reads a whole file; ends the program where that fails. */
void load_file(struct file *file, const char *path);

/* Paths of the JPEG files below a folder, in the order of their names; ends the program where it cannot be read. */
struct names {
    char **at;
    size_t n, cap;
};

struct names find_jpegs(const char *folder);
void names_free(struct names *names);

double now_seconds(void);

/* For memory that has to be there. */
void *must(void *p);

/* Ends the program with one line. */
_Noreturn void die(const char *what, const char *name);

#endif
