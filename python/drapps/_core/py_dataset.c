/* py_dataset.c: Dataset, and the ways to open one. */
#include "py_core.h"

#include <stdlib.h>

enum { MAX_LISTED = 64, KEY_BYTES = 4096 };

PyObject *core_dataset_wrap(core_state *state, dr_dataset *set)
{
    py_dataset *self = core_new(state->dataset_type);
    if (!self) {
        dr_dataset_unref(&set);
        return NULL;
    }
    self->set = set;
    return (PyObject *)self;
}

/* --- a path --- */

/* Fills `out` with the texts of a sequence, borrowed from it, NULL-ended. */
static int read_texts(PyObject *sequence, const char **out)
{
    Py_ssize_t n = PySequence_Size(sequence);
    if (n < 0)
        return -1;
    if (n >= MAX_LISTED) {
        PyErr_Format(PyExc_ValueError, "extensions must be at most %d, got %zd", MAX_LISTED - 1, n);
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *entry = PySequence_GetItem(sequence, i);
        out[i] = entry ? PyUnicode_AsUTF8AndSize(entry, NULL) : NULL;
        Py_XDECREF(entry); /* the tuple of the caller keeps it */
        if (!out[i])
            return -1;
    }
    out[n] = NULL;
    return 0;
}

/* Ctrl-C while a server is waited for. */
static bool was_interrupted(void *user)
{
    (void)user;
    const PyGILState_STATE gil = PyGILState_Ensure();
    const bool interrupted = PyErr_CheckSignals() < 0; /* the exception stays set for open_path */
    PyGILState_Release(gil);
    return interrupted;
}

/* Takes `path`, a bytes object. */
static PyObject *open_path(core_state *state, PyObject *path, const dr_read_options *options)
{
    const char *path_text = PyBytes_AsString(path);
    dr_dataset *set = NULL;
    dr_error err = { 0 };
    PyThreadState *gil = PyEval_SaveThread();
    dr_status status = dr_dataset_open(path_text, options, &set, &err);
    PyEval_RestoreThread(gil);
    Py_DECREF(path);
    if (PyErr_Occurred()) {
        dr_dataset_unref(&set);
        return NULL;
    }
    return status == DR_OK ? core_dataset_wrap(state, set) : raise_open_status(state, status, &err);
}

PyObject *core_dataset_open(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "path",        "format",    "root", "extensions", "path_column", "label_column",
                             "mask_column", "use_index", "name", "timeout",    "credentials", NULL };
    PyObject *path = NULL, *extensions = NULL;
    const char *extension_texts[MAX_LISTED] = { 0 };
    int use_index = 1;
    dr_read_options options;
    dr_read_defaults(&options);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|$sO&O!O&O&O&pO&dO&:open_dataset", names, PyUnicode_FSConverter,
                                     &path, &options.format, text_or_none, &options.root, &PyTuple_Type, &extensions,
                                     text_or_none, &options.path_column, text_or_none, &options.label_column,
                                     text_or_none, &options.mask_column, &use_index, text_or_none, &options.name,
                                     &options.timeout_s, text_or_none, &options.credentials))
        return NULL;
    options.use_index = use_index;
    options.interrupted = was_interrupted;
    if (extensions && read_texts(extensions, extension_texts) < 0) {
        Py_DECREF(path);
        return NULL;
    }
    options.extensions = extensions ? extension_texts : NULL;
    return open_path(PyModule_GetState(module), path, &options);
}

/* --- arrays --- */

struct held {
    int n;
    Py_buffer buffers[MAX_LISTED];
};

/* The data set is gone.  This can happen in any thread, also while the GIL is released around a call. */
static void release_held(void *user)
{
    struct held *held = user;
    if (!Py_IsInitialized())
        return; /* the interpreter took its objects along */
    PyGILState_STATE gil = PyGILState_Ensure();
    for (int i = 0; i < held->n; i++)
        PyBuffer_Release(&held->buffers[i]);
    PyGILState_Release(gil);
    free(held);
}

