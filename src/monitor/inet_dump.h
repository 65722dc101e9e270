/* inet_dump.h: round trip times from the kernel's list of TCP connections (NETLINK_SOCK_DIAG, as in `ss -ti`). */
#ifndef DR_MONITOR_INET_DUMP_H
#define DR_MONITOR_INET_DUMP_H

#include <stddef.h>

typedef struct dr__round_trips {
    double sum_s;
    unsigned n; /* connections in the sum */
} dr__round_trips;

typedef enum dr__dump_state { DR__DUMP_MORE, DR__DUMP_END, DR__DUMP_BAD } dr__dump_state;

/* Adds the connections of one block of replies that are established, lead to another address and were active in the
 * last 10 s.  The bytes need no alignment and may be malformed. */
dr__dump_state dr__inet_dump_parse(const void *bytes, size_t size, dr__round_trips *out);

#endif
