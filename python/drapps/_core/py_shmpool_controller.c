/* py_shmpool_controller.c: ShmpoolController: who turns the knobs of worker processes (drapps/shmpool_controller.h). */
#include "py_shmpool.h"
#include "py_sched.h"
#include "py_trace.h"

enum { MOST_DECISIONS = 64 };

typedef struct py_controller {
    PyObject_HEAD dr_shmpool_controller *controller;
    PyObject *trace; /* kept while the controller writes into it */
} py_controller;

static dr_shmpool_controller *controller_of(PyObject *self)
{
    return ((py_controller *)self)->controller;
}

/* --- opening --- */

static int take_monitor(core_state *state, PyObject *object, dr_monitor **out)
{
    dr_error err = { .status = DR_ERR_STATE, .text = "resource_monitor: it is closed" };
    if (object == Py_None)
        return 0;
    if (!PyObject_TypeCheck(object, (PyTypeObject *)state->monitor_type)) {
        PyErr_Format(PyExc_TypeError, "resource_monitor must be a drapps.Monitor or None, got %R", object);
        return -1;
    }
    *out = ((py_monitor *)object)->monitor;
    return *out ? 0 : (raise_status(state, DR_ERR_STATE, &err), -1);
}

static int knob_of(core_state *state, const char *name)
{
    const int knob = dr_knob_find(name);
    dr_error err = { .status = DR_ERR_NOT_FOUND };
    if (knob < 0) {
        PyOS_snprintf(err.text, sizeof err.text, "no knob is called \"%s\"; drapps.knobs() has them", name);
        raise_status(state, DR_ERR_NOT_FOUND, &err);
    }
    return knob;
}

static int take_pinned(core_state *state, PyObject *names, uint32_t *out)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(names); i++) {
        PyObject *bytes = PyUnicode_AsUTF8String(PyTuple_GetItem(names, i));
        const int knob = bytes ? knob_of(state, PyBytes_AsString(bytes)) : -1;
        Py_XDECREF(bytes);
        if (knob < 0)
            return -1;
        *out |= 1u << knob;
    }
    return 0;
}

static PyObject *open_controller(core_state *state, PyObject *shmpool, const dr_shmpool_adapt_options *o,
                                 PyObject *trace)
{
    py_controller *self = core_new(state->shmpool_controller_type);
    if (!self)
        return NULL;
    dr_error err = { 0 };
    dr_status status;
    Py_BEGIN_ALLOW_THREADS status = dr_shmpool_adapt(shmpool_of(shmpool), o, &self->controller, &err);
    Py_END_ALLOW_THREADS self->trace = Py_NewRef(trace);
    if (status == DR_OK)
        return (PyObject *)self;
    Py_DECREF(self);
    return raise_status(state, status, &err);
}

PyObject *core_shmpool_adapt(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "shmpool",  "policy",       "weights",      "name",    "monitor",
                             "trace",    "cpu_limit",    "memory_limit", "pinned",  "workers",
                             "prefetch", "most_workers", "period_ms",    "decided", NULL };
    core_state *state = PyModule_GetState(module);
    PyObject *shmpool, *monitor = Py_None, *trace = Py_None, *pinned = NULL;
    py_trace_arg trace_arg = { .state = state };
    dr_shmpool_adapt_options o;
    dr_shmpool_adapt_defaults(&o);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|$O&O&O&OOdO&O!dddiO&:adapt_shmpool", names, state->shmpool_type,
                                     &shmpool, text_or_none, &o.policy, text_or_none, &o.weights, text_or_none, &o.name,
                                     &monitor, &trace, &o.cpu_limit, to_u64, &o.memory_limit, &PyTuple_Type, &pinned,
                                     &o.workers, &o.prefetch, &o.most_workers, &o.period_ms, to_u64, &o.decided))
        return NULL;
    if (!trace_or_none(trace, &trace_arg) || take_monitor(state, monitor, &o.monitor) < 0)
        return NULL;
    if (pinned && take_pinned(state, pinned, &o.pinned) < 0)
        return NULL;
    o.trace = trace_arg.trace;
    return open_controller(state, shmpool, &o, trace);
}

