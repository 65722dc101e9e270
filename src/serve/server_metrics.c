/* server_metrics.c: the counts of a server as OpenMetrics 1.0 text. */
#include "serve/http_server.h"

#ifdef DR_HAVE_MICROHTTPD
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

static void DR_PRINTF(2, 3) say(dr__text *t, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    dr__text_say(t, line);
}

static void head(dr__text *t, const char *name, const char *type, const char *unit, const char *doc)
{
    say(t, "# TYPE drapps_serve_%s %s\n", name, type);
    if (*unit)
        say(t, "# UNIT drapps_serve_%s %s\n", name, unit);
    say(t, "# HELP drapps_serve_%s %s\n", name, doc);
}

static const char *const routes[] = {
#define ROUTE(id, name) name,
    DR__ROUTES(ROUTE)
#undef ROUTE
};

static void say_requests(dr__text *t, dr_serve *s)
{
    head(t, "requests", "counter", "", "requests by what was asked for and the first digit of the answer's status");
    for (int r = 0; r < DR__N_ROUTES; r++)
        for (int c = 0; c < DR__STATUS_CLASSES; c++) {
            const uint64_t n = atomic_load(&s->requests[r][c]);
            if (n)
                say(t, "drapps_serve_requests_total{what=\"%s\",status=\"%dxx\"} %" PRIu64 "\n", routes[r], c, n);
        }
    head(t, "sent_bytes", "counter", "bytes", "bytes of answers, without their headers");
    for (int r = 0; r < DR__N_ROUTES; r++) {
        const uint64_t n = atomic_load(&s->sent_bytes[r]);
        if (n)
            say(t, "drapps_serve_sent_bytes_total{what=\"%s\"} %" PRIu64 "\n", routes[r], n);
    }
}

static void say_samples(dr__text *t, const dr__jobs_stats *j)
{
    head(t, "samples", "counter", "", "samples of requests for samples, by what became of them");
#define ROW(name, doc) say(t, "drapps_serve_samples_total{outcome=\"" #name "\"} %" PRIu64 "\n", j->name);
    DR__JOB_OUTCOMES(ROW)
#undef ROW
    head(t, "ops_cpu_seconds", "counter", "seconds", "CPU time of ops");
    say(t, "drapps_serve_ops_cpu_seconds_total %.6f\n", (double)j->cpu_ns * 1e-9);
}

/* Names of tokens are printable; those of addresses, too. */
static void say_tenant(void *user, const char *tenant, uint64_t cpu_ns)
{
    dr__text *t = user;
    dr__text_say(t, "drapps_serve_client_cpu_seconds_total{client=\"");
    for (const char *c = tenant; *c; c++) {
        if (*c == '"' || *c == '\\')
            dr__text_say(t, "\\");
        dr__text_add(t, c, 1);
    }
    say(t, "\"} %.6f\n", (double)cpu_ns * 1e-9);
}

static void gauge(dr__text *t, const char *name, const char *unit, double value, const char *doc)
{
    head(t, name, "gauge", unit, doc);
    say(t, "drapps_serve_%s %.9g\n", name, value);
}

static void say_state(dr__text *t, dr_serve *s, const dr__jobs_stats *j)
{
    pthread_mutex_lock(&s->lock);
    const int n_conns = s->n_conns, n_calls = s->n_calls;
    const size_t n_sets = s->catalogue->n_sets;
    pthread_mutex_unlock(&s->lock);
    gauge(t, "connections", "", n_conns, "open connections");
    gauge(t, "active_requests", "", n_calls, "requests that are not answered in full yet");
    gauge(t, "jobs", "", (double)j->jobs, "requests for samples that are not answered in full yet");
    gauge(t, "waiting_samples", "", (double)j->entries, "samples that were asked for and are not made yet");
    gauge(t, "waiting_bytes", "bytes", (double)j->waiting_bytes, "bytes of samples that are made and not sent yet");
    gauge(t, "sets", "", (double)n_sets, "data sets that are offered");
    gauge(t, "cpus", "", s->o.cpus, "CPU seconds a second that ops may use");
}

char *dr__server_metrics(dr_serve *s)
{
    dr__text t = { 0 };
    dr__jobs_stats j;
    dr__jobs_get_stats(s->jobs, &j);
    head(&t, "build", "info", "", "version of drapps");
    say(&t, "drapps_serve_build_info{version=\"%s\"} 1\n", DR_VERSION);
    say_requests(&t, s);
    say_samples(&t, &j);
    head(&t, "client_cpu_seconds", "counter", "seconds", "CPU time of ops by client");
    dr__jobs_tenants(s->jobs, say_tenant, &t);
    say_state(&t, s, &j);
    dr__text_say(&t, "# EOF\n");
    if (!t.failed)
        return t.text;
    dr__free(t.text);
    return NULL;
}
#else
typedef int dr__server_no_metrics; /* an empty file is not C */
#endif
