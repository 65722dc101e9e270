/* py_batch.c: Batch: what the loader hands out. */
#include "py_core.h"

static dr_batch *batch_of(PyObject *self)
{
    return ((py_batch *)self)->batch;
}

PyObject *core_batch_wrap(core_state *state, dr_batch *batch)
{
    py_batch *self = core_new(state->batch_type);
    if (!self) {
        dr_batch_unref(&batch);
        return NULL;
    }
    self->batch = batch;
    return (PyObject *)self;
}

static void dealloc(PyObject *self)
{
    dr_batch_unref(&((py_batch *)self)->batch);
    core_free(self);
}

/* --- facts --- */

static PyObject *get_samples(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(dr_batch_samples(batch_of(self)));
}

static PyObject *get_number(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(dr_batch_number(batch_of(self)));
}

static PyObject *get_epoch(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(dr_batch_epoch(batch_of(self)));
}

static PyObject *get_padded(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(dr_batch_padded(batch_of(self)));
}

static PyObject *u64_list(const uint64_t *values, uint64_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (uint64_t i = 0; list && i < n; i++) {
        PyObject *value = PyLong_FromUnsignedLongLong(values[i]);
        if (!value || PyList_SetItem(list, (Py_ssize_t)i, value) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *get_ids(PyObject *self, void *unused)
{
    (void)unused;
    return u64_list(dr_batch_ids(batch_of(self)), dr_batch_samples(batch_of(self)));
}

static PyObject *get_positions(PyObject *self, void *unused)
{
    (void)unused;
    return u64_list(dr_batch_positions(batch_of(self)), dr_batch_samples(batch_of(self)));
}

static PyObject *get_bad(PyObject *self, void *unused)
{
    (void)unused;
    const char *text = dr_batch_bad(batch_of(self));
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "surrogateescape");
}

/* An exception, not raised: the consumer has to book the batch first. */
static PyObject *get_error(PyObject *self, void *unused)
{
    (void)unused;
    const dr_error *err = dr_batch_error(batch_of(self));
    if (!err)
        Py_RETURN_NONE;
    PyObject *type, *value, *traceback;
    raise_open_status(state_of(self), err->status, err);
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
}

static PyObject *draws(PyObject *self, PyObject *args)
{
    uint64_t i;
    if (!PyArg_ParseTuple(args, "O&:draws", to_u64, &i))
        return NULL;
    char *text = NULL;
    dr_error err = { 0 };
    dr_status status = dr_batch_draws(batch_of(self), i, &text, &err);
    return status == DR_OK ? take_text(text) : raise_status(state_of(self), status, &err);
}

/* --- fields --- */

static PyObject *i64_list(const int64_t *values, uint64_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (uint64_t i = 0; list && i < n; i++) {
        PyObject *value = PyLong_FromLongLong(values[i]);
        if (!value || PyList_SetItem(list, (Py_ssize_t)i, value) < 0)
            Py_CLEAR(list);
    }
    return list;
}

PyObject *core_item_wrap(core_state *state, dr_batch *batch, const dr_view *view)
{
    const char *data = (const char *)view->data;
    Py_ssize_t n = (Py_ssize_t)(view->desc.n_dims ? view->desc.dims[0] : 0);
    if (view->desc.kind == DR_KIND_BYTES)
        return PyBytes_FromStringAndSize(data, n);
    if (view->desc.kind == DR_KIND_TEXT)
        return PyUnicode_DecodeUTF8(data, n, "surrogateescape");
    return core_array_wrap(state, batch, view, 1);
}

static PyObject *item_list(core_state *state, dr_batch *batch, const dr_view *items)
{
    uint64_t n = dr_batch_samples(batch);
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (uint64_t i = 0; list && i < n; i++) {
        PyObject *item = core_item_wrap(state, batch, &items[i]);
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* (name, rule, value, extra): extra is the flat list of sizes (pad), of offsets (ragged), or None. */
static PyObject *field_tuple(core_state *state, dr_batch *batch, const dr_batch_field *field)
{
    uint64_t n = dr_batch_samples(batch);
    switch (field->collate) {
    case DR_COLLATE_STACK:
        return Py_BuildValue("(ssNO)", field->name, "stack", core_array_wrap(state, batch, &field->array, 0), Py_None);
    case DR_COLLATE_PAD:
        return Py_BuildValue("(ssNN)", field->name, "pad", core_array_wrap(state, batch, &field->array, 0),
                             i64_list(field->sizes, n * (uint64_t)(field->array.desc.n_dims - 1)));
    case DR_COLLATE_RAGGED:
        return Py_BuildValue("(ssNN)", field->name, "ragged", core_array_wrap(state, batch, &field->array, 0),
                             i64_list(field->offsets, n + 1));
    case DR_COLLATE_LIST:
        return Py_BuildValue("(ssNO)", field->name, "list", item_list(state, batch, field->items), Py_None);
    }
    PyErr_Format(PyExc_SystemError, "%s: unknown collate rule %d", field->name, (int)field->collate);
    return NULL;
}

static PyObject *field(PyObject *self, PyObject *args)
{
    int i;
    if (!PyArg_ParseTuple(args, "i:field", &i))
        return NULL;
    dr_batch_field facts = { 0 };
    dr_error err = { 0 };
    dr_status status = dr_batch_field_at(batch_of(self), i, &facts, &err);
    if (status != DR_OK)
        return raise_status(state_of(self), status, &err);
    return field_tuple(state_of(self), batch_of(self), &facts);
}

static PyObject *get_n_fields(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(dr_batch_fields(batch_of(self)));
}

static PyMethodDef methods[] = {
    { "field", field, METH_VARARGS, "field(i): (name, rule, value, sizes or offsets or None)." },
    { "draws", draws, METH_VARARGS, "draws(i): what was drawn for sample i, as JSON." },
    { 0 },
};

static PyGetSetDef members[] = {
    { "samples", get_samples, NULL, "Number of samples.", NULL },
    { "number", get_number, NULL, "Its number in the epoch, from 0.", NULL },
    { "epoch", get_epoch, NULL, "The epoch.", NULL },
    { "padded", get_padded, NULL, "Samples at its end that repeat others.", NULL },
    { "ids", get_ids, NULL, "The samples' ids in the data set.", NULL },
    { "positions", get_positions, NULL, "The samples' positions in the epoch's order.", NULL },
    { "bad", get_bad, NULL, "Samples left out or replaced, as JSON.", NULL },
    { "error", get_error, NULL, "Why it failed, as an exception; None: it did not.", NULL },
    { "n_fields", get_n_fields, NULL, "Number of fields.", NULL },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_dealloc, dealloc },
    { Py_tp_methods, methods },
    { Py_tp_getset, members },
    { Py_tp_doc, "A batch; drapps.Batch wraps it." },
    { 0, NULL },
};

PyType_Spec core_batch_spec = {
    .name = "drapps._core.Batch",
    .basicsize = sizeof(py_batch),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
