/* audio_table.c: the audio codecs of this build. */
#include "codec/audio/audio.h"

const dr_audio_codec *const dr__audio_codecs[] = {
    NULL,
};
