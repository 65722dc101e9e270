/* Lists of TCP connections: recorded from a kernel, written by hand, cut short and damaged. */
#include "unit/cm.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <math.h>
#include <sys/socket.h>

#include "base/compiler.h"
#include "monitor/inet_dump.h"

enum { ROOM = 4096, LEAST_MESSAGE = sizeof(struct nlmsghdr) + sizeof(struct inet_diag_msg) };

/* A list that grows. */
struct list {
    unsigned char bytes[ROOM];
    size_t size;
};

struct peer {
    int family;
    const unsigned char *from, *to;
    uint32_t rtt_us, idle_ms;
    uint8_t state;
    uint16_t info_bytes; /* of the tcp_info; 0: all */
};

static const unsigned char here[16] = { 192, 0, 2, 1 }, there[16] = { 198, 51, 100, 7 }, loop[16] = { 127, 0, 0, 1 },
                           loop_2[16] = { 127, 0, 0, 2 };
static const unsigned char here_6[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 },
                           there_6[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 2 }, loop_6[16] = { [15] = 1 };
static const unsigned char mapped[16] = { [10] = 0xff, [11] = 0xff, 198, 51, 100, 7 },
                           mapped_loop[16] = { [10] = 0xff, [11] = 0xff, 127, 0, 0, 1 };

static void put(struct list *l, const void *bytes, size_t n)
{
    assert_true(l->size + n <= ROOM);
    memcpy(l->bytes + l->size, bytes, n);
    l->size += n;
}

static void put_attribute(struct list *l, unsigned short type, const void *bytes, size_t n)
{
    static const unsigned char padding[4];
    struct rtattr head = { .rta_len = (unsigned short)(sizeof head + n), .rta_type = type };
    put(l, &head, sizeof head);
    put(l, bytes, n);
    put(l, padding, (4 - n % 4) % 4);
}

static void put_peer(struct list *l, struct peer p)
{
    size_t begin = l->size;
    struct nlmsghdr head = { .nlmsg_type = SOCK_DIAG_BY_FAMILY };
    struct inet_diag_msg message = { .idiag_family = (uint8_t)p.family, .idiag_state = p.state ? p.state : 1 };
    struct tcp_info info = { .tcpi_rtt = p.rtt_us,
                             .tcpi_last_data_sent = p.idle_ms,
                             .tcpi_last_data_recv = p.idle_ms + 5,
                             .tcpi_last_ack_recv = p.idle_ms + 7 };
    memcpy(message.id.idiag_src, p.from, 16);
    memcpy(message.id.idiag_dst, p.to, 16);
    put(l, &head, sizeof head);
    put(l, &message, sizeof message);
    put_attribute(l, INET_DIAG_SHUTDOWN, "x", 1); /* one byte: the next is aligned */
    put_attribute(l, INET_DIAG_INFO, &info, p.info_bytes ? p.info_bytes : sizeof info);
    head.nlmsg_len = (uint32_t)(l->size - begin);
    memcpy(l->bytes + begin, &head, sizeof head);
}

static void put_bare(struct list *l, uint16_t type)
{
    struct nlmsghdr head = { .nlmsg_len = sizeof head, .nlmsg_type = type };
    put(l, &head, sizeof head);
}

/* How many connections count, and the sum of their round trips. */
static dr__round_trips count(const struct list *l, dr__dump_state want)
{
    dr__round_trips found = { 0 };
    assert_int_equal(dr__inet_dump_parse(l->bytes, l->size, &found), want);
    return found;
}

static dr__round_trips count_one(struct peer p)
{
    struct list l = { 0 };
    put_peer(&l, p);
    return count(&l, DR__DUMP_MORE);
}

static void connections_to_elsewhere_count(void **state)
{
    (void)state;
    struct list l = { 0 };
    put_peer(&l, (struct peer){ AF_INET, here, there, .rtt_us = 2000 });
    put_peer(&l, (struct peer){ AF_INET6, here_6, there_6, .rtt_us = 5000, .idle_ms = 10000 });
    put_peer(&l, (struct peer){ AF_INET6, mapped_loop, mapped, .rtt_us = 1000 });
    put_bare(&l, NLMSG_DONE);
    put_peer(&l, (struct peer){ AF_INET, here, there, .rtt_us = 7 }); /* behind the end */
    dr__round_trips found = count(&l, DR__DUMP_END);
    assert_int_equal(found.n, 3);
    assert_true(fabs(found.sum_s - 0.008) < 1e-12);
}

