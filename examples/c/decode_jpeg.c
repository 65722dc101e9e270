/* decode_jpeg: a JPEG file, or a rectangle of it, as a PPM image, in plain C.
 *
 *   cc decode_jpeg.c $(pkg-config --cflags --libs drapps) -o decode_jpeg
 *   ./decode_jpeg FILE [X Y WIDTH HEIGHT] > OUT.ppm
 *
 * Says on standard error what the file is and what decodes it.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <drapps/drapps.h>

/* The whole file; NULL, with errno set, if it cannot be read. */
static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *in = fopen(path, "rb");
    long end = in && fseek(in, 0, SEEK_END) == 0 ? ftell(in) : -1;
    uint8_t *data = end > 0 ? malloc((size_t)end) : NULL;
    if (data) {
        rewind(in);
        *size = fread(data, 1, (size_t)end, in);
    }
    if (in)
        fclose(in);
    return data;
}

static dr_status decode(const uint8_t *data, size_t size, dr_rect *crop, uint8_t **pixels, dr_error *err)
{
    dr_jpeg *jpeg = NULL;
    dr_jpeg_info info;
    dr_status status = dr_jpeg_open(&jpeg, err);
    if (status >= 0)
        status = dr_jpeg_header(jpeg, data, size, &info, err);
    if (status >= 0) {
        fprintf(stderr, "%" PRId64 " x %" PRId64 ", %s, decoded by %s\n", info.width, info.height, info.stored,
                info.decoder);
        if (crop->w == 0)
            *crop = (dr_rect){ 0, 0, info.width, info.height };
        *pixels = malloc((size_t)crop->w * (size_t)crop->h * 3);
        if (*pixels)
            status = dr_jpeg_decode(jpeg, data, size, crop, NULL, *pixels, (ptrdiff_t)crop->w * 3, err);
    }
    dr_jpeg_close(&jpeg);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 2 && argc != 6) {
        fprintf(stderr, "usage: %s FILE [X Y WIDTH HEIGHT]\n", argv[0]);
        return 2;
    }
    dr_rect crop = { 0 };
    if (argc == 6)
        crop = (dr_rect){ atoi(argv[2]), atoi(argv[3]), atoi(argv[4]), atoi(argv[5]) };
    if (argc == 6 && (crop.w < 1 || crop.h < 1)) {
        fprintf(stderr, "decode_jpeg: width %s and height %s must be 1 or more\n", argv[4], argv[5]);
        return 2;
    }
    size_t size = 0;
    uint8_t *data = read_file(argv[1], &size), *pixels = NULL;
    dr_error err = { 0 };
    if (!data) {
        perror(argv[1]);
        return 1;
    }
    dr_status status = decode(data, size, &crop, &pixels, &err);
    bool done = status >= 0 && pixels;
    if (done) {
        printf("P6\n%" PRId64 " %" PRId64 "\n255\n", crop.w, crop.h);
        fwrite(pixels, 3, (size_t)(crop.w * crop.h), stdout);
    } else {
        fprintf(stderr, "decode_jpeg: %s\n", status < 0 ? err.text : "out of memory");
    }
    free(pixels);
    free(data);
    return done ? 0 : 1;
}
