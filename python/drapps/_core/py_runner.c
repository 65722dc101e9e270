/* py_runner.c: Runner: one sample at a time, for chains with Python functions between native ops.
 *
 * Results are copied out: the runner uses its memory again for the next sample.  A field travels as (name, kind, dtype,
 * dims, bytes); the package makes NumPy arrays of them, so that this module needs no NumPy.
 */
#include "py_core.h"

#include <stdlib.h>

enum { AFTER_BYTES = 64 }; /* decoders may look a little past the end of what they read */

typedef struct py_runner {
    PyObject_HEAD dr_runner *runner;
    int n_fields;   /* that are handed in; 0: they come from a data set */
    dr_kind *kinds; /* of the fields; owned */
    int busy;       /* protected by the GIL: a runner serves one thread at a time */
} py_runner;

static py_runner *as_runner(PyObject *self)
{
    return (py_runner *)self;
}

/* --- opening --- */

PyObject *core_runner_open(PyObject *module, PyObject *args)
{
    core_state *state = PyModule_GetState(module);
    PyObject *set, *graph;
    const char *outputs;
    int reference;
    if (!PyArg_ParseTuple(args, "O!O!zp:open_runner", state->dataset_type, &set, state->graph_type, &graph, &outputs,
                          &reference))
        return NULL;
    py_runner *self = core_new(state->runner_type);
    if (!self)
        return NULL;
    dr_error err = { 0 };
    dr_status status = dr_runner_open(((py_dataset *)set)->set, ((py_graph *)graph)->graph, outputs, "NHWC", reference,
                                      &self->runner, &err);
    if (status == DR_OK)
        return (PyObject *)self;
    Py_DECREF(self);
    return raise_status(state, status, &err);
}

static int read_dims(PyObject *dims, dr_desc *desc)
{
    desc->n_dims = (int)PyTuple_Size(dims);
    if (desc->n_dims > DR_MAX_DIMS) {
        PyErr_Format(PyExc_ValueError, "dims must have at most %d entries, got %d", DR_MAX_DIMS, desc->n_dims);
        return -1;
    }
    for (int i = 0; i < desc->n_dims; i++)
        desc->dims[i] = PyLong_AsLongLong(PyTuple_GetItem(dims, i));
    return PyErr_Occurred() ? -1 : 0;
}

/* rows: (name, kind, dtype, dims), where -1 is an extent that varies. */
static int read_specs(PyObject *rows, dr_field_spec *specs)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(rows); i++) {
        const char *kind, *dtype;
        PyObject *dims;
        dr_desc *desc = &specs[i].desc;
        if (!PyArg_ParseTuple(PyTuple_GetItem(rows, i), "sssO!", &specs[i].name, &kind, &dtype, &PyTuple_Type, &dims))
            return -1;
        desc->dtype = dr_dtype_parse(dtype);
        if (!desc->dtype) {
            PyErr_Format(PyExc_TypeError, "%s: dtype must be a type that drapps knows, got '%s'", specs[i].name, dtype);
            return -1;
        }
        if (core_kind_parse(kind, &desc->kind) < 0 || read_dims(dims, desc) < 0)
            return -1;
        desc->layout = core_kind_layout(desc->kind);
    }
    return (int)PyTuple_Size(rows);
}

/* A runner that is not opened yet, for fields that are handed in. */
static py_runner *new_runner(core_state *state, const dr_field_spec *specs, int n)
{
    py_runner *self = core_new(state->runner_type);
    if (!self)
        return NULL;
    self->n_fields = n;
    self->kinds = calloc((size_t)n + 1, sizeof *self->kinds);
    if (!self->kinds) {
        Py_DECREF(self);
        PyErr_NoMemory();
        return NULL;
    }
    for (int i = 0; i < n; i++)
        self->kinds[i] = specs[i].desc.kind;
    return self;
}

PyObject *core_runner_open_fields(PyObject *module, PyObject *args)
{
    core_state *state = PyModule_GetState(module);
    PyObject *rows, *graph;
    const char *outputs;
    int reference;
    if (!PyArg_ParseTuple(args, "O!O!zp:open_field_runner", &PyTuple_Type, &rows, state->graph_type, &graph, &outputs,
                          &reference))
        return NULL;
    dr_field_spec *specs = calloc((size_t)PyTuple_Size(rows) + 1, sizeof *specs);
    if (!specs)
        return PyErr_NoMemory();
    const int n = read_specs(rows, specs);
    py_runner *self = n < 0 ? NULL : new_runner(state, specs, n);
    dr_error err = { 0 };
    dr_status status = DR_OK;
    if (self)
        status = dr_runner_open_fields(specs, n, ((py_graph *)graph)->graph, outputs, "NHWC", reference, &self->runner,
                                       &err);
    free(specs);
    if (status == DR_OK)
        return (PyObject *)self;
    Py_DECREF(self);
    return raise_status(state, status, &err);
}

