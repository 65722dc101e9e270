/* py_codec.c: Codec and CodecDict (drapps/codec.h), over buffers that come with an element type, extents and a kind. */
#include "py_core.h"

typedef struct py_codec {
    PyObject_HEAD dr_codec *codec;
} py_codec;

typedef struct py_codec_dict {
    PyObject_HEAD dr_codec_dict *dict;
} py_codec_dict;

static dr_codec *codec_of(PyObject *self)
{
    return ((py_codec *)self)->codec;
}

/* A CodecDict or None. */
static int to_dict(core_state *state, PyObject *object, dr_codec_dict **out)
{
    *out = NULL;
    if (object == Py_None)
        return 0;
    if (!PyObject_TypeCheck(object, (PyTypeObject *)state->codec_dict_type)) {
        PyErr_SetString(PyExc_TypeError, "dictionary must be a CodecDict or None");
        return -1;
    }
    *out = ((py_codec_dict *)object)->dict;
    return 0;
}

/* What Python says of a buffer: 0 or -1. */
static int describe(const Py_buffer *buffer, const char *dtype, PyObject *dims, const char *kind, dr_desc *out)
{
    *out = (dr_desc){ .dtype = dr_dtype_parse(dtype), .n_dims = (int)PyTuple_Size(dims) };
    if (!out->dtype || out->n_dims > DR_MAX_DIMS) {
        PyErr_Format(PyExc_TypeError, "arrays of %s with %d dimensions are not supported (at most %d dimensions)",
                     dtype, out->n_dims, DR_MAX_DIMS);
        return -1;
    }
    size_t bytes = dr_dtype_size(out->dtype);
    for (int i = 0; i < out->n_dims; i++) {
        out->dims[i] = PyLong_AsLongLong(PyTuple_GetItem(dims, i));
        if (PyErr_Occurred())
            return -1;
        bytes *= (size_t)out->dims[i];
    }
    if (bytes != (size_t)buffer->len) {
        PyErr_Format(PyExc_ValueError, "the buffer has %zd bytes, the array %zu", buffer->len, bytes);
        return -1;
    }
    if (core_kind_parse(kind, &out->kind) < 0)
        return -1;
    out->layout = core_kind_layout(out->kind);
    return 0;
}

/* ---- Codec ------------------------------------------------------------------------------------------------------ */

PyObject *core_codec_open(PyObject *module, PyObject *args)
{
    core_state *state = PyModule_GetState(module);
    const char *spec;
    PyObject *object = Py_None;
    dr_codec_dict *dict;
    dr_error err = { 0 };
    if (!PyArg_ParseTuple(args, "s|O:open_codec", &spec, &object) || to_dict(state, object, &dict) < 0)
        return NULL;
    py_codec *self = core_new(state->codec_type);
    if (!self)
        return NULL;
    const dr_status status = dr_codec_open(spec, dict, &self->codec, &err);
    if (status == DR_OK)
        return (PyObject *)self;
    Py_DECREF(self);
    return raise_status(state, status, &err);
}

static PyObject *encode(PyObject *self, PyObject *args)
{
    Py_buffer buffer;
    const char *dtype, *kind;
    PyObject *dims, *frame = NULL;
    dr_desc desc;
    dr_error err = { 0 };
    size_t bound, n = 0;
    if (!PyArg_ParseTuple(args, "y*sO!s:encode", &buffer, &dtype, &PyTuple_Type, &dims, &kind))
        return NULL;
    if (describe(&buffer, dtype, dims, kind, &desc) == 0) {
        dr_status status = dr_codec_bound(codec_of(self), &desc, &bound, &err);
        uint8_t *room = status == DR_OK ? malloc(bound) : NULL;
        if (status == DR_OK && !room) {
            PyErr_NoMemory();
        } else if (status == DR_OK) {
            PyThreadState *gil = PyEval_SaveThread();
            status = dr_codec_encode(codec_of(self), &desc, buffer.buf, room, bound, &n, &err);
            PyEval_RestoreThread(gil);
        }
        if (status != DR_OK)
            raise_status(state_of(self), status, &err);
        else if (room)
            frame = PyBytes_FromStringAndSize((const char *)room, (Py_ssize_t)n);
        free(room);
    }
    PyBuffer_Release(&buffer);
    return frame;
}

static PyObject *compress(PyObject *self, PyObject *args)
{
    Py_buffer buffer;
    uint8_t *out;
    size_t n;
    dr_error err = { 0 };
    if (!PyArg_ParseTuple(args, "y*:compress", &buffer))
        return NULL;
    PyThreadState *gil = PyEval_SaveThread();
    const dr_status status = dr_codec_compress(codec_of(self), buffer.buf, (size_t)buffer.len, &out, &n, &err);
    PyEval_RestoreThread(gil);
    PyBuffer_Release(&buffer);
    if (status != DR_OK)
        return raise_status(state_of(self), status, &err);
    PyObject *file = PyBytes_FromStringAndSize((const char *)out, (Py_ssize_t)n);
    dr_codec_free(out);
    return file;
}

