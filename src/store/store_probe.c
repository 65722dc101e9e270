/* store_probe.c: how fast what is being stored will be read.
 *
 * In the epoch that writes samples none is read, but their codecs must be chosen.  So now and then the end of the file
 * is read twice: as it is found, in the page cache, and after the system has written it to the disk and dropped it from
 * memory.  Storage that is memory, or that the system does not cache, takes as long both times.
 *
 * The calling worker waits for it.  A probe reads a mebibyte at most, and none begins until PAUSE times the duration of
 * the last one has passed.  Once samples are read, no probe is needed.
 */
#include <fcntl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/thread.h"
#include "source/file.h"
#include "store/store_parts.h"

enum { PROBE_MOST = 1 << 20, PROBE_LEAST = 64 << 10, PAGE = 4096, PAUSE = 50 };

/* Takes the right to probe, and the file. */
static dr__data_file *begin(dr_store *s, uint32_t number)
{
    dr__data_file *file = NULL;
    pthread_mutex_lock(&s->lock);
    if (s->codecs.forced == DR__CODEC_AUTO && !dr__codec_knows_reads(&s->codecs) && s->probe_at_ns <= dr__now_ns())
        file = dr__store_use(s, number);
    if (file)
        s->probe_at_ns = UINT64_MAX;
    pthread_mutex_unlock(&s->lock);
    return file;
}

static void end(dr_store *s, dr__data_file *file, uint64_t begun_ns)
{
    const uint64_t now = dr__now_ns();
    pthread_mutex_lock(&s->lock);
    dr__store_release(s, file);
    s->probe_at_ns = now + PAUSE * (now - begun_ns);
    pthread_mutex_unlock(&s->lock);
}

/* Time of a read, without that in which the thread had no CPU; 0: it failed. */
static uint64_t timed_read(int fd, void *memory, size_t size, uint64_t at)
{
    size_t got;
    const uint64_t start = dr__busy_ns();
    if (dr__file_pread(fd, memory, size, at, &got) || got != size)
        return 0;
    return dr__busy_since(start);
}

/* Writes back and drops the pages of a range.  Where that is not possible it is read from memory again, as it will be
 * by others. */
static void drop(int fd, uint64_t at, size_t size)
{
    sync_file_range(fd, (off_t)at, (off_t)size,
                    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    posix_fadvise(fd, (off_t)at, (off_t)size, POSIX_FADV_DONTNEED);
}

void dr__store_probe(dr_store *s, const dr_stored *sample, dr__key_location location)
{
    const uint64_t to = location.offset + sample->payload_bytes; /* the record ends behind it */
    const uint64_t at = to > PROBE_MOST ? (to - PROBE_MOST) / PAGE * PAGE : 0;
    const size_t size = (size_t)(to - at);
    dr__data_file *file = size >= PROBE_LEAST ? begin(s, location.file) : NULL;
    if (!file)
        return;
    const uint64_t begun = dr__now_ns();
    uint8_t *memory = dr__alloc(size);
    const uint64_t cached = memory ? timed_read(file->fd, memory, size, at) : 0;
    drop(file->fd, at, size);
    const uint64_t disk = cached ? timed_read(file->fd, memory, size, at) : 0;
    dr__free(memory);
    end(s, file, begun);
    if (!disk)
        return;
    pthread_mutex_lock(&s->lock);
    dr__codec_note_probe(&s->codecs, size, cached, disk);
    pthread_mutex_unlock(&s->lock);
}
