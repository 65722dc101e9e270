/* probe_net.c: bytes over the network interfaces from /proc/net/dev, TCP segments sent again from /proc/net/snmp.
 *
 * Interfaces inside the machine (lo, bridges, ends of containers) are skipped: their bytes also pass a physical
 * interface, or never leave the machine.
 */
#include "monitor/probe.h"

#include <stdio.h>
#include <string.h>

enum { NAME = 32, RX_BYTES = 0, TX_BYTES = 8, N_FIELDS = 16, MAX_COLUMNS = 64 };
static const double bandwidth_floor = 125e6, retransmits_full = 0.1;

struct tcp {
    uint64_t sent, resent;
};

struct state {
    dr__procfile dev, snmp;
    uint64_t bytes;
    struct tcp tcp;
    bool primed_dev, primed_tcp, speed_known;
    double full;
};

static bool is_internal(const char *name)
{
    static const char *const kinds[] = {
        "lo", "ifb", "veth", "docker", "br-", "virbr", "cni", "flannel", "dummy", "tap"
    };
    for (size_t i = 0; i < DR_COUNT(kinds); i++)
        if (!strncmp(name, kinds[i], strlen(kinds[i])))
            return true;
    return false;
}

/* Parses "  eth0: 1 2 3 ..."; false for the two heading lines. */
static bool read_line(const char *at, char *name, uint64_t *fields)
{
    at += strspn(at, " ");
    size_t n = strcspn(at, ":\n ");
    if (at[n] != ':' || !n || n >= NAME)
        return false;
    memcpy(name, at, n);
    name[n] = 0;
    at += n + 1;
    return dr__next_u64s(&at, fields, N_FIELDS) == N_FIELDS;
}

static bool read_bytes(const char *text, uint64_t *out)
{
    char name[NAME];
    uint64_t fields[N_FIELDS];
    bool found = false;
    for (*out = 0; text; text = dr__next_line(text)) {
        if (!read_line(text, name, fields) || is_internal(name))
            continue;
        *out += fields[RX_BYTES] + fields[TX_BYTES];
        found = true;
    }
    return found;
}

/* The column of a heading in "Tcp: A B C"; -1 without it. */
static int find_column(const char *at, const char *heading)
{
    size_t len = strlen(heading);
    for (int i = 0; *at && *at != '\n' && i < MAX_COLUMNS; i++) {
        at += strspn(at, " ");
        size_t n = strcspn(at, " \n");
        if (n == len && !strncmp(at, heading, n))
            return i;
        at += n;
    }
    return -1;
}

/* Entries may be negative, as MaxConn is. */
static bool read_column(const char *at, int column, uint64_t *out)
{
    for (int i = 0; i < column; i++) {
        at += strspn(at, " ");
        at += strcspn(at, " \n");
    }
    return dr__next_u64(&at, out);
}

static bool read_tcp(const char *text, struct tcp *out)
{
    const char *heads = dr__after_key(text, "Tcp:");
    const char *rest = heads ? dr__next_line(heads) : NULL;
    const char *row = rest ? dr__after_key(rest, "Tcp:") : NULL;
    if (!row)
        return false;
    int sent = find_column(heads, "OutSegs"), resent = find_column(heads, "RetransSegs");
    return sent >= 0 && resent >= 0 && read_column(row, sent, &out->sent) && read_column(row, resent, &out->resent);
}

/* The sum of the known link speeds, in bytes per second.  The text is copied, since reading the speeds overwrites it.
 */
static double read_speed(struct state *s, dr__host *host)
{
    char text[8192], name[NAME];
    uint64_t fields[N_FIELDS], mbit;
    double sum = 0;
    if (!dr__procfile_read(&s->dev, host))
        return 0;
    snprintf(text, sizeof text, "%s", host->text);
    for (const char *at = text; at; at = dr__next_line(at))
        if (read_line(at, name, fields) && !is_internal(name) && !strchr(name, '/') &&
            dr__procfile_once(host, &mbit, "/sys/class/net/%s/speed", name) && mbit < 10000000)
            sum += (double)mbit * 1e6 / 8;
    return sum;
}

static void open_files(void *state, dr__host *host)
{
    struct state *s = state;
    dr__procfile_open(&s->dev, host, "/proc/net/dev");
    dr__procfile_open(&s->snmp, host, "/proc/net/snmp");
    double speed = read_speed(s, host);
    s->speed_known = speed > 0;
    s->full = s->speed_known ? speed : bandwidth_floor;
}

static void sense_bytes(struct state *s, uint64_t bytes, uint64_t elapsed_ns, dr_snapshot *out)
{
    double rate = (double)dr__counter_delta(s->bytes, bytes) * 1e9 / (double)elapsed_ns;
    if (!s->speed_known)
        s->full = DR_MAX(s->full, rate);
    dr__sense(out, DR_SENSOR_NET_BANDWIDTH, rate, s->full);
}

static void sense_tcp(const struct tcp *a, const struct tcp *b, dr_snapshot *out)
{
    uint64_t sent = dr__counter_delta(a->sent, b->sent), resent = dr__counter_delta(a->resent, b->resent);
    double share = sent + resent ? (double)resent / (double)(sent + resent) : 0;
    dr__sense(out, DR_SENSOR_NET_RETRANSMITS, share, retransmits_full);
}

static void tick(void *state, dr__host *host, uint64_t now_ns, uint64_t elapsed_ns, dr_snapshot *out)
{
    (void)now_ns;
    struct state *s = state;
    uint64_t bytes = 0;
    struct tcp tcp = { 0 };
    bool dev = dr__procfile_read(&s->dev, host) && read_bytes(host->text, &bytes);
    if (dev && s->primed_dev && elapsed_ns)
        sense_bytes(s, bytes, elapsed_ns, out);
    bool snmp = dr__procfile_read(&s->snmp, host) && read_tcp(host->text, &tcp);
    if (snmp && s->primed_tcp && elapsed_ns)
        sense_tcp(&s->tcp, &tcp, out);
    s->bytes = bytes;
    s->tcp = tcp;
    s->primed_dev = dev;
    s->primed_tcp = snmp;
}

static void close_files(void *state)
{
    struct state *s = state;
    dr__procfile_close(&s->dev);
    dr__procfile_close(&s->snmp);
}

const dr__probe_def dr__probe_net = {
    .name = "net",
    .summary = "bytes over the network, TCP segments sent again",
    .state_size = sizeof(struct state),
    .open = open_files,
    .read = tick,
    .close = close_files,
};
