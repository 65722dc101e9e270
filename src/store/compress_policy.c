/* compress_policy.c: compares the time that compression saves with the time that it costs. */
#include "store/compress_policy.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"

const dr_byte_codec *dr__compress_codec(void)
{
    return dr__byte_codec_find(DR__BYTES_LZ4);
}

uint64_t dr__disk_ns(uint64_t bytes)
{
    return (uint64_t)((double)bytes * (1e9 / DR__DISK_BYTES_PER_S));
}

static uint64_t saved(const dr__compress_policy *s)
{
    return s->packed_bytes < s->raw_bytes ? s->raw_bytes - s->packed_bytes : 0;
}

/* Time to read what the trials saved. */
static double saved_ns(const dr__compress_policy *s)
{
    if (s->read_bytes < DR__COMPRESS_READ)
        return (double)dr__disk_ns(saved(s));
    return (double)saved(s) * ((double)s->read_ns / (double)s->read_bytes);
}

dr__compress_choice dr__compress_choose(const dr__compress_policy *s)
{
    if (!dr__compress_codec())
        return DR__COMPRESS_OFF;
    if (s->fixed)
        return DR__COMPRESS_ON;
    if (s->tried < DR__COMPRESS_TRIALS || s->untried >= DR__COMPRESS_AGAIN)
        return DR__COMPRESS_TRY;
    return saved_ns(s) > (double)s->unpack_ns ? DR__COMPRESS_ON : DR__COMPRESS_OFF;
}

void dr__compress_note_trial(dr__compress_policy *s, uint64_t raw_bytes, uint64_t packed_bytes, uint64_t unpack_ns)
{
    if (s->tried == 2 * DR__COMPRESS_TRIALS) {
        s->tried /= 2;
        s->raw_bytes /= 2;
        s->packed_bytes /= 2;
        s->unpack_ns /= 2;
    }
    s->tried++;
    s->untried = 0;
    s->raw_bytes += raw_bytes;
    s->packed_bytes += packed_bytes;
    s->unpack_ns += unpack_ns;
}

void dr__compress_note_skipped(dr__compress_policy *s)
{
    s->untried++;
}

void dr__compress_note_read(dr__compress_policy *s, uint64_t bytes, uint64_t ns)
{
    if (s->read_bytes > 4 * (uint64_t)DR__COMPRESS_READ) {
        s->read_bytes /= 2;
        s->read_ns /= 2;
    }
    s->read_bytes += bytes;
    s->read_ns += ns;
}

void dr__compress_explain(const dr__compress_policy *s, char *text, size_t size)
{
    if (!dr__compress_codec()) {
        snprintf(text, size, "raw: this build is without LZ4");
        return;
    }
    if (s->fixed) {
        snprintf(text, size, "LZ4: fixed");
        return;
    }
    if (!s->tried) {
        snprintf(text, size, "not chosen yet");
        return;
    }
    const bool pays = saved_ns(s) > (double)s->unpack_ns;
    const double per = 1e3 * s->tried;
    snprintf(text, size,
             "%s: LZ4 makes %.0f%% of the bytes; reading the rest takes %.0f us a sample, unpacking %.0f us",
             s->tried < DR__COMPRESS_TRIALS ? "trying LZ4"
             : pays                         ? "LZ4"
                                            : "raw",
             100.0 * (double)s->packed_bytes / (double)(s->raw_bytes ? s->raw_bytes : 1), saved_ns(s) / per,
             (double)s->unpack_ns / per);
}

void *dr__compress(const dr_byte_codec *codec, const void *data, size_t size, size_t *encoded_size)
{
    /* Room for no more than the input: what does not become smaller is kept as it is. */
    void *encoded = size ? dr__alloc(size) : NULL;
    const size_t n = encoded ? codec->encode(data, size, encoded, size) : 0;
    if (!n) {
        dr__free(encoded);
        return NULL;
    }
    *encoded_size = n;
    return encoded;
}
