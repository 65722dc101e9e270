/* probe_rtt.c: the round trip time of TCP connections as measured by the kernel: the mean over all connections of this
 * network namespace that lead to other addresses and were active in the last 10 s.  The loader's own connections cannot
 * be singled out, since storage is often mounted by the kernel.  Without such a connection the sensor is absent.
 *
 * The kernel walks its whole table of connections for this: once a second or less, and at most 0.1 % of a CPU.
 */
#include "monitor/probe.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "monitor/inet_dump.h"

enum { ESTABLISHED = 1, MAX_BLOCKS = 16, PAUSE_PER_NS = 1000, MIN_PAUSE_NS = 1000000000, MAX_REFUSALS = 3 };
static const double rtt_full_s = 0.1;

struct state {
    int fd;       /* -1: not open */
    int refusals; /* in a row */
    uint64_t next_ns;
    double rtt_s; /* 0: no connection */
};

static void open_nothing(void *state, dr__host *host)
{
    struct state *s = state;
    s->fd = -1;
    s->refusals = host->redirected ? MAX_REFUSALS : 0; /* a tree of files cannot answer */
}

static bool send_request(int fd, int family)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 body;
    } request = {
        .head = { .nlmsg_len = sizeof request,
                  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
        .body = { .sdiag_family = (uint8_t)family,
                  .sdiag_protocol = IPPROTO_TCP,
                  .idiag_ext = 1 << (INET_DIAG_INFO - 1),
                  .idiag_states = 1 << ESTABLISHED },
    };
    return send(fd, &request, sizeof request, MSG_DONTWAIT) == (ssize_t)sizeof request;
}

/* MAX_BLOCKS holds some thousand connections, enough for a mean. */
static dr__dump_state receive_replies(int fd, dr__host *host, dr__round_trips *out)
{
    dr__dump_state state = DR__DUMP_MORE;
    for (int i = 0; i < MAX_BLOCKS && state == DR__DUMP_MORE; i++) {
        ssize_t n = recv(fd, host->text, host->text_cap, MSG_DONTWAIT);
        state = n > 0 ? dr__inet_dump_parse(host->text, (size_t)n, out) : DR__DUMP_BAD;
    }
    return state;
}

static void close_netlink(struct state *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

/* Adds the connections of one address family.  Unless the list was read to its end, the socket is closed.  false: the
 * kernel refused, or the reply was malformed. */
static bool add_family(struct state *s, dr__host *host, int family, dr__round_trips *out)
{
    if (s->fd < 0)
        s->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    dr__dump_state state = s->fd >= 0 && send_request(s->fd, family) ? receive_replies(s->fd, host, out) : DR__DUMP_BAD;
    if (state != DR__DUMP_END)
        close_netlink(s);
    return state != DR__DUMP_BAD;
}

/* After MAX_REFUSALS in a row the kernel is not asked again, since it may try to load a module each time. */
static void measure(struct state *s, dr__host *host)
{
    dr__round_trips found = { 0 };
    const bool answered = add_family(s, host, AF_INET, &found);
    s->refusals = answered ? 0 : s->refusals + 1;
    if (answered)
        add_family(s, host, AF_INET6, &found);
    s->rtt_s = answered && found.n ? found.sum_s / found.n : 0;
}

static void tick(void *state, dr__host *host, uint64_t now_ns, uint64_t elapsed_ns, dr_snapshot *out)
{
    (void)elapsed_ns;
    struct state *s = state;
    if (s->refusals < MAX_REFUSALS && now_ns >= s->next_ns) {
        uint64_t begin_ns = dr__thread_cpu_ns();
        measure(s, host);
        s->next_ns = now_ns + DR_MAX((dr__thread_cpu_ns() - begin_ns) * PAUSE_PER_NS, MIN_PAUSE_NS);
    }
    if (s->rtt_s > 0)
        dr__sense(out, DR_SENSOR_NET_RTT, s->rtt_s, rtt_full_s);
}

static void close_socket(void *state)
{
    close_netlink(state);
}

const dr__probe_def dr__probe_rtt = {
    .name = "rtt",
    .summary = "round trip time of TCP connections",
    .state_size = sizeof(struct state),
    .open = open_nothing,
    .read = tick,
    .close = close_socket,
};
