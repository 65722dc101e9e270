/* codec_trial.h: random arrays through random codecs, and frames that are damaged. */
#ifndef DR_TESTS_CODEC_TRIAL_H
#define DR_TESTS_CODEC_TRIAL_H

#include <drapps/codec.h>

#include "base/rng.h"

enum { TRIAL_BYTES = 6000, TRIAL_FRAME = 32768 };

typedef struct trial {
    dr_rng rng;
    dr_desc desc;
    size_t bytes;
    char spec[DR_CODEC_SPEC_TEXT];
    _Alignas(8) uint8_t data[TRIAL_BYTES + 8], back[TRIAL_BYTES + 8];
    uint8_t frame[TRIAL_FRAME];
    size_t frame_bytes;
    dr_codec_frame peeked;
} trial;

/* Draws an array of any type and contents and a codec that takes it, encodes it, and checks what comes back.  False
 * where a lossy codec rightly refused; then there is no frame. */
bool trial_round(trial *t);

/* Changes the frame at random places, or cuts it, and decodes it: nothing may crash, and what is accepted must be the
 * array. */
void trial_damage(trial *t);

/* As many rounds as told; prints the seed. */
void trial_rounds(uint64_t seed, long n_rounds, int n_damages);

#endif
