/* zstd_state.h: the working memory of Zstandard, one of each kind for a thread, made when it is first needed. */
#ifndef DR_CODEC_ZSTD_STATE_H
#define DR_CODEC_ZSTD_STATE_H

#include <zstd.h>

/* The calling thread's contexts, owned by this file; NULL: memory is short. */
ZSTD_CCtx *dr__zstd_encoder(void);
ZSTD_DCtx *dr__zstd_decoder(void);

/* To be called after an encoder was used: lets its memory go where high levels made it large. */
void dr__zstd_encoder_used(void);

#endif
