/* svb.c: StreamVByte (Lemire, Kurz, Rupp 2018), decoding. */
#include "kernel/codec_kernel.h"

void dr__svb_decode_scalar(uint32_t *dst, const uint8_t *control, const uint8_t *data, size_t first, size_t n)
{
    for (size_t i = first; i < n; i++) {
        const unsigned bytes = (control[i / 4] >> i % 4 * 2 & 3) + 1;
        uint32_t x = 0;
        for (unsigned b = 0; b < bytes; b++)
            x |= (uint32_t)data[b] << 8 * b;
        dst[i] = x;
        data += bytes;
    }
}

static void svb_decode(uint32_t *dst, const uint8_t *control, const uint8_t *data, const uint8_t *end, size_t n)
{
    (void)end;
    dr__svb_decode_scalar(dst, control, data, 0, n);
}

void dr__svb_c(dr__codec_kernels *k)
{
    k->svb_decode = svb_decode;
}
