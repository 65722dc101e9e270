/* store_memory.c: the tier in memory of a store: what is compressed there, and what came of it.
 *
 * What compression wins there is room: with a limit of M bytes and samples of W bytes in all, a share M * rho / W of
 * them is read, and the others are made.
 */
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "store/store_parts.h"

#define MEMORY_BYTES_PER_S 8e9 /* of a copy, by all threads: that of a machine with two memory channels */

bool dr__store_memory_is_on(dr_store *s)
{
    return s->memory && !atomic_load(&s->memory_off);
}

bool dr__store_memory_find(dr_store *s, const dr_store_key *key, dr_stored *out)
{
    if (!dr__memory_find(s->memory, key, out))
        return false;
    out->in_memory = true;
    return true;
}

/* --- reading --- */

/* Checks and decompresses; `payload` is `memory` where it is stored raw. */
static bool unpack(const dr_stored *f, const void *payload, void *memory)
{
    const dr_byte_codec *codec = dr__byte_codec_find(f->codec);
    if (XXH3_64bits(payload, f->payload_bytes) != f->payload_sum)
        return false;
    return f->codec == DR__BYTES_NONE || (codec && codec->decode(payload, f->payload_bytes, memory, f->bytes));
}

static void note_read(dr_store *s, const dr_stored *f, bool good, uint64_t took_ns, uint64_t cpu_ns, uint64_t wall_ns)
{
    pthread_mutex_lock(&s->lock);
    const int which = dr__codec_index(&s->memory_codecs, f->codec);
    s->stats.misses += !good;
    s->stats.hits += good;
    s->stats.memory_hits += good;
    s->stats.unpack_ns += wall_ns;
    s->stats.read_ns += took_ns;
    s->stats.read_bytes += good ? f->payload_bytes : 0;
    if (good && which >= 0)
        dr__codec_note_decoded(&s->memory_codecs, dr__data_class_of(f->fields, f->n_fields), which, f->bytes, cpu_ns,
                               wall_ns);
    pthread_mutex_unlock(&s->lock);
}

bool dr__store_memory_read(dr_store *s, const dr_stored *f, void *memory, const dr__use *use)
{
    const uint64_t start = dr__now_ns();
    const bool raw = f->codec == DR__BYTES_NONE;
    void *payload = raw ? memory : dr__alloc(DR_MAX(f->payload_bytes, 1));
    const bool there = payload && dr__memory_read(s->memory, f, payload);
    const uint64_t wall = dr__now_ns(), cpu = dr__thread_cpu_ns();
    const bool good = there && unpack(f, payload, memory);
    const uint64_t end = dr__now_ns();
    note_read(s, f, good, end - start, dr__thread_cpu_ns() - cpu, end - wall);
    if (good)
        dr__memory_touch(s->memory, f, use);
    else if (there)
        dr__memory_drop(s->memory, f);
    if (!raw)
        dr__free(payload);
    return good;
}

/* --- keeping --- */

/* lock */
static void set_resources(dr_store *s, const dr__memory_stats *memory)
{
    dr__codec_resources *r = &s->memory_codecs.resources;
    const uint64_t n = s->stats.written + s->stats.memory_written;
    const double mean = n ? (double)(s->stats.raw_bytes + s->stats.memory_raw_bytes) / (double)n : 0;
    const uint64_t reads = s->stats.memory_hits;
    r->cores = s->facts.cores > 0 ? s->facts.cores : 1;
    r->bytes_per_s = MEMORY_BYTES_PER_S;
    r->capacity = (double)memory->limit;
    r->wanted = (double)s->facts.n_samples * mean;
    r->make_s = s->facts.make_s;
    r->reuse = 1 + (double)reads / (double)DR_MAX(s->stats.memory_written, 1);
}

bool dr__store_memory_put(dr_store *s, const dr_stored *found, const void *raw, const dr__use *use)
{
    dr__memory_stats memory;
    dr__packed packed;
    dr_stored sample = *found;
    const bool wanted = dr__memory_may_keep(s->memory, found->bytes, use);
    pthread_mutex_lock(&s->lock);
    s->stats.memory_refused += !wanted;
    pthread_mutex_unlock(&s->lock);
    if (!wanted)
        return false;
    dr__memory_get_stats(s->memory, &memory);
    pthread_mutex_lock(&s->lock);
    set_resources(s, &memory);
    pthread_mutex_unlock(&s->lock);
    dr__sample_pack(&s->memory_codecs, &s->lock, &sample, raw, &packed);
    sample.codec = packed.codec;
    sample.payload_bytes = packed.bytes;
    const dr__memory_kept kept = dr__memory_put(s->memory, &sample, packed.payload, use);
    pthread_mutex_lock(&s->lock);
    s->memory_chosen = packed.choice;
    s->stats.memory_written += kept == DR__MEMORY_KEPT;
    s->stats.memory_raw_bytes += kept == DR__MEMORY_KEPT ? sample.bytes : 0;
    s->stats.memory_refused += kept != DR__MEMORY_KEPT && kept != DR__MEMORY_THERE;
    pthread_mutex_unlock(&s->lock);
    dr__store_tell_choice(s, "memory", &s->memory_codecs, &packed);
    dr__packed_free(&packed);
    return kept == DR__MEMORY_KEPT || kept == DR__MEMORY_THERE;
}
