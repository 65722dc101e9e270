/* offload_stage.c: asks for samples: after some of their ops, in segments, or as they are stored. */
#include "exec/offload_stage.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "exec/offload_parts.h"

/* Whether a sample is among the share that the knob allows: always the same ones, spread evenly. */
static bool in_share(const dr__offload *o, uint64_t id)
{
    const double share = atomic_load_explicit(&o->share, memory_order_relaxed);
    return share >= 1 || (double)((id * 0x9E3779B97F4A7C15ull) >> 32) < share * 4294967296.0;
}

/* The cut that probe number n tries, one place after the other; 0: there are no more. */
static int probed_cut(const dr__offload *o, unsigned n)
{
    for (int k = 1; k < o->n_cuts; k++) {
        if (n < o->cuts[k].probes)
            return k;
        n -= o->cuts[k].probes;
    }
    return 0;
}
/* The cut of a sample.  While the server is probed, the next cut that is still to be tried. */
static int choose_cut(dr__offload *o, const dr__exec *e, const dr__job *job)
{
    if (job->program != e->program || atomic_load(&o->no_ops) || !in_share(o, job->ref.id))
        return 0;
    if (atomic_load(&o->phase) == DR__OFFLOAD_PROBING)
        return probed_cut(o, atomic_fetch_add(&o->probe, 1));
    return atomic_load_explicit(&o->plan[job->ref.id], memory_order_relaxed);
}

/* Where the server stopped: as it was asked to, or earlier. */
static int cut_behind(const dr__offload *o, int asked, int prefix)
{
    if (o->cuts[asked].prefix == prefix)
        return asked;
    for (int k = 0; k < o->n_cuts; k++)
        if (o->cuts[k].prefix == prefix)
            return k;
    return -1;
}

static dr_status ask(dr__exec *e, dr__workbench *bench, dr__job *job, int at, dr__remote_answer *answer, dr_error *err)
{
    dr__offload *o = e->offload;
    const dr__remote_work work = { e->o.seed, e->order.epoch, o->ops, o->graph, o->outputs };
    const dr__remote_wish wish = {
        .id = job->ref.id,
        .occurrence = job->ref.occurrence,
        .prefix = o->cuts[at].prefix,
        .work = at ? &work : NULL,
        .codec = o->cuts[at].codec,
    };
    bench->record.max_bytes = DR_MAX(bench->memory_limit, (size_t)DR__ENCODED_LEAST);
    return dr__remote_client_sample(o->client, &wish, &bench->record, answer, err);
}

/* Whether a record has what the program of a cut begins with; it came from another machine. */
static bool accept_cut(dr__exec *e, dr__workbench *bench, dr__job *job, int at)
{
    dr__offload *o = e->offload;
    const dr__program *p = at > 0 ? o->cuts[o->cuts[at].plain].parts.rest : job->program;
    if (at < 0 || !dr__prefix_fits(at > 0 ? p : e->program, &bench->record))
        return false;
    job->program = p;
    job->cut = at;
    return true;
}

static void note_refusal(dr__offload *o, atomic_bool *flag, const dr_error *why)
{
    pthread_mutex_lock(&o->lock);
    atomic_store(flag, true);
    snprintf(o->why, sizeof o->why, "%.199s", why->text);
    pthread_mutex_unlock(&o->lock);
}

/* A probe that brought nothing to learn is over, too. */
static void lose_probe(dr__offload *o)
{
    pthread_mutex_lock(&o->lock);
    o->probes_left -= o->probes_left > 0;
    pthread_mutex_unlock(&o->lock);
}

/* Asks for the sample with ops.  false: as it is stored, then. */
static bool read_cut(dr__exec *e, dr__workbench *bench, dr__job *job, int at, dr_status *status, dr_error *err)
{
    dr__offload *o = e->offload;
    dr__remote_answer answer;
    dr_error why = { 0 };
    job->asked_cut = at;
    *status = ask(e, bench, job, at, &answer, &why);
    if (*status == DR_OK && accept_cut(e, bench, job, cut_behind(o, at, answer.prefix))) {
        job->wire_bytes = job->stored_bytes = answer.bytes;
        job->server_ns = answer.cpu_ns;
        job->unpack_ns = answer.read_ns;
        if (job->cut && o->cuts[job->cut].codec)
            atomic_fetch_add(&o->packed, 1);
        if (!job->cut)
            dr__segments_whole(e, &o->segments, bench, job->ref.id);
        atomic_fetch_add(job->cut ? &o->samples : &o->shed, 1);
        atomic_fetch_add(&o->server_ns, answer.cpu_ns);
        return true;
    }
    if (*status == DR_ERR_STATE || *status == DR_ERR_CANCELLED || *status == DR_ERR_NOMEM) {
        *err = why;
        return true;
    }
    lose_probe(o);
    job->asked_cut = 0;
    atomic_fetch_add(&o->failed, 1);
    if (answer.refused)
        note_refusal(o, &o->no_ops, &why);
    return false;
}

/* The sample as it is stored.  false: the server takes no requests for samples. */
static bool read_stored(dr__exec *e, dr__workbench *bench, dr__job *job, dr_status *status, dr_error *err)
{
    dr__offload *o = e->offload;
    dr__remote_answer answer;
    dr_error why = { 0 };
    *status = ask(e, bench, job, 0, &answer, &why);
    if (answer.refused) { /* perhaps an older server, which has plain files */
        note_refusal(o, &o->refused, &why);
        return false;
    }
    if (*status == DR_OK && !dr__prefix_fits(e->program, &bench->record))
        *status = dr__fail(&why, DR_ERR_FORMAT, "the server sent other fields than the set has");
    if (*status != DR_OK) {
        *err = why;
        return true;
    }
    job->wire_bytes = job->stored_bytes = answer.bytes;
    dr__segments_whole(e, &o->segments, bench, job->ref.id);
    atomic_fetch_add(&o->plain, 1);
    return true;
}

bool dr__offload_read(dr__exec *e, dr__workbench *bench, dr__job *job, dr_status *status, dr_error *err)
{
    dr__offload *o = e->offload;
    job->cut = job->asked_cut = 0;
    job->wire_bytes = job->server_ns = 0;
    if (!o || atomic_load(&o->refused))
        return false;
    const int at = job->as_stored ? 0 : choose_cut(o, e, job);
    if (at && read_cut(e, bench, job, at, status, err))
        return true;
    if (!at && !job->as_stored && dr__segments_read(e, &o->segments, bench, job, status, err))
        return true;
    return read_stored(e, bench, job, status, err);
}

bool dr__offload_read_whole(dr__exec *e, dr__workbench *bench, dr__job *job, dr_status *status, dr_error *err)
{
    if (!e->offload || job->cut)
        return false;
    if (err)
        *err = (dr_error){ 0 };
    dr__ranges_again(e, bench);
    job->as_stored = true;
    const bool read = dr__offload_read(e, bench, job, status, err);
    job->as_stored = false;
    return read;
}
