/* py_trace.c: TraceWriter: a trace that Python writes into, alone or together with a controller.
 *
 * A snapshot, a decision and a span come as the tuples that TraceReader gives.
 */
#include "py_trace.h"

#include "py_sched.h"

static dr_trace *opened(PyObject *self)
{
    dr_trace *trace = ((py_trace *)self)->trace;
    dr_error err = { .status = DR_ERR_STATE, .text = "the trace is closed" };
    if (!trace)
        raise_status(state_of(self), DR_ERR_STATE, &err);
    return trace;
}

int trace_or_none(PyObject *object, void *out)
{
    py_trace_arg *arg = out;
    arg->trace = NULL;
    if (object == Py_None)
        return 1;
    if (!PyObject_TypeCheck(object, (PyTypeObject *)arg->state->trace_type)) {
        PyErr_Format(PyExc_TypeError, "trace must be a TraceWriter or None, got %R", object);
        return 0;
    }
    arg->trace = opened(object);
    return arg->trace != NULL;
}

/* None where neither a path is given nor the environment has one. */
PyObject *core_trace_open(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "path", "meta", "max_bytes", "spans_per_s", NULL };
    core_state *state = PyModule_GetState(module);
    const char *path, *meta = "{}";
    dr_trace_options o;
    dr_trace_defaults(&o);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|sO&d:open_trace", names, text_or_none, &path, &meta, to_u64,
                                     &o.max_bytes, &o.spans_per_s))
        return NULL;
    py_trace *self = core_new(state->trace_type);
    if (!self)
        return NULL;
    dr_error err = { 0 };
    dr_status status = dr_trace_open(path, meta, &o, &self->trace, &err);
    if (status == DR_OK && self->trace)
        return (PyObject *)self;
    Py_DECREF(self);
    return status == DR_OK ? Py_NewRef(Py_None) : raise_status(state, status, &err);
}

/* --- records --- */

static int span_kind(const char *name)
{
    static const char *const names[] = {
#define ROW(id, name, doc) name,
        DR_SPAN_MAP(ROW)
#undef ROW
    };
    for (int i = 0; i < DR_N_SPANS; i++)
        if (!strcmp(names[i], name))
            return i;
    PyErr_Format(PyExc_ValueError, "kind must be read, work, finish, batch, wait or step, got '%s'", name);
    return -1;
}

void copy_span_key(const char *key, char out[64])
{
    const size_t n = strlen(key), skip = n > 63 ? n - 63 : 0;
    memcpy(out, key + skip, n - skip + 1);
}

static PyObject *put_span(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "kind",  "begin_ns", "end_ns", "thread", "epoch", "batch",  "position", "id",
                             "bytes", "cost",     "slow",   "key",    "slot",  "cpu_ns", NULL };
    dr_trace *trace = opened(self);
    const char *kind, *key = "";
    int slow = 0;
    dr_span s = { 0 };
    if (!trace || !PyArg_ParseTupleAndKeywords(args, kwargs, "sO&O&|iO&O&O&O&O&fpsO&O&:span", names, &kind, to_u64,
                                               &s.begin_ns, to_u64, &s.end_ns, &s.thread, to_u64, &s.epoch, to_u64,
                                               &s.batch, to_u64, &s.position, to_u64, &s.id, to_u64, &s.bytes, &s.cost,
                                               &slow, &key, to_u64, &s.slot, to_u64, &s.cpu_ns))
        return NULL;
    s.kind = span_kind(kind);
    if (s.kind < 0)
        return NULL;
    s.slow = slow;
    copy_span_key(key, s.key);
    dr_trace_span(trace, &s);
    Py_RETURN_NONE;
}

static PyObject *put_text(PyObject *self, PyObject *args)
{
    dr_trace *trace = opened(self);
    uint64_t time_ns;
    const char *json;
    if (!trace || !PyArg_ParseTuple(args, "O&s:text", to_u64, &time_ns, &json))
        return NULL;
    dr_trace_text(trace, time_ns, json);
    Py_RETURN_NONE;
}

/* Numbers of a dict by names; false: a value that is none. */
static int by_name(PyObject *dict, const char *name, double *out)
{
    PyObject *value = PyDict_GetItemString(dict, name);
    *out = value ? PyFloat_AsDouble(value) : 0;
    return !PyErr_Occurred();
}

static PyObject *put_flow(PyObject *self, PyObject *args)
{
    static const char *const names[] = {
#define ROW(id, name, kind, unit, doc) name,
        DR_FLOW_MAP(ROW)
#undef ROW
    };
    dr_trace *trace = opened(self);
    uint64_t time_ns;
    PyObject *dict;
    double flow[DR_N_FLOWS];
    if (!trace || !PyArg_ParseTuple(args, "O&O!:flow", to_u64, &time_ns, &PyDict_Type, &dict))
        return NULL;
    for (int i = 0; i < DR_N_FLOWS; i++)
        if (!by_name(dict, names[i], &flow[i]))
            return NULL;
    dr_trace_flow(trace, time_ns, flow, DR_N_FLOWS);
    Py_RETURN_NONE;
}

