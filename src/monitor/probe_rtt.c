/* probe_rtt.c: the round trip time that the kernel measures on TCP connections: the mean over all of this network
 * namespace that lead to other addresses and were active in the last 10 s.  Which are the loader's cannot be told:
 * storage is often mounted by the kernel.  Without such a connection the sensor is absent.
 *
 * The kernel walks through its whole table of connections for this: once a second or less, and at most 0.1 % of a CPU.
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

enum { ESTABLISHED = 1, MAX_BLOCKS = 16, PAUSE_PER_NS = 1000, MIN_PAUSE_NS = 1000000000, MOST_REFUSALS = 3 };
static const double rtt_full_s = 0.1;

struct state {
    int fd;       /* -1: to be opened */
    int refusals; /* in a row */
    uint64_t next_ns;
    double rtt_s; /* 0: no connection */
};

static void open_nothing(void *state, dr__host *host)
{
    struct state *s = state;
    s->fd = -1;
    s->refusals = host->redirected ? MOST_REFUSALS : 0; /* there is no file of this */
}

static bool ask(int fd, int family)
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

/* MAX_BLOCKS: some thousand connections; the mean over these will do. */
static dr__dump_state hear(int fd, dr__host *host, dr__round_trips *out)
{
    dr__dump_state state = DR__DUMP_MORE;
    for (int i = 0; i < MAX_BLOCKS && state == DR__DUMP_MORE; i++) {
        ssize_t n = recv(fd, host->text, host->text_cap, MSG_DONTWAIT);
        state = n > 0 ? dr__inet_dump_parse(host->text, (size_t)n, out) : DR__DUMP_BAD;
    }
    return state;
}

static void hang_up(struct state *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

/* A list that was not read to its end, or not understood, ends with its socket.  False: the kernel does not tell. */
static bool add_family(struct state *s, dr__host *host, int family, dr__round_trips *out)
{
    if (s->fd < 0)
        s->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    dr__dump_state state = s->fd >= 0 && ask(s->fd, family) ? hear(s->fd, host, out) : DR__DUMP_BAD;
    if (state != DR__DUMP_END)
        hang_up(s);
    return state != DR__DUMP_BAD;
}

/* A kernel that refuses is not asked for ever, since it may look for a module each time. */
static void measure(struct state *s, dr__host *host)
{
    dr__round_trips found = { 0 };
    const bool told = add_family(s, host, AF_INET, &found);
    s->refusals = told ? 0 : s->refusals + 1;
    if (told)
        add_family(s, host, AF_INET6, &found);
    s->rtt_s = told && found.n ? found.sum_s / found.n : 0;
}

static void tick(void *state, dr__host *host, uint64_t now_ns, uint64_t elapsed_ns, dr_snapshot *out)
{
    (void)elapsed_ns;
    struct state *s = state;
    if (s->refusals < MOST_REFUSALS && now_ns >= s->next_ns) {
        uint64_t begin_ns = dr__thread_cpu_ns();
        measure(s, host);
        s->next_ns = now_ns + DR_MAX((dr__thread_cpu_ns() - begin_ns) * PAUSE_PER_NS, MIN_PAUSE_NS);
    }
    if (s->rtt_s > 0)
        dr__sense(out, DR_SENSOR_NET_RTT, s->rtt_s, rtt_full_s);
}

static void close_socket(void *state)
{
    hang_up(state);
}

const dr__probe_def dr__probe_rtt = {
    .name = "rtt",
    .summary = "round trip time of TCP connections",
    .state_size = sizeof(struct state),
    .open = open_nothing,
    .read = tick,
    .close = close_socket,
};
