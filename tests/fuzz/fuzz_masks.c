/* fuzz_masks: any text as outlines of objects.  What is decoded is 0 or 1 in as many planes as the header promised. */
#include <stdlib.h>

#include "codec/image/segmentation.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dr__segmentation info;
    dr_error err = { 0 };
    char *text = malloc(size ? size : 1); /* of exactly its size: a byte read behind it is seen */
    for (size_t i = 0; text && i < size; i++)
        text[i] = (char)data[i];
    if (text && dr__segmentation_header(text, size, &info, &err) == DR_OK &&
        info.height * info.width * (info.n + 1) <= MOST) {
        const size_t plane = (size_t)(info.height * info.width), all = plane * (size_t)info.n;
        uint8_t *room = malloc(plane), *out = malloc(all ? all : 1);
        dr_status status = room && out ? dr__segmentation_decode(text, size, &info, room, out, &err) : DR_OK;
        if (status != DR_OK && !err.text[0])
            abort(); /* a failure says why */
        for (size_t i = 0; status == DR_OK && room && out && i < all; i++)
            if (out[i] > 1)
                abort();
        free(room);
        free(out);
    }
    free(text);
    return 0;
}