static PyObject *put_snapshot(PyObject *self, PyObject *facts)
{
    dr_trace *trace = opened(self);
    dr_snapshot s = { 0 };
    if (!trace || core_snapshot_unwrap(facts, &s) < 0)
        return NULL;
    dr_trace_snapshot(trace, &s);
    Py_RETURN_NONE;
}

static int read_pairs(PyObject *dict, const char *name, double *first, double *second)
{
    PyObject *pair = PyDict_GetItemString(dict, name);
    return pair ? PyArg_ParseTuple(pair, "dd", first, second) ? 1 : -1 : 0;
}

static int read_decision(PyObject *facts, dr_decision *d)
{
    static const char *const terms[] = {
#define ROW(id, name, doc) name,
        DR_TERM_MAP(ROW)
#undef ROW
    };
    PyObject *changes, *values, *weights;
    const char *bound, *reason;
    int guarded;
    if (!PyArg_ParseTuple(facts, "O&O&sO!dO!O!ps:decision", to_u64, &d->number, to_u64, &d->time_ns, &bound,
                          &PyDict_Type, &changes, &d->reward, &PyDict_Type, &values, &PyDict_Type, &weights, &guarded,
                          &reason))
        return -1;
    for (int i = 0; i < DR_N_KNOBS; i++) {
        const int found = read_pairs(changes, dr_knob_name(i), &d->before[i], &d->after[i]);
        if (found < 0)
            return -1;
        d->changed |= (uint32_t)found << i;
    }
    for (int i = 0; i < DR_N_TERMS; i++)
        if (!by_name(values, terms[i], &d->term[i]) || !by_name(weights, terms[i], &d->weight[i]))
            return -1;
    for (int i = 0; i < DR_N_BOUNDS; i++)
        if (!strcmp(dr_bound_name(i), bound))
            d->bound = i;
    d->guarded = guarded;
    PyOS_snprintf(d->reason, sizeof d->reason, "%s", reason);
    return 0;
}

static PyObject *put_decision(PyObject *self, PyObject *facts)
{
    dr_trace *trace = opened(self);
    dr_decision d = { 0 };
    if (!trace || read_decision(facts, &d) < 0)
        return NULL;
    dr_trace_decision(trace, &d);
    Py_RETURN_NONE;
}

/* --- state and end --- */

/* As the statistics of a native loader say it. */
static PyObject *told_status(PyObject *self, PyObject *unused)
{
    (void)unused;
    dr_trace *trace = opened(self);
    dr_error err = { 0 };
    if (!trace)
        return NULL;
    const dr_status status = dr_trace_status(trace, &err);
    PyObject *error =
        status < 0 ? PyUnicode_DecodeUTF8(err.text, (Py_ssize_t)strlen(err.text), "replace") : Py_NewRef(Py_None);
    return Py_BuildValue("{s:N,s:s,s:N}", "path", PyUnicode_DecodeFSDefault(dr_trace_path(trace)), "state",
                         status == DR_OK    ? "writing"
                         : status == DR_END ? "limit"
                                            : "failed",
                         "error", error);
}

static PyObject *close_trace(PyObject *self, PyObject *unused)
{
    (void)unused;
    dr_trace *trace = ((py_trace *)self)->trace;
    ((py_trace *)self)->trace = NULL;
    Py_BEGIN_ALLOW_THREADS dr_trace_close(&trace);
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static PyObject *get_path(PyObject *self, void *unused)
{
    (void)unused;
    dr_trace *trace = opened(self);
    return trace ? PyUnicode_DecodeFSDefault(dr_trace_path(trace)) : NULL;
}

static void dealloc(PyObject *self)
{
    dr_trace_close(&((py_trace *)self)->trace);
    core_free(self);
}

static PyMethodDef methods[] = {
    { "span", (PyCFunction)(void (*)(void))put_span, METH_VARARGS | METH_KEYWORDS,
      "span(kind, begin_ns, end_ns, thread=0, epoch=0, batch=0, position=0, id=0, bytes=0, cost=0, slow=False, key='', "
      "slot=0, cpu_ns=0)" },
    { "text", put_text, METH_VARARGS, "text(time_ns, json): an event, as a JSON object" },
    { "flow", put_flow, METH_VARARGS, "flow(time_ns, {name: value})" },
    { "snapshot", put_snapshot, METH_O, "snapshot(facts): as a Monitor gives them" },
    { "decision", put_decision, METH_O, "decision(facts): as drapps.sched.Decision.of takes them" },
    { "status", told_status, METH_NOARGS, "status(): {path, state, error}, as stats()[\"trace\"] of a loader" },
    { "close", close_trace, METH_NOARGS, "close(): write what is left" },
    { 0 },
};

static PyGetSetDef members[] = {
    { "path", get_path, NULL, "The file.", NULL },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_dealloc, dealloc },
    { Py_tp_methods, methods },
    { Py_tp_getset, members },
    { Py_tp_doc, "A trace that is being written." },
    { 0, NULL },
};

PyType_Spec core_trace_spec = {
    .name = "drapps._core.TraceWriter",
    .basicsize = sizeof(py_trace),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
