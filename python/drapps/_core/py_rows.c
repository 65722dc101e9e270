/* py_rows.c: write_row: a sample's numbers and arrays into its row of a batch.
 *
 * A layout (drapps/procpool/layout.py) is a tree of tuples in the shape of the sample:
 *
 *   ("tuple", type, (child, ...))       exactly this type, tuple or list, with so many members
 *   ("dict", dict, (key, ...), (child, ...))
 *   ("tensor", type, offset, row_bytes, dtype, shape, names, plain)   names: of the attributes in enum name, interned;
 *                                        plain: None, or a function that makes a plain torch.Tensor of it
 *   ("array", type, offset, row_bytes, dtype, shape, names)
 *   ("scalar", type, offset, row_bytes)  a NumPy scalar
 *   ("int" | "float" | "bool", type, offset, row_bytes)
 *   ("other", type)                      goes into a list beside the row
 *
 * A sample that differs in any type, dtype, shape or key does not fit: write_row says False, and what it left in the
 * row counts for nothing.
 */
#include "py_core.h"

enum { NO_FIT = 0, FITS = 1, FAILED = -1 };
enum name { DTYPE, SHAPE, IS_CPU, REQUIRES_GRAD, IS_CONTIGUOUS, IS_NEG, DATA_PTR, RESOLVE_NEG, CONTIGUOUS };

struct row {
    uint8_t *slab;
    uint64_t index;
    PyObject *others;
};

static PyObject *member(PyObject *spec, Py_ssize_t i)
{
    return PyTuple_GetItem(spec, i); /* borrowed; NULL with an exception when a layout is too short */
}

/* Where a leaf's row begins; NULL with an exception. */
static uint8_t *place(PyObject *spec, const struct row *row, Py_ssize_t *bytes)
{
    PyObject *offset = member(spec, 2), *width = member(spec, 3);
    if (!offset || !width)
        return NULL;
    size_t at = PyLong_AsSize_t(offset);
    *bytes = PyLong_AsSsize_t(width);
    return PyErr_Occurred() ? NULL : row->slab + at + row->index * (size_t)*bytes;
}

static int same(PyObject *a, PyObject *b)
{
    return a == b ? 1 : PyObject_RichCompareBool(a, b, Py_EQ);
}

static PyObject *name_of(PyObject *spec, enum name name)
{
    PyObject *names = member(spec, 6);
    return names ? member(names, name) : NULL;
}

/* Whether an attribute equals wanted. */
static int attribute_is(PyObject *spec, PyObject *object, enum name name, PyObject *wanted)
{
    PyObject *text = name_of(spec, name);
    PyObject *value = text && wanted ? PyObject_GetAttr(object, text) : NULL;
    if (!value)
        return FAILED;
    int result = same(value, wanted);
    Py_DECREF(value);
    return result;
}

static PyObject *call(PyObject *spec, PyObject *object, enum name name)
{
    PyObject *text = name_of(spec, name);
    return text ? PyObject_CallMethodObjArgs(object, text, NULL) : NULL;
}

static int is_true(PyObject *spec, PyObject *object, enum name name)
{
    PyObject *value = call(spec, object, name);
    if (!value)
        return FAILED;
    int result = PyObject_IsTrue(value);
    Py_DECREF(value);
    return result;
}

/* --- leaves --- */

static int write_buffer(PyObject *value, uint8_t *to, Py_ssize_t bytes)
{
    Py_buffer view;
    if (PyObject_GetBuffer(value, &view, PyBUF_STRIDES) < 0)
        return FAILED;
    int result = NO_FIT;
    if (view.len == bytes)
        result = PyBuffer_ToContiguous(to, &view, bytes, 'C') < 0 ? FAILED : FITS;
    PyBuffer_Release(&view);
    return result;
}

static int write_array(PyObject *spec, PyObject *value, uint8_t *to, Py_ssize_t bytes)
{
    int fits = attribute_is(spec, value, DTYPE, member(spec, 4));
    if (fits == FITS)
        fits = attribute_is(spec, value, SHAPE, member(spec, 5));
    return fits == FITS ? write_buffer(value, to, bytes) : fits;
}

/* A tensor whose elements lie one after the other as they are, for copying; a new reference. */
static PyObject *dense(PyObject *spec, PyObject *tensor)
{
    int contiguous = is_true(spec, tensor, IS_CONTIGUOUS);
    int negated = contiguous < 0 ? FAILED : is_true(spec, tensor, IS_NEG);
    if (negated < 0)
        return NULL;
    if (contiguous && !negated) {
        Py_INCREF(tensor);
        return tensor;
    }
    PyObject *resolved = call(spec, tensor, RESOLVE_NEG);
    PyObject *result = resolved ? call(spec, resolved, CONTIGUOUS) : NULL;
    Py_XDECREF(resolved);
    return result;
}

static int copy_tensor(PyObject *spec, PyObject *tensor, uint8_t *to, Py_ssize_t bytes)
{
    PyObject *address = call(spec, tensor, DATA_PTR);
    if (!address)
        return FAILED;
    void *from = PyLong_AsVoidPtr(address);
    Py_DECREF(address);
    if (PyErr_Occurred())
        return FAILED;
    if (!from && bytes)
        return NO_FIT;
    if (bytes)
        memcpy(to, from, (size_t)bytes);
    return FITS;
}

