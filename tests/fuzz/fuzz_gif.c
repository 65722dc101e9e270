/* fuzz_gif: the gif decoder on any bytes; see fuzz_image.h. */
#include "fuzz/fuzz_image.h"

extern const dr_image_codec dr__codec_gif;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_codec(&dr__codec_gif, data, size);
}
