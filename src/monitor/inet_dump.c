/* inet_dump.c: parses netlink messages, each an inet_diag_msg with attributes, one of which is a tcp_info.
 *
 * The replies are parsed like an untrusted file: every length is checked, and every struct is copied before it is read.
 * The tcp_info of an older kernel is shorter, that of a newer one longer than ours; only its first fields are used.
 */
#include "monitor/inet_dump.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "base/compiler.h"

enum { ESTABLISHED = 1, ACTIVE_MS = 10000, ALIGNMENT = 4 }; /* of messages and of attributes */

/* The bytes not yet parsed. */
struct rest {
    const unsigned char *at;
    size_t size;
};

static void skip(struct rest *r, size_t n)
{
    n = DR_MIN(n, r->size);
    r->at += n;
    r->size -= n;
}

static size_t aligned(size_t n)
{
    return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Whether a connection is over loopback, or to another address of this machine. */
static bool is_local(const struct inet_diag_sockid *id, bool v6)
{
    static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff }; /* ::ffff:a.b.c.d */
    unsigned char from[16], to[16];
    memcpy(from, id->idiag_src, sizeof from);
    memcpy(to, id->idiag_dst, sizeof to);
    const unsigned char *v4 = !v6 ? to : memcmp(to, mapped, sizeof mapped) ? NULL : to + sizeof mapped;
    return !memcmp(from, to, v6 ? 16 : 4) || (v4 && v4[0] == 127);
}

static bool find_info(struct rest attributes, struct tcp_info *out)
{
    struct rtattr head;
    while (attributes.size >= sizeof head) {
        memcpy(&head, attributes.at, sizeof head);
        if (head.rta_len < sizeof head || head.rta_len > attributes.size)
            return false;
        size_t n = head.rta_len - sizeof head;
        if (head.rta_type == INET_DIAG_INFO) {
            memcpy(out, attributes.at + sizeof head, DR_MIN(n, sizeof *out));
            return n >= offsetof(struct tcp_info, tcpi_rttvar);
        }
        skip(&attributes, aligned(head.rta_len));
    }
    return false;
}

static void add_connection(struct rest body, dr__round_trips *out)
{
    struct inet_diag_msg message;
    struct tcp_info info = { 0 };
    if (body.size < sizeof message)
        return;
    memcpy(&message, body.at, sizeof message);
    skip(&body, aligned(sizeof message));
    if (message.idiag_state != ESTABLISHED || is_local(&message.id, message.idiag_family == AF_INET6) ||
        !find_info(body, &info))
        return;
    uint32_t idle_ms = DR_MIN(info.tcpi_last_data_sent, DR_MIN(info.tcpi_last_data_recv, info.tcpi_last_ack_recv));
    if (idle_ms > ACTIVE_MS || !info.tcpi_rtt) /* 0: not measured yet */
        return;
    out->sum_s += info.tcpi_rtt * 1e-6;
    out->n++;
}

dr__dump_state dr__inet_dump_parse(const void *bytes, size_t size, dr__round_trips *out)
{
    struct nlmsghdr head;
    struct rest rest = { bytes, size };
    while (rest.size >= sizeof head) {
        memcpy(&head, rest.at, sizeof head);
        if (head.nlmsg_len < sizeof head || head.nlmsg_len > rest.size || head.nlmsg_type == NLMSG_ERROR)
            return DR__DUMP_BAD;
        if (head.nlmsg_type == NLMSG_DONE)
            return DR__DUMP_END;
        if (head.nlmsg_type == SOCK_DIAG_BY_FAMILY)
            add_connection((struct rest){ rest.at + sizeof head, head.nlmsg_len - sizeof head }, out);
        skip(&rest, aligned(head.nlmsg_len));
    }
    return DR__DUMP_MORE;
}