static void dealloc(PyObject *self)
{
    dr_runner_free(&as_runner(self)->runner);
    free(as_runner(self)->kinds);
    core_free(self);
}

/* --- results --- */

static Py_ssize_t dense_bytes(const dr_desc *desc)
{
    Py_ssize_t bytes = (Py_ssize_t)dr_dtype_size(desc->dtype);
    for (int i = 0; i < desc->n_dims; i++)
        bytes *= (Py_ssize_t)desc->dims[i];
    return bytes;
}

static PyObject *output_row(const char *name, const dr_view *view)
{
    PyObject *copy = PyByteArray_FromStringAndSize((const char *)view->data, dense_bytes(&view->desc));
    return Py_BuildValue("(sssNN)", name, core_kind_name(view->desc.kind), dr_dtype_name(view->desc.dtype),
                         core_desc_dims(&view->desc), copy);
}

static PyObject *output_rows(const dr_runner *runner)
{
    int n = dr_runner_outputs(runner);
    PyObject *rows = PyTuple_New(n);
    for (int i = 0; rows && i < n; i++) {
        dr_view view;
        const char *name = dr_runner_output(runner, i, &view);
        PyObject *row = output_row(name, &view);
        if (!row || PyTuple_SetItem(rows, i, row) < 0)
            Py_CLEAR(rows);
    }
    return rows;
}

static PyObject *check(PyObject *self, PyObject *args)
{
    const char *delivered;
    if (!PyArg_ParseTuple(args, "s:check", &delivered))
        return NULL;
    dr_error err = { 0 };
    dr_status status = dr_runner_check(as_runner(self)->runner, delivered, &err);
    if (status != DR_OK)
        return raise_status(state_of(self), status, &err);
    Py_RETURN_NONE;
}

/* --- running --- */

static int begin(PyObject *self)
{
    if (as_runner(self)->busy) {
        dr_error err = { .status = DR_ERR_STATE, .text = "the runner is at work in another thread" };
        raise_status(state_of(self), DR_ERR_STATE, &err);
        return -1;
    }
    as_runner(self)->busy = 1;
    return 0;
}

static PyObject *finish(PyObject *self, dr_status status, const dr_error *err)
{
    as_runner(self)->busy = 0;
    return status == DR_OK ? output_rows(as_runner(self)->runner) : raise_open_status(state_of(self), status, err);
}

static PyObject *run(PyObject *self, PyObject *args)
{
    dr_sample_name name = { 0 };
    if (!PyArg_ParseTuple(args, "O&O&O&I:run", to_u64, &name.seed, to_u64, &name.epoch, to_u64, &name.id,
                          &name.occurrence))
        return NULL;
    if (begin(self) < 0)
        return NULL;
    dr_error err = { 0 };
    PyThreadState *gil = PyEval_SaveThread();
    dr_status status = dr_runner_run(as_runner(self)->runner, &name, &err);
    PyEval_RestoreThread(gil);
    return finish(self, status, &err);
}

/* What is handed in, for the time of one call. */
struct fed {
    int n;
    dr_view *views;
    struct {
        Py_buffer buffer;
        void *copy; /* of encoded bytes */
    } fields[];
};

static struct fed *new_fed(int n_fields)
{
    struct fed *fed = NULL;
    const size_t n = (size_t)n_fields, head = sizeof *fed + n * sizeof fed->fields[0];
    fed = calloc(1, head + n * sizeof *fed->views);
    if (fed)
        fed->views = (dr_view *)((char *)fed + head);
    return fed;
}

static void let_go(struct fed *fed)
{
    for (int i = 0; i < fed->n; i++) {
        PyBuffer_Release(&fed->fields[i].buffer);
        free(fed->fields[i].copy);
    }
    free(fed);
}

/* Encoded bytes move to memory that goes on with zeros after their end. */
static int pad_bytes(struct fed *fed, int i)
{
    size_t n = (size_t)fed->fields[i].buffer.len;
    void *copy = aligned_alloc(AFTER_BYTES, (n + 2 * AFTER_BYTES - 1) / AFTER_BYTES * AFTER_BYTES);
    if (!copy) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(copy, fed->fields[i].buffer.buf, n);
    memset((char *)copy + n, 0, AFTER_BYTES);
    fed->fields[i].copy = copy;
    fed->views[i].data = copy;
    return 0;
}

