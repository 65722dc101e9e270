/* slow_link.c: a network link with a byte rate and a delay, between two network namespaces.
 *
 *   slow_link STORE_NS STORE_ADDRESS CLIENT_NS CLIENT_ADDRESS RATE_BITS DELAY_US QUEUE_BYTES
 *
 * It makes a TUN device in each namespace and carries packets between them: each direction sends RATE_BITS per second,
 * delivers DELAY_US microseconds later, and drops what finds QUEUE_BYTES waiting to be sent.  It prints "ready" and
 * runs until it is killed.  Needs root.
 *
 * `tc tbf` on a veth pair limits the rate without a process; it cannot delay, and `netem` is missing from many kernels.
 *
 * Each direction is a ring of packets, in the order of their due times.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { MTU = 9000, RING = 1 << 14 };

struct packet {
    int64_t due_ns;
    size_t size;
    unsigned char bytes[MTU];
};

struct direction {
    int from, to;
    int64_t free_ns; /* when the link has sent what it took */
    unsigned first, n;
    struct packet *ring;
};

static int64_t rate_bits, delay_ns, queue_ns;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

_Noreturn static void fail(const char *what)
{
    fprintf(stderr, "slow_link: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* Makes a TUN device in a namespace and gives it an address. */
static int make_device(const char *ns, const char *address)
{
    char path[256], command[512];
    snprintf(path, sizeof path, "/var/run/netns/%s", ns);
    int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), there = open(path, O_RDONLY | O_CLOEXEC);
    if (own < 0 || there < 0 || setns(there, CLONE_NEWNET))
        fail(path);
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI };
    snprintf(request.ifr_name, sizeof request.ifr_name, "link0");
    if (fd < 0 || ioctl(fd, TUNSETIFF, &request))
        fail("/dev/net/tun");
    snprintf(command, sizeof command,
             "ip address add %s/24 dev link0 && ip link set link0 mtu %d txqueuelen 2000 up && ip link set lo up",
             address, MTU);
    if (system(command)) {
        fprintf(stderr, "slow_link: %s: failed\n", command);
        exit(1);
    }
    if (setns(own, CLONE_NEWNET))
        fail("own network namespace");
    close(own);
    close(there);
    return fd;
}

/* Takes the packets that a device has. */
static void take(struct direction *way)
{
    for (;;) {
        unsigned char dropped[MTU];
        struct packet *packet = way->n < RING ? &way->ring[(way->first + way->n) % RING] : NULL;
        ssize_t size = read(way->from, packet ? packet->bytes : dropped, MTU);
        if (size <= 0)
            return;
        int64_t now = now_ns(), start = way->free_ns > now ? way->free_ns : now;
        if (!packet || start - now > queue_ns)
            continue; /* as a router with a full queue does */
        way->free_ns = start + (int64_t)size * 8 * 1000000000 / rate_bits;
        packet->due_ns = way->free_ns + delay_ns;
        packet->size = (size_t)size;
        way->n++;
    }
}

/* Delivers what is due; returns when the next packet is, or -1. */
static int64_t deliver(struct direction *way)
{
    while (way->n) {
        struct packet *packet = &way->ring[way->first];
        if (packet->due_ns > now_ns())
            return packet->due_ns;
        if (write(way->to, packet->bytes, packet->size) < 0 && errno != EAGAIN && errno != EINVAL)
            fail("link0");
        way->first = (way->first + 1) % RING;
        way->n--;
    }
    return -1;
}

int main(int argc, char **argv)
{
    if (argc != 8) {
        fprintf(stderr, "usage: slow_link STORE_NS STORE_ADDRESS CLIENT_NS CLIENT_ADDRESS RATE_BITS DELAY_US "
                        "QUEUE_BYTES\n");
        return 2;
    }
    rate_bits = strtoll(argv[5], NULL, 10);
    delay_ns = strtoll(argv[6], NULL, 10) * 1000;
    int64_t queue_bytes = strtoll(argv[7], NULL, 10);
    if (rate_bits <= 0 || delay_ns < 0 || queue_bytes <= 0) {
        fprintf(stderr, "slow_link: rate and queue must be positive, delay at least 0\n");
        return 2;
    }
    queue_ns = queue_bytes * 8 * 1000000000 / rate_bits;
    int store = make_device(argv[1], argv[2]), client = make_device(argv[3], argv[4]);
    struct direction ways[2] = { { .from = store, .to = client }, { .from = client, .to = store } };
    for (int i = 0; i < 2; i++)
        if (!(ways[i].ring = calloc(RING, sizeof *ways[i].ring)))
            fail("memory");
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        int64_t next = -1;
        for (int i = 0; i < 2; i++) {
            take(&ways[i]);
            int64_t due = deliver(&ways[i]);
            if (due >= 0 && (next < 0 || due < next))
                next = due;
        }
        struct pollfd fds[2] = { { .fd = store, .events = POLLIN }, { .fd = client, .events = POLLIN } };
        int64_t wait = next < 0 ? 0 : next - now_ns();
        struct timespec timeout = { wait > 0 ? wait / 1000000000 : 0, wait > 0 ? wait % 1000000000 : 0 };
        if (ppoll(fds, 2, next < 0 ? NULL : &timeout, NULL) < 0 && errno != EINTR)
            fail("ppoll");
    }
}
