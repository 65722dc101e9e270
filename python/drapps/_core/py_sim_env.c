/* py_sim_env.c: SimEnv: simulated loaders in step, for agents (drapps/sim.h). */
#include "py_sched.h"

PyObject *core_sim_env_json(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    const char *text = dr_sim_env_json();
    return text ? PyUnicode_FromString(text) : PyErr_NoMemory();
}

typedef struct py_sim_env {
    PyObject_HEAD dr_sim_env *env;
    size_t n;
    int busy;
} py_sim_env;

PyObject *core_sim_env_open(PyObject *module, PyObject *args)
{
    core_state *state = PyModule_GetState(module);
    dr_sim_env_options o;
    Py_ssize_t n;
    dr_error err = { 0 };
    dr_sim_env_defaults(&o);
    if (!PyArg_ParseTuple(args, "O&O&O&O&O&O&O&ndO&:open_sim_env", text_or_none, &o.of.machine, text_or_none,
                          &o.of.workload, text_or_none, &o.of.model, text_or_none, &o.of.scenario, text_or_none,
                          &o.of.set, text_or_none, &o.of.weights, to_u64, &o.of.seed, &n, &o.seconds, text_or_none,
                          &o.base))
        return NULL;
    py_sim_env *self = core_new(state->sim_env_type);
    if (!self)
        return NULL;
    o.n = self->n = n > 0 ? (size_t)n : 0;
    const dr_status status = dr_sim_env_open(&o, &self->env, &err);
    if (status == DR_OK)
        return (PyObject *)self;
    Py_DECREF(self);
    return raise_status(state, status, &err);
}

static dr_sim_env *enter_env(PyObject *self)
{
    py_sim_env *e = (py_sim_env *)self;
    if (e->busy) {
        PyErr_SetString(PyExc_RuntimeError, "environments serve one thread at a time");
        return NULL;
    }
    e->busy = 1;
    return e->env;
}

static void leave_env(PyObject *self)
{
    ((py_sim_env *)self)->busy = 0;
}

static int has_bytes(const Py_buffer *b, size_t bytes, const char *what)
{
    if ((size_t)b->len == bytes)
        return 1;
    PyErr_Format(PyExc_ValueError, "%s must have %zu bytes, got %zd", what, bytes, b->len);
    return 0;
}

/* reset(i, seed, observation) */
static PyObject *env_reset(PyObject *self, PyObject *args)
{
    Py_ssize_t i;
    uint64_t seed;
    Py_buffer observation;
    if (!PyArg_ParseTuple(args, "nO&w*:reset", &i, to_u64, &seed, &observation))
        return NULL;
    const size_t n = ((py_sim_env *)self)->n;
    PyObject *out = NULL;
    dr_sim_env *env;
    if (i < 0 || (size_t)i >= n)
        PyErr_Format(PyExc_IndexError, "environment must be 0 to %zu, got %zd", n - 1, i);
    else if (has_bytes(&observation, dr_sim_env_observation() * sizeof(float), "observation") &&
             (env = enter_env(self))) {
        dr_sim_env_reset(env, (size_t)i, seed, observation.buf);
        leave_env(self);
        out = Py_NewRef(Py_None);
    }
    PyBuffer_Release(&observation);
    return out;
}

/* step(actions int32, observations float32, rewards float64, over uint8): all environments. */
static PyObject *env_step(PyObject *self, PyObject *args)
{
    Py_buffer action, observation, reward, over;
    if (!PyArg_ParseTuple(args, "y*w*w*w*:step", &action, &observation, &reward, &over))
        return NULL;
    const size_t n = ((py_sim_env *)self)->n, n_obs = dr_sim_env_observation(), n_act = dr_sim_env_actions(NULL, 0);
    PyObject *out = NULL;
    dr_sim_env *env;
    if (has_bytes(&action, n * n_act * sizeof(int32_t), "actions") &&
        has_bytes(&observation, n * n_obs * sizeof(float), "observations") &&
        has_bytes(&reward, n * sizeof(double), "rewards") && has_bytes(&over, n, "over") && (env = enter_env(self))) {
        PyThreadState *gil = PyEval_SaveThread();
        for (size_t i = 0; i < n; i++)
            ((uint8_t *)over.buf)[i] = dr_sim_env_step(env, i, (const int32_t *)action.buf + i * n_act,
                                                       (float *)observation.buf + i * n_obs, (double *)reward.buf + i);
        PyEval_RestoreThread(gil);
        leave_env(self);
        out = Py_NewRef(Py_None);
    }
    PyBuffer_Release(&action);
    PyBuffer_Release(&observation);
    PyBuffer_Release(&reward);
    PyBuffer_Release(&over);
    return out;
}

/* mask(i) -> bytes, one for each choice */
static PyObject *env_mask(PyObject *self, PyObject *args)
{
    Py_ssize_t i;
    int choices[32];
    uint8_t mask[256];
    if (!PyArg_ParseTuple(args, "n:mask", &i))
        return NULL;
    const size_t n = ((py_sim_env *)self)->n, n_act = dr_sim_env_actions(choices, 32);
    if (i < 0 || (size_t)i >= n)
        return PyErr_Format(PyExc_IndexError, "environment must be 0 to %zu, got %zd", n - 1, i);
    Py_ssize_t size = 0;
    for (size_t k = 0; k < n_act; k++)
        size += choices[k];
    dr_sim_env *env = enter_env(self);
    if (!env)
        return NULL;
    dr_sim_env_mask(env, (size_t)i, mask);
    leave_env(self);
    return PyBytes_FromStringAndSize((const char *)mask, size);
}

static PyObject *env_look(PyObject *self, PyObject *args)
{
    Py_ssize_t i;
    dr_sim_result r;
    if (!PyArg_ParseTuple(args, "n:look", &i))
        return NULL;
    const size_t n = ((py_sim_env *)self)->n;
    if (i < 0 || (size_t)i >= n)
        return PyErr_Format(PyExc_IndexError, "environment must be 0 to %zu, got %zd", n - 1, i);
    dr_sim_env *env = enter_env(self);
    if (!env)
        return NULL;
    dr_sim_look(dr_sim_env_sim(env, (size_t)i), &r);
    leave_env(self);
    return py_sim_result(&r);
}

static void dealloc_env(PyObject *self)
{
    dr_sim_env_close(&((py_sim_env *)self)->env);
    core_free(self);
}

static PyMethodDef env_methods[] = {
    { "reset", env_reset, METH_VARARGS, "reset(i, seed, observation): begins an episode of one environment" },
    { "step", env_step, METH_VARARGS, "step(actions, observations, rewards, over): a step of all environments" },
    { "mask", env_mask, METH_VARARGS, "mask(i): a byte for each choice of each action; 1: it may change something" },
    { "look", env_look, METH_VARARGS, "look(i): what happened in the episode so far, as a dict" },
    { 0 },
};

static PyType_Slot env_slots[] = {
    { Py_tp_dealloc, dealloc_env },
    { Py_tp_methods, env_methods },
    { Py_tp_doc, "Simulated loaders in step, for agents; drapps.gym uses it." },
    { 0, NULL },
};

PyType_Spec core_sim_env_spec = {
    .name = "drapps._core.SimEnv",
    .basicsize = sizeof(py_sim_env),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = env_slots,
};
