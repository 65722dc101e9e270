/* store_write.c: putting samples into a store: gathered, compressed where that pays, appended to the file of this
 * process.
 *
 * A failure ends writing for good and leaves a reason in the statistics: a sample that is not kept is no error.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "data/desc.h"
#include "store/store_parts.h"
#include "store/store_space.h"

enum { LOOK_SHARE = 64, REUSE = 8 /* reads of a sample that is kept, at least */ };

static void stop(dr_store *s, const char *why)
{
    pthread_mutex_lock(&s->lock);
    if (!s->stats.stopped[0])
        snprintf(s->stats.stopped, sizeof s->stats.stopped, "%s", why);
    pthread_mutex_unlock(&s->lock);
}

static bool is_stopped(dr_store *s)
{
    pthread_mutex_lock(&s->lock);
    bool stopped = s->stats.stopped[0];
    pthread_mutex_unlock(&s->lock);
    return stopped;
}

/* write_lock: is there room for one more record?  Others may write too, so it is looked at again now and then. */
static bool has_room(dr_store *s, uint64_t bytes)
{
    if (s->since > s->limit / LOOK_SHARE || s->used + s->since + bytes > s->limit) {
        s->used = dr__space_used(s->root);
        s->since = 0;
    }
    if (s->used + s->since + bytes <= s->limit)
        return true;
    char why[160];
    snprintf(why, sizeof why, "cache_limit is reached: %" PRIu64 " bytes are kept, %" PRIu64 " are allowed", s->used,
             s->limit);
    stop(s, why);
    return false;
}

/* write_lock: the file of this process, made when it is first needed; NULL: there cannot be one. */
static dr__data_file *own_file(dr_store *s)
{
    if (s->own_file)
        return s->own_file;
    dr__data_file file;
    char why[160];
    snprintf(s->own_name, sizeof s->own_name, "data-%ld-%" PRIx64 ".drst", (long)getpid(),
             dr__clock_ns(CLOCK_REALTIME) ^ (uint64_t)(uintptr_t)s);
    if (!dr__data_create(s->folder_fd, s->own_name, &s->identity, &file)) {
        snprintf(why, sizeof why, "the folder cannot be written to: %s", strerror(errno));
        stop(s, why);
        return NULL;
    }
    pthread_mutex_lock(&s->lock);
    s->own = dr__store_add_file(s, &file);
    s->own_file = s->own >= 0 ? s->files[s->own] : NULL;
    pthread_mutex_unlock(&s->lock);
    if (s->own < 0) {
        dr__data_close(&file);
        unlinkat(s->folder_fd, s->own_name, 0);
        stop(s, "out of memory");
    }
    return s->own_file;
}

static bool append(dr_store *s, dr_stored *sample, const void *payload, dr__key_location *location)
{
    uint64_t offset = 0, bytes = DR__DATA_RECORD_HEAD + dr__data_round(sample->payload_bytes);
    pthread_mutex_lock(&s->write_lock);
    dr__data_file *file = !is_stopped(s) && has_room(s, bytes) ? own_file(s) : NULL;
    bool good = file && dr__data_append(file, sample, payload, &offset);
    int code = errno;
    uint32_t number = (uint32_t)s->own;
    s->since += good ? bytes : 0;
    atomic_store(&s->taken, s->used + s->since);
    pthread_mutex_unlock(&s->write_lock);
    if (good) {
        pthread_mutex_lock(&s->lock);
        *location = (dr__key_location){ number, offset };
        good = dr__key_table_set(&s->table, &sample->key, *location);
        s->stats.written++;
        s->stats.written_bytes += sample->payload_bytes;
        s->stats.raw_bytes += sample->bytes;
        pthread_mutex_unlock(&s->lock);
    } else if (file) {
        char why[160];
        snprintf(why, sizeof why, "writing failed: %s", strerror(code));
        stop(s, why);
    }
    return good;
}

/* lock: what the codecs are weighed with. */
static void set_resources(dr_store *s)
{
    dr__codec_resources *r = &s->codecs.resources;
    const double mean = s->stats.written ? (double)s->stats.raw_bytes / (double)s->stats.written : 0;
    r->cores = s->facts.cores > 0 ? s->facts.cores : 1;
    r->capacity = (double)s->limit;
    r->wanted = (double)s->facts.n_samples * mean;
    r->make_s = s->facts.make_s;
    r->reuse = REUSE;
    r->page_cache = s->page_cache;
}

