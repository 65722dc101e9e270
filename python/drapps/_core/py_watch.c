/* py_watch.c: what running pipelines show: live files, and the metrics endpoint. */
#include "py_core.h"

#define SERVER "drapps.metrics"

PyObject *core_live_read(PyObject *module, PyObject *args)
{
    int pid;
    char *text = NULL;
    dr_error err = { 0 };
    if (!PyArg_ParseTuple(args, "i:live_read", &pid))
        return NULL;
    dr_status status;
    Py_BEGIN_ALLOW_THREADS status = dr_live_read(pid, &text, &err);
    Py_END_ALLOW_THREADS return status == DR_OK ? take_text(text)
                                                : raise_status(PyModule_GetState(module), status, &err);
}

PyObject *core_metrics_text(PyObject *module, PyObject *unused)
{
    (void)unused;
    char *text = NULL;
    dr_error err = { 0 };
    dr_status status;
    Py_BEGIN_ALLOW_THREADS status = dr_metrics_text(&text, &err);
    Py_END_ALLOW_THREADS return status == DR_OK ? take_text(text)
                                                : raise_status(PyModule_GetState(module), status, &err);
}

/* --- a server, as a capsule --- */

static void stop_unused(PyObject *capsule)
{
    dr_metrics *m = PyCapsule_GetPointer(capsule, SERVER);
    dr_metrics_stop(&m);
}

PyObject *core_metrics_start(PyObject *module, PyObject *args)
{
    const char *address;
    dr_metrics *m = NULL;
    dr_error err = { 0 };
    if (!PyArg_ParseTuple(args, "s:metrics_start", &address))
        return NULL;
    dr_status status;
    Py_BEGIN_ALLOW_THREADS status = dr_metrics_start(address, &m, &err);
    Py_END_ALLOW_THREADS if (status != DR_OK) return raise_status(PyModule_GetState(module), status, &err);
    PyObject *capsule = PyCapsule_New(m, SERVER, stop_unused);
    if (!capsule)
        dr_metrics_stop(&m);
    return capsule;
}

PyObject *core_metrics_port(PyObject *module, PyObject *capsule)
{
    (void)module;
    const dr_metrics *m = PyCapsule_GetPointer(capsule, SERVER);
    return m ? PyLong_FromLong(dr_metrics_port(m)) : NULL;
}

PyObject *core_metrics_from_environment(PyObject *module, PyObject *unused)
{
    (void)unused;
    dr_error err = { 0 };
    dr_status status;
    Py_BEGIN_ALLOW_THREADS status = dr_metrics_from_environment(&err);
    Py_END_ALLOW_THREADS if (status != DR_OK) return raise_status(PyModule_GetState(module), status, &err);
    Py_RETURN_NONE;
}