static int write_plain_tensor(PyObject *spec, PyObject *value, uint8_t *to, Py_ssize_t bytes)
{
    int fits = attribute_is(spec, value, DTYPE, member(spec, 4));
    if (fits == FITS)
        fits = attribute_is(spec, value, SHAPE, member(spec, 5));
    if (fits == FITS)
        fits = attribute_is(spec, value, IS_CPU, Py_True);
    if (fits == FITS)
        fits = attribute_is(spec, value, REQUIRES_GRAD, Py_False);
    if (fits != FITS)
        return fits;
    PyObject *elements = dense(spec, value);
    fits = elements ? copy_tensor(spec, elements, to, bytes) : FAILED;
    Py_XDECREF(elements);
    if (fits == FAILED) { /* a sparse tensor has no such thing as an address */
        PyErr_Clear();
        return NO_FIT;
    }
    return fits;
}

static int write_tensor(PyObject *spec, PyObject *value, uint8_t *to, Py_ssize_t bytes)
{
    PyObject *make_plain = member(spec, 7);
    if (!make_plain || make_plain == Py_None)
        return make_plain ? write_plain_tensor(spec, value, to, bytes) : FAILED;
    PyObject *plain = PyObject_CallFunctionObjArgs(make_plain, value, NULL);
    if (!plain)
        return FAILED;
    int fits = write_plain_tensor(spec, plain, to, bytes);
    Py_DECREF(plain);
    return fits;
}

static int write_int(PyObject *value, uint8_t *to)
{
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    memcpy(to, &number, sizeof number);
    return overflow ? NO_FIT : PyErr_Occurred() ? FAILED : FITS;
}

static int write_float(PyObject *value, uint8_t *to)
{
    double number = PyFloat_AsDouble(value);
    memcpy(to, &number, sizeof number);
    return PyErr_Occurred() ? FAILED : FITS;
}

static int write_leaf(char kind, PyObject *spec, PyObject *value, const struct row *row)
{
    Py_ssize_t bytes;
    uint8_t *to = place(spec, row, &bytes);
    if (!to)
        return FAILED;
    switch (kind) {
    case 'a':
        return write_array(spec, value, to, bytes);
    case 's':
        return write_buffer(value, to, bytes);
    case 'i':
        return write_int(value, to);
    case 'f':
        return write_float(value, to);
    case 'b':
        *to = value == Py_True;
        return FITS;
    default:
        return write_tensor(spec, value, to, bytes);
    }
}

/* --- trees --- */

static int write_value(PyObject *spec, PyObject *value, const struct row *row);

static int write_sequence(PyObject *spec, PyObject *value, const struct row *row)
{
    PyObject *children = member(spec, 2);
    Py_ssize_t n = children ? PyTuple_Size(children) : -1;
    if (n < 0)
        return FAILED;
    if (PySequence_Size(value) != n)
        return PyErr_Occurred() ? FAILED : NO_FIT;
    int fits = FITS;
    for (Py_ssize_t i = 0; i < n && fits == FITS; i++) {
        PyObject *item = PySequence_GetItem(value, i);
        fits = item ? write_value(member(children, i), item, row) : FAILED;
        Py_XDECREF(item);
    }
    return fits;
}

static int write_dict(PyObject *spec, PyObject *value, const struct row *row)
{
    PyObject *keys = member(spec, 2), *children = keys ? member(spec, 3) : NULL;
    Py_ssize_t n = children ? PyTuple_Size(keys) : -1;
    if (n < 0)
        return FAILED;
    if (PyDict_Size(value) != n)
        return NO_FIT;
    int fits = FITS;
    for (Py_ssize_t i = 0; i < n && fits == FITS; i++) {
        PyObject *item = PyDict_GetItemWithError(value, member(keys, i));
        if (!item)
            return PyErr_Occurred() ? FAILED : NO_FIT;
        Py_INCREF(item);
        fits = write_value(member(children, i), item, row);
        Py_DECREF(item);
    }
    return fits;
}

static int write_value(PyObject *spec, PyObject *value, const struct row *row)
{
    PyObject *name = spec ? member(spec, 0) : NULL, *type = name ? member(spec, 1) : NULL;
    const char *kind = type ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    if (!kind)
        return FAILED;
    if ((PyObject *)Py_TYPE(value) != type)
        return NO_FIT;
    if (!strcmp(kind, "tuple"))
        return write_sequence(spec, value, row);
    if (!strcmp(kind, "dict"))
        return write_dict(spec, value, row);
    if (!strcmp(kind, "other"))
        return PyList_Append(row->others, value) < 0 ? FAILED : FITS;
    return write_leaf(kind[0], spec, value, row);
}

PyObject *core_write_row(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *spec, *value;
    uint64_t address;
    struct row row;
    if (!PyArg_ParseTuple(args, "O!OO&O&O!:write_row", &PyTuple_Type, &spec, &value, to_u64, &address, to_u64,
                          &row.index, &PyList_Type, &row.others))
        return NULL;
    row.slab = (uint8_t *)(uintptr_t)address;
    int fits = write_value(spec, value, &row);
    return fits == FAILED ? NULL : PyBool_FromLong(fits);
}
