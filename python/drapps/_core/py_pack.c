/* py_pack.c: Packer: a packed set while it is written. */
#include "py_core.h"

typedef struct py_pack {
    PyObject_HEAD dr_pack *pack; /* NULL: closed */
} py_pack;

PyObject *core_pack_open(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "dataset",     "folder",        "graph",   "n_nodes",      "name",
                             "shard_bytes", "shard_samples", "workers", "append",       "seek_points",
                             "keep_bad",    "check_space",   "codec",   "check_images", NULL };
    core_state *state = PyModule_GetState(module);
    PyObject *dataset, *folder, *graph = Py_None;
    dr_pack_options o;
    dr_pack_defaults(&o);
    int append = 0, seek_points = 1, keep_bad = 0, check_space = 1, check_images = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O&|$OisO&O&ippppsp:open_pack", names, state->dataset_type,
                                     &dataset, PyUnicode_FSConverter, &folder, &graph, &o.n_nodes, &o.name, to_u64,
                                     &o.shard_bytes, to_u64, &o.shard_samples, &o.workers, &append, &seek_points,
                                     &keep_bad, &check_space, &o.codec, &check_images))
        return NULL;
    if (graph != Py_None && Py_TYPE(graph) != (PyTypeObject *)state->graph_type) {
        Py_DECREF(folder);
        PyErr_SetString(PyExc_TypeError, "graph must be a Graph or None");
        return NULL;
    }
    o.graph = graph == Py_None ? NULL : ((py_graph *)graph)->graph;
    o.append = append;
    o.seek_points = seek_points;
    o.keep_bad = keep_bad;
    o.check_space = check_space;
    o.check_images = check_images;
    py_pack *self = core_new(state->pack_type);
    if (!self) {
        Py_DECREF(folder);
        return NULL;
    }
    dr_error err = { 0 };
    PyThreadState *gil = PyEval_SaveThread();
    dr_status status = dr_pack_open(((py_dataset *)dataset)->set, PyBytes_AsString(folder), &o, &self->pack, &err);
    PyEval_RestoreThread(gil);
    Py_DECREF(folder);
    if (status == DR_OK)
        return (PyObject *)self;
    Py_DECREF(self);
    return raise_open_status(state, status, &err);
}

static dr_pack *opened(PyObject *self)
{
    dr_pack *pack = ((py_pack *)self)->pack;
    if (!pack) {
        dr_error err = { .status = DR_ERR_STATE, .text = "the packing is closed" };
        raise_status(state_of(self), DR_ERR_STATE, &err);
    }
    return pack;
}

static PyObject *run(PyObject *self, PyObject *args)
{
    int timeout_ms;
    dr_error err = { 0 };
    dr_pack *pack = opened(self);
    if (!pack || !PyArg_ParseTuple(args, "i:run", &timeout_ms))
        return NULL;
    PyThreadState *gil = PyEval_SaveThread();
    dr_status status = dr_pack_run(pack, timeout_ms, &err);
    PyEval_RestoreThread(gil);
    if (status < DR_OK)
        return raise_status(state_of(self), status, &err);
    return PyBool_FromLong(status == DR_OK);
}

static PyObject *stats(PyObject *self, PyObject *unused)
{
    (void)unused;
    dr_pack *pack = opened(self);
    if (!pack)
        return NULL;
    dr_pack_stats s;
    dr_pack_get_stats(pack, &s);
    return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K,s:i}", "samples", s.samples, "samples_total", s.samples_total,
                         "resumed_samples", s.resumed_samples, "bytes", s.bytes, "shards", s.shards, "bad", s.bad,
                         "estimated_bytes", s.estimated_bytes, "workers", s.workers);
}

static PyObject *bad_samples(PyObject *self, PyObject *unused)
{
    (void)unused;
    dr_pack *pack = opened(self);
    PyObject *list = pack ? PyList_New(0) : NULL;
    const char *key, *why;
    for (size_t i = 0; list && dr_pack_bad_sample(pack, i, &key, &why) == DR_OK; i++) {
        PyObject *name = PyUnicode_DecodeFSDefault(key);
        PyObject *row =
            name ? Py_BuildValue("NN", name, PyUnicode_DecodeUTF8(why, (Py_ssize_t)strlen(why), "replace")) : NULL;
        if (!row || PyList_Append(list, row))
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static void shut(PyObject *self)
{
    PyThreadState *gil = PyEval_SaveThread();
    dr_pack_close(&((py_pack *)self)->pack);
    PyEval_RestoreThread(gil);
}

static PyObject *close_pack(PyObject *self, PyObject *unused)
{
    (void)unused;
    shut(self);
    Py_RETURN_NONE;
}

static void dealloc(PyObject *self)
{
    shut(self);
    core_free(self);
}

static PyMethodDef methods[] = {
    { "run", run, METH_VARARGS, "run(timeout_ms): packs for a while; whether the set is complete.  -1: to the end." },
    { "stats", stats, METH_NOARGS, "How far it is, as a dict." },
    { "bad_samples", bad_samples, METH_NOARGS, "The first bad samples that were stored, as (key, error)." },
    { "close", close_pack, METH_NOARGS, "Closes; what is not finished can be gone on with." },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_dealloc, dealloc },
    { Py_tp_methods, methods },
    { Py_tp_doc, "A packed set while it is written; drapps.pack uses it." },
    { 0, NULL },
};

PyType_Spec core_pack_spec = {
    .name = "drapps._core.Packer",
    .basicsize = sizeof(py_pack),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
