/* py_ledger.c: Ledger: what each sample of a data set costs (drapps/ledger.h), over buffers of numbers. */
#include "py_core.h"

typedef struct py_ledger {
    PyObject_HEAD dr_ledger *ledger;
    uint64_t n_samples;
} py_ledger;

PyObject *core_ledger_open(PyObject *module, PyObject *args)
{
    core_state *state = PyModule_GetState(module);
    const char *path;
    uint64_t n_samples;
    dr_error err = { 0 };
    if (!PyArg_ParseTuple(args, "O&O&:open_ledger", text_or_none, &path, to_u64, &n_samples))
        return NULL;
    py_ledger *self = core_new(state->ledger_type);
    if (!self)
        return NULL;
    self->n_samples = n_samples;
    PyThreadState *gil = PyEval_SaveThread();
    dr_status status = dr_ledger_open(path, n_samples, &self->ledger, &err);
    PyEval_RestoreThread(gil);
    if (status == DR_OK)
        return (PyObject *)self;
    Py_DECREF(self);
    return raise_status(state, status, &err);
}

static dr_ledger *ledger_of(PyObject *self)
{
    return ((py_ledger *)self)->ledger;
}

/* Numbers of `each` bytes, one for each of n samples; false: an exception is set. */
static bool fits(const Py_buffer *buffer, Py_ssize_t n, Py_ssize_t each)
{
    if (buffer->len == n * each)
        return true;
    PyErr_Format(PyExc_ValueError, "buffer must have %zd bytes, got %zd", n * each, buffer->len);
    return false;
}

static PyObject *note(PyObject *self, PyObject *args)
{
    Py_buffer ids, ns, hints = { 0 };
    if (!PyArg_ParseTuple(args, "y*y*z*:note", &ids, &ns, &hints))
        return NULL;
    const Py_ssize_t n = ids.len / 8;
    const bool good = fits(&ids, n, 8) && fits(&ns, n, 8) && (!hints.buf || fits(&hints, n, 8));
    if (good)
        dr_ledger_note(ledger_of(self), ids.buf, ns.buf, hints.buf, (size_t)n);
    PyBuffer_Release(&ids);
    PyBuffer_Release(&ns);
    if (hints.obj)
        PyBuffer_Release(&hints);
    return good ? Py_NewRef(Py_None) : NULL;
}

static PyObject *predict(PyObject *self, PyObject *args)
{
    Py_buffer ids, out;
    if (!PyArg_ParseTuple(args, "y*w*:predict", &ids, &out))
        return NULL;
    const Py_ssize_t n = ids.len / 8;
    const bool good = fits(&ids, n, 8) && fits(&out, n, 4);
    if (good)
        dr_ledger_predict(ledger_of(self), ids.buf, (size_t)n, out.buf);
    PyBuffer_Release(&ids);
    PyBuffer_Release(&out);
    return good ? Py_NewRef(Py_None) : NULL;
}

static PyObject *estimate(PyObject *self, PyObject *args)
{
    Py_buffer hints, out;
    if (!PyArg_ParseTuple(args, "y*w*:estimate", &hints, &out))
        return NULL;
    const Py_ssize_t n = hints.len / 8;
    const bool good = fits(&hints, n, 8) && fits(&out, n, 4);
    if (good)
        dr_ledger_estimate(ledger_of(self), hints.buf, (size_t)n, out.buf);
    PyBuffer_Release(&hints);
    PyBuffer_Release(&out);
    return good ? Py_NewRef(Py_None) : NULL;
}

static PyObject *guess(PyObject *self, PyObject *args)
{
    Py_buffer hints;
    if (!PyArg_ParseTuple(args, "y*:guess", &hints))
        return NULL;
    dr_ledger_guess(ledger_of(self), hints.buf, (size_t)hints.len / 8);
    PyBuffer_Release(&hints);
    Py_RETURN_NONE;
}

static PyObject *look(PyObject *self, PyObject *unused)
{
    (void)unused;
    const dr_ledger_facts f = dr_ledger_look(ledger_of(self));
    return Py_BuildValue("(KddddN)", (unsigned long long)f.n_seen, f.unit_ns, f.median_ns, f.mean_ns, f.longest_ns,
                         PyBool_FromLong(f.differs));
}

static PyObject *estimates_by(PyObject *self, PyObject *unused)
{
    (void)unused;
    static const char *const words[] = { "nothing", "guess", "model" };
    return PyUnicode_FromString(words[dr_ledger_estimates_by(ledger_of(self))]);
}

static PyObject *units(PyObject *self, PyObject *unused)
{
    (void)unused;
    const py_ledger *l = (py_ledger *)self;
    PyObject *memory = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(4 * l->n_samples));
    if (memory)
        dr_ledger_units(l->ledger, (float *)(void *)PyByteArray_AsString(memory));
    return memory;
}

static PyObject *save(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyThreadState *gil = PyEval_SaveThread();
    const bool good = dr_ledger_save(ledger_of(self));
    PyEval_RestoreThread(gil);
    return PyBool_FromLong(good);
}

static void dealloc(PyObject *self)
{
    dr_ledger_close(&((py_ledger *)self)->ledger);
    core_free(self);
}

static PyMethodDef methods[] = {
    { "note", note, METH_VARARGS, "note(ids, ns, hints): remembers costs; uint64, float64, float64 or None" },
    { "predict", predict, METH_VARARGS, "predict(ids, out): what samples cost before, as float32; 0: not known" },
    { "estimate", estimate, METH_VARARGS, "estimate(hints, out): what others will cost, as float32; 0: not known" },
    { "guess", guess, METH_VARARGS, "guess(hints): of some samples, before any was seen" },
    { "look", look, METH_NOARGS, "(n_seen, unit_ns, median_ns, mean_ns, longest_ns, differs)" },
    { "estimates_by", estimates_by, METH_NOARGS, "'nothing', 'guess' or 'model'" },
    { "units", units, METH_NOARGS, "Remembered costs in units, as the bytes of float32 numbers; 0: never seen" },
    { "save", save, METH_NOARGS, "Writes the file; False: it cannot be written." },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_dealloc, dealloc },
    { Py_tp_methods, methods },
    { Py_tp_doc, "What each sample of a data set costs; drapps.ledger uses it." },
    { 0, NULL },
};

PyType_Spec core_ledger_spec = {
    .name = "drapps._core.Ledger",
    .basicsize = sizeof(py_ledger),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
