/* py_jpeg.c: JpegDecoder and JpegIndex: the JPEG decoder by itself.
 *
 * A decoder serves one thread at a time; the package keeps one for each thread that decodes (jpeg.py).  An index may
 * be shared: a thread that finds it in use decodes without it, which gives the same pixels.
 */
#include "py_core.h"

#include <stdio.h>

enum { SIDE_MAX = 65535, PIXELS_MAX = 178956970 }; /* what the decoder accepts: no more memory is asked for */

typedef struct py_jpeg {
    PyObject_HEAD dr_jpeg *jpeg;
    int busy; /* protected by the GIL */
} py_jpeg;

typedef struct py_jpeg_index {
    PyObject_HEAD dr_jpeg_index *index;
    int busy; /* likewise */
} py_jpeg_index;

/* --- JpegIndex --- */

static PyObject *index_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { NULL };
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":JpegIndex", names))
        return NULL;
    py_jpeg_index *self = core_new((PyObject *)type);
    dr_error err = { 0 };
    dr_status status = self ? dr_jpeg_index_new(&self->index, &err) : DR_OK;
    if (status == DR_OK)
        return (PyObject *)self;
    Py_DECREF(self);
    return raise_status(PyType_GetModuleState(type), status, &err);
}

static void index_dealloc(PyObject *self)
{
    dr_jpeg_index_free(&((py_jpeg_index *)self)->index);
    core_free(self);
}

static PyObject *index_nbytes(PyObject *self, void *unused)
{
    (void)unused;
    py_jpeg_index *index = (py_jpeg_index *)self;
    if (index->busy) {
        dr_error err = { .status = DR_ERR_STATE, .text = "the index is at work in another thread" };
        return raise_status(state_of(self), DR_ERR_STATE, &err);
    }
    return PyLong_FromSize_t(dr_jpeg_index_bytes(index->index));
}

static PyGetSetDef index_members[] = {
    { "nbytes", index_nbytes, NULL, "Bytes that it takes when stored; 0 while nothing is known.", NULL },
    { 0 },
};

static PyType_Slot index_slots[] = {
    { Py_tp_new, index_new },
    { Py_tp_dealloc, index_dealloc },
    { Py_tp_getset, index_members },
    { Py_tp_doc, "JpegIndex()\n--\n\nWhere the rows of one JPEG file begin.\n\n"
                 "Learnt by decode_jpeg while it decodes the file for the first time, and used when it decodes it "
                 "again: a crop is then\nfaster.  Belongs to the bytes of that file alone." },
    { 0, NULL },
};

PyType_Spec core_jpeg_index_spec = {
    .name = "drapps._core.JpegIndex",
    .basicsize = sizeof(py_jpeg_index),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = index_slots,
};

/* --- JpegDecoder --- */

static PyObject *decoder_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { NULL };
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":JpegDecoder", names))
        return NULL;
    py_jpeg *self = core_new((PyObject *)type);
    dr_error err = { 0 };
    dr_status status = self ? dr_jpeg_open(&self->jpeg, &err) : DR_OK;
    if (status == DR_OK)
        return (PyObject *)self;
    Py_DECREF(self);
    return raise_status(PyType_GetModuleState(type), status, &err);
}

static void decoder_dealloc(PyObject *self)
{
    dr_jpeg_close(&((py_jpeg *)self)->jpeg);
    core_free(self);
}

/* 0, or -1 with the exception of a decoder that is in use. */
static int begin(PyObject *self)
{
    if (((py_jpeg *)self)->busy) {
        dr_error err = { .status = DR_ERR_STATE, .text = "the decoder is at work in another thread" };
        raise_status(state_of(self), DR_ERR_STATE, &err);
        return -1;
    }
    ((py_jpeg *)self)->busy = 1;
    return 0;
}

static dr_status whole_image(dr_jpeg *jpeg, const Py_buffer *data, dr_rect *rect, dr_error *err)
{
    dr_jpeg_info info;
    PyThreadState *gil = PyEval_SaveThread();
    dr_status status = dr_jpeg_header(jpeg, data->buf, (size_t)data->len, &info, err);
    PyEval_RestoreThread(gil);
    if (status == DR_OK)
        *rect = (dr_rect){ 0, 0, info.width, info.height };
    return status;
}

/* Whatever the image is, a larger crop lies outside: said before memory is taken for it. */
static dr_status check_crop(const dr_rect *r, dr_error *err)
{
    if (r->w >= 1 && r->h >= 1 && r->w <= SIDE_MAX && r->h <= SIDE_MAX && r->w * r->h <= PIXELS_MAX)
        return DR_OK;
    snprintf(err->text, sizeof err->text,
             "crop=(%lld, %lld, %lld, %lld): width and height must be 1 to %d, and %d pixels or fewer", (long long)r->x,
             (long long)r->y, (long long)r->w, (long long)r->h, SIDE_MAX, PIXELS_MAX);
    return err->status = DR_ERR_ARG;
}

