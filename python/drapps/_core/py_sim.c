/* py_sim.c: Sim: one simulated loader (drapps/sim.h). */
#include "py_sched.h"

PyObject *core_sim_json(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    const char *text = dr_sim_json();
    return text ? PyUnicode_FromString(text) : PyErr_NoMemory();
}

typedef struct py_sim {
    PyObject_HEAD dr_sim *sim;
    int busy; /* protected by the GIL: one thread at a time */
} py_sim;

static int parse_options(PyObject *args, dr_sim_options *o, const char *format)
{
    dr_sim_defaults(o);
    return PyArg_ParseTuple(args, format, text_or_none, &o->machine, text_or_none, &o->workload, text_or_none,
                            &o->model, text_or_none, &o->scenario, text_or_none, &o->set, text_or_none, &o->weights,
                            to_u64, &o->seed);
}

PyObject *core_sim_open(PyObject *module, PyObject *args)
{
    core_state *state = PyModule_GetState(module);
    dr_sim_options o;
    dr_error err = { 0 };
    if (!parse_options(args, &o, "O&O&O&O&O&O&O&:open_sim"))
        return NULL;
    py_sim *self = core_new(state->sim_type);
    if (!self)
        return NULL;
    const dr_status status = dr_sim_open(&o, &self->sim, &err);
    if (status == DR_OK)
        return (PyObject *)self;
    Py_DECREF(self);
    return raise_status(state, status, &err);
}

/* The simulation for the time of a call; NULL: an exception is set. */
static dr_sim *enter(PyObject *self)
{
    py_sim *s = (py_sim *)self;
    if (s->busy) {
        PyErr_SetString(PyExc_RuntimeError, "a simulation serves one thread at a time");
        return NULL;
    }
    s->busy = 1;
    return s->sim;
}

static void leave(PyObject *self)
{
    ((py_sim *)self)->busy = 0;
}