static dr_dtype dtype_of(const Py_buffer *buffer)
{
    const char *f = buffer->format ? buffer->format : "B";
    if (*f == '@' || *f == '=' || *f == '<')
        f++;
    if (f[0] && f[1])
        return 0;
    int wide = buffer->itemsize == 8;
    switch (*f) {
    case 'B':
    case 'c':
        return DR_U8;
    case 'b':
        return DR_I8;
    case 'H':
        return DR_U16;
    case 'h':
        return DR_I16;
    case 'i':
    case 'l':
    case 'q':
        return wide ? DR_I64 : DR_I32;
    case 'e':
        return DR_F16;
    case 'f':
        return DR_F32;
    case 'd':
        return DR_F64;
    case '?':
        return DR_BOOL;
    default:
        return 0;
    }
}

int core_describe(const char *name, const char *kind, const Py_buffer *buffer, dr_desc *out)
{
    *out = (dr_desc){ .dtype = dtype_of(buffer), .n_dims = buffer->ndim };
    if (!out->dtype) {
        PyErr_Format(PyExc_TypeError,
                     "%s: dtype must be one that drapps knows, got \"%s\"; cast it, for example to int64 or "
                     "float32",
                     name, buffer->format ? buffer->format : "?");
        return -1;
    }
    if (buffer->ndim > DR_MAX_DIMS) {
        PyErr_Format(PyExc_ValueError, "%s must have at most %d dimensions, got %d", name, DR_MAX_DIMS, buffer->ndim);
        return -1;
    }
    for (int i = 0; i < buffer->ndim; i++)
        out->dims[i] = buffer->shape[i];
    if (core_kind_parse(kind, &out->kind) < 0)
        return -1;
    out->layout = core_kind_layout(out->kind);
    return 0;
}

/* rows: a tuple of (name, buffer, kind). */
static int hold_arrays(PyObject *rows, struct held *held, dr_array *arrays)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(rows); i++) {
        const char *name, *kind;
        PyObject *object;
        if (!PyArg_ParseTuple(PyTuple_GetItem(rows, i), "sOs", &name, &object, &kind))
            return -1;
        Py_buffer *buffer = &held->buffers[held->n];
        if (PyObject_GetBuffer(object, buffer, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) < 0)
            return -1;
        held->n++;
        arrays[i].name = name;
        arrays[i].data = buffer->buf;
        if (core_describe(name, kind, buffer, &arrays[i].desc) < 0)
            return -1;
    }
    return 0;
}

PyObject *core_dataset_from_arrays(PyObject *module, PyObject *args)
{
    PyObject *rows;
    if (!PyArg_ParseTuple(args, "O!:from_arrays", &PyTuple_Type, &rows))
        return NULL;
    if (PyTuple_Size(rows) > MAX_LISTED)
        return PyErr_Format(PyExc_ValueError, "arrays must be at most %d, got %zd", MAX_LISTED, PyTuple_Size(rows));
    struct held *held = calloc(1, sizeof *held);
    if (!held)
        return PyErr_NoMemory();
    dr_array arrays[MAX_LISTED] = { 0 };
    if (hold_arrays(rows, held, arrays) < 0) {
        release_held(held);
        return NULL;
    }
    core_state *state = PyModule_GetState(module);
    dr_dataset *set = NULL;
    dr_error err = { 0 };
    dr_status status = dr_dataset_from_arrays(arrays, held->n, release_held, held, &set, &err);
    if (status == DR_OK)
        return core_dataset_wrap(state, set);
    release_held(held);
    return raise_status(state, status, &err);
}

/* --- mixtures --- */

