/* zstd_state.c: Zstandard's contexts, kept for each thread until it ends. */
#include "codec/bytes/zstd_state.h"

#include <pthread.h>
#include <stdbool.h>

#include "base/alloc.h"

enum { KEEP_BYTES = 32 << 20 }; /* levels above 15 or so need more */

typedef struct zstd_state {
    ZSTD_CCtx *encoder;
    ZSTD_DCtx *decoder;
} zstd_state;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool have_key;

static void end(void *p)
{
    zstd_state *state = p;
    ZSTD_freeCCtx(state->encoder);
    ZSTD_freeDCtx(state->decoder);
    dr__free(state);
}

static void make_key(void)
{
    have_key = !pthread_key_create(&key, end);
}

static zstd_state *mine(void)
{
    pthread_once(&once, make_key);
    if (!have_key)
        return NULL;
    zstd_state *state = pthread_getspecific(key);
    if (state)
        return state;
    state = dr__alloc_zero(1, sizeof *state);
    if (state && pthread_setspecific(key, state)) {
        dr__free(state);
        state = NULL;
    }
    return state;
}

ZSTD_CCtx *dr__zstd_encoder(void)
{
    zstd_state *state = mine();
    if (state && !state->encoder)
        state->encoder = ZSTD_createCCtx();
    return state ? state->encoder : NULL;
}

ZSTD_DCtx *dr__zstd_decoder(void)
{
    zstd_state *state = mine();
    if (state && !state->decoder)
        state->decoder = ZSTD_createDCtx();
    return state ? state->decoder : NULL;
}

void dr__zstd_encoder_used(void)
{
    zstd_state *state = mine();
    if (state && state->encoder && ZSTD_sizeof_CCtx(state->encoder) > KEEP_BYTES) {
        ZSTD_freeCCtx(state->encoder);
        state->encoder = NULL;
    }
}
