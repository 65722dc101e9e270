/* seek_store.c: seek points of many images: a table in memory in front of an index file.
 *
 * A lookup asks the table, then the file.  Saving merges the table into a new file, opens that, and drops from the
 * table what is in it.  Between the two steps an image is in both, never in neither.
 *
 * A file in the cache folder need not say what data it belongs to: points are found by content, and those of another
 * data set are merely of no use.
 */
#include "codec/image/seek_store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/thread.h"
#include "codec/image/seek_save.h"

enum {
    WORTH_BYTES = 16384,  /* less is no reason to put a file into the user's data */
    WORTH_PART = 16,      /* during work: a 16th of what the file has */
    WORTH_PART_LAST = 256 /* at the end: unless there is much more to be written than has been learnt */
};

struct dr__seek_store {
    dr__index_paths place;
    unsigned generation; /* of the process that it belongs to */
    size_t limit;
    dr__seek_table *table;
    pthread_mutex_t save_lock; /* one saves at a time; outside all others */
    pthread_mutex_t file_lock; /* for file and its users */
    dr__seek_file *file;       /* NULL: none */
    atomic_size_t retry_bytes; /* after a save failed: the size of the table that is worth another try */
    atomic_uint_fast64_t found, missed;
};

dr__seek_key dr__seek_key_of(const uint8_t *data, size_t size)
{
    return (dr__seek_key){ XXH3_64bits(data, size), size };
}

/* Of the file beside the data and that in the cache folder, the one that knows more: the other may be an older one of
 * a user who can write there. */
static dr__seek_file *open_larger(const dr__index_paths *place)
{
    dr__seek_file *a = dr__seek_file_open(place->beside), *b = dr__seek_file_open(place->cached);
    bool take_b = b && (!a || b->n_images > a->n_images);
    dr__seek_file_close(take_b ? &a : &b);
    return take_b ? b : a;
}

dr_status dr__seek_store_open(const char *beside, const char *identity, size_t limit, dr__seek_store **out,
                              dr_error *err)
{
    dr__seek_store *s = *out = dr__alloc_zero(1, sizeof *s);
    if (s)
        s->table = dr__seek_table_new(limit);
    if (!s || !s->table) {
        dr__free(s);
        *out = NULL;
        return dr__fail(err, DR_ERR_NOMEM, "seek points: out of memory");
    }
    s->limit = limit;
    s->generation = dr__fork_generation();
    pthread_mutex_init(&s->save_lock, NULL);
    pthread_mutex_init(&s->file_lock, NULL);
    if (identity) {
        dr__index_paths_make(&s->place, beside, identity);
        s->file = open_larger(&s->place);
    }
    return DR_OK;
}

/* A forked child has copies of locks that may be held for ever. */
static bool is_ours(const dr__seek_store *s)
{
    return s->generation == dr__fork_generation();
}

void dr__seek_store_close(dr__seek_store **store)
{
    dr__seek_store *s = *store;
    *store = NULL;
    if (!s || !is_ours(s))
        return;
    dr__seek_file_close(&s->file);
    dr__seek_table_free(&s->table);
    dr__index_paths_free(&s->place);
    pthread_mutex_destroy(&s->file_lock);
    pthread_mutex_destroy(&s->save_lock);
    dr__free(s);
}

/* --- the file, which saving replaces while others read it --- */

static dr__seek_file *use_file(dr__seek_store *s)
{
    pthread_mutex_lock(&s->file_lock);
    dr__seek_file *f = s->file;
    if (f)
        f->users++;
    pthread_mutex_unlock(&s->file_lock);
    return f;
}

static void leave_file(dr__seek_store *s, dr__seek_file *f)
{
    if (!f)
        return;
    pthread_mutex_lock(&s->file_lock);
    bool last = --f->users == 0 && f != s->file;
    pthread_mutex_unlock(&s->file_lock);
    if (last)
        dr__seek_file_close(&f);
}

static void replace_file(dr__seek_store *s, dr__seek_file *file)
{
    pthread_mutex_lock(&s->file_lock);
    dr__seek_file *old = s->file;
    s->file = file;
    if (old && old->users)
        old = NULL; /* the last user closes it */
    pthread_mutex_unlock(&s->file_lock);
    dr__seek_file_close(&old);
}

static bool get_from_file(dr__seek_store *s, const dr__seek_key *key, dr__seek_unpacker *unpack, void *to)
{
    dr__seek_file *f = use_file(s);
    bool found = f && dr__seek_file_get(f, key, unpack, to);
    leave_file(s, f);
    return found;
}

/* --- finding and keeping --- */

/* What a file can hold, and no decoder reads more. */
static bool has_place(const dr__seek_key *key)
{
    return key->size <= UINT32_MAX;
}

bool dr__seek_store_look(dr__seek_store *s, const dr__seek_key *key, dr__seek_points *points)
{
    dr__seek_clear(points);
    return is_ours(s) && has_place(key) &&
           (dr__seek_table_find(s->table, key, points) || get_from_file(s, key, dr__seek_unpack_points, points));
}

bool dr__seek_store_find(dr__seek_store *s, const dr__seek_key *key, dr__seek_points *points)
{
    const bool found = dr__seek_store_look(s, key, points);
    if (is_ours(s))
        atomic_fetch_add(found ? &s->found : &s->missed, 1);
    return found;
}