PyObject *core_parse_weights(PyObject *module, PyObject *args)
{
    static const char *const names[] = {
#define ROW(id, name, doc) name,
        DR_TERM_MAP(ROW)
#undef ROW
    };
    const char *text;
    dr_weights_schedule weights;
    dr_error err = { 0 };
    if (!PyArg_ParseTuple(args, "s:parse_weights", &text))
        return NULL;
    if (dr_weights_schedule_parse(text, &weights, &err) != DR_OK)
        return raise_status(PyModule_GetState(module), DR_ERR_ARG, &err);
    PyObject *dict = PyDict_New();
    for (int i = 0; dict && i < DR_N_TERMS; i++) {
        PyObject *value = PyFloat_FromDouble(weights.otherwise.of[i]);
        if (!value || PyDict_SetItemString(dict, names[i], value) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

/* --- methods --- */

static PyObject *wait_proposal(PyObject *self, PyObject *args)
{
    dr_shmpool_proposal proposal = { 0 };
    unsigned long long number;
    int timeout_ms;
    if (!PyArg_ParseTuple(args, "Ki:wait_proposal", &number, &timeout_ms))
        return NULL;
    proposal.number = number;
    dr_status status;
    Py_BEGIN_ALLOW_THREADS status = dr_shmpool_controller_wait(controller_of(self), timeout_ms, &proposal);
    Py_END_ALLOW_THREADS if (status == DR_END)
    {
        PyErr_SetNone(PyExc_StopIteration);
        return NULL;
    }
    if (status == DR_AGAIN)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(proposal.number);
}

static PyObject *get(PyObject *self, PyObject *args)
{
    const char *name;
    if (!PyArg_ParseTuple(args, "s:get", &name))
        return NULL;
    const int knob = knob_of(state_of(self), name);
    return knob < 0 ? NULL : py_knob_value(knob, dr_shmpool_controller_get(controller_of(self), knob));
}

static PyObject *set(PyObject *self, PyObject *args)
{
    const char *name;
    double value;
    dr_error err = { 0 };
    if (!PyArg_ParseTuple(args, "sd:set", &name, &value))
        return NULL;
    const int knob = knob_of(state_of(self), name);
    if (knob < 0)
        return NULL;
    dr_status status = dr_shmpool_controller_set(controller_of(self), knob, value, &err);
    return status == DR_OK ? Py_NewRef(Py_None) : raise_status(state_of(self), status, &err);
}

static PyObject *watch(PyObject *self, PyObject *args)
{
    int pid;
    if (!PyArg_ParseTuple(args, "i:watch", &pid))
        return NULL;
    dr_shmpool_controller_watch(controller_of(self), pid);
    Py_RETURN_NONE;
}

static PyObject *hold(PyObject *self, PyObject *args)
{
    int held;
    if (!PyArg_ParseTuple(args, "p:hold", &held))
        return NULL;
    dr_shmpool_controller_hold(controller_of(self), held);
    Py_RETURN_NONE;
}

static PyObject *set_weights(PyObject *self, PyObject *args)
{
    const char *weights;
    dr_error err = { 0 };
    if (!PyArg_ParseTuple(args, "O&:set_weights", text_or_none, &weights))
        return NULL;
    dr_status status = dr_shmpool_controller_set_weights(controller_of(self), weights, &err);
    return status == DR_OK ? Py_NewRef(Py_None) : raise_status(state_of(self), status, &err);
}

static PyObject *pause_controller(PyObject *self, PyObject *args)
{
    int paused;
    if (!PyArg_ParseTuple(args, "p:pause", &paused))
        return NULL;
    dr_shmpool_controller_pause(controller_of(self), paused);
    Py_RETURN_NONE;
}

static PyObject *decisions(PyObject *self, PyObject *args)
{
    unsigned long long after = 0;
    if (!PyArg_ParseTuple(args, "|K:decisions", &after))
        return NULL;
    dr_decision *found = PyMem_Calloc(MOST_DECISIONS, sizeof *found);
    if (!found)
        return PyErr_NoMemory();
    PyObject *list =
        py_decisions(found, dr_shmpool_controller_decisions(controller_of(self), after, found, MOST_DECISIONS));
    PyMem_Free(found);
    return list;
}

/* Waits for the monitor's thread to end its tick. */
static PyObject *stop(PyObject *self, PyObject *unused)
{
    (void)unused;
    Py_BEGIN_ALLOW_THREADS dr_shmpool_controller_stop(controller_of(self));
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static void dealloc(PyObject *self)
{
    py_controller *p = (py_controller *)self;
    Py_BEGIN_ALLOW_THREADS dr_shmpool_controller_close(&p->controller);
    Py_END_ALLOW_THREADS Py_CLEAR(p->trace);
    core_free(self);
}

static PyMethodDef methods[] = {
    { "wait_proposal", wait_proposal, METH_VARARGS,
      "wait_proposal(number, timeout_ms): the number of a later proposal, or None after that time; get() has its "
      "values.  Raises StopIteration when the controller is stopped" },
    { "get", get, METH_VARARGS, "get(knob)" },
    { "set", set, METH_VARARGS, "set(knob, value): the user's, from then on" },
    { "watch", watch, METH_VARARGS, "watch(pid): counts as own" },
    { "hold", hold, METH_VARARGS, "hold(held): no pass runs" },
    { "set_weights", set_weights, METH_VARARGS, "set_weights(text): what the policy aims for from then on" },
    { "pause", pause_controller, METH_VARARGS, "pause(paused): the consumer does something else" },
    { "decisions", decisions, METH_VARARGS, "decisions(after=0): as tuples" },
    { "stop", stop, METH_NOARGS, "Nothing is turned any more." },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_dealloc, dealloc },
    { Py_tp_methods, methods },
    { Py_tp_doc, "Who turns the knobs of worker processes." },
    { 0, NULL },
};

PyType_Spec core_shmpool_controller_spec = {
    .name = "drapps._core.ShmpoolController",
    .basicsize = sizeof(py_controller),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