/* {name: number} of an array that belongs to a list of names. */
static PyObject *named(size_t n, const char *(*name)(int), const double *numbers)
{
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < n; i++) {
        PyObject *value = PyFloat_FromDouble(numbers[i]);
        if (!value || PyDict_SetItemString(dict, name((int)i), value) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

static const char *term_name(int term)
{
    static const char *const names[] = {
#define NAME(id, name, doc) name,
        DR_TERM_MAP(NAME)
#undef NAME
    };
    return names[term];
}

PyObject *py_sim_result(const dr_sim_result *r)
{
    return Py_BuildValue("{sdsdsdsdsdsdsdsdsdsdsKsKsKsNsN}", "seconds", r->seconds, "samples", r->samples, "batches",
                         r->batches, "wait", r->wait, "cpus", r->cpus, "watts", r->watts, "latency", r->latency,
                         "throttled", r->throttled, "cache_hits", r->cache_hits, "reward", r->reward, "decisions",
                         (unsigned long long)r->decisions, "changes", (unsigned long long)r->changes, "ticks",
                         (unsigned long long)r->ticks, "terms", named(DR_N_TERMS, term_name, r->term), "knobs",
                         named(DR_N_KNOBS, dr_knob_name, r->knob));
}

static PyObject *look(PyObject *self, PyObject *unused)
{
    (void)unused;
    dr_sim_result r;
    dr_sim *sim = enter(self);
    if (!sim)
        return NULL;
    dr_sim_look(sim, &r);
    leave(self);
    return py_sim_result(&r);
}

typedef struct decisions {
    dr_decision *at; /* owned; NULL: not wanted, or memory was short */
    size_t n, cap;
} decisions;

static void keep_decision(void *user, const dr_decision *d)
{
    decisions *all = user;
    if (all->n < all->cap)
        all->at[all->n++] = *d;
}

/* run(policy, seconds, decisions): up to so many decisions as a list. */
static PyObject *run(PyObject *self, PyObject *args)
{
    const char *policy;
    double seconds;
    Py_ssize_t cap;
    dr_error err = { 0 };
    if (!PyArg_ParseTuple(args, "O&dn:run", text_or_none, &policy, &seconds, &cap))
        return NULL;
    decisions all = { .cap = cap > 0 ? (size_t)cap : 0 };
    if (all.cap && !(all.at = PyMem_Malloc(all.cap * sizeof *all.at)))
        return PyErr_NoMemory();
    dr_sim *sim = enter(self);
    PyObject *list = NULL;
    if (sim) {
        PyThreadState *gil = PyEval_SaveThread();
        const dr_status status = dr_sim_run(sim, policy, seconds, keep_decision, &all, &err);
        PyEval_RestoreThread(gil);
        leave(self);
        list = status == DR_OK ? py_decisions(all.at, all.n) : raise_status(state_of(self), status, &err);
    }
    PyMem_Free(all.at);
    return list;
}

static PyObject *advance(PyObject *self, PyObject *args)
{
    double seconds;
    if (!PyArg_ParseTuple(args, "d:advance", &seconds))
        return NULL;
    dr_sim *sim = enter(self);
    if (!sim)
        return NULL;
    PyThreadState *gil = PyEval_SaveThread();
    dr_sim_advance(sim, seconds);
    PyEval_RestoreThread(gil);
    leave(self);
    Py_RETURN_NONE;
}

static PyObject *reset(PyObject *self, PyObject *args)
{
    uint64_t seed;
    if (!PyArg_ParseTuple(args, "O&:reset", to_u64, &seed))
        return NULL;
    dr_sim *sim = enter(self);
    if (!sim)
        return NULL;
    dr_sim_reset(sim, seed);
    leave(self);
    Py_RETURN_NONE;
}

static PyObject *set_knob(PyObject *self, PyObject *args)
{
    const char *name;
    double value;
    dr_error err = { 0 };
    if (!PyArg_ParseTuple(args, "sd:set", &name, &value))
        return NULL;
    dr_sim *sim = enter(self);
    if (!sim)
        return NULL;
    const dr_plant plant = dr_sim_plant(sim);
    const dr_status status = plant.set(plant.user, dr_knob_find(name), value, &err);
    leave(self);
    return status == DR_OK ? Py_NewRef(Py_None) : raise_status(state_of(self), status, &err);
}

static PyObject *get_knob(PyObject *self, PyObject *args)
{
    const char *name;
    if (!PyArg_ParseTuple(args, "s:get", &name))
        return NULL;
    const int knob = dr_knob_find(name);
    if (knob < 0)
        return PyErr_Format(PyExc_KeyError, "no knob \"%s\"", name);
    dr_sim *sim = enter(self);
    if (!sim)
        return NULL;
    const dr_plant plant = dr_sim_plant(sim);
    const double value = plant.get(plant.user, knob);
    leave(self);
    return py_knob_value(knob, value);
}

static PyObject *field(PyObject *self, PyObject *args)
{
    const char *name;
    double value = 0;
    dr_error err = { 0 };
    if (!PyArg_ParseTuple(args, "s:field", &name))
        return NULL;
    dr_sim *sim = enter(self);
    if (!sim)
        return NULL;
    const dr_status status = dr_sim_field(sim, name, &value, &err);
    leave(self);
    return status == DR_OK ? PyFloat_FromDouble(value) : raise_status(state_of(self), status, &err);
}

static PyObject *snapshot(PyObject *self, PyObject *unused)
{
    (void)unused;
    dr_snapshot s;
    dr_sim *sim = enter(self);
    if (!sim)
        return NULL;
    dr_sim_snapshot(sim, &s);
    leave(self);
    return core_snapshot_wrap(&s);
}

static const char *flow_name(int flow)
{
    static const char *const names[] = {
#define NAME(id, name, kind, unit, doc) name,
        DR_FLOW_MAP(NAME)
#undef NAME
    };
    return names[flow];
}

static PyObject *flow_of(PyObject *self, PyObject *unused)
{
    (void)unused;
    double flow[DR_N_FLOWS] = { 0 };
    dr_sim *sim = enter(self);
    if (!sim)
        return NULL;
    const dr_plant plant = dr_sim_plant(sim);
    plant.flow(plant.user, flow);
    leave(self);
    return named(DR_N_FLOWS, flow_name, flow);
}

static void dealloc_sim(PyObject *self)
{
    dr_sim_close(&((py_sim *)self)->sim);
    core_free(self);
}

static PyMethodDef sim_methods[] = {
    { "run", run, METH_VARARGS, "run(policy, seconds, decisions): runs a policy; a list of at most so many decisions" },
    { "advance", advance, METH_VARARGS, "advance(seconds): lets time pass" },
    { "reset", reset, METH_VARARGS, "reset(seed): begins again with another instance" },
    { "set", set_knob, METH_VARARGS, "set(knob, value)" },
    { "get", get_knob, METH_VARARGS, "get(knob)" },
    { "field", field, METH_VARARGS, "field(name): of the instance" },
    { "look", look, METH_NOARGS, "What happened so far, as a dict." },
    { "snapshot", snapshot, METH_NOARGS, "The newest snapshot, as the tuple that drapps.monitor.Snapshot takes." },
    { "flow", flow_of, METH_NOARGS, "{name: number} of the flow." },
    { 0 },
};

static PyType_Slot sim_slots[] = {
    { Py_tp_dealloc, dealloc_sim },
    { Py_tp_methods, sim_methods },
    { Py_tp_doc, "A simulated loader; drapps.sim uses it." },
    { 0, NULL },
};

PyType_Spec core_sim_spec = {
    .name = "drapps._core.Sim",
    .basicsize = sizeof(py_sim),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = sim_slots,
};