static PyObject *takes(PyObject *self, PyObject *dtype)
{
    const char *text = PyUnicode_AsUTF8AndSize(dtype, NULL);
    return text ? PyBool_FromLong(dr_codec_takes(codec_of(self), dr_dtype_parse(text))) : NULL;
}

static PyObject *speed_tuple(const dr_codec_speed *s)
{
    return Py_BuildValue("(dddN)", s->encode_bytes_per_s, s->decode_bytes_per_s, s->ratio,
                         PyBool_FromLong(s->measured));
}

static PyObject *measure(PyObject *self, PyObject *args)
{
    Py_buffer buffer;
    const char *dtype, *kind;
    PyObject *dims, *result = NULL;
    uint64_t budget_ns;
    dr_desc desc;
    dr_codec_speed speed;
    dr_error err = { 0 };
    if (!PyArg_ParseTuple(args, "y*sO!sO&:measure", &buffer, &dtype, &PyTuple_Type, &dims, &kind, to_u64, &budget_ns))
        return NULL;
    if (describe(&buffer, dtype, dims, kind, &desc) == 0) {
        PyThreadState *gil = PyEval_SaveThread();
        const dr_status status = dr_codec_measure(codec_of(self), &desc, buffer.buf, budget_ns, &speed, &err);
        PyEval_RestoreThread(gil);
        result = status == DR_OK ? speed_tuple(&speed) : raise_status(state_of(self), status, &err);
    }
    PyBuffer_Release(&buffer);
    return result;
}

static PyObject *get_facts(PyObject *self, void *unused)
{
    (void)unused;
    const dr_codec_facts f = dr_codec_about(codec_of(self));
    return Py_BuildValue("(sNz)", f.spec, PyBool_FromLong(f.lossless), f.extension);
}

static void dealloc(PyObject *self)
{
    dr_codec_close(&((py_codec *)self)->codec);
    core_free(self);
}

static PyMethodDef methods[] = {
    { "encode", encode, METH_VARARGS, "encode(data, dtype, dims, kind): a frame" },
    { "compress", compress, METH_VARARGS, "compress(data): a file of the reference tool" },
    { "takes", takes, METH_O, "takes(dtype)" },
    { "measure", measure, METH_VARARGS,
      "measure(data, dtype, dims, kind, budget_ns): (encode and decode bytes/s, ratio, True)" },
    { 0 },
};

static PyGetSetDef getset[] = {
    { "facts", get_facts, NULL, "(spec, lossless, extension)", NULL },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_dealloc, dealloc },
    { Py_tp_methods, methods },
    { Py_tp_getset, getset },
    { Py_tp_doc, "A chain of stages; drapps.codec uses it." },
    { 0, NULL },
};

