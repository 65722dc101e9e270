/* py_array.c: Array: one field of a batch, without a copy.
 *
 * It leaves by the buffer protocol and by DLPack.  What it hands out keeps the batch alive by dr_batch_ref; letting go
 * is dr_batch_unref and free, so that a framework may do it without the GIL, after the interpreter has ended and in a
 * forked child.
 */
#include "py_core.h"

#include <stdlib.h>

#include "py_dlpack.h"

typedef struct py_array {
    PyObject_HEAD dr_batch *batch;
    void *data;
    dr_kind kind;
    dr_dtype dtype;
    int n_dims;
    Py_ssize_t dims[DR_MAX_DIMS], strides[DR_MAX_DIMS]; /* strides in bytes */
} py_array;

static py_array *as_array(PyObject *self)
{
    return (py_array *)self;
}

static void set_strides(py_array *self, const dr_view *view, int item)
{
    Py_ssize_t step = (Py_ssize_t)dr_dtype_size(self->dtype);
    int image = item && (self->kind == DR_KIND_IMAGE || self->kind == DR_KIND_MASK);
    int row = !image ? -1 : view->desc.layout == DR_LAYOUT_CHW ? self->n_dims - 2 : 0;
    for (int i = self->n_dims - 1; i >= 0; i--) {
        self->strides[i] = i == row ? view->stride : step;
        step = self->strides[i] * self->dims[i];
    }
}

PyObject *core_array_wrap(core_state *state, dr_batch *batch, const dr_view *view, int item)
{
    py_array *self = core_new(state->array_type);
    if (!self)
        return NULL;
    self->batch = dr_batch_ref(batch);
    self->data = view->data;
    self->kind = view->desc.kind;
    self->dtype = view->desc.dtype;
    self->n_dims = view->desc.n_dims;
    for (int i = 0; i < self->n_dims; i++)
        self->dims[i] = (Py_ssize_t)view->desc.dims[i];
    set_strides(self, view, item);
    return (PyObject *)self;
}

static void dealloc(PyObject *self)
{
    dr_batch_unref(&as_array(self)->batch);
    core_free(self);
}

static Py_ssize_t n_bytes(const py_array *a)
{
    Py_ssize_t bytes = (Py_ssize_t)dr_dtype_size(a->dtype);
    for (int i = 0; i < a->n_dims; i++)
        bytes *= a->dims[i];
    return bytes;
}

static int is_dense(const py_array *a)
{
    Py_ssize_t step = (Py_ssize_t)dr_dtype_size(a->dtype);
    for (int i = a->n_dims - 1; i >= 0; i--) {
        if (a->dims[i] > 1 && a->strides[i] != step)
            return 0;
        step *= a->dims[i];
    }
    return 1;
}

/* --- buffer protocol --- */

/* NULL: the buffer protocol has no such type. */
static const char *struct_format(dr_dtype dtype)
{
    switch (dtype) {
    case DR_U8:
        return "B";
    case DR_I8:
        return "b";
    case DR_U16:
        return "H";
    case DR_I16:
        return "h";
    case DR_I32:
        return "i";
    case DR_I64:
        return "q";
    case DR_F16:
        return "e";
    case DR_F32:
        return "f";
    case DR_F64:
        return "d";
    case DR_BOOL:
        return "?";
    case DR_BF16:
        return NULL;
    }
    return NULL;
}

/* A consumer that asks for plain bytes, as hashlib does, gets those of any type. */
static int get_buffer(PyObject *self, Py_buffer *out, int flags)
{
    py_array *a = as_array(self);
    const char *format = struct_format(a->dtype);
    out->obj = NULL;
    if (!format && flags & PyBUF_FORMAT) {
        PyErr_Format(PyExc_BufferError,
                     "%s has no NumPy type: import torch for torch tensors, or add .to_dtype(\"float32\")",
                     dr_dtype_name(a->dtype));
        return -1;
    }
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !is_dense(a)) {
        PyErr_SetString(PyExc_BufferError, "the array is not dense: ask for its strides");
        return -1;
    }
    *out = (Py_buffer){
        .buf = a->data,
        .len = n_bytes(a),
        .itemsize = (Py_ssize_t)dr_dtype_size(a->dtype),
        .ndim = flags & PyBUF_ND ? a->n_dims : 1,
        .format = flags & PyBUF_FORMAT ? (char *)format : NULL,
        .shape = flags & PyBUF_ND ? a->dims : NULL,
        .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? a->strides : NULL,
    };
    Py_INCREF(self); /* the consumer's hold; it keeps the batch */
    out->obj = self;
    return 0;
}

/* --- DLPack --- */

/* Both forms with the memory that they point to. */
struct lent {
    union {
        dl_managed legacy;
        dl_versioned versioned;
    };
    dr_batch *batch;
    int64_t dims[DR_MAX_DIMS], strides[DR_MAX_DIMS];
};

static void give_back(struct lent *lent)
{
    dr_batch_unref(&lent->batch);
    free(lent);
}

static void delete_legacy(dl_managed *self)
{
    give_back(self->owner);
}

static void delete_versioned(dl_versioned *self)
{
    give_back(self->owner);
}

/* A capsule that nobody took over still has its first name. */
static void drop_legacy(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        dl_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");
        managed->deleter(managed);
    }
}

static void drop_versioned(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        dl_versioned *managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        managed->deleter(managed);
    }
}