/* The sets of a tuple of Datasets, borrowed; their number, or -1. */
static int read_sets(core_state *state, PyObject *sets, dr_dataset **parts)
{
    Py_ssize_t n = PyTuple_Size(sets);
    if (n < 1 || n > MAX_LISTED) {
        PyErr_Format(PyExc_ValueError, "parts must be 1 to %d data sets, got %zd", MAX_LISTED, n);
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *part = PyTuple_GetItem(sets, i);
        if (Py_TYPE(part) != (PyTypeObject *)state->dataset_type) {
            PyErr_Format(PyExc_TypeError, "each part must be a Dataset, got %R", part);
            return -1;
        }
        parts[i] = ((py_dataset *)part)->set;
    }
    return (int)n;
}

static int read_weights(PyObject *weights, int n, double *shares)
{
    if (PyTuple_Size(weights) != n) {
        PyErr_Format(PyExc_ValueError, "weights must be a number for each of the %d data sets, got %zd", n,
                     PyTuple_Size(weights));
        return -1;
    }
    for (int i = 0; i < n; i++) {
        shares[i] = PyFloat_AsDouble(PyTuple_GetItem(weights, i));
        if (PyErr_Occurred())
            return -1;
    }
    return 0;
}

PyObject *core_dataset_mix(PyObject *module, PyObject *args)
{
    core_state *state = PyModule_GetState(module);
    PyObject *sets, *weights;
    uint64_t length = 0;
    if (!PyArg_ParseTuple(args, "O!O!|O&:mix", &PyTuple_Type, &sets, &PyTuple_Type, &weights, to_u64, &length))
        return NULL;
    dr_dataset *parts[MAX_LISTED];
    double shares[MAX_LISTED];
    int n = read_sets(state, sets, parts);
    if (n < 0 || read_weights(weights, n, shares) < 0)
        return NULL;
    dr_dataset *set = NULL;
    dr_error err = { 0 };
    dr_status status = dr_dataset_mix(parts, shares, n, length, &set, &err);
    return status == DR_OK ? core_dataset_wrap(state, set) : raise_status(state, status, &err);
}

PyObject *core_dataset_concat(PyObject *module, PyObject *args)
{
    core_state *state = PyModule_GetState(module);
    PyObject *sets;
    if (!PyArg_ParseTuple(args, "O!:concat", &PyTuple_Type, &sets))
        return NULL;
    dr_dataset *parts[MAX_LISTED];
    int n = read_sets(state, sets, parts);
    if (n < 0)
        return NULL;
    dr_dataset *set = NULL;
    dr_error err = { 0 };
    dr_status status = dr_dataset_concat(parts, n, &set, &err);
    return status == DR_OK ? core_dataset_wrap(state, set) : raise_status(state, status, &err);
}

/* --- subsets: methods of the type --- */

static PyObject *slice_set(PyObject *self, PyObject *args)
{
    uint64_t first, n;
    long long step;
    if (!PyArg_ParseTuple(args, "O&LO&:slice", to_u64, &first, &step, to_u64, &n))
        return NULL;
    dr_dataset *set = NULL;
    dr_error err = { 0 };
    dr_status status = dr_dataset_slice(((py_dataset *)self)->set, first, step, n, &set, &err);
    return status == DR_OK ? core_dataset_wrap(state_of(self), set) : raise_status(state_of(self), status, &err);
}

static PyObject *select_set(PyObject *self, PyObject *args)
{
    Py_buffer buffer;
    if (!PyArg_ParseTuple(args, "y*:select", &buffer))
        return NULL;
    dr_dataset *set = NULL;
    dr_error err = { 0 };
    PyThreadState *gil = PyEval_SaveThread();
    dr_status status =
        dr_dataset_select(((py_dataset *)self)->set, buffer.buf, (uint64_t)buffer.len / sizeof(int64_t), &set, &err);
    PyEval_RestoreThread(gil);
    PyBuffer_Release(&buffer);
    return status == DR_OK ? core_dataset_wrap(state_of(self), set) : raise_status(state_of(self), status, &err);
}

