/* listen.c: parses numeric addresses and opens listening sockets.  Names are not resolved: that may block, and may give
 * another address later. */
#include "serve/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"

enum { BACKLOG = 16 };

static bool parse_port(const char *text, int *port)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    long value = strtol(text, &end, 10);
    *port = (int)value;
    return !*end && errno == 0 && value <= 65535;
}

/* Parses "127.0.0.1", "localhost" or "::1" (without brackets). */
static bool parse_host(const char *host, dr__address *out)
{
    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET6, host, &out->v6.sin6_addr) == 1) {
        out->any.sa_family = AF_INET6;
        return true;
    }
    memset(out, 0, sizeof *out);
    out->any.sa_family = AF_INET;
    return inet_pton(AF_INET, strcmp(host, "localhost") ? host : "127.0.0.1", &out->v4.sin_addr) == 1;
}

dr_status dr__address_parse(const char *text, dr__address *out, dr_error *err)
{
    return dr__address_parse_for(text, "metrics", out, err);
}

dr_status dr__address_parse_for(const char *text, const char *what, dr__address *out, dr_error *err)
{
    char host[64] = "127.0.0.1";
    int port;
    const char *colon = text ? strrchr(text, ':') : NULL;
    const char *port_text = colon ? colon + 1 : text;
    size_t n = colon ? (size_t)(colon - text) : 0;
    bool bracketed = colon && n > 2 && text[0] == '[' && text[n - 1] == ']';
    bool sound = text && n < sizeof host;
    if (sound && colon)
        snprintf(host, sizeof host, "%.*s", (int)(bracketed ? n - 2 : n), text + bracketed);
    sound = sound && (bracketed || !strchr(host, ':')) && parse_host(host, out) && parse_port(port_text, &port);
    if (!sound || bracketed != (out->any.sa_family == AF_INET6))
        return dr__fail(err, DR_ERR_ARG,
                        "%s: address must be PORT, ADDRESS:PORT or [ADDRESS]:PORT with a numeric address or "
                        "localhost and a port from 0 to 65535, got \"%.100s\"",
                        what, text ? text : "");
    dr__address_set_port(out, port);
    return DR_OK;
}

int dr__address_port(const dr__address *address)
{
    return ntohs(address->any.sa_family == AF_INET6 ? address->v6.sin6_port : address->v4.sin_port);
}

void dr__address_set_port(dr__address *address, int port)
{
    if (address->any.sa_family == AF_INET6)
        address->v6.sin6_port = htons((uint16_t)port);
    else
        address->v4.sin_port = htons((uint16_t)port);
}

bool dr__address_is_loopback(const dr__address *address)
{
    if (address->any.sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
    return ntohl(address->v4.sin_addr.s_addr) >> 24 == 127;
}

bool dr__address_names_loopback(const char *host)
{
    char text[128];
    dr__address address;
    const char *colon = host ? strrchr(host, ':') : NULL;
    const bool has_port = colon && !strchr(colon, ']');
    int n = snprintf(text, sizeof text, "%s%s", host ? host : "localhost", has_port ? "" : ":0");
    return n < (int)sizeof text && dr__address_parse(text, &address, NULL) == DR_OK &&
           dr__address_is_loopback(&address);
}

dr_status dr__listen(dr__address *address, int *fd, dr_error *err)
{
    return dr__listen_for(address, "metrics", BACKLOG, fd, err);
}

dr_status dr__listen_for(dr__address *address, const char *what, int backlog, int *fd, dr_error *err)
{
    const int on = 1, family = address->any.sa_family;
    socklen_t size = family == AF_INET6 ? sizeof address->v6 : sizeof address->v4;
    char text[INET6_ADDRSTRLEN] = "?";
    inet_ntop(family, family == AF_INET6 ? (void *)&address->v6.sin6_addr : (void *)&address->v4.sin_addr, text,
              sizeof text);
    *fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fd < 0)
        return dr__fail_errno(err, DR_ERR_IO, "%s: no socket for %s", what, text);
    setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); /* a restarted program gets its port at once */
    if (family == AF_INET6)
        setsockopt(*fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(*fd, &address->any, size) == 0 && listen(*fd, backlog) == 0 && getsockname(*fd, &address->any, &size) == 0)
        return DR_OK;
    dr_status status =
        dr__fail_errno(err, DR_ERR_IO, "%s: cannot listen on %s, port %d", what, text, dr__address_port(address));
    close(*fd);
    *fd = -1;
    return status;
}
