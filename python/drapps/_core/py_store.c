/* py_store.c: Store: values of Python functions kept on disk, each as a text that describes it and a block of bytes. */
#include "py_core.h"

typedef struct py_store {
    PyObject_HEAD dr_store *store; /* NULL: closed */
} py_store;

PyObject *core_store_open(PyObject *module, PyObject *args)
{
    core_state *state = PyModule_GetState(module);
    const char *folder, *identity;
    uint64_t limit = 0, memory = 0;
    int adaptive = 1;
    dr_error err = { 0 };
    if (!PyArg_ParseTuple(args, "zs|O&pO&:open_store", &folder, &identity, to_u64, &limit, &adaptive, to_u64, &memory))
        return NULL;
    py_store *self = core_new(state->store_type);
    if (!self)
        return NULL;
    PyThreadState *gil = PyEval_SaveThread();
    dr_status status = dr_store_open_tiers(folder, identity, limit, memory, &self->store, &err);
    PyEval_RestoreThread(gil);
    if (status == DR_OK) {
        dr_store_adapt(self->store, adaptive);
        return (PyObject *)self;
    }
    Py_DECREF(self);
    return raise_status(state, status, &err);
}

static dr_store *opened(PyObject *self)
{
    dr_store *store = ((py_store *)self)->store;
    if (!store) {
        dr_error err = { .status = DR_ERR_STATE, .text = "the store is closed" };
        raise_status(state_of(self), DR_ERR_STATE, &err);
    }
    return store;
}

/* Text and block, which lie in one bytearray; None when the store has nothing whole under the name. */
static PyObject *get(PyObject *self, PyObject *args)
{
    const char *name;
    Py_ssize_t size;
    dr_store *store = opened(self);
    if (!store || !PyArg_ParseTuple(args, "y#:get", &name, &size))
        return NULL;
    dr_store_key key = dr_store_key_of(store, name, (size_t)size);
    dr_stored found;
    PyThreadState *gil = PyEval_SaveThread();
    bool there = dr_store_find(store, &key, &found);
    PyEval_RestoreThread(gil);
    if (!there || found.n_fields != 2 || found.bytes > PY_SSIZE_T_MAX)
        Py_RETURN_NONE;
    PyObject *memory = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)found.bytes);
    if (!memory)
        return NULL;
    char *data = PyByteArray_AsString(memory);
    gil = PyEval_SaveThread();
    there = dr_store_read(store, &found, data);
    PyEval_RestoreThread(gil);
    if (!there) {
        Py_DECREF(memory);
        Py_RETURN_NONE;
    }
    PyObject *text = PyUnicode_DecodeUTF8(data, (Py_ssize_t)found.fields[0].dims[0], NULL);
    return text ? Py_BuildValue("NNn", text, memory, (Py_ssize_t)found.at[1]) : (Py_DECREF(memory), NULL);
}

static PyObject *put(PyObject *self, PyObject *args)
{
    const char *name, *text;
    Py_ssize_t size, length;
    Py_buffer block;
    dr_store *store = opened(self);
    if (!store || !PyArg_ParseTuple(args, "y#s#y*:put", &name, &size, &text, &length, &block))
        return NULL;
    dr_store_key key = dr_store_key_of(store, name, (size_t)size);
    dr_view fields[] = {
        { (uint8_t *)text, 0, { .kind = DR_KIND_TEXT, .dtype = DR_U8, .n_dims = 1, .dims = { length } }, { 0 } },
        { block.buf, 0, { .kind = DR_KIND_BYTES, .dtype = DR_U8, .n_dims = 1, .dims = { block.len } }, { 0 } },
    };
    PyThreadState *gil = PyEval_SaveThread();
    bool kept = dr_store_put(store, &key, fields, 2);
    PyEval_RestoreThread(gil);
    PyBuffer_Release(&block);
    return PyBool_FromLong(kept);
}

static PyObject *stats(PyObject *self, PyObject *unused)
{
    (void)unused;
    dr_store *store = opened(self);
    if (!store)
        return NULL;
    dr_store_stats s;
    dr_store_get_stats(store, &s);
    return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:s,s:s,s:K,s:K,s:K,s:K}", "records",
                         s.records, "hits", s.hits, "misses", s.misses, "damaged", s.damaged, "written", s.written,
                         "written_bytes", s.written_bytes, "raw_bytes", s.raw_bytes, "unpack_ns", s.unpack_ns,
                         "read_ns", s.read_ns, "read_bytes", s.read_bytes, "disk_bytes", s.disk_bytes, "limit_bytes",
                         s.limit_bytes, "codec", s.codec, "stopped", s.stopped, "memory_hits", s.memory_hits,
                         "memory_records", s.memory_records, "memory_bytes", s.memory_bytes, "memory_limit_bytes",
                         s.memory_limit_bytes);
}

static PyObject *discard(PyObject *self, PyObject *args)
{
    const char *why;
    dr_store *store = opened(self);
    if (!store || !PyArg_ParseTuple(args, "s:discard", &why))
        return NULL;
    dr_store_discard(store, why);
    Py_RETURN_NONE;
}

static PyObject *close_store(PyObject *self, PyObject *unused)
{
    (void)unused;
    dr_store_close(&((py_store *)self)->store);
    Py_RETURN_NONE;
}

static void dealloc(PyObject *self)
{
    dr_store_close(&((py_store *)self)->store);
    core_free(self);
}

static PyMethodDef methods[] = {
    { "get", get, METH_VARARGS, "get(name): (text, memory, where the block begins in it), or None." },
    { "put", put, METH_VARARGS, "put(name, text, block): whether it is kept." },
    { "discard", discard, METH_VARARGS, "discard(why): deletes what this process has put; nothing more is kept." },
    { "stats", stats, METH_NOARGS, "Counters, as a dict." },
    { "close", close_store, METH_NOARGS, "Closes; no other thread may use it then." },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_dealloc, dealloc },
    { Py_tp_methods, methods },
    { Py_tp_doc, "Values kept on disk; drapps.cached uses it." },
    { 0, NULL },
};

PyType_Spec core_store_spec = {
    .name = "drapps._core.Store",
    .basicsize = sizeof(py_store),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