void dr__seek_store_put(dr__seek_store *s, const dr__seek_key *key, const dr__seek_points *points)
{
    dr__seek_points known = { 0 };
    if (!points->n || points->n > points->total || !is_ours(s) || !has_place(key) ||
        dr__seek_table_rank(s->table, key) >= points->n)
        return;
    bool done = false;
    while (!done) { /* again if a save has come between: it may have brought more points than these into the file */
        const uint64_t drops = dr__seek_table_drops(s->table);
        dr__seek_clear(&known);
        const bool in_file = get_from_file(s, key, dr__seek_unpack_points, &known);
        done = known.n >= points->n || dr__seek_table_put(s->table, key, points, in_file, drops);
    }
    dr__seek_free(&known);
}

/* --- notes --- */

static bool unpack_note(void *to, const uint8_t *packed, size_t size)
{
    return dr__jpeg_note_unpack(to, packed, size);
}

static bool get_note(dr__seek_store *s, const dr__seek_key *key, dr__jpeg_note *note)
{
    return dr__seek_table_get(s->table, key, unpack_note, note) || get_from_file(s, key, unpack_note, note);
}

bool dr__seek_store_find_note(dr__seek_store *s, uint64_t name, dr__jpeg_note *note)
{
    return is_ours(s) && get_note(s, &(dr__seek_key){ .hash = name }, note);
}

static uint32_t seconds_since_2020(void)
{
    const time_t start = 1577836800, now = time(NULL);
    return now > start ? (uint32_t)(now - start) : 1;
}

void dr__seek_store_put_note(dr__seek_store *s, uint64_t name, dr__jpeg_note *note)
{
    const dr__seek_key key = { .hash = name };
    uint8_t packed[DR__JPEG_NOTE_MOST];
    dr__jpeg_note known;
    if (!is_ours(s) || !has_place(&note->content))
        return;
    for (bool done = false; !done;) {
        const uint64_t drops = dr__seek_table_drops(s->table);
        const bool in_file = get_from_file(s, &key, unpack_note, &known);
        note->when = seconds_since_2020();
        if (get_note(s, &key, &known)) /* also where a clock went back */
            note->when = DR_MAX(note->when, known.when + 1);
        const dr__seek_entry entry = { .key = key, .packed = packed, .size = dr__jpeg_note_pack(note, packed) };
        done = dr__seek_table_put_packed(s->table, &entry, note->when, in_file, drops);
    }
}

/* --- saving --- */

static bool has_somewhere(const dr__seek_store *s)
{
    return s->place.beside || s->place.cached;
}

bool dr__seek_store_is_full(dr__seek_store *s)
{
    size_t bytes = dr__seek_table_bytes(s->table);
    return has_somewhere(s) && bytes > s->limit / 4 * 3 && bytes >= atomic_load(&s->retry_bytes);
}

static bool is_worth_saving(dr__seek_store *s, const dr__seek_file *file, bool last)
{
    uint64_t fresh = dr__seek_table_packed_bytes(s->table), in_file = file ? file->bytes : 0;
    if (fresh < WORTH_BYTES)
        return false;
    if (last || dr__seek_store_is_full(s))
        return fresh > in_file / WORTH_PART_LAST;
    return fresh > in_file / WORTH_PART && dr__seek_table_bytes(s->table) >= atomic_load(&s->retry_bytes);
}

/* save_lock */
static bool save(dr__seek_store *s, const dr__seek_file *known)
{
    const char *path = s->place.beside;
    bool good = dr__seek_save(path, true, known, s->table);
    if (!good) {
        dr__seek_table_end_save(s->table, false);
        path = s->place.cached;
        good = dr__seek_save(path, false, known, s->table);
    }
    dr__seek_file *file = good ? dr__seek_file_open(path) : NULL;
    if (file)
        replace_file(s, file);
    dr__seek_table_end_save(s->table, file != NULL); /* deleted at once: what is in memory stays */
    size_t bytes = dr__seek_table_bytes(s->table);
    atomic_store(&s->retry_bytes, file ? 0 : bytes + bytes / 4);
    return good;
}

bool dr__seek_store_save(dr__seek_store *s, bool last)
{
    if (!is_ours(s) || !has_somewhere(s))
        return false;
    pthread_mutex_lock(&s->save_lock);
    dr__seek_file *known = use_file(s);
    bool good = !is_worth_saving(s, known, last) || save(s, known);
    leave_file(s, known);
    pthread_mutex_unlock(&s->save_lock);
    return good;
}

void dr__seek_store_counts(dr__seek_store *s, dr__seek_counts *counts)
{
    *counts = (dr__seek_counts){ .found = atomic_load(&s->found), .missed = atomic_load(&s->missed) };
    if (!is_ours(s))
        return;
    counts->images = dr__seek_table_new_images(s->table);
    counts->memory_bytes = sizeof *s + dr__seek_table_bytes(s->table);
    dr__seek_file *f = use_file(s);
    if (f) {
        counts->images += f->n_images;
        counts->memory_bytes += dr__seek_file_memory(f);
        counts->file_bytes = f->bytes;
    }
    leave_file(s, f);
}