static PyObject *shuffled_set(PyObject *self, PyObject *args)
{
    uint64_t seed;
    if (!PyArg_ParseTuple(args, "O&:shuffled", to_u64, &seed))
        return NULL;
    dr_dataset *set = NULL;
    dr_error err = { 0 };
    dr_status status = dr_dataset_shuffled(((py_dataset *)self)->set, seed, &set, &err);
    return status == DR_OK ? core_dataset_wrap(state_of(self), set) : raise_status(state_of(self), status, &err);
}

static PyObject *renumbered(PyObject *self, PyObject *unused)
{
    (void)unused;
    dr_dataset *set = NULL;
    dr_error err = { 0 };
    dr_status status = dr_dataset_renumbered(((py_dataset *)self)->set, &set, &err);
    return status == DR_OK ? core_dataset_wrap(state_of(self), set) : raise_status(state_of(self), status, &err);
}

/* --- the type --- */

static void dealloc(PyObject *self)
{
    dr_dataset_unref(&((py_dataset *)self)->set);
    core_free(self);
}

static PyObject *get_name(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_DecodeFSDefault(dr_dataset_name(((py_dataset *)self)->set));
}

static PyObject *get_format(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(dr_dataset_format(((py_dataset *)self)->set));
}

static PyObject *get_size(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(dr_dataset_size(((py_dataset *)self)->set));
}

static PyObject *get_places(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(dr_dataset_places(((py_dataset *)self)->set));
}

static PyObject *get_fingerprint(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(dr_dataset_fingerprint(((py_dataset *)self)->set));
}

/* ((name, kind, dtype, dims), ...); -1 stands for an extent that depends on the sample. */
static PyObject *get_fields(PyObject *self, void *unused)
{
    (void)unused;
    const dr_dataset *set = ((py_dataset *)self)->set;
    int n = dr_dataset_fields(set);
    PyObject *fields = PyTuple_New(n);
    for (int i = 0; fields && i < n; i++) {
        dr_desc desc;
        const char *name = dr_dataset_field(set, i, &desc);
        PyObject *row =
            Py_BuildValue("(sssN)", name, core_kind_name(desc.kind), dr_dtype_name(desc.dtype), core_desc_dims(&desc));
        if (!row || PyTuple_SetItem(fields, i, row) < 0)
            Py_CLEAR(fields);
    }
    return fields;
}

static PyObject *get_classes(PyObject *self, void *unused)
{
    (void)unused;
    const dr_dataset *set = ((py_dataset *)self)->set;
    size_t n = dr_dataset_classes(set);
    PyObject *classes = PyTuple_New((Py_ssize_t)n);
    for (size_t i = 0; classes && i < n; i++) {
        PyObject *name = PyUnicode_DecodeFSDefault(dr_dataset_class(set, i));
        if (!name || PyTuple_SetItem(classes, (Py_ssize_t)i, name) < 0)
            Py_CLEAR(classes);
    }
    return classes;
}

static PyObject *key(PyObject *self, PyObject *args)
{
    uint64_t id;
    if (!PyArg_ParseTuple(args, "O&:key", to_u64, &id))
        return NULL;
    char text[KEY_BYTES];
    dr_error err = { 0 };
    dr_status status = dr_dataset_key(((py_dataset *)self)->set, id, text, sizeof text, &err);
    return status == DR_OK ? PyUnicode_DecodeFSDefault(text) : raise_status(state_of(self), status, &err);
}

static PyObject *file(PyObject *self, PyObject *args)
{
    uint64_t id;
    int field;
    if (!PyArg_ParseTuple(args, "O&i:file", to_u64, &id, &field))
        return NULL;
    char text[KEY_BYTES];
    dr_error err = { 0 };
    dr_status status = dr_dataset_file(((py_dataset *)self)->set, id, field, text, sizeof text, &err);
    if (status == DR_ERR_NOT_FOUND)
        Py_RETURN_NONE;
    return status == DR_OK ? PyUnicode_DecodeFSDefault(text) : raise_status(state_of(self), status, &err);
}

