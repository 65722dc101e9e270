/* fuzz_codec.c: any bytes as what the compression library decodes.
 *
 * The first byte says how the rest is taken: an odd one as a .zst, .lz4 or .sz file, an even one as a frame.  What a
 * frame is decoded to, its codec must be able to encode again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <drapps/codec.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1 << 20 };

static void check_file(const uint8_t *data, size_t size)
{
    uint8_t *out;
    size_t n;
    dr_error err = { 0 };
    const dr_status status = dr_codec_decompress(data, size, NULL, MOST, &out, &n, &err);
    if (status == DR_OK) {
        if (n > MOST)
            abort();
        dr_codec_free(out);
    } else if (!err.text[0]) {
        abort();
    }
}

/* Encodes the array by the frame's own codec: that must give the same array back. */
static void encode_again(const dr_codec_frame *f, const uint8_t *array)
{
    const size_t bytes = (size_t)f->raw_bytes;
    dr_codec *codec;
    size_t bound, n;
    if (dr_codec_open(f->spec, NULL, &codec, NULL) != DR_OK || dr_codec_bound(codec, &f->desc, &bound, NULL) != DR_OK)
        abort();
    uint8_t *frame = malloc(bound), *back = malloc(bytes ? bytes : 1);
    const dr_status status = dr_codec_encode(codec, &f->desc, array, frame, bound, &n, NULL);
    if (status != DR_OK && (f->lossless || status != DR_ERR_ARG))
        abort();
    if (status == DR_OK && (dr_codec_decode(frame, n, NULL, back, bytes, NULL) != DR_OK ||
                            (f->lossless && bytes && memcmp(back, array, bytes) != 0)))
        abort();
    free(frame);
    free(back);
    dr_codec_close(&codec);
}

static void check_frame(const uint8_t *data, size_t size)
{
    dr_codec_frame f;
    dr_error err = { 0 };
    if (dr_codec_peek(data, size, &f, &err) != DR_OK) {
        if (!err.text[0])
            abort();
        return;
    }
    if (f.raw_bytes > MOST)
        return;
    uint8_t *array = calloc(1, f.raw_bytes ? (size_t)f.raw_bytes : 1);
    if (dr_codec_decode(data, size, NULL, array, (size_t)f.raw_bytes, &err) == DR_OK)
        encode_again(&f, array);
    free(array);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size)
        (data[0] % 2 ? check_file : check_frame)(data + 1, size - 1);
    return 0;
}
