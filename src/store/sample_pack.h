/* sample_pack.h: the bytes that a sample is stored as, in the form that a codec manager chooses. */
#ifndef DR_STORE_SAMPLE_PACK_H
#define DR_STORE_SAMPLE_PACK_H

#include <pthread.h>

#include <drapps/store.h>

#include "codec/bytes/byte_codec.h"
#include "store/codec_manager.h"

typedef struct dr__packed {
    const void *payload; /* `owned`, or the sample's raw bytes */
    void *owned;         /* freed by dr__packed_free; NULL */
    size_t bytes;
    uint8_t codec; /* wire id, of what is stored: what does not become smaller is stored as it is */
    dr__codec_choice choice;
} dr__packed;

/* Chooses, compresses and measures.  raw: the fields of `sample` as dr__data_layout places them.  lock: the manager's;
 * not held. */
void dr__sample_pack(dr__codec_manager *manager, pthread_mutex_t *lock, const dr_stored *sample, const void *raw,
                     dr__packed *out);
void dr__packed_free(dr__packed *packed);

/* Compresses into new memory, which the caller frees by dr__free.  NULL: out of memory, too large for the codec, or no
 * smaller than before. */
void *dr__compress(const dr_byte_codec *codec, const void *data, size_t size, size_t *encoded_size);

#endif
