/* py_trace_reader.c: TraceReader: the records of a trace as tuples, the first item of which says the kind.
 *
 *   ("meta", time_ns, text)
 *   ("snapshot", facts)                 facts: see py_monitor.c
 *   ("flow", time_ns, {name: value})
 *   ("decision", facts, knobs, reward)  facts: see py_sched.h; {name: value} after it; the reward computed anew
 *   ("span", kind, begin_ns, end_ns, thread, epoch, batch, position, id, bytes, cost, slow, key, slot, cpu_ns)
 *   ("text", time_ns, text)
 */
#include "py_core.h"
#include "py_sched.h"

typedef struct py_reader {
    PyObject_HEAD dr_trace_reader *reader;
} py_reader;

PyObject *core_trace_reader_open(PyObject *module, PyObject *args)
{
    core_state *state = PyModule_GetState(module);
    const char *path;
    if (!PyArg_ParseTuple(args, "s:open_trace_reader", &path))
        return NULL;
    py_reader *self = core_new(state->trace_reader_type);
    if (!self)
        return NULL;
    dr_error err = { 0 };
    dr_status status = dr_trace_open_reader(path, &self->reader, &err);
    if (status == DR_OK)
        return (PyObject *)self;
    Py_DECREF(self);
    return raise_open_status(state, status, &err);
}

static PyObject *text_of(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

static PyObject *named(const char *const *names, const double *numbers, int n)
{
    PyObject *dict = PyDict_New();
    for (int i = 0; dict && i < n; i++) {
        PyObject *number = PyFloat_FromDouble(numbers[i]);
        if (!number || PyDict_SetItemString(dict, names[i], number) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(number);
    }
    return dict;
}

static PyObject *flow_of(const dr_trace_record *r)
{
    static const char *const names[] = {
#define ROW(id, name, kind, unit, doc) name,
        DR_FLOW_MAP(ROW)
#undef ROW
    };
    return Py_BuildValue("(sKN)", "flow", (unsigned long long)r->time_ns, named(names, r->flow, DR_N_FLOWS));
}

static PyObject *decision_of(const dr_decision *d)
{
    static const char *const names[] = {
#define ROW(id, name, unit, least, most, cooldown, doc) name,
        DR_KNOB_MAP(ROW)
#undef ROW
    };
    return Py_BuildValue("(sNNd)", "decision", py_decision(d), named(names, d->after, DR_N_KNOBS),
                         dr_decision_reward(d));
}

static PyObject *span_of(const dr_span *s)
{
    static const char *const names[] = {
#define ROW(id, name, doc) name,
        DR_SPAN_MAP(ROW)
#undef ROW
    };
    return Py_BuildValue("(ssKKiKKKKKfNNKK)", "span", names[s->kind], (unsigned long long)s->begin_ns,
                         (unsigned long long)s->end_ns, s->thread, (unsigned long long)s->epoch,
                         (unsigned long long)s->batch, (unsigned long long)s->position, (unsigned long long)s->id,
                         (unsigned long long)s->bytes, s->cost, PyBool_FromLong(s->slow), text_of(s->key),
                         (unsigned long long)s->slot, (unsigned long long)s->cpu_ns);
}

static PyObject *wrap(const dr_trace_record *r)
{
    switch (r->kind) {
    case DR_TRACE_SNAPSHOT:
        return Py_BuildValue("(sN)", "snapshot", core_snapshot_wrap(r->snapshot));
    case DR_TRACE_FLOW:
        return flow_of(r);
    case DR_TRACE_DECISION:
        return decision_of(r->decision);
    case DR_TRACE_SPAN:
        return span_of(r->span);
    default:
        return Py_BuildValue("(sKN)", r->kind == DR_TRACE_META ? "meta" : "text", (unsigned long long)r->time_ns,
                             text_of(r->text));
    }
}

static PyObject *next_record(PyObject *self)
{
    dr_trace_record r;
    dr_error err = { 0 };
    dr_status status = dr_trace_next(((py_reader *)self)->reader, &r, &err);
    if (status == DR_OK)
        return wrap(&r);
    return status == DR_END ? NULL : raise_status(state_of(self), status, &err);
}

static void dealloc(PyObject *self)
{
    dr_trace_close_reader(&((py_reader *)self)->reader);
    core_free(self);
}

static PyType_Slot slots[] = {
    { Py_tp_dealloc, dealloc },
    { Py_tp_iter, PyObject_SelfIter },
    { Py_tp_iternext, next_record },
    { Py_tp_doc, "The records of a trace; use drapps.trace.read." },
    { 0, NULL },
};

PyType_Spec core_trace_reader_spec = {
    .name = "drapps._core.TraceReader",
    .basicsize = sizeof(py_reader),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