static int take_fields(py_runner *self, PyObject *values, struct fed *fed)
{
    if (PyTuple_Size(values) != self->n_fields) {
        PyErr_Format(PyExc_ValueError, "values must be %d fields, got %zd", self->n_fields, PyTuple_Size(values));
        return -1;
    }
    for (int i = 0; i < self->n_fields; i++) {
        Py_buffer *buffer = &fed->fields[i].buffer;
        if (PyObject_GetBuffer(PyTuple_GetItem(values, i), buffer, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) < 0)
            return -1;
        fed->n++;
        fed->views[i].data = buffer->buf;
        if (core_describe("feed", core_kind_name(self->kinds[i]), buffer, &fed->views[i].desc) < 0)
            return -1;
        if (self->kinds[i] == DR_KIND_BYTES && pad_bytes(fed, i) < 0)
            return -1;
    }
    return 0;
}

static PyObject *feed(PyObject *self, PyObject *args)
{
    dr_sample_name name = { 0 };
    PyObject *values;
    if (!PyArg_ParseTuple(args, "O!O&O&O&I:feed", &PyTuple_Type, &values, to_u64, &name.seed, to_u64, &name.epoch,
                          to_u64, &name.id, &name.occurrence))
        return NULL;
    struct fed *fed = new_fed(as_runner(self)->n_fields);
    if (!fed)
        return PyErr_NoMemory();
    if (take_fields(as_runner(self), values, fed) < 0 || begin(self) < 0) {
        let_go(fed);
        return NULL;
    }
    dr_error err = { 0 };
    PyThreadState *gil = PyEval_SaveThread();
    dr_status status = dr_runner_feed(as_runner(self)->runner, fed->views, &name, &err);
    PyEval_RestoreThread(gil);
    let_go(fed);
    return finish(self, status, &err);
}

/* --- the order --- */

PyObject *core_order_sample(PyObject *module, PyObject *args)
{
    core_state *state = PyModule_GetState(module);
    PyObject *set;
    uint64_t seed, epoch, position;
    int shuffle;
    if (!PyArg_ParseTuple(args, "O!O&O&pO&:order_sample", state->dataset_type, &set, to_u64, &seed, to_u64, &epoch,
                          &shuffle, to_u64, &position))
        return NULL;
    dr_sample_name name;
    dr_error err = { 0 };
    dr_status status = dr_order_sample(((py_dataset *)set)->set, seed, epoch, shuffle, position, &name, &err);
    if (status != DR_OK)
        return raise_status(state, status, &err);
    return Py_BuildValue("(KI)", (unsigned long long)name.id, (unsigned)name.occurrence);
}

PyObject *core_replacement(PyObject *module, PyObject *args)
{
    (void)module;
    dr_sample_name bad = { 0 };
    unsigned attempt;
    uint64_t n;
    if (!PyArg_ParseTuple(args, "O&O&O&IIO&:replacement", to_u64, &bad.seed, to_u64, &bad.epoch, to_u64, &bad.id,
                          &bad.occurrence, &attempt, to_u64, &n))
        return NULL;
    if (n)
        return PyLong_FromUnsignedLongLong(dr_replacement(&bad, attempt, n));
    PyErr_SetString(PyExc_ValueError, "replacement: n must be a positive int, got 0");
    return NULL;
}

PyObject *core_replacement_sample(PyObject *module, PyObject *args)
{
    core_state *state = PyModule_GetState(module);
    PyObject *set;
    dr_sample_name bad = { 0 }, name;
    unsigned attempt;
    if (!PyArg_ParseTuple(args, "O!O&O&O&II:replacement_sample", state->dataset_type, &set, to_u64, &bad.seed, to_u64,
                          &bad.epoch, to_u64, &bad.id, &bad.occurrence, &attempt))
        return NULL;
    dr_error err = { 0 };
    const dr_status status = dr_replacement_sample(((py_dataset *)set)->set, &bad, attempt, &name, &err);
    if (status != DR_OK)
        return raise_status(state, status, &err);
    return Py_BuildValue("(KI)", (unsigned long long)name.id, (unsigned)name.occurrence);
}

static PyMethodDef methods[] = {
    { "run", run, METH_VARARGS, "run(seed, epoch, id, occurrence): ((name, kind, dtype, dims, bytes), ...)" },
    { "feed", feed, METH_VARARGS, "feed(buffers, seed, epoch, id, occurrence): the same for fields that are given." },
    { "check", check, METH_VARARGS, "check(delivered): raises where an op leaves one of these outputs behind." },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_dealloc, dealloc },
    { Py_tp_methods, methods },
    { Py_tp_doc, "Runs single samples in the calling thread." },
    { 0, NULL },
};

PyType_Spec core_runner_spec = {
    .name = "drapps._core.Runner",
    .basicsize = sizeof(py_runner),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
