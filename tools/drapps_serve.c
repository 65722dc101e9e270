/* drapps_serve.c: serves the data sets below a folder.
 *
 *     drapps-serve /data --host 0.0.0.0 --port 9470 --cpus 1.5 --tokens /etc/drapps/tokens
 *
 * SIGTERM and SIGINT end it once the requests in flight are answered; SIGHUP reads tokens and sets again.  What the
 * operator should know goes to standard error.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <drapps/serve.h>

enum { BAD_USE = 2, FAILED = 1 };

static const char usage[] =
    "usage: drapps serve FOLDER [options]\n"
    "Serves the data sets below a folder over HTTP: indexes, files, and samples after their first ops.\n\n"
    "  --host ADDRESS           numeric address to listen on (default 127.0.0.1; 0.0.0.0: all, :: with IPv6)\n"
    "  --port PORT              port to listen on (default 9470; 0: any free one)\n"
    "  --cpus X                 CPU seconds a second for ops, of all clients (default: half of the machine; 0: none)\n"
    "  --tokens FILE            clients and what they may read: lines NAME TOKEN SET[,SET...]; without it everybody "
    "reads all\n"
    "  --cert FILE --key FILE   certificate and key for TLS, PEM\n"
    "  --access-log FILE        log a line for each request; -: to standard error\n"
    "  --max-request BYTES      largest body of a request (default 1048576)\n"
    "  --max-samples N          most samples of one request (default 4096)\n"
    "  --max-pixels N           largest image that is decoded or made (default 100000000)\n"
    "  --max-seconds S          longest time for the ops of one request (default 30)\n"
    "  --max-sample-seconds S   most predicted CPU time for the ops of one sample (default 5)\n"
    "  --memory MB              most memory of a thread for one sample (default 512)\n"
    "  --io-threads N           threads that answer requests (default: one a CPU, at least 2)\n"
    "  --read-threads N         threads that read for requests of samples (default 4)\n"
    "  --connections N          most connections at a time (default 1024)\n"
    "  --per-client N           most connections of one address (default 256)\n"
    "  --idle S                 seconds until a silent or slow connection is closed (default 60)\n"
    "  --grace S                seconds that requests may take to end at SIGTERM (default 10)\n"
    "  --ready-fd FD            write \"PORT\\n\" there when the server answers\n";

struct setup {
    dr_serve_options o;
    const char *folder, *host;
    int port, ready_fd;
    double grace_s;
    char address[128];
};

static int misuse(const char *what, const char *value)
{
    fprintf(stderr, "drapps serve: %s \"%s\"\n%s", what, value, usage);
    return BAD_USE;
}

static void log_text(void *user, const char *text)
{
    (void)user;
    fprintf(stderr, "drapps serve: %s\n", text);
}

static int take_number(const char *name, const char *text, double least, double most, double *out)
{
    char *end;
    errno = 0;
    *out = strtod(text, &end);
    if (end != text && !*end && !errno && *out >= least && *out <= most)
        return 0;
    fprintf(stderr, "drapps serve: --%s must be %.12g to %.12g, got \"%s\"\n", name, least, most, text);
    return BAD_USE;
}

static int take_whole(const char *name, const char *text, double least, double most, double *out)
{
    const int bad = take_number(name, text, least, most, out);
    if (bad || *out == floor(*out))
        return bad;
    fprintf(stderr, "drapps serve: --%s must be a whole number, got \"%s\"\n", name, text);
    return BAD_USE;
}

static int take_text_option(struct setup *s, const char *name, const char *value)
{
    if (!strcmp(name, "host"))
        s->host = value;
    else if (!strcmp(name, "tokens"))
        s->o.tokens = value;
    else if (!strcmp(name, "cert"))
        s->o.cert = value;
    else if (!strcmp(name, "key"))
        s->o.key = value;
    else
        s->o.access_log = value;
    return 0;
}

/* A whole number of its range, at its place. */
static int take_int(struct setup *s, const char *name, const char *value)
{
    const struct {
        const char *name;
        int *place;
        double least, most;
    } all[] = {
        { "port", &s->port, 0, 65535 },
        { "io-threads", &s->o.io_threads, 1, 128 },
        { "read-threads", &s->o.read_threads, 1, 128 },
        { "connections", &s->o.connections, 1, 1e6 },
        { "per-client", &s->o.connections_per_client, 1, 1e6 },
        { "idle", &s->o.idle_seconds, 1, 86400 },
        { "ready-fd", &s->ready_fd, 0, 1e6 },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        double number;
        if (strcmp(name, all[i].name) != 0)
            continue;
        const int bad = take_whole(name, value, all[i].least, all[i].most, &number);
        *all[i].place = bad ? 0 : (int)number;
        return bad;
    }
    return -1;
}

static int take_limit(struct setup *s, const char *name, const char *value)
{
    const struct {
        const char *name;
        uint64_t *place, unit;
        double most;
    } all[] = {
        { "max-request", &s->o.max_request, 1, 1e9 },
        { "max-samples", &s->o.max_samples, 1, 1e6 },
        { "max-pixels", &s->o.max_pixels, 1, 1e12 },
        { "memory", &s->o.memory, 1 << 20, 1e6 },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        double number;
        if (strcmp(name, all[i].name) != 0)
            continue;
        const int bad = take_whole(name, value, 1, all[i].most, &number);
        *all[i].place = bad ? 0 : (uint64_t)number * all[i].unit;
        return bad;
    }
    return -1;
}