PyType_Spec core_codec_spec = {
    .name = "drapps._core.Codec",
    .basicsize = sizeof(py_codec),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

/* ---- Frames and files ------------------------------------------------------------------------------------------- */

PyObject *core_codec_peek(PyObject *module, PyObject *args)
{
    Py_buffer frame;
    dr_codec_frame f;
    dr_error err = { 0 };
    if (!PyArg_ParseTuple(args, "y*:codec_peek", &frame))
        return NULL;
    const dr_status status = dr_codec_peek(frame.buf, (size_t)frame.len, &f, &err);
    PyBuffer_Release(&frame);
    if (status != DR_OK)
        return raise_status(PyModule_GetState(module), status, &err);
    return Py_BuildValue("(sNsKsINdd)", dr_dtype_name(f.desc.dtype), core_desc_dims(&f.desc),
                         core_kind_name(f.desc.kind), (unsigned long long)f.raw_bytes, f.spec, f.dict_id,
                         PyBool_FromLong(f.lossless), f.max_abs_error, f.max_rel_error);
}

PyObject *core_codec_decode(PyObject *module, PyObject *args)
{
    core_state *state = PyModule_GetState(module);
    Py_buffer frame, out;
    PyObject *object;
    dr_codec_dict *dict;
    dr_error err = { 0 };
    dr_status status = DR_ERR_ARG;
    if (!PyArg_ParseTuple(args, "y*w*O:codec_decode", &frame, &out, &object))
        return NULL;
    const int good = to_dict(state, object, &dict) == 0;
    if (good) {
        PyThreadState *gil = PyEval_SaveThread();
        status = dr_codec_decode(frame.buf, (size_t)frame.len, dict, out.buf, (size_t)out.len, &err);
        PyEval_RestoreThread(gil);
    }
    PyBuffer_Release(&frame);
    PyBuffer_Release(&out);
    if (!good)
        return NULL;
    return status == DR_OK ? Py_NewRef(Py_None) : raise_status(state, status, &err);
}

PyObject *core_codec_decompress(PyObject *module, PyObject *args)
{
    core_state *state = PyModule_GetState(module);
    Py_buffer file;
    PyObject *object, *data = NULL;
    uint64_t max_size;
    dr_codec_dict *dict;
    uint8_t *out;
    size_t n;
    dr_error err = { 0 };
    if (!PyArg_ParseTuple(args, "y*OO&:codec_decompress", &file, &object, to_u64, &max_size))
        return NULL;
    if (to_dict(state, object, &dict) == 0) {
        PyThreadState *gil = PyEval_SaveThread();
        const dr_status status =
            dr_codec_decompress(file.buf, (size_t)file.len, dict, (size_t)max_size, &out, &n, &err);
        PyEval_RestoreThread(gil);
        data = status == DR_OK ? PyBytes_FromStringAndSize((const char *)out, (Py_ssize_t)n)
                               : raise_status(state, status, &err);
        if (status == DR_OK)
            dr_codec_free(out);
    }
    PyBuffer_Release(&file);
    return data;
}

/* ---- Dictionaries ----------------------------------------------------------------------------------------------- */

static PyObject *wrap_dict(core_state *state, dr_status status, dr_codec_dict *dict, const dr_error *err)
{
    if (status != DR_OK)
        return raise_status(state, status, err);
    py_codec_dict *self = core_new(state->codec_dict_type);
    if (self)
        self->dict = dict;
    else
        dr_codec_dict_close(&dict);
    return (PyObject *)self;
}

PyObject *core_codec_dict_open(PyObject *module, PyObject *args)
{
    Py_buffer data;
    dr_codec_dict *dict = NULL;
    dr_error err = { 0 };
    if (!PyArg_ParseTuple(args, "y*:open_codec_dict", &data))
        return NULL;
    const dr_status status = dr_codec_dict_open(data.buf, (size_t)data.len, &dict, &err);
    PyBuffer_Release(&data);
    return wrap_dict(PyModule_GetState(module), status, dict, &err);
}

/* The sizes of a tuple of integers; NULL: an exception is set. */
static size_t *take_sizes(PyObject *tuple, size_t all)
{
    const size_t n = (size_t)PyTuple_Size(tuple);
    size_t *sizes = calloc(n ? n : 1, sizeof *sizes), sum = 0;
    if (!sizes)
        return (size_t *)PyErr_NoMemory();
    for (size_t i = 0; i < n && !PyErr_Occurred(); i++) {
        sizes[i] = PyLong_AsSize_t(PyTuple_GetItem(tuple, (Py_ssize_t)i));
        sum += sizes[i];
    }
    if (!PyErr_Occurred() && sum == all)
        return sizes;
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "the samples have %zu bytes, their sizes say %zu", all, sum);
    free(sizes);
    return NULL;
}

PyObject *core_codec_dict_train(PyObject *module, PyObject *args)
{
    Py_buffer samples;
    PyObject *tuple, *result = NULL;
    uint64_t max_size;
    dr_codec_dict *dict = NULL;
    dr_error err = { 0 };
    if (!PyArg_ParseTuple(args, "y*O!O&:train_codec_dict", &samples, &PyTuple_Type, &tuple, to_u64, &max_size))
        return NULL;
    size_t *sizes = take_sizes(tuple, (size_t)samples.len);
    if (sizes) {
        PyThreadState *gil = PyEval_SaveThread();
        const dr_status status =
            dr_codec_dict_train(samples.buf, sizes, (size_t)PyTuple_Size(tuple), (size_t)max_size, &dict, &err);
        PyEval_RestoreThread(gil);
        result = wrap_dict(PyModule_GetState(module), status, dict, &err);
    }
    free(sizes);
    PyBuffer_Release(&samples);
    return result;
}

static PyObject *get_id(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(dr_codec_dict_id(((py_codec_dict *)self)->dict));
}

static PyObject *dict_bytes(PyObject *self, PyObject *unused)
{
    (void)unused;
    size_t n;
    const char *data = dr_codec_dict_bytes(((py_codec_dict *)self)->dict, &n);
    return PyBytes_FromStringAndSize(data, (Py_ssize_t)n);
}

static void dict_dealloc(PyObject *self)
{
    dr_codec_dict_close(&((py_codec_dict *)self)->dict);
    core_free(self);
}

