/* py_shmpool.c: Shmpool: worker processes and the memory that they share with the process that trains
 * (drapps/shmpool.h). */
#include "py_shmpool.h"

#include <time.h>

#include "py_trace.h"

enum { SLICE_MS = 100 }; /* how long a call waits without looking for signals */

/* --- opening --- */

static PyObject *wrap_shmpool(core_state *state, dr_status status, dr_shmpool *shmpool, const dr_error *err)
{
    if (status != DR_OK)
        return raise_status(state, status, err);
    py_shmpool *self = core_new(state->shmpool_type);
    if (!self)
        dr_shmpool_unref(&shmpool);
    else
        self->shmpool = shmpool;
    return (PyObject *)self;
}

PyObject *core_shmpool_open(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "max_workers", "max_batches",  "address_space",  "keep_free", "in_order",
                             "lanes",       "max_attempts", "reorder_window", NULL };
    dr_shmpool_options o;
    dr_shmpool_defaults(&o);
    int in_order = o.in_order, lanes = o.lanes;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$iiO&O&ppii:open_shmpool", names, &o.max_workers, &o.max_batches,
                                     to_u64, &o.address_space, to_u64, &o.keep_free, &in_order, &lanes, &o.max_attempts,
                                     &o.reorder_window))
        return NULL;
    o.in_order = in_order;
    o.lanes = lanes;
    dr_shmpool *shmpool = NULL;
    dr_error err = { 0 };
    dr_status status = dr_shmpool_open(&o, &shmpool, &err);
    return wrap_shmpool(PyModule_GetState(module), status, shmpool, &err);
}

PyObject *core_shmpool_join(PyObject *module, PyObject *args)
{
    int fd;
    if (!PyArg_ParseTuple(args, "i:join_shmpool", &fd))
        return NULL;
    dr_shmpool *shmpool = NULL;
    dr_error err = { 0 };
    dr_status status = dr_shmpool_join(fd, &shmpool, &err);
    return wrap_shmpool(PyModule_GetState(module), status, shmpool, &err);
}

static void dealloc(PyObject *self)
{
    Py_CLEAR(((py_shmpool *)self)->kept);
    Py_CLEAR(((py_shmpool *)self)->trace);
    Py_CLEAR(((py_shmpool *)self)->posted);
    dr_shmpool_unref(&((py_shmpool *)self)->shmpool);
    core_free(self);
}

static PyObject *get_fd(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(dr_shmpool_fd(shmpool_of(self)));
}

/* --- waiting --- */

/* The part of the time left that a call may wait now; takes it off.  Negative times are for ever. */
static int next_slice(int *left_ms)
{
    int slice = *left_ms < 0 || *left_ms > SLICE_MS ? SLICE_MS : *left_ms;
    if (*left_ms > 0)
        *left_ms -= slice;
    return slice;
}

int core_shmpool_wait(wait_fn *call, struct waiting *w, int left_ms, dr_status *status)
{
    do {
        if (PyErr_CheckSignals() < 0)
            return -1;
        int slice_ms = next_slice(&left_ms);
        PyThreadState *gil = PyEval_SaveThread();
        *status = call(w, slice_ms);
        PyEval_RestoreThread(gil);
    } while (*status == DR_AGAIN && left_ms != 0);
    return *status == DR_AGAIN ? PyErr_CheckSignals() : 0;
}

/* --- the owner --- */

/* The predicted costs: None, or float32, one a slot. */
static int get_costs(PyObject *costs, uint32_t n_slots, Py_buffer *view, const float **out)
{
    *out = NULL;
    if (costs == Py_None)
        return 0;
    if (PyObject_GetBuffer(costs, view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) < 0)
        return -1;
    if (view->itemsize != 4 || !view->format || strcmp(view->format, "f") != 0 ||
        view->len != (Py_ssize_t)n_slots * 4) {
        PyErr_Format(PyExc_ValueError, "costs must be %u values of type f (float32), got %zd bytes of type %s",
                     (unsigned)n_slots, view->len, view->format ? view->format : "?");
        PyBuffer_Release(view);
        return -1;
    }
    *out = view->buf;
    return 0;
}

