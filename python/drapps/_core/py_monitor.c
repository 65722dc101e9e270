/* py_monitor.c: Monitor: what the machine is doing.
 *
 * A snapshot travels as (time_ns, number, values, levels, modelled, cpu): dicts by sensor name with what is present,
 * the names of what is modelled, the use of each CPU.  The monitor's thread never runs Python.
 */
#include "py_core.h"

#include <stdio.h>

enum { SLICE_MS = 100 }; /* between looks at Ctrl-C */

/* --- snapshots --- */

static PyObject *by_name(const dr_snapshot *s, const double *numbers)
{
    PyObject *dict = PyDict_New();
    for (int i = 0; dict && i < DR_N_SENSORS; i++) {
        if (!(s->present >> i & 1))
            continue;
        PyObject *number = PyFloat_FromDouble(numbers[i]);
        if (!number || PyDict_SetItemString(dict, dr_sensor_name(i), number) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(number);
    }
    return dict;
}

static PyObject *modelled_names(const dr_snapshot *s)
{
    PyObject *names = PyList_New(0);
    for (int i = 0; names && i < DR_N_SENSORS; i++) {
        if (!(s->modelled >> i & 1))
            continue;
        PyObject *name = PyUnicode_FromString(dr_sensor_name(i));
        if (!name || PyList_Append(names, name) < 0)
            Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

static PyObject *cpu_use(const dr_snapshot *s)
{
    PyObject *cpus = PyTuple_New((Py_ssize_t)s->n_cpus);
    for (uint32_t i = 0; cpus && i < s->n_cpus; i++) {
        PyObject *use = PyFloat_FromDouble((double)s->cpu[i]);
        if (!use || PyTuple_SetItem(cpus, (Py_ssize_t)i, use) < 0)
            Py_CLEAR(cpus);
    }
    return cpus;
}

/* N takes the references; one that is NULL makes the whole fail. */
PyObject *core_snapshot_wrap(const dr_snapshot *s)
{
    return Py_BuildValue("(KKNNNN)", (unsigned long long)s->time_ns, (unsigned long long)s->number,
                         by_name(s, s->value), by_name(s, s->level), modelled_names(s), cpu_use(s));
}

static void read_sensors(PyObject *values, PyObject *levels, PyObject *modelled, dr_snapshot *s)
{
    for (int i = 0; i < DR_N_SENSORS && !PyErr_Occurred(); i++) {
        PyObject *value = PyDict_GetItemString(values, dr_sensor_name(i));
        PyObject *level = PyDict_GetItemString(levels, dr_sensor_name(i));
        if (!value)
            continue;
        PyObject *name = PyUnicode_FromString(dr_sensor_name(i));
        s->present |= (uint64_t)1 << i;
        s->modelled |= (uint64_t)(name && PySequence_Contains(modelled, name) > 0) << i;
        s->value[i] = PyFloat_AsDouble(value);
        s->level[i] = level ? PyFloat_AsDouble(level) : 0;
        Py_XDECREF(name);
    }
}

int core_snapshot_unwrap(PyObject *facts, dr_snapshot *s)
{
    PyObject *values, *levels, *modelled, *cpus;
    *s = (dr_snapshot){ 0 };
    if (!PyTuple_Check(facts)) {
        PyErr_Format(PyExc_TypeError, "snapshot must be a tuple made by Monitor, got %R", facts);
        return -1;
    }
    if (!PyArg_ParseTuple(facts, "O&O&O!O!OO!:snapshot", to_u64, &s->time_ns, to_u64, &s->number, &PyDict_Type, &values,
                          &PyDict_Type, &levels, &modelled, &PyTuple_Type, &cpus))
        return -1;
    read_sensors(values, levels, modelled, s);
    const Py_ssize_t n = PyTuple_Size(cpus) < DR_MAX_CPUS ? PyTuple_Size(cpus) : DR_MAX_CPUS;
    for (Py_ssize_t i = 0; i < n && !PyErr_Occurred(); i++)
        s->cpu[i] = (float)PyFloat_AsDouble(PyTuple_GetItem(cpus, i));
    s->n_cpus = (uint32_t)n;
    return PyErr_Occurred() ? -1 : 0;
}

/* --- methods --- */

static dr_monitor *opened(PyObject *self)
{
    dr_monitor *monitor = ((py_monitor *)self)->monitor;
    dr_error err = { .status = DR_ERR_STATE, .text = "the monitor is closed" };
    if (!monitor)
        raise_status(state_of(self), DR_ERR_STATE, &err);
    return monitor;
}

static PyObject *failed(PyObject *self, dr_status status)
{
    dr_error err = { .status = status };
    snprintf(err.text, sizeof err.text, "monitor: %s", dr_status_text(status));
    return raise_status(state_of(self), status, &err);
}

PyObject *core_monitor_open(PyObject *module, PyObject *args)
{
    core_state *state = PyModule_GetState(module);
    dr_monitor_options o;
    dr_monitor_defaults(&o);
    if (!PyArg_ParseTuple(args, "iis:open_monitor", &o.interval_ms, &o.history, &o.root))
        return NULL;
    py_monitor *self = core_new(state->monitor_type);
    if (!self)
        return NULL;
    dr_error err = { 0 };
    dr_status status = dr_monitor_open(&o, &self->monitor, &err);
    if (status == DR_OK)
        return (PyObject *)self;
    Py_DECREF(self);
    return raise_status(state, status, &err);
}

static PyObject *latest(PyObject *self, PyObject *unused)
{
    (void)unused;
    dr_monitor *monitor = opened(self);
    dr_snapshot s;
    if (!monitor)
        return NULL;
    dr_status status = dr_monitor_latest(monitor, &s);
    return status == DR_OK ? core_snapshot_wrap(&s) : failed(self, status);
}

/* Holds a reference of its own: another thread may close the monitor meanwhile. */
static PyObject *wait_next(PyObject *self, PyObject *args)
{
    unsigned long long after;
    int timeout_ms;
    dr_monitor *monitor = opened(self);
    if (!monitor || !PyArg_ParseTuple(args, "Ki:wait", &after, &timeout_ms))
        return NULL;
    dr_snapshot s;
    dr_status status = DR_AGAIN;
    monitor = dr_monitor_ref(monitor);
    do {
        int slice_ms = timeout_ms < SLICE_MS ? timeout_ms : SLICE_MS;
        Py_BEGIN_ALLOW_THREADS status = dr_monitor_wait(monitor, after, slice_ms, &s);
        Py_END_ALLOW_THREADS timeout_ms -= slice_ms;
    } while (status == DR_AGAIN && timeout_ms > 0 && PyErr_CheckSignals() == 0);
    Py_BEGIN_ALLOW_THREADS dr_monitor_unref(&monitor);
    Py_END_ALLOW_THREADS if (PyErr_Occurred()) return NULL;
    if (status == DR_OK)
        return core_snapshot_wrap(&s);
    return status < 0 ? failed(self, status) : Py_NewRef(Py_None);
}

static PyObject *wrap_all(const dr_snapshot *snapshots, size_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *one = core_snapshot_wrap(&snapshots[i]);
        if (!one || PyList_SetItem(list, (Py_ssize_t)i, one) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *history(PyObject *self, PyObject *args)
{
    unsigned long long after;
    Py_ssize_t cap;
    dr_monitor *monitor = opened(self);
    if (!monitor || !PyArg_ParseTuple(args, "Kn:history", &after, &cap))
        return NULL;
    dr_snapshot *snapshots = PyMem_Calloc(cap > 0 ? (size_t)cap : 1, sizeof *snapshots);
    if (!snapshots)
        return PyErr_NoMemory();
    size_t n = dr_monitor_history(monitor, after, snapshots, cap > 0 ? (size_t)cap : 0);
    PyObject *list = wrap_all(snapshots, n);
    PyMem_Free(snapshots);
    return list;
}

static PyObject *watch(PyObject *self, PyObject *args)
{
    int pid;
    dr_error err = { 0 };
    dr_monitor *monitor = opened(self);
    if (!monitor || !PyArg_ParseTuple(args, "i:watch", &pid))
        return NULL;
    dr_status status = dr_monitor_watch(monitor, pid, &err);
    return status == DR_OK ? Py_NewRef(Py_None) : raise_status(state_of(self), status, &err);
}

static PyObject *unwatch(PyObject *self, PyObject *args)
{
    int pid;
    dr_monitor *monitor = opened(self);
    if (!monitor || !PyArg_ParseTuple(args, "i:unwatch", &pid))
        return NULL;
    dr_monitor_unwatch(monitor, pid);
    return Py_NewRef(Py_None);
}

static PyObject *add_busy(PyObject *self, PyObject *args)
{
    double seconds;
    dr_monitor *monitor = opened(self);
    if (!monitor || !PyArg_ParseTuple(args, "d:add_busy", &seconds))
        return NULL;
    if (!(seconds >= 0 && seconds < 1e9))
        return PyErr_Format(PyExc_ValueError, "add_busy: seconds must be a non-negative number, got %S",
                            PyTuple_GetItem(args, 0));
    dr_monitor_add_busy(monitor, (uint64_t)(seconds * 1e9));
    return Py_NewRef(Py_None);
}

/* The last reference waits for the monitor's thread to end its tick. */
static PyObject *close_monitor(PyObject *self, PyObject *unused)
{
    (void)unused;
    dr_monitor *monitor = ((py_monitor *)self)->monitor;
    ((py_monitor *)self)->monitor = NULL;
    Py_BEGIN_ALLOW_THREADS dr_monitor_unref(&monitor);
    Py_END_ALLOW_THREADS return Py_NewRef(Py_None);
}

static PyObject *get_interval(PyObject *self, void *unused)
{
    (void)unused;
    dr_monitor *monitor = opened(self);
    return monitor ? PyLong_FromLong(dr_monitor_interval(monitor)) : NULL;
}

static int set_interval(PyObject *self, PyObject *value, void *unused)
{
    (void)unused;
    dr_error err = { 0 };
    dr_monitor *monitor = opened(self);
    long ms = monitor && value ? PyLong_AsLong(value) : -1;
    if (!monitor || PyErr_Occurred())
        return -1;
    dr_status status = dr_monitor_set_interval(monitor, ms < 0 || ms > 1000000 ? -1 : (int)ms, &err);
    if (status != DR_OK)
        raise_status(state_of(self), status, &err);
    return status == DR_OK ? 0 : -1;
}

static void dealloc(PyObject *self)
{
    dr_monitor_unref(&((py_monitor *)self)->monitor);
    core_free(self);
}

static PyMethodDef methods[] = {
    { "latest", latest, METH_NOARGS, "latest(): the newest snapshot" },
    { "wait", wait_next, METH_VARARGS, "wait(after, timeout_ms): the next snapshot above that number, or None" },
    { "history", history, METH_VARARGS, "history(after, cap): snapshots, oldest first" },
    { "watch", watch, METH_VARARGS, "watch(pid): count a process as own" },
    { "unwatch", unwatch, METH_VARARGS, "unwatch(pid)" },
    { "add_busy", add_busy, METH_VARARGS, "add_busy(seconds): of an accelerator that NVML does not know" },
    { "close", close_monitor, METH_NOARGS, "close(): let go of the monitor" },
    { 0 },
};

static PyGetSetDef members[] = {
    { "interval_ms", get_interval, set_interval, "Time between two snapshots: 10 to 1000.", NULL },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_dealloc, dealloc },
    { Py_tp_methods, methods },
    { Py_tp_getset, members },
    { Py_tp_doc, "What the machine is doing; use drapps.Monitor." },
    { 0, NULL },
};

PyType_Spec core_monitor_spec = {
    .name = "drapps._core.Monitor",
    .basicsize = sizeof(py_monitor),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