/* The pixels of rect in a new bytearray, which nobody else sees yet: it may be filled without the GIL. */
static PyObject *decode_rect(py_jpeg *self, const Py_buffer *data, const dr_rect *rect, py_jpeg_index *index,
                             dr_status *status, dr_error *err)
{
    PyObject *pixels = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(rect->w * rect->h * 3));
    if (!pixels)
        return NULL;
    uint8_t *bytes = (uint8_t *)PyByteArray_AsString(pixels);
    dr_jpeg_index *points = index && !index->busy ? index->index : NULL;
    if (points)
        index->busy = 1;
    PyThreadState *gil = PyEval_SaveThread();
    *status =
        dr_jpeg_decode(self->jpeg, data->buf, (size_t)data->len, rect, points, bytes, (ptrdiff_t)(rect->w * 3), err);
    PyEval_RestoreThread(gil);
    if (points)
        index->busy = 0;
    if (*status != DR_OK)
        Py_CLEAR(pixels);
    return pixels;
}

static PyObject *decode(PyObject *self, const Py_buffer *data, dr_rect *rect, int whole, py_jpeg_index *index)
{
    dr_error err = { 0 };
    dr_status status = DR_OK;
    PyObject *pixels = NULL;
    if (whole)
        status = whole_image(((py_jpeg *)self)->jpeg, data, rect, &err);
    else
        status = check_crop(rect, &err);
    if (status == DR_OK)
        pixels = decode_rect((py_jpeg *)self, data, rect, index, &status, &err);
    if (status != DR_OK)
        return raise_status(state_of(self), status, &err);
    return pixels ? Py_BuildValue("(NLL)", pixels, (long long)rect->h, (long long)rect->w) : NULL;
}

static PyObject *decoder_decode(PyObject *self, PyObject *args)
{
    core_state *state = state_of(self);
    Py_buffer data;
    PyObject *crop, *index;
    int libjpeg;
    if (!PyArg_ParseTuple(args, "y*OOp:decode", &data, &crop, &index, &libjpeg))
        return NULL;
    PyObject *result = NULL;
    long long r[4] = { 0 };
    int whole = crop == Py_None;
    if (index != Py_None && !PyObject_TypeCheck(index, (PyTypeObject *)state->jpeg_index_type))
        PyErr_Format(PyExc_TypeError, "index must be a JpegIndex or None, got %R", index);
    else if ((whole || PyArg_ParseTuple(crop, "LLLL", &r[0], &r[1], &r[2], &r[3])) && begin(self) == 0) {
        dr_rect rect = { r[0], r[1], r[2], r[3] };
        dr_jpeg_use_libjpeg(((py_jpeg *)self)->jpeg, libjpeg);
        result = decode(self, &data, &rect, whole, index == Py_None ? NULL : (py_jpeg_index *)index);
        ((py_jpeg *)self)->busy = 0;
    }
    PyBuffer_Release(&data);
    return result;
}

static PyObject *decoder_header(PyObject *self, PyObject *args)
{
    Py_buffer data;
    int libjpeg;
    if (!PyArg_ParseTuple(args, "y*p:header", &data, &libjpeg))
        return NULL;
    PyObject *result = NULL;
    if (begin(self) == 0) {
        dr_jpeg *jpeg = ((py_jpeg *)self)->jpeg;
        dr_jpeg_info info;
        dr_error err = { 0 };
        dr_jpeg_use_libjpeg(jpeg, libjpeg);
        dr_status status = dr_jpeg_header(jpeg, data.buf, (size_t)data.len, &info, &err);
        ((py_jpeg *)self)->busy = 0;
        result = status == DR_OK
                     ? Py_BuildValue("(LLss)", (long long)info.width, (long long)info.height, info.stored, info.decoder)
                     : raise_status(state_of(self), status, &err);
    }
    PyBuffer_Release(&data);
    return result;
}

static PyMethodDef decoder_methods[] = {
    { "decode", decoder_decode, METH_VARARGS, "decode(data, crop, index, libjpeg): (bytearray, height, width)" },
    { "header", decoder_header, METH_VARARGS, "header(data, libjpeg): (width, height, stored, decoder)" },
    { 0 },
};

static PyType_Slot decoder_slots[] = {
    { Py_tp_new, decoder_new },
    { Py_tp_dealloc, decoder_dealloc },
    { Py_tp_methods, decoder_methods },
    { Py_tp_doc, "A JPEG decoder with its buffers; one thread at a time." },
    { 0, NULL },
};

PyType_Spec core_jpeg_spec = {
    .name = "drapps._core.JpegDecoder",
    .basicsize = sizeof(py_jpeg),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = decoder_slots,
};
