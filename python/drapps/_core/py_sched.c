/* py_sched.c: the scheduler's tables, and decisions as tuples. */
#include "py_sched.h"

static const char *const terms[] = {
#define ROW(id, name, doc) name,
    DR_TERM_MAP(ROW)
#undef ROW
};

/* --- tables --- */

PyObject *core_knobs_json(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyUnicode_FromString(dr_knobs_json());
}

PyObject *core_flows_json(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyUnicode_FromString(dr_flows_json());
}

PyObject *core_policies_json(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyUnicode_FromString(dr_policies_json());
}

PyObject *core_check_policy(PyObject *module, PyObject *args)
{
    const char *text = NULL;
    dr_error err = { 0 };
    if (!PyArg_ParseTuple(args, "z:check_policy", &text))
        return NULL;
    dr_status status = dr_policy_check(text, &err);
    if (status == DR_OK)
        Py_RETURN_NONE;
    return raise_status(PyModule_GetState(module), status, &err);
}

/* --- decisions --- */

/* Takes the value; NULL stands for an error that is set.  dict: NULL after an error. */
static PyObject *put(PyObject *dict, const char *key, PyObject *value)
{
    if (!value || PyDict_SetItemString(dict, key, value) < 0)
        Py_CLEAR(dict);
    Py_XDECREF(value);
    return dict;
}

static PyObject *changes_of(const dr_decision *d)
{
    PyObject *dict = PyDict_New();
    for (int i = 0; dict && i < DR_N_KNOBS; i++)
        if (d->changed >> i & 1)
            dict = put(dict, dr_knob_name(i), Py_BuildValue("(dd)", d->before[i], d->after[i]));
    return dict;
}

static PyObject *by_term(const double *numbers)
{
    PyObject *dict = PyDict_New();
    for (int i = 0; dict && i < DR_N_TERMS; i++)
        dict = put(dict, terms[i], PyFloat_FromDouble(numbers[i]));
    return dict;
}

/* A reason may quote a text of the system that was cut in the middle of a character. */
static PyObject *text_of(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

/* N takes the references; one that is NULL makes the whole fail. */
PyObject *py_decision(const dr_decision *d)
{
    const char *bound = dr_bound_name(d->bound);
    return Py_BuildValue("(KKsNdNNNN)", (unsigned long long)d->number, (unsigned long long)d->time_ns,
                         bound ? bound : "unknown", changes_of(d), d->reward, by_term(d->term), by_term(d->weight),
                         PyBool_FromLong(d->guarded), text_of(d->reason));
}

PyObject *py_knob_value(int knob, double value)
{
    return dr_knob_is_whole(knob) ? PyLong_FromDouble(value) : PyFloat_FromDouble(value);
}

PyObject *py_decisions(const dr_decision *decisions, size_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *one = py_decision(&decisions[i]);
        if (!one || PyList_SetItem(list, (Py_ssize_t)i, one) < 0)
            Py_CLEAR(list);
    }
    return list;
}
