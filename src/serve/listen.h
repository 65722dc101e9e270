/* listen.h: from the text of an address to a socket that listens there. */
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

/* "9464", "127.0.0.1:9464", "localhost:9464", "[::1]:9464".  DR_ERR_ARG. */
dr_status dr__address_parse(const char *text, dr__address *out, dr_error *err);

int dr__address_port(const dr__address *address);
void dr__address_set_port(dr__address *address, int port);

/* Whether only this machine can reach it. */
bool dr__address_is_loopback(const dr__address *address);

/* A socket that listens, closed by exec, and the address with the port that it has.  DR_ERR_IO. */
dr_status dr__listen(dr__address *address, int *fd, dr_error *err);

#endif