static int take_seconds(struct setup *s, const char *name, const char *value)
{
    if (!strcmp(name, "cpus"))
        return take_number(name, value, 0, 128, &s->o.cpus);
    if (!strcmp(name, "max-seconds"))
        return take_number(name, value, 0, 1e6, &s->o.max_seconds);
    if (!strcmp(name, "max-sample-seconds"))
        return take_number(name, value, 1e-3, 1e6, &s->o.max_sample_seconds);
    return take_number(name, value, 0, 1e6, &s->grace_s);
}

static int take_option(struct setup *s, const char *name, const char *value)
{
    int done = take_int(s, name, value);
    if (done < 0)
        done = take_limit(s, name, value);
    if (done >= 0)
        return done;
    if (!strcmp(name, "cpus") || !strcmp(name, "grace") || !strncmp(name, "max-", 4))
        return take_seconds(s, name, value);
    return take_text_option(s, name, value);
}

static int take_arguments(struct setup *s, int argc, char **argv)
{
    static const char *const names[] = { "host",        "port",       "cpus",         "tokens",
                                         "cert",        "key",        "access-log",   "max-request",
                                         "max-samples", "max-pixels", "max-seconds",  "max-sample-seconds",
                                         "memory",      "io-threads", "read-threads", "connections",
                                         "per-client",  "idle",       "grace",        "ready-fd" };
    enum { N = sizeof names / sizeof *names };
    struct option options[N + 2] = { { "help", no_argument, NULL, 'h' } };
    for (int i = 0; i < N; i++)
        options[i + 1] = (struct option){ names[i], required_argument, NULL, 1 };
    for (int c, i; (c = getopt_long(argc, argv, "h", options, &i)) != -1;) {
        if (c == 'h') {
            fputs(usage, stdout);
            exit(0);
        }
        const int bad = c == 1 ? take_option(s, options[i].name, optarg) : BAD_USE;
        if (bad) {
            if (c == '?')
                fputs(usage, stderr);
            return bad;
        }
    }
    if (optind + 1 != argc)
        return misuse(optind < argc ? "one folder is wanted; also got" : "a folder is wanted, got",
                      optind < argc ? argv[optind + 1] : "");
    s->folder = argv[optind];
    const char *form = strchr(s->host, ':') ? "[%s]:%d" : "%s:%d";
    snprintf(s->address, sizeof s->address, form, s->host, s->port);
    s->o.address = s->address;
    return 0;
}

static void say_ready(const struct setup *s, dr_serve *server)
{
    char text[16];
    const int port = dr_serve_port(server), n = snprintf(text, sizeof text, "%d\n", port);
    const char *form = strchr(s->host, ':') ? "drapps serve: %s: %zu data set%s at http%s://[%s]:%d\n"
                                            : "drapps serve: %s: %zu data set%s at http%s://%s:%d\n";
    const size_t sets = dr_serve_sets(server);
    fprintf(stderr, form, s->folder, sets, sets == 1 ? "" : "s", s->o.cert ? "s" : "", s->host, port);
    if (s->ready_fd < 0)
        return;
    if (write(s->ready_fd, text, (size_t)n) != n)
        log_text(NULL, "nobody reads at --ready-fd");
    close(s->ready_fd);
}

static void reload(dr_serve *server)
{
    dr_error err = { 0 };
    if (dr_serve_reload(server, &err) == DR_OK)
        log_text(NULL, "tokens and data sets were read again");
    else
        fprintf(stderr, "drapps serve: nothing was read again: %s\n", err.text);
}

/* Until a signal ends it. */
static void wait_for_signals(dr_serve *server, const sigset_t *signals)
{
    for (;;) {
        int signal;
        if (sigwait(signals, &signal) != 0)
            continue;
        if (signal != SIGHUP)
            return;
        reload(server);
    }
}

static int run(const struct setup *s)
{
    dr_error err = { 0 };
    dr_serve *server;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL); /* before the threads of the server start */
    if (dr_serve_start(s->folder, &s->o, &server, &err) != DR_OK) {
        fprintf(stderr, "drapps serve: %s\n", err.text);
        return FAILED;
    }
    say_ready(s, server);
    wait_for_signals(server, &signals);
    sigprocmask(SIG_UNBLOCK, &signals, NULL); /* a second one ends it at once */
    log_text(NULL, "stops");
    dr_serve_stop(&server, s->grace_s);
    return 0;
}

int main(int argc, char **argv)
{
    struct setup s = { .host = "127.0.0.1", .port = 9470, .ready_fd = -1, .grace_s = 10 };
    dr_serve_defaults(&s.o);
    s.o.log = log_text;
    signal(SIGPIPE, SIG_IGN);
    const int bad = take_arguments(&s, argc, argv);
    return bad ? bad : run(&s);
}