static PyMethodDef dict_methods[] = {
    { "__bytes__", dict_bytes, METH_NOARGS, "The dictionary as a file has it." },
    { 0 },
};

static PyGetSetDef dict_getset[] = {
    { "id", get_id, NULL, "The number that names it in frames and files.", NULL },
    { 0 },
};

static PyType_Slot dict_slots[] = {
    { Py_tp_dealloc, dict_dealloc },
    { Py_tp_methods, dict_methods },
    { Py_tp_getset, dict_getset },
    { Py_tp_doc, "A Zstandard dictionary: train_dictionary and open_dictionary of drapps.codec make it." },
    { 0, NULL },
};

PyType_Spec core_codec_dict_spec = {
    .name = "drapps._core.CodecDict",
    .basicsize = sizeof(py_codec_dict),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = dict_slots,
};

/* ---- Tables and choice ------------------------------------------------------------------------------------------ */

PyObject *core_codec_stages_json(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyUnicode_FromString(dr_codec_stages_json());
}

/* The class with this name; 0: an exception is set. */
static dr_codec_class class_named(const char *name)
{
#define CLASS_TEST(id, value, text, summary)                                                                           \
    if (!strcmp(name, text))                                                                                           \
        return DR_CODEC_##id;
    DR_CODEC_CLASS_MAP(CLASS_TEST)
#undef CLASS_TEST
    PyErr_Format(PyExc_ValueError, "data_class must be a class of data (drapps.codec.CLASSES), got '%s'", name);
    return (dr_codec_class)0;
}

PyObject *core_codec_candidates(PyObject *module, PyObject *args)
{
    (void)module;
    const char *name, *dtype;
    if (!PyArg_ParseTuple(args, "ss:codec_candidates", &name, &dtype))
        return NULL;
    const dr_codec_class data_class = class_named(name);
    PyObject *list = data_class ? PyList_New(0) : NULL;
    const char *const *spec = dr_codec_candidates(data_class, dr_dtype_parse(dtype));
    for (; list && *spec; spec++) {
        PyObject *text = PyUnicode_FromString(*spec);
        if (!text || PyList_Append(list, text) < 0)
            Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}

PyObject *core_codec_measured(PyObject *module, PyObject *args)
{
    const char *spec, *name;
    dr_codec_speed speed;
    dr_error err = { 0 };
    if (!PyArg_ParseTuple(args, "ss:codec_measured", &spec, &name))
        return NULL;
    const dr_codec_class data_class = class_named(name);
    if (!data_class)
        return NULL;
    const dr_status status = dr_codec_measured(spec, data_class, &speed, &err);
    return status == DR_OK ? speed_tuple(&speed) : raise_status(PyModule_GetState(module), status, &err);
}

PyObject *core_codec_keep(PyObject *module, PyObject *args)
{
    const char *spec, *name;
    dr_codec_speed speed = { 0 };
    dr_error err = { 0 };
    if (!PyArg_ParseTuple(args, "ss(ddd):codec_keep", &spec, &name, &speed.encode_bytes_per_s,
                          &speed.decode_bytes_per_s, &speed.ratio))
        return NULL;
    const dr_codec_class data_class = class_named(name);
    if (!data_class)
        return NULL;
    const dr_status status = dr_codec_keep(spec, data_class, &speed, &err);
    return status == DR_OK ? Py_NewRef(Py_None) : raise_status(PyModule_GetState(module), status, &err);
}

/* (class, spec, speed, seconds); the criteria: (read bytes/s, cores, weight of encoding, weight of space). */
PyObject *core_codec_choose(PyObject *module, PyObject *args)
{
    Py_buffer buffer;
    const char *dtype, *kind;
    PyObject *dims, *result = NULL;
    dr_desc desc;
    dr_codec_criteria w;
    dr_codec_choice c;
    dr_error err = { 0 };
    dr_codec_criteria_defaults(&w);
    if (!PyArg_ParseTuple(args, "y*sO!s(dddd):codec_choose", &buffer, &dtype, &PyTuple_Type, &dims, &kind,
                          &w.read_bytes_per_s, &w.decode_cores, &w.encode_weight, &w.space_weight))
        return NULL;
    if (describe(&buffer, dtype, dims, kind, &desc) == 0) {
        PyThreadState *gil = PyEval_SaveThread();
        const dr_status status = dr_codec_choose(&desc, buffer.buf, &w, &c, &err);
        PyEval_RestoreThread(gil);
        result = status == DR_OK ? Py_BuildValue("(ssNd)", dr_codec_class_name(c.data_class), c.spec,
                                                 speed_tuple(&c.speed), c.seconds)
                                 : raise_status(PyModule_GetState(module), status, &err);
    }
    PyBuffer_Release(&buffer);
    return result;
}