static PyObject *post(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "tag", "n_slots", "request", "costs", "worker", "min_claim_ns", "keep", NULL };
    dr_shmpool_post_options o = { .size = sizeof o, .worker = -1 };
    Py_buffer request, costs = { 0 };
    PyObject *cost_object = Py_None;
    unsigned n_slots, min_claim = 1000000;
    int keep = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&Iy*|OiIp:post", names, to_u64, &o.tag, &n_slots, &request,
                                     &cost_object, &o.worker, &min_claim, &keep))
        return NULL;
    o.n_slots = n_slots;
    o.request = request.buf;
    o.request_bytes = (size_t)request.len;
    o.min_claim_ns = min_claim;
    o.keep = keep;
    dr_error err = { 0 };
    dr_status status = DR_OK;
    int failed = get_costs(cost_object, o.n_slots, &costs, &o.cost_ns);
    if (!failed) {
        Py_BEGIN_ALLOW_THREADS status = dr_shmpool_post(shmpool_of(self), &o, &err);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&request);
    if (o.cost_ns)
        PyBuffer_Release(&costs);
    if (failed)
        return NULL;
    return status < 0 ? raise_status(state_of(self), status, &err) : PyBool_FromLong(status == DR_OK);
}

PyObject *core_shmpool_samples(core_state *state, dr_shmpool *shmpool, const dr_shmpool_sample *samples, uint32_t n,
                               int own)
{
    PyObject *list = PyList_New(n);
    int failed = 0;
    for (uint32_t i = 0; i < n; i++) {
        const dr_shmpool_sample *s = &samples[i];
        if (!list || failed) {
            dr_shmpool_block_release(shmpool, own ? s->block : 0);
            continue;
        }
        PyObject *const values[] = {
            PyLong_FromUnsignedLongLong(s->tag),
            PyLong_FromUnsignedLong(s->slot),
            PyLong_FromUnsignedLong(s->worker),
            PyLong_FromUnsignedLong(s->state),
            PyLong_FromUnsignedLong(s->attempts),
            PyLong_FromUnsignedLongLong(s->ns),
            core_block_wrap(state, shmpool, s->block, own),
            Py_NewRef(Py_None),
        };
        PyObject *row = core_named_tuple(state->sample_type, values, sizeof values / sizeof values[0]);
        if (row)
            PyList_SetItem(list, (Py_ssize_t)i, row);
        else
            failed = 1;
    }
    if (failed)
        Py_CLEAR(list);
    return list;
}

PyObject *core_named_tuple(PyObject *type, PyObject *const *values, Py_ssize_t n)
{
    PyObject *tuple = PyErr_Occurred() ? NULL : PyStructSequence_New((PyTypeObject *)type);
    for (Py_ssize_t i = 0; i < n; i++)
        if (tuple)
            PyStructSequence_SetItem(tuple, i, values[i]);
        else
            Py_XDECREF(values[i]);
    return tuple;
}

/* --- the trace of what was taken --- */

static dr_trace *trace_of(const py_shmpool *self)
{
    return self->trace ? ((py_trace *)self->trace)->trace : NULL;
}

/* What the caller asked for under that tag, of that slot: borrowed, or NULL. */
static PyObject *index_of(const py_shmpool *self, uint64_t tag, uint32_t slot)
{
    PyObject *key = self->posted ? PyLong_FromUnsignedLongLong(tag) : NULL;
    PyObject *indices = key ? PyDict_GetItemWithError(self->posted, key) : NULL;
    Py_XDECREF(key);
    return indices && PyList_Check(indices) && slot < PyList_Size(indices) ? PyList_GetItem(indices, slot) : NULL;
}

/* A number is the sample's id or position, anything else its name. */
static void name_span(const py_shmpool *self, PyObject *index, dr_span *span)
{
    if (PyLong_Check(index)) {
        const unsigned long long number = PyLong_AsUnsignedLongLong(index);
        *(self->posted_are_ids ? &span->id : &span->position) = PyErr_Occurred() ? 0 : number;
        return;
    }
    PyObject *text = PyObject_Str(index), *bytes = text ? PyUnicode_AsUTF8String(text) : NULL;
    if (bytes)
        copy_span_key(PyBytes_AsString(bytes), span->key);
    Py_XDECREF(bytes);
    Py_XDECREF(text);
}

