/* listen.h: parses an address and opens a socket that listens on it. */
#ifndef DR_SERVE_LISTEN_H
#define DR_SERVE_LISTEN_H

#include <netinet/in.h>
#include <stdbool.h>

#include <drapps/status.h>

typedef union dr__address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} dr__address;

/* Parses "9464", "127.0.0.1:9464", "localhost:9464" or "[::1]:9464".  Fails with DR_ERR_ARG. */
dr_status dr__address_parse(const char *text, dr__address *out, dr_error *err);

/* The same; `what` begins messages. */
dr_status dr__address_parse_for(const char *text, const char *what, dr__address *out, dr_error *err);

int dr__address_port(const dr__address *address);
void dr__address_set_port(dr__address *address, int port);

/* Whether only this machine can reach the address. */
bool dr__address_is_loopback(const dr__address *address);

/* Whether the Host header of a request (NULL: none) is a name of this machine alone.  Guards against DNS rebinding: a
 * web page may have a host name that resolves to this machine, and its scripts could then read the answers. */
bool dr__address_names_loopback(const char *host);

/* Opens a listening socket, which exec closes.  Fails with DR_ERR_IO.
 *
 * @param address  its port is set to the one in use, if it was 0. */
dr_status dr__listen(dr__address *address, int *fd, dr_error *err);

/* The same with room for `backlog` connections that are not accepted yet; `what` begins messages. */
dr_status dr__listen_for(dr__address *address, const char *what, int backlog, int *fd, dr_error *err);

#endif
