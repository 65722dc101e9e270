/* resize_check.c: resizes what comes by standard input, for comparison with PIL and torch.
 *
 * A request is 13 numbers of 32 bits (level, filter, rule, channels, width, height, crop x, y, w, h, out width, out
 * height, repeats) and the pixels; the answer is the pixels of the result.  Until the input ends.  Native byte order.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "kernel/cpu.h"
#include "kernel/resize.h"

struct request {
    int32_t level, filter, rule, channels, w, h, crop_x, crop_y, crop_w, crop_h, out_w, out_h, repeats;
};

static void write_row(void *user, const uint8_t *row, int y)
{
    const struct request *q = user;
    (void)y;
    if (q->repeats == 0)
        fwrite(row, (size_t)q->channels, (size_t)q->out_w, stdout);
}

/* With repeats: that many runs before the one that is written, for counting instructions. */
static void answer(struct request *q, const uint8_t *pixels, dr__resize *r)
{
    dr__kernels k;
    dr__kernels_fill(&k, (dr__cpu_level)q->level);
    const ptrdiff_t stride = (ptrdiff_t)q->w * q->channels;
    const uint8_t *first = pixels + q->crop_y * stride + (ptrdiff_t)q->crop_x * q->channels;
    for (;; q->repeats--) {
        dr__resize_run(r, &k, first, stride, write_row, q);
        if (q->repeats == 0)
            break;
    }
    fflush(stdout);
}

static int serve(struct request *q)
{
    const size_t bytes = (size_t)q->w * (size_t)q->h * (size_t)q->channels;
    const dr__resize_spec spec = {
        q->crop_w, q->crop_h, q->out_w, q->out_h, q->channels, (dr__filter)q->filter, (dr__resize_rule)q->rule
    };
    size_t scratch_bytes;
    if (!dr__resize_scratch(&spec, &scratch_bytes))
        return 2;
    uint8_t *pixels = malloc(bytes); /* exactly, so that a sanitizer sees a read past the end */
    void *scratch = dr__alloc_aligned(scratch_bytes ? scratch_bytes : 1);
    int failed = !pixels || !scratch || fread(pixels, 1, bytes, stdin) != bytes;
    if (!failed) {
        dr__resize r;
        dr__resize_plan(&r, &spec, scratch);
        answer(q, pixels, &r);
    }
    dr__free_aligned(scratch);
    free(pixels);
    return failed;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--level") == 0) {
        printf("%d\n", (int)dr__cpu_has());
        return 0;
    }
    struct request q;
    while (fread(&q, sizeof q, 1, stdin) == 1) {
        const int failed = serve(&q);
        if (failed)
            return failed;
    }
    return 0;
}
