/* py_graph.c: Graph: ops over named fields. */
#include "py_core.h"

static PyObject *wrap(core_state *state, dr_graph *graph)
{
    py_graph *self = core_new(state->graph_type);
    if (!self) {
        dr_graph_free(&graph);
        return NULL;
    }
    self->graph = graph;
    return (PyObject *)self;
}

PyObject *core_graph_from_json(PyObject *module, PyObject *args)
{
    core_state *state = PyModule_GetState(module);
    const char *text;
    if (!PyArg_ParseTuple(args, "s:graph_from_json", &text))
        return NULL;
    dr_graph *graph = NULL;
    dr_error err = { 0 };
    dr_status status = dr_graph_from_json(text, &graph, &err);
    return status == DR_OK ? wrap(state, graph) : raise_status(state, status, &err);
}

static void dealloc(PyObject *self)
{
    dr_graph_free(&((py_graph *)self)->graph);
    core_free(self);
}

static PyObject *json(PyObject *self, PyObject *unused)
{
    (void)unused;
    const char *text = NULL;
    dr_error err = { 0 };
    dr_status status = dr_graph_json(((py_graph *)self)->graph, &text, &err);
    return status == DR_OK ? PyUnicode_FromString(text) : raise_status(state_of(self), status, &err);
}

static PyObject *explain(PyObject *self, PyObject *args)
{
    core_state *state = state_of(self);
    PyObject *set;
    if (!PyArg_ParseTuple(args, "O!:explain", state->dataset_type, &set))
        return NULL;
    char *text = NULL;
    dr_error err = { 0 };
    dr_status status = dr_graph_explain(((py_graph *)self)->graph, ((py_dataset *)set)->set, &text, &err);
    return status == DR_OK ? take_text(text) : raise_status(state, status, &err);
}

static PyObject *cuts(PyObject *self, PyObject *args)
{
    core_state *state = state_of(self);
    PyObject *set;
    if (!PyArg_ParseTuple(args, "O!:cuts", state->dataset_type, &set))
        return NULL;
    char *text = NULL;
    dr_error err = { 0 };
    dr_status status = dr_graph_cuts(((py_graph *)self)->graph, ((py_dataset *)set)->set, &text, &err);
    return status == DR_OK ? take_text(text) : raise_status(state, status, &err);
}

static PyMethodDef methods[] = {
    { "json", json, METH_NOARGS, "The canonical JSON form." },
    { "cuts", cuts, METH_VARARGS, "cuts(dataset): the edges at which samples could be stored, as JSON." },
    { "explain", explain, METH_VARARGS, "explain(dataset): what would run, with shapes, as text." },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_dealloc, dealloc },
    { Py_tp_methods, methods },
    { Py_tp_doc, "A graph of ops over named fields." },
    { 0, NULL },
};

PyType_Spec core_graph_spec = {
    .name = "drapps._core.Graph",
    .basicsize = sizeof(py_graph),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