static PyObject *check_shard(PyObject *self, PyObject *args)
{
    uint64_t shard;
    if (!PyArg_ParseTuple(args, "O&:check_shard", to_u64, &shard))
        return NULL;
    dr_error err = { 0 };
    PyThreadState *gil = PyEval_SaveThread();
    dr_status status = dr_dataset_check_shard(((py_dataset *)self)->set, (size_t)shard, &err);
    PyEval_RestoreThread(gil);
    if (status == DR_OK)
        Py_RETURN_NONE;
    return raise_open_status(state_of(self), status, &err);
}

static PyObject *compare(PyObject *self, PyObject *args)
{
    core_state *state = state_of(self);
    uint64_t shard, first;
    PyObject *source;
    if (!PyArg_ParseTuple(args, "O&O!O&:compare", to_u64, &shard, state->dataset_type, &source, to_u64, &first))
        return NULL;
    dr_error err = { 0 };
    dr_pack_changes found = { 0 };
    PyThreadState *gil = PyEval_SaveThread();
    dr_status status =
        dr_dataset_compare(((py_dataset *)self)->set, (size_t)shard, ((py_dataset *)source)->set, first, &found, &err);
    PyEval_RestoreThread(gil);
    if (status != DR_OK)
        return raise_status(state, status, &err);
    PyObject *names = PyUnicode_DecodeFSDefault(found.names);
    return names ? Py_BuildValue("KKN", found.changed, found.touched, names) : NULL;
}

/* JSON of a packed set, None of any other. */
static PyObject *get_manifest(PyObject *self, void *unused)
{
    (void)unused;
    char *text;
    dr_error err = { 0 };
    dr_status status = dr_dataset_manifest(((py_dataset *)self)->set, &text, &err);
    if (status != DR_OK)
        return raise_status(state_of(self), status, &err);
    if (!text)
        Py_RETURN_NONE;
    return take_text(text);
}

static PyMethodDef methods[] = {
    { "key", key, METH_VARARGS, "key(id): the key of a sample, its path below the root or its name in a tar." },
    { "file", file, METH_VARARGS, "file(id, field): the file that a field's bytes came from; None: from none." },
    { "check_shard", check_shard, METH_VARARGS, "check_shard(i): raises where a shard of a packed set is damaged." },
    { "compare", compare, METH_VARARGS,
      "compare(i, source, first): samples of a shard that have changed in the data it was made of, from sample `first` "
      "on: their number, that of samples with another time and the same bytes, and the first names." },
    { "slice", slice_set, METH_VARARGS, "slice(first, step, n): the data set of these places." },
    { "select", select_set, METH_VARARGS, "select(indices): the data set of these places, a buffer of int64." },
    { "renumbered", renumbered, METH_NOARGS, "renumbered(): its places as samples with ids from 0 on." },
    { "shuffled", shuffled_set, METH_VARARGS, "shuffled(seed): the data set in a random order that stays." },
    { 0 },
};

static PyGetSetDef members[] = {
    { "name", get_name, NULL, "Path or description.", NULL },
    { "format", get_format, NULL, "Name of the format.", NULL },
    { "size", get_size, NULL, "Number of distinct samples.", NULL },
    { "places", get_places, NULL, "Samples of an epoch.", NULL },
    { "fingerprint", get_fingerprint, NULL, "Tells it from others, by its content and what was selected.", NULL },
    { "fields", get_fields, NULL, "Fields as (name, kind, dtype, dims); -1 is an extent that varies.", NULL },
    { "manifest", get_manifest, NULL, "Of a packed set: its manifest, as JSON; else None.", NULL },
    { "classes", get_classes, NULL, "Names of the classes, where labels stand for folders.", NULL },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_dealloc, dealloc },
    { Py_tp_methods, methods },
    { Py_tp_getset, members },
    { Py_tp_doc, "A data set: an ordered collection of samples with named fields." },
    { 0, NULL },
};

PyType_Spec core_dataset_spec = {
    .name = "drapps._core.Dataset",
    .basicsize = sizeof(py_dataset),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