/* Naming a sample may run Python code, and the trace may be closed meanwhile. */
static void trace_samples(const py_shmpool *self, const dr_shmpool_result *r)
{
    for (uint32_t i = 0; i < r->n_samples; i++) {
        const dr_shmpool_sample *s = &r->samples[i];
        dr_span span = { .kind = DR_SPAN_WORK,
                         .begin_ns = s->end_ns - s->ns,
                         .end_ns = s->end_ns,
                         .thread = s->worker + 1,
                         .epoch = self->epoch,
                         .batch = r->tag, /* where it went, which need not be where it was posted */
                         .slot = i };
        if (s->end_ns < s->ns || !s->ns)
            continue;
        PyObject *index = Py_XNewRef(index_of(self, s->tag, s->slot));
        if (index)
            name_span(self, index, &span);
        Py_XDECREF(index);
        if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
            PyErr_SetInterrupt(); /* comes again when the result is safe */
        PyErr_Clear();            /* a span without a name is one, too */
        if (trace_of(self))
            dr_trace_span(trace_of(self), &span);
    }
}

/* Between asked_ns and now, the consumer waited for the result. */
static void trace_result(py_shmpool *self, const dr_shmpool_result *r, uint64_t asked_ns, uint64_t now)
{
    dr_trace *trace = trace_of(self);
    if (!trace)
        return;
    dr_span span = { .kind = DR_SPAN_STEP,
                     .begin_ns = self->left_ns,
                     .end_ns = asked_ns,
                     .epoch = self->epoch,
                     .batch = self->left_tag };
    if (self->left_ns)
        dr_trace_span(trace, &span);
    span = (dr_span){ .kind = DR_SPAN_WAIT,
                      .begin_ns = asked_ns,
                      .end_ns = now,
                      .epoch = self->epoch,
                      .batch = r->tag,
                      .slot = r->n_samples };
    dr_trace_span(trace, &span);
    span = (dr_span){ .kind = DR_SPAN_BATCH,
                      .begin_ns = r->opened_ns,
                      .end_ns = r->ready_ns,
                      .thread = r->worker + 1,
                      .epoch = self->epoch,
                      .batch = r->tag,
                      .slot = r->n_samples,
                      .bytes = r->head_bytes + dr_shmpool_block_bytes(self->shmpool, r->slab) };
    if (r->opened_ns && r->ready_ns >= r->opened_ns)
        dr_trace_span(trace, &span);
    trace_samples(self, r);
    self->asked_ns = 0;
    self->left_ns = now;
    self->left_tag = r->tag;
}

/* What the consumer does between two epochs is no step. */
static PyObject *set_epoch(PyObject *self, PyObject *args)
{
    py_shmpool *shmpool = (py_shmpool *)self;
    uint64_t epoch;
    if (!PyArg_ParseTuple(args, "O&:set_epoch", to_u64, &epoch))
        return NULL;
    shmpool->epoch = epoch;
    shmpool->left_ns = shmpool->asked_ns = 0;
    Py_RETURN_NONE;
}

