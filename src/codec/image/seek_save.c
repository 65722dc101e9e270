/* seek_save.c: merging index files of seek points with what is in memory.
 *
 * All sources give their entries in order, so one pass makes the new file, with little memory however large it is.
 */
#include "codec/image/seek_save.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum { N_FILES = 2, LOCK_POLL_MS = 10, LOCK_WAIT_MS = 30000 };

static const uint64_t most_bytes = UINT64_C(4) << 30; /* of a file: some 16 million images */

/* The entries of a table, shard by shard. */
struct memory {
    dr__seek_table *table;
    int shard; /* the next one to copy */
    size_t at;
    dr__seek_copy copy;
    bool failed;
};

struct merge {
    dr__seek_reader files[N_FILES];
    struct memory memory;
    dr__seek_entry heads[N_FILES + 1];
    bool has[N_FILES + 1];
};

static bool next_in_memory(struct memory *m, dr__seek_entry *e)
{
    while (m->at == m->copy.n) {
        if (m->failed || m->shard == DR__SEEK_SHARDS)
            return false;
        m->failed = !dr__seek_table_copy(m->table, m->shard++, &m->copy);
        m->at = 0;
        if (m->failed)
            m->copy.n = 0;
    }
    *e = m->copy.entries[m->at++];
    return true;
}

static void advance(struct merge *m, int i)
{
    m->has[i] =
        i < N_FILES ? dr__seek_reader_next(&m->files[i], &m->heads[i]) : next_in_memory(&m->memory, &m->heads[i]);
}

/* The source whose entry comes next, of equal ones that of the highest rank; -1: all are at their ends. */
static int choose(const struct merge *m)
{
    int best = -1;
    for (int i = 0; i <= N_FILES; i++) {
        if (!m->has[i])
            continue;
        const dr__seek_entry *e = &m->heads[i], *b = &m->heads[best < 0 ? i : best];
        int order = dr__seek_key_order(&e->key, &b->key);
        if (best < 0 || order < 0 || (!order && dr__seek_rank(e) > dr__seek_rank(b)))
            best = i;
    }
    return best;
}

static bool merge_into(dr__seek_writer *w, struct merge *m)
{
    int best;
    for (int i = 0; i <= N_FILES; i++)
        advance(m, i);
    while ((best = choose(m)) >= 0 && !w->failed) {
        dr__seek_key key = m->heads[best].key;
        dr__seek_writer_add(w, &m->heads[best]);
        for (int i = 0; i <= N_FILES; i++)
            if (m->has[i] && !dr__seek_key_order(&m->heads[i].key, &key))
                advance(m, i);
    }
    return dr__seek_writer_close(w) && !m->memory.failed;
}

static bool write_merged(int fd, const dr__seek_file *present, const dr__seek_file *known, dr__seek_table *table)
{
    uint64_t bytes = dr__seek_table_packed_bytes(table);
    bytes += (present ? present->bytes : 0) + (known ? known->bytes : 0);
    if (bytes > most_bytes)
        return false;
    struct merge m = { .files = { { .file = present }, { .file = known } }, .memory = { .table = table } };
    dr__seek_writer w;
    dr__seek_writer_open(&w, fd, bytes);
    bool good = merge_into(&w, &m);
    for (int i = 0; i < N_FILES; i++)
        dr__seek_reader_free(&m.files[i]);
    dr__seek_copy_free(&m.memory.copy);
    return good;
}

/* Locks the folder of a file against other savers; -1: not possible here, or one of them does not come to an end.
 * Then two may save at once and the later one wins; nothing worse can happen. */
static int lock_folder(const char *path)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) + 1 : 1;
    if (len >= sizeof folder)
        return -1;
    memcpy(folder, slash ? path : ".", len);
    folder[len] = 0;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int ms = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB); ms += LOCK_POLL_MS) {
        struct timespec pause = { .tv_nsec = LOCK_POLL_MS * 1000000L };
        if (errno != EWOULDBLOCK || ms > LOCK_WAIT_MS) {
            close(fd);
            return -1;
        }
        nanosleep(&pause, NULL);
    }
    return fd;
}

/* Closing alone would leave the lock to a child that was forked meanwhile. */
static void unlock_folder(int lock)
{
    if (lock < 0)
        return;
    flock(lock, LOCK_UN);
    close(lock);
}

static bool same_file(const dr__seek_file *a, const dr__seek_file *b)
{
    return a && b && a->device == b->device && a->inode == b->inode;
}

bool dr__seek_save(const char *path, bool beside, const dr__seek_file *known, dr__seek_table *table)
{
    dr__index_temp temp;
    if (!path || !dr__index_temp_open(&temp, path, beside)) /* first: it makes the cache folder */
        return false;
    int lock = lock_folder(path);
    dr__seek_file *present = dr__seek_file_open(path);
    bool good = write_merged(temp.fd, present, same_file(present, known) ? NULL : known, table);
    good = dr__index_temp_close(&temp, path, good);
    dr__seek_file_close(&present);
    unlock_folder(lock);
    return good;
}
