/* codec_speeds.h: built-in figures, for what was never measured on a machine. */
#ifndef DR_CODEC_CODEC_SPEEDS_H
#define DR_CODEC_CODEC_SPEEDS_H

#include "codec/chain/codec_chain.h"

/* Composed of figures of each stage. */
dr_codec_speed dr__codec_guess(const dr__chain *chain, dr_codec_class data_class);

#endif