void dr__store_tell_choice(dr_store *s, const char *tier, const dr__codec_manager *manager, const dr__packed *p)
{
    char text[1800];
    if (!s->on_choice)
        return;
    pthread_mutex_lock(&s->lock);
    dr__codec_choice_json(manager, &p->choice, text, sizeof text);
    pthread_mutex_unlock(&s->lock);
    s->on_choice(s->on_choice_user, tier, p, text);
}

/* Chooses a codec, compresses, and remembers the choice. */
static void pack(dr_store *s, dr_stored *sample, const void *raw, dr__packed *out)
{
    pthread_mutex_lock(&s->lock);
    set_resources(s);
    pthread_mutex_unlock(&s->lock);
    dr__sample_pack(&s->codecs, &s->lock, sample, raw, out);
    sample->codec = out->codec;
    sample->payload_bytes = out->bytes;
    pthread_mutex_lock(&s->lock);
    s->chosen = out->choice;
    pthread_mutex_unlock(&s->lock);
    dr__store_tell_choice(s, "disk", &s->codecs, out);
}

/* The fields one after the other, as a record has them. */
static uint8_t *gather(dr_stored *sample, const dr_view *fields, int n)
{
    sample->n_fields = n;
    for (int i = 0; i < n; i++)
        sample->fields[i] = fields[i].desc;
    if (!dr__data_layout(sample))
        return NULL;
    uint8_t *raw = dr__alloc(sample->bytes ? sample->bytes : 1);
    for (int i = 0; raw && i < n; i++) {
        size_t bytes = 0, end = i + 1 < n ? sample->at[i + 1] : sample->bytes;
        dr__desc_bytes_dense(&fields[i].desc, &bytes);
        if (bytes)
            memcpy(raw + sample->at[i], fields[i].data, bytes);
        memset(raw + sample->at[i] + bytes, 0, end - sample->at[i] - bytes);
    }
    return raw;
}

static bool is_there(dr_store *s, const dr_store_key *key)
{
    dr__key_location location;
    pthread_mutex_lock(&s->lock);
    bool found = dr__key_table_find(&s->table, key, &location);
    pthread_mutex_unlock(&s->lock);
    return found;
}

/* Neither full nor failed, and no other thread was first; *kept: whether it is there then. */
static bool wants(dr_store *s, const dr_store_key *key, bool *kept)
{
    *kept = false;
    if (s->folder_fd < 0 || atomic_load(&s->disk_off) || is_stopped(s))
        return false;
    *kept = is_there(s, key);
    return !*kept;
}

static bool put_on_disk(dr_store *s, dr_stored *sample, const void *raw)
{
    dr__packed packed;
    dr__key_location location;
    pack(s, sample, raw, &packed);
    const bool good = append(s, sample, packed.payload, &location);
    dr__packed_free(&packed);
    if (good)
        dr__store_probe(s, sample, location);
    return good;
}

bool dr__store_put(dr_store *s, const dr_store_key *key, const dr_view *fields, int n_fields, const dr__use *use)
{
    bool kept;
    if (!dr__store_is_ours(s) || n_fields < 0 || n_fields > DR_STORE_FIELDS)
        return false;
    const bool on_disk = wants(s, key, &kept), in_memory = dr__store_memory_is_on(s);
    if (!on_disk && !in_memory)
        return kept;
    dr_stored sample = { .key = *key };
    uint8_t *raw = gather(&sample, fields, n_fields);
    if (!raw)
        return false;
    if (in_memory)
        kept |= dr__store_memory_put(s, &sample, raw, use);
    if (on_disk)
        kept |= put_on_disk(s, &sample, raw);
    dr__free(raw);
    return kept;
}

bool dr_store_put(dr_store *s, const dr_store_key *key, const dr_view *fields, int n_fields)
{
    return dr__store_put(s, key, fields, n_fields, NULL);
}

void dr_store_discard(dr_store *s, const char *why)
{
    if (!dr__store_is_ours(s))
        return;
    stop(s, why);
    pthread_mutex_lock(&s->write_lock);
    if (s->own >= 0) /* its descriptor stays: others may be reading */
        unlinkat(s->folder_fd, s->own_name, 0);
    pthread_mutex_unlock(&s->write_lock);
}
