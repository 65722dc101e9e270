/* sample_pack.c: compresses a sample, and times what will be done when it is read. */
#include "store/sample_pack.h"

#include <xxhash.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"

void *dr__compress(const dr_byte_codec *codec, const void *data, size_t size, size_t *encoded_size)
{
    /* Room for no more than the input: what does not become smaller is kept as it is. */
    void *encoded = size ? dr__alloc(size) : NULL;
    const size_t n = encoded ? codec->encode(data, size, encoded, size) : 0;
    if (!n || n >= size) {
        dr__free(encoded);
        return NULL;
    }
    *encoded_size = n;
    return encoded;
}

/* Checks and decompresses as a reader will.  Without memory for it nothing is measured. */
static bool time_reading(const dr__packed *p, size_t raw_bytes, uint64_t *cpu_ns, uint64_t *wall_ns)
{
    const dr_byte_codec *codec = dr__byte_codec_find(p->codec);
    void *out = p->owned ? dr__alloc(raw_bytes) : NULL;
    if (p->owned && !out)
        return false;
    const uint64_t wall = dr__now_ns(), cpu = dr__thread_cpu_ns();
    const uint64_t sum = XXH3_64bits(p->payload, p->bytes);
    const bool good = !p->owned || codec->decode(p->payload, p->bytes, out, raw_bytes);
    *cpu_ns = dr__thread_cpu_ns() - cpu + (sum == 0); /* so that the sum is needed */
    const double slowdown = dr__thread_slowdown();
    *wall_ns = slowdown > 0 ? (uint64_t)((double)*cpu_ns * slowdown) : dr__now_ns() - wall;
    dr__free(out);
    return good;
}

void dr__sample_pack(dr__codec_manager *m, pthread_mutex_t *lock, const dr_stored *sample, const void *raw,
                     dr__packed *out)
{
    *out = (dr__packed){ .payload = raw, .bytes = sample->bytes, .codec = DR__BYTES_NONE };
    pthread_mutex_lock(lock);
    dr__codec_choose(m, dr__data_class_of(sample->fields, sample->n_fields), &out->choice);
    const unsigned wire_id = m->wire_id[out->choice.which];
    pthread_mutex_unlock(lock);
    const dr_byte_codec *codec = wire_id == DR__BYTES_NONE ? NULL : dr__byte_codec_find(wire_id);
    const uint64_t start = dr__thread_cpu_ns();
    out->owned = codec ? dr__compress(codec, raw, sample->bytes, &out->bytes) : NULL;
    const uint64_t encode_ns = codec ? dr__thread_cpu_ns() - start : 0;
    if (out->owned) {
        out->payload = out->owned;
        out->codec = codec->wire_id;
    }
    uint64_t cpu_ns = 0, wall_ns = 0;
    const bool timed = out->choice.measure && time_reading(out, sample->bytes, &cpu_ns, &wall_ns);
    pthread_mutex_lock(lock);
    dr__codec_note_encoded(m, out->choice.class, out->choice.which, sample->bytes, out->bytes, encode_ns);
    if (timed)
        dr__codec_note_decoded(m, out->choice.class, out->choice.which, sample->bytes, cpu_ns, wall_ns);
    pthread_mutex_unlock(lock);
}

void dr__packed_free(dr__packed *p)
{
    dr__free(p->owned);
    p->owned = NULL;
}