static uint8_t dl_code(dr_dtype dtype)
{
    switch (dtype) {
    case DR_U8:
    case DR_U16:
        return DL_UINT;
    case DR_F16:
    case DR_F32:
    case DR_F64:
        return DL_FLOAT;
    case DR_BF16:
        return DL_BFLOAT;
    case DR_BOOL:
        return DL_BOOL;
    default:
        return DL_INT;
    }
}

static void fill_tensor(const py_array *a, struct lent *lent, dl_tensor *out)
{
    int64_t size = (int64_t)dr_dtype_size(a->dtype);
    for (int i = 0; i < a->n_dims; i++) {
        lent->dims[i] = a->dims[i];
        lent->strides[i] = a->strides[i] / size;
    }
    out->data = a->data;
    out->device.type = DL_CPU;
    out->n_dims = a->n_dims;
    out->dtype.code = dl_code(a->dtype);
    out->dtype.bits = (uint8_t)(size * 8);
    out->dtype.lanes = 1;
    out->dims = lent->dims;
    out->strides = lent->strides;
}

static PyObject *lend(const py_array *a, int versioned)
{
    struct lent *lent = calloc(1, sizeof *lent);
    if (!lent)
        return PyErr_NoMemory();
    lent->batch = dr_batch_ref(a->batch);
    PyObject *capsule;
    if (versioned) {
        lent->versioned.version.major = 1;
        lent->versioned.owner = lent;
        lent->versioned.deleter = delete_versioned;
        fill_tensor(a, lent, &lent->versioned.tensor);
        capsule = PyCapsule_New(&lent->versioned, "dltensor_versioned", drop_versioned);
    } else {
        lent->legacy.owner = lent;
        lent->legacy.deleter = delete_legacy;
        fill_tensor(a, lent, &lent->legacy.tensor);
        capsule = PyCapsule_New(&lent->legacy, "dltensor", drop_legacy);
    }
    if (!capsule)
        give_back(lent);
    return capsule;
}

/* 1: the consumer reads version 1; 0: not; -1: an exception is set. */
static int wants_versioned(PyObject *max_version)
{
    if (max_version == Py_None)
        return 0;
    PyObject *major = PySequence_GetItem(max_version, 0);
    long value = major ? PyLong_AsLong(major) : -1;
    Py_XDECREF(major);
    return PyErr_Occurred() ? -1 : value >= 1;
}

static PyObject *dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "stream", "max_version", "dl_device", "copy", NULL };
    PyObject *stream = Py_None, *max_version = Py_None, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", names, &stream, &max_version, &device, &copy))
        return NULL;
    if (copy == Py_True) {
        PyErr_SetString(PyExc_BufferError, "a batch is handed out without a copy; copy what you got");
        return NULL;
    }
    if (device != Py_None) {
        int type, id;
        if (!PyArg_ParseTuple(device, "ii", &type, &id))
            return NULL;
        if (type != DL_CPU)
            return PyErr_Format(PyExc_BufferError, "the batch is in CPU memory, not on device (%d, %d)", type, id);
    }
    int versioned = wants_versioned(max_version);
    return versioned < 0 ? NULL : lend(as_array(self), versioned);
}

static PyObject *dlpack_device(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return Py_BuildValue("(ii)", DL_CPU, 0);
}

/* --- facts --- */

static PyObject *get_shape(PyObject *self, void *unused)
{
    (void)unused;
    py_array *a = as_array(self);
    PyObject *shape = PyTuple_New(a->n_dims);
    for (int i = 0; shape && i < a->n_dims; i++) {
        PyObject *dim = PyLong_FromSsize_t(a->dims[i]);
        if (!dim || PyTuple_SetItem(shape, i, dim) < 0)
            Py_CLEAR(shape);
    }
    return shape;
}

static PyObject *get_dtype(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(dr_dtype_name(as_array(self)->dtype));
}

static PyObject *get_kind(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(core_kind_name(as_array(self)->kind));
}

static PyObject *get_nbytes(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromSsize_t(n_bytes(as_array(self)));
}

static PyObject *repr(PyObject *self)
{
    PyObject *shape = get_shape(self, NULL);
    if (!shape)
        return NULL;
    PyObject *text = PyUnicode_FromFormat("<drapps.Array %s %R>", dr_dtype_name(as_array(self)->dtype), shape);
    Py_DECREF(shape);
    return text;
}

static PyMethodDef methods[] = {
    { "__dlpack__", (PyCFunction)(void (*)(void))dlpack, METH_VARARGS | METH_KEYWORDS,
      "A DLPack capsule over the same memory." },
    { "__dlpack_device__", dlpack_device, METH_NOARGS, "(1, 0): the CPU." },
    { 0 },
};

static PyGetSetDef members[] = {
    { "shape", get_shape, NULL, "Extents.", NULL },
    { "dtype", get_dtype, NULL, "Element type, by name.", NULL },
    { "kind", get_kind, NULL, "What the numbers mean: array, image, mask, boxes.", NULL },
    { "nbytes", get_nbytes, NULL, "Bytes of its elements.", NULL },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_dealloc, dealloc },
    { Py_tp_methods, methods },
    { Py_tp_getset, members },
    { Py_tp_repr, repr },
    { Py_bf_getbuffer, get_buffer },
    { Py_tp_doc, "A field of a batch, without a copy: read it by numpy.asarray or torch.from_dlpack." },
    { 0, NULL },
};

PyType_Spec core_array_spec = {
    .name = "drapps._core.Array",
    .basicsize = sizeof(py_array),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
