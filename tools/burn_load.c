/* burn_load.c: what the threads of burn do: arithmetic, streams through memory, a file, a connection to themselves. */
#include "burn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STREAM_BYTES = 1 << 20, BLOCK_BYTES = 1 << 16, PACKET_BYTES = 1 << 16, ALIGNMENT = 4096 };

/* --- cpu --- */

static void *begin_cpu(struct burn_load *load)
{
    (void)load;
    return calloc(1, sizeof(double));
}

static void work_cpu(struct burn_load *load, void *state)
{
    (void)load;
    volatile double *x = state;
    for (int i = 0; i < 20000; i++)
        *x = *x * 0.999 + 1.0;
}

static void end_plain(struct burn_load *load, void *state)
{
    (void)load;
    free(state);
}

/* --- memory --- */

struct memory {
    size_t at, size;
    unsigned char *bytes;
};

static void *begin_memory(struct burn_load *load)
{
    struct memory *m = calloc(1, sizeof *m);
    if (m) {
        m->size = load->size_bytes;
        m->bytes = malloc(m->size);
    }
    if (!m || !m->bytes) {
        fprintf(stderr, "burn: no memory for %zu bytes\n", load->size_bytes);
        free(m);
        return NULL;
    }
    memset(m->bytes, 1, m->size);
    return m;
}

/* Copies one half to the other, a megabyte at a time: as much is read as is written. */
static void work_memory(struct burn_load *load, void *state)
{
    struct memory *m = state;
    size_t half = m->size / 2, n = half - m->at < STREAM_BYTES ? half - m->at : STREAM_BYTES;
    memcpy(m->bytes + half + m->at, m->bytes + m->at, n);
    m->at = m->at + n < half ? m->at + n : 0;
    atomic_fetch_add(&load->moved, 2 * n);
}

static void end_memory(struct burn_load *load, void *state)
{
    (void)load;
    free(((struct memory *)state)->bytes);
    free(state);
}

/* --- io --- */

struct file {
    int fd;
    unsigned n_blocks, next;
    void *block;
};

/* Without a name, so that it is gone with the process; past the page cache where the file system allows that. */
static int open_nameless(const char *folder)
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC | O_DIRECT, 0600);
    return fd >= 0 ? fd : open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

static void *begin_io(struct burn_load *load)
{
    struct file *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->fd = open_nameless(load->path);
    f->n_blocks = (unsigned)(load->size_bytes / BLOCK_BYTES);
    if (f->fd < 0 || posix_memalign(&f->block, ALIGNMENT, BLOCK_BYTES) != 0) {
        fprintf(stderr, "burn: %s: %s\n", load->path, strerror(errno));
        free(f);
        return NULL;
    }
    memset(f->block, 'x', BLOCK_BYTES);
    return f;
}

/* Writes a block, and reads the one half the file away. */
static void work_io(struct burn_load *load, void *state)
{
    struct file *f = state;
    off_t to = (off_t)(f->next % f->n_blocks) * BLOCK_BYTES;
    off_t from = (off_t)((f->next + f->n_blocks / 2) % f->n_blocks) * BLOCK_BYTES;
    f->next++;
    ssize_t written = pwrite(f->fd, f->block, BLOCK_BYTES, to);
    if (written > 0)
        fdatasync(f->fd);
    posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED); /* for file systems without O_DIRECT */
    ssize_t got = pread(f->fd, f->block, BLOCK_BYTES, from);
    atomic_fetch_add(&load->moved, (unsigned long long)((written > 0 ? written : 0) + (got > 0 ? got : 0)));
}

static void end_io(struct burn_load *load, void *state)
{
    (void)load;
    struct file *f = state;
    close(f->fd);
    free(f->block);
    free(f);
}

/* --- net --- */

struct link {
    int out, in;
    char packet[PACKET_BYTES];
};

/* A TCP connection over the loopback interface, both ends here. */
static bool connect_to_self(struct link *l)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof at;
    int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool heard = door >= 0 && bind(door, (struct sockaddr *)&at, size) == 0 && listen(door, 1) == 0 &&
                 getsockname(door, (struct sockaddr *)&at, &size) == 0;
    l->out = heard ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    if (l->out >= 0 && connect(l->out, (struct sockaddr *)&at, size) == 0)
        l->in = accept(door, NULL, NULL);
    if (door >= 0)
        close(door);
    return l->in >= 0;
}

static void end_net(struct burn_load *load, void *state)
{
    (void)load;
    struct link *l = state;
    if (l->out >= 0)
        close(l->out);
    if (l->in >= 0)
        close(l->in);
    free(l);
}

static void *begin_net(struct burn_load *load)
{
    struct link *l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->in = l->out = -1;
    if (connect_to_self(l))
        return l;
    fprintf(stderr, "burn: no connection over loopback: %s\n", strerror(errno));
    end_net(load, l);
    return NULL;
}

static void work_net(struct burn_load *load, void *state)
{
    struct link *l = state;
    ssize_t sent = send(l->out, l->packet, sizeof l->packet, MSG_DONTWAIT | MSG_NOSIGNAL);
    for (ssize_t left = sent, got; left > 0; left -= got) {
        got = recv(l->in, l->packet, (size_t)left, 0);
        if (got <= 0)
            return;
        atomic_fetch_add(&load->moved, (unsigned long long)got);
    }
}

static const struct burn_kind kinds[] = {
    { "cpu", "arithmetic", begin_cpu, work_cpu, end_plain },
    { "memory", "copies through a buffer larger than the caches", begin_memory, work_memory, end_memory },
    { "io", "writes and reads of a nameless file, past the page cache", begin_io, work_io, end_io },
    { "net", "a TCP connection over loopback", begin_net, work_net, end_net },
};

const struct burn_kind *burn_kind_find(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (!strcmp(kinds[i].name, name))
            return &kinds[i];
    return NULL;
}
