/* decode_dump: decodes rectangles of an image file to standard output, for comparison with other decoders.
 *
 *   decode_dump FILE MODE ORIENT SCALE [X Y W H]...
 *
 * MODE is rgb, gray, rgba or unchanged; ORIENT 0 or 1; SCALE 1, 2, 4 or 8; no rectangle means the whole image.
 * Output: a line "width height channels dtype orientation codec stored", then the rectangles' pixels, densely, one
 * after the other.  Errors go to standard error as "STATUS: text" with exit code 1.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "codec/image/image.h"
#include "data/desc.h"

struct file {
    uint8_t *data;
    size_t size;
};

static bool read_whole(const char *path, struct file *f)
{
    FILE *in = fopen(path, "rb");
    if (!in)
        return false;
    fseek(in, 0, SEEK_END);
    f->size = (size_t)ftell(in);
    rewind(in);
    /* Exactly the file's size, so that a sanitizer sees reads beyond its end. */
    f->data = malloc(f->size ? f->size : 1);
    bool ok = f->data && fread(f->data, 1, f->size, in) == f->size;
    fclose(in);
    return ok;
}

static int parse_mode(const char *name)
{
    static const char *const names[] = { "rgb", "gray", "rgba", "unchanged" };
    for (int i = 0; i < 4; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    fprintf(stderr, "ERR_ARG: mode %s is none of rgb, gray, rgba, unchanged\n", name);
    exit(2);
}

static dr_status dump(dr_codec_state *state, const dr_image_codec *codec, const struct file *f,
                      const dr__decode_options *options, const dr__image_info *info, dr_rect rect, dr_error *err)
{
    size_t row = (size_t)rect.w * (size_t)info->channels * dr_dtype_size(info->dtype);
    uint8_t *pixels = malloc(row * (size_t)rect.h);
    if (!pixels)
        return dr__fail(err, DR_ERR_NOMEM, "no memory for the pixels");
    dr_view out = { .data = pixels,
                    .stride = (ptrdiff_t)row,
                    .window = rect,
                    .desc = dr__desc_image(info->dtype, info->height, info->width, info->channels) };
    dr_status status = codec->decode(state, f->data, f->size, options, &rect, &out, err);
    if (status == DR_OK)
        fwrite(pixels, row, (size_t)rect.h, stdout);
    free(pixels);
    return status;
}

static dr_status run(const struct file *f, const dr__decode_options *options, int n, char **numbers, dr_error *err)
{
    const dr_image_codec *codec;
    dr__image_info info;
    DR_TRY(dr__image_probe(f->data, f->size, &codec, err));
    dr_codec_state *state = dr__codec_state_new();
    dr_status status = codec->header(state, f->data, f->size, options, &info, err);
    if (status == DR_OK)
        printf("%" PRId64 " %" PRId64 " %d %s %d %s %s\n", info.width, info.height, info.channels,
               dr_dtype_name(info.dtype), info.orientation, codec->name, info.stored);
    if (status == DR_OK && n == 0)
        status = dump(state, codec, f, options, &info, (dr_rect){ 0, 0, info.width, info.height }, err);
    for (int i = 0; status == DR_OK && i + 3 < n; i += 4) {
        dr_rect r = { atoll(numbers[i]), atoll(numbers[i + 1]), atoll(numbers[i + 2]), atoll(numbers[i + 3]) };
        status = dump(state, codec, f, options, &info, r, err);
    }
    dr__codec_state_free(&state);
    return status;
}

static int list_codecs(void)
{
    for (const dr_image_codec *const *c = dr__image_codecs; *c; c++)
        printf("%s: %s\n", (*c)->name, (*c)->library);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--codecs") == 0)
        return list_codecs();
    if (argc < 5) {
        fprintf(stderr, "usage: decode_dump FILE MODE ORIENT SCALE [X Y W H]...\n");
        return 2;
    }
    struct file f = { 0 };
    dr_error err = { 0 };
    dr__decode_options options;
    dr__decode_defaults(&options);
    options.mode = (dr__color_mode)parse_mode(argv[2]);
    options.exif_orient = atoi(argv[3]) != 0;
    options.scale_denom = atoi(argv[4]);
    if (!read_whole(argv[1], &f)) {
        fprintf(stderr, "ERR_IO: %s: %s\n", argv[1], strerror(errno));
        return 1;
    }
    dr_status status = run(&f, &options, argc - 5, argv + 5, &err);
    free(f.data);
    if (status != DR_OK)
        fprintf(stderr, "%s: %s\n", dr_status_name(status), err.text);
    return status == DR_OK ? 0 : 1;
}
