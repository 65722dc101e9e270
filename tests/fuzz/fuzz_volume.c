/* fuzz_volume: any bytes as a volume; the first says the axes and the result's type.  The result has exactly the size
 * that the header promised. */
#include <stdlib.h>

#include "codec/volume/volume.h"
#include "data/desc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const dr_dtype dtypes[] = { DR_F32, DR_U8, DR_I16, DR_I64 };
    static _Alignas(64) uint8_t room[DR__VOLUME_ROOM];
    if (!size)
        return 0;
    dr__volume_options options = { .xyz = data[0] & 1, .max_voxels = 1 << 16 };
    dr__volume_info info;
    dr_error err = { 0 };
    if (dr__volume_header(data + 1, size - 1, &options, room, &info, &err) != DR_OK)
        return 0;
    dr_desc desc = dr__desc_volume(dtypes[data[0] >> 1 & 3], info.dims);
    size_t bytes = 0;
    if (!dr__desc_bytes_dense(&desc, &bytes) || !bytes)
        abort(); /* a header that was accepted says how much it is */
    dr_view out = dr__view_dense(&desc, malloc(bytes));
    if (out.data && dr__volume_decode(data + 1, size - 1, &info, room, &out, &err) != DR_OK && !err.text[0])
        abort(); /* a failure says why */
    free(out.data);
    return 0;
}