static PyObject *set_trace(PyObject *self, PyObject *args)
{
    PyObject *trace, *posted = NULL;
    int are_ids = 1;
    py_shmpool *shmpool = (py_shmpool *)self;
    py_trace_arg arg = { .state = state_of(self) };
    if (!PyArg_ParseTuple(args, "O|O!p:set_trace", &trace, &PyDict_Type, &posted, &are_ids) ||
        !trace_or_none(trace, &arg))
        return NULL;
    PyObject *const old_trace = shmpool->trace, *const old_posted = shmpool->posted; /* their end may run other code */
    shmpool->trace = trace == Py_None ? NULL : Py_NewRef(trace);
    shmpool->posted = posted ? Py_NewRef(posted) : NULL;
    shmpool->posted_are_ids = are_ids;
    Py_XDECREF(old_trace);
    Py_XDECREF(old_posted);
    Py_RETURN_NONE;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* --- taking --- */

static PyObject *wrap_result(core_state *state, dr_shmpool *shmpool, const dr_shmpool_result *r)
{
    PyObject *const values[] = {
        PyLong_FromUnsignedLongLong(r->tag),
        PyLong_FromUnsignedLongLong(r->number),
        PyLong_FromUnsignedLong(r->n_samples),
        PyLong_FromUnsignedLong(r->worker),
        PyBool_FromLong(r->failed),
        core_block_wrap(state, shmpool, r->head, 1),
        PyLong_FromSize_t(r->head_bytes),
        core_block_wrap(state, shmpool, r->slab, 1),
        PyLong_FromUnsignedLongLong(r->opened_ns),
        PyLong_FromUnsignedLongLong(r->ready_ns),
        core_shmpool_samples(state, shmpool, r->samples, r->n_samples, 1),
    };
    dr_shmpool_block_release(shmpool, r->items);
    return core_named_tuple(state->result_type, values, sizeof values / sizeof values[0]);
}

static dr_status wait_next(struct waiting *w, int slice_ms)
{
    return dr_shmpool_next(w->shmpool, slice_ms, w->out, &w->err);
}

enum { READY, AGAIN, END }; /* what next() returns; as in process_pool.py */

/* Hands a result over that was just taken.  A signal that came meanwhile would be noticed when the call returns, and
 * the result would be lost with the exception; in the caller's list it is safe.  Where it cannot get there, it is kept
 * here for the next call.  Takes the result. */
static PyObject *give_result(py_shmpool *shmpool, PyObject *result, PyObject *box)
{
    if (!result)
        return NULL;
    if (PyList_Append(box, result) < 0) {
        shmpool->kept = result;
        return NULL;
    }
    Py_DECREF(result);
    return PyLong_FromLong(READY);
}

/* A consumer asks again and again, for a while each time: what it waits began with the first. */
static uint64_t asked_since(py_shmpool *shmpool)
{
    if (shmpool->trace && !shmpool->asked_ns)
        shmpool->asked_ns = now_ns();
    return shmpool->asked_ns;
}

static PyObject *next_result(PyObject *self, PyObject *args)
{
    int timeout_ms;
    PyObject *box;
    py_shmpool *shmpool = (py_shmpool *)self;
    if (!PyArg_ParseTuple(args, "iO!:next", &timeout_ms, &PyList_Type, &box))
        return NULL;
    if (shmpool->kept) {
        PyObject *kept = shmpool->kept;
        shmpool->kept = NULL;
        return give_result(shmpool, kept, box);
    }
    dr_shmpool_result result;
    struct waiting w = { .shmpool = shmpool->shmpool, .out = &result };
    dr_status status;
    const uint64_t asked_ns = asked_since(shmpool);
    if (core_shmpool_wait(wait_next, &w, timeout_ms, &status) < 0)
        return NULL;
    if (status < 0)
        return raise_status(state_of(self), status, &w.err);
    if (status != DR_OK)
        return PyLong_FromLong(status == DR_END ? END : AGAIN);
    if (shmpool->trace)
        trace_result(shmpool, &result, asked_ns, now_ns());
    return give_result(shmpool, wrap_result(state_of(self), shmpool->shmpool, &result), box);
}

static PyObject *post_end(PyObject *self, PyObject *unused)
{
    (void)unused;
    dr_shmpool_post_end(shmpool_of(self));
    Py_RETURN_NONE;
}

static PyObject *close_shmpool(PyObject *self, PyObject *unused)
{
    (void)unused;
    dr_shmpool_close(shmpool_of(self));
    Py_RETURN_NONE;
}

static PyObject *close_fd(PyObject *self, PyObject *unused)
{
    (void)unused;
    dr_shmpool_close_fd(shmpool_of(self));
    Py_RETURN_NONE;
}

static dr_status wait_clear(struct waiting *w, int slice_ms)
{
    return dr_shmpool_clear(w->shmpool, slice_ms, &w->err);
}

static PyObject *clear(PyObject *self, PyObject *args)
{
    int timeout_ms;
    if (!PyArg_ParseTuple(args, "i:clear", &timeout_ms))
        return NULL;
    Py_CLEAR(((py_shmpool *)self)->kept);
    struct waiting w = { .shmpool = shmpool_of(self) };
    dr_status status;
    if (core_shmpool_wait(wait_clear, &w, timeout_ms, &status) < 0)
        return NULL;
    return status < 0 ? raise_status(state_of(self), status, &w.err) : PyBool_FromLong(status == DR_OK);
}

static PyObject *set_window(PyObject *self, PyObject *args)
{
    unsigned batches;
    uint64_t bytes = UINT64_MAX;
    if (!PyArg_ParseTuple(args, "I|O&:set_window", &batches, to_u64, &bytes))
        return NULL;
    dr_shmpool_set_window(shmpool_of(self), batches, bytes);
    Py_RETURN_NONE;
}

static PyObject *set_ceiling(PyObject *self, PyObject *args)
{
    double cpus;
    dr_error err = { 0 };
    if (!PyArg_ParseTuple(args, "d:set_ceiling", &cpus))
        return NULL;
    dr_status status = dr_shmpool_set_ceiling(shmpool_of(self), cpus, &err);
    return status == DR_OK ? Py_NewRef(Py_None) : raise_status(state_of(self), status, &err);
}

static PyObject *expect(PyObject *self, PyObject *args)
{
    uint64_t median_ns;
    if (!PyArg_ParseTuple(args, "O&:expect", to_u64, &median_ns))
        return NULL;
    dr_shmpool_expect(shmpool_of(self), median_ns);
    Py_RETURN_NONE;
}

static PyObject *stats(PyObject *self, PyObject *unused)
{
    (void)unused;
    char *text = NULL;
    dr_error err = { 0 };
    dr_status status = dr_shmpool_stats(shmpool_of(self), &text, &err);
    if (status != DR_OK)
        return raise_status(state_of(self), status, &err);
    PyObject *string = take_text(text), *json = PyImport_ImportModule("json");
    PyObject *dict = string && json ? PyObject_CallMethod(json, "loads", "O", string) : NULL;
    Py_XDECREF(string);
    Py_XDECREF(json);
    return dict;
}

static PyObject *flow(PyObject *self, PyObject *unused)
{
    static const char *const names[] = {
#define ROW(id, name, kind, unit, doc) name,
        DR_FLOW_MAP(ROW)
#undef ROW
    };
    (void)unused;
    double values[DR_N_FLOWS] = { 0 };
    dr_shmpool_flow(shmpool_of(self), values);
    PyObject *dict = PyDict_New();
    for (int i = 0; dict && i < DR_N_FLOWS; i++) {
        PyObject *value = PyFloat_FromDouble(values[i]);
        if (!value || PyDict_SetItemString(dict, names[i], value) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

/* --- the types --- */

static PyStructSequence_Field result_fields[] = {
    { "tag", NULL },       { "number", NULL },   { "n_samples", NULL },  { "worker", NULL },
    { "failed", NULL },    { "head", NULL },     { "head_bytes", NULL }, { "slab", NULL },
    { "opened_ns", NULL }, { "ready_ns", NULL }, { "samples", NULL },    { NULL, NULL },
};

PyStructSequence_Desc core_result_desc = { "drapps._core.Result", "A batch that a shmpool made.", result_fields, 11 };

static PyStructSequence_Field claim_fields[] = {
    { "kind", NULL },  { "batch", NULL },   { "tag", NULL },  { "first", NULL },   { "n", NULL },  { "n_slots", NULL },
    { "whole", NULL }, { "request", NULL }, { "slab", NULL }, { "samples", NULL }, { NULL, NULL },
};

PyStructSequence_Desc core_claim_desc = { "drapps._core.Claim", "What a worker is to do.", claim_fields, 10 };

static PyStructSequence_Field sample_fields[] = {
    { "tag", NULL },      { "slot", NULL }, { "worker", NULL }, { "state", NULL },
    { "attempts", NULL }, { "ns", NULL },   { "block", NULL },  { "error", "None here; set where the block is read." },
    { NULL, NULL },
};

PyStructSequence_Desc core_sample_desc = { "drapps._core.Sample", "What became of one sample.", sample_fields, 8 };

static PyStructSequence_Field placement_fields[] = { { "slot", NULL }, { "slab", NULL }, { NULL, NULL } };

PyStructSequence_Desc core_placement_desc = { "drapps._core.Placement",
                                              "The slot of a sample in the slab of its batch.", placement_fields, 2 };

static PyStructSequence_Field worker_state_fields[] = {
    { "pid", NULL },    { "kind", NULL },    { "tag", NULL },     { "slot", NULL }, { "since_ns", NULL },
    { "claims", NULL }, { "samples", NULL }, { "busy_ns", NULL }, { NULL, NULL },
};

PyStructSequence_Desc core_worker_state_desc = { "drapps._core.WorkerState", "What a worker does now, and its totals.",
                                                 worker_state_fields, 8 };

static PyStructSequence_Field slot_fields[] = { { "tag", NULL }, { "slot", NULL }, { NULL, NULL } };

PyStructSequence_Desc core_slot_desc = { "drapps._core.Slot", "A slot of a batch.", slot_fields, 2 };

static PyStructSequence_Field blocked_time_fields[] = { { "where", NULL }, { "seconds", NULL }, { NULL, NULL } };

PyStructSequence_Desc core_blocked_time_desc = { "drapps._core.BlockedTime", "Time that workers waited in a function.",
                                                 blocked_time_fields, 2 };

static PyObject *waited(PyObject *self, PyObject *args)
{
    const char *where;
    unsigned long long ns;
    if (!PyArg_ParseTuple(args, "sK", &where, &ns))
        return NULL;
    dr_shmpool_waited(shmpool_of(self), where, ns);
    Py_RETURN_NONE;
}

static PyObject *waits(PyObject *self, PyObject *unused)
{
    (void)unused;
    dr_shmpool_blocked_time places[DR_SHMPOOL_MAX_WAITS];
    const size_t n = dr_shmpool_waits(shmpool_of(self), places);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *const values[] = { PyUnicode_FromString(places[i].where),
                                     PyFloat_FromDouble((double)places[i].ns * 1e-9) };
        PyObject *row = core_named_tuple(state_of(self)->blocked_time_type, values, 2);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyMethodDef methods[] = {
    { "post", (PyCFunction)(void (*)(void))post, METH_VARARGS | METH_KEYWORDS,
      "post(tag, n_slots, request, costs=None, worker=-1, min_claim_ns=1000000, keep=False): False when it is full" },
    { "post_end", post_end, METH_NOARGS, "The epoch's posts are complete." },
    { "next", next_result, METH_VARARGS,
      "next(timeout_ms, box): 0 when a Result was appended to the list, 1 after that time, 2 when all posted batches "
      "were taken" },
    { "clear", clear, METH_VARARGS, "clear(timeout_ms): gives up what is posted; False: a worker is still at it" },
    { "close", close_shmpool, METH_NOARGS, "Every worker is to leave." },
    { "close_fd", close_fd, METH_NOARGS, "Closes the descriptor; the memory stays." },
    { "set_window", set_window, METH_VARARGS, "set_window(batches, bytes=as it is)" },
    { "set_ceiling", set_ceiling, METH_VARARGS, "set_ceiling(cpus): that the workers may use together; 0: no ceiling" },
    { "expect", expect, METH_VARARGS, "expect(median_ns): what samples take, known from earlier" },
    { "stats", stats, METH_NOARGS, "Counters." },
    { "set_epoch", set_epoch, METH_VARARGS, "set_epoch(number): of what is posted from now on, for the trace" },
    { "set_trace", set_trace, METH_VARARGS,
      "set_trace(writer or None, posted={}, are_ids=True): gets spans of what next() takes; posted: {tag: [index of "
      "each slot]}, ids of samples, or else positions" },
    { "flow", flow, METH_NOARGS, "What it did and where it stands: {name of drapps.sched.flows(): number}" },
    { "waited", waited, METH_VARARGS, "waited(where, ns): a worker's code was blocked in that function" },
    { "waits", waits, METH_NOARGS, "A list of BlockedTime, the longest first." },
    { "attach", core_shmpool_attach, METH_VARARGS, "attach(worker, pid)" },
    { "claim", core_shmpool_claim_next, METH_VARARGS, "claim(worker, timeout_ms): Claim or None" },
    { "begin", core_shmpool_begin, METH_VARARGS, "begin(worker, i)" },
    { "place", core_shmpool_place, METH_VARARGS, "place(worker, i, slab_bytes): Placement" },
    { "done", core_shmpool_done, METH_VARARGS,
      "done(worker, i, n, block, bad): None, or the Claim of a batch to finish" },
    { "finish", core_shmpool_finish_batch, METH_VARARGS, "finish(worker, batch, block, head_bytes, failed)" },
    { "block", core_shmpool_block, METH_VARARGS, "block(worker, nbytes): Block" },
    { "worker_at", core_shmpool_worker_at, METH_VARARGS, "worker_at(worker): WorkerState" },
    { "reap", core_shmpool_reap, METH_VARARGS, "reap(worker): a list of the Slots that other workers make again" },
    { "give_up", core_shmpool_give_up, METH_VARARGS, "give_up(worker)" },
    { "dismiss", core_shmpool_dismiss, METH_VARARGS, "dismiss(worker)" },
    { 0 },
};

static PyGetSetDef getters[] = {
    { "fd", get_fd, NULL, "The descriptor of the memory.", NULL },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_dealloc, dealloc },
    { Py_tp_methods, methods },
    { Py_tp_getset, getters },
    { Py_tp_doc, "Worker processes that make batches in shared memory." },
    { 0, NULL },
};

PyType_Spec core_shmpool_spec = {
    .name = "drapps._core.Shmpool",
    .basicsize = sizeof(py_shmpool),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
