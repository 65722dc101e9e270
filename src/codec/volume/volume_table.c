/* volume_table.c: the volume codecs, in the order in which bytes are probed. */
#include "codec/volume/volume.h"

extern const dr_volume_codec dr__volume_codec_nifti;
extern const dr_volume_codec dr__volume_codec_npy;

const dr_volume_codec *const dr__volume_codecs[] = {
    &dr__volume_codec_npy,
    &dr__volume_codec_nifti,
    NULL,
};