static void those_inside_idle_or_unmeasured_do_not(void **state)
{
    (void)state;
    const struct peer left_out[] = {
        { AF_INET, loop, loop_2, .rtt_us = 9 },
        { AF_INET, here, here, .rtt_us = 9 },
        { AF_INET6, loop_6, loop_6, .rtt_us = 9 },
        { AF_INET6, mapped, mapped_loop, .rtt_us = 9 },
        { AF_INET, here, there, .rtt_us = 9, .idle_ms = 10001 },
        { AF_INET, here, there, .rtt_us = 0 },
        { AF_INET, here, there, .rtt_us = 9, .state = 6 },
        { AF_INET, here, there, .rtt_us = 9, .info_bytes = offsetof(struct tcp_info, tcpi_rtt) + 3 },
    };
    for (size_t i = 0; i < DR_COUNT(left_out); i++)
        assert_int_equal(count_one(left_out[i]).n, 0);
}

static void a_short_tcp_info_of_an_old_kernel_is_enough(void **state)
{
    (void)state;
    const uint16_t old = offsetof(struct tcp_info, tcpi_rttvar);
    dr__round_trips found = count_one((struct peer){ AF_INET, here, there, .rtt_us = 40, .info_bytes = old });
    assert_int_equal(found.n, 1);
    assert_true(fabs(found.sum_s - 40e-6) < 1e-12);
}

static void errors_and_wrong_lengths_are_bad(void **state)
{
    (void)state;
    struct list l = { 0 };
    put_bare(&l, NLMSG_ERROR);
    count(&l, DR__DUMP_BAD);
    for (uint32_t length = 0; length < 16; length++) {
        memcpy(l.bytes, &length, sizeof length);
        count(&l, DR__DUMP_BAD);
    }
    uint32_t too_long = UINT32_MAX;
    memcpy(l.bytes, &too_long, sizeof too_long);
    count(&l, DR__DUMP_BAD);
    l.size = 0;
    assert_int_equal(count(&l, DR__DUMP_MORE).n, 0);
}

/* --- recorded --- */

static struct list load(const char *name)
{
    struct list l = { 0 };
    char path[512];
    snprintf(path, sizeof path, "%s/%s", DR_DUMPS, name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    l.size = fread(l.bytes, 1, sizeof l.bytes, f);
    fclose(f);
    return l;
}

/* Two connections of one namespace to another, and one over loopback. */
static void recorded_by_a_kernel(void **state)
{
    (void)state;
    struct list l = load("recorded");
    dr__round_trips found = count(&l, DR__DUMP_END);
    assert_int_equal(found.n, 2);
    assert_true(found.sum_s > 0 && found.sum_s < 0.1);
}

/* Exactly as long as it is, so that a sanitizer sees a byte too far. */
static void check_sound(const unsigned char *bytes, size_t size)
{
    dr__round_trips found = { 0 };
    unsigned char *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    dr__inet_dump_parse(copy, size, &found);
    free(copy);
    assert_true(found.n <= size / LEAST_MESSAGE);
    assert_true(found.sum_s >= 0 && found.sum_s <= found.n * (UINT32_MAX * 1e-6));
}

static void cut_short_anywhere(void **state)
{
    (void)state;
    struct list l = load("recorded");
    for (size_t n = 0; n <= l.size; n++)
        check_sound(l.bytes, n);
}

static void random_bytes_changed(void **state)
{
    (void)state;
    const struct list whole = load("recorded");
    uint64_t seed = 11;
    for (int round = 0; round < 20000; round++) {
        struct list l = whole;
        for (int i = 0; i < 6; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            l.bytes[(seed >> 33) % l.size] = (unsigned char)(seed >> 20);
        }
        check_sound(l.bytes, l.size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_to_elsewhere_count),
        cmocka_unit_test(those_inside_idle_or_unmeasured_do_not),
        cmocka_unit_test(a_short_tcp_info_of_an_old_kernel_is_enough),
        cmocka_unit_test(errors_and_wrong_lengths_are_bad),
        cmocka_unit_test(recorded_by_a_kernel),
        cmocka_unit_test(cut_short_anywhere),
        cmocka_unit_test(random_bytes_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
