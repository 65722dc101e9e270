/* py_files.c: open_files: a data set of single files from a list of (path, number), as torchvision's folders keep it.
 *
 * A million of them are read without making a Python object each: the paths are borrowed from their str for the time of
 * the call, which holds the GIL throughout. */
#include "py_core.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_EXTENSIONS = 64 };

struct taken {
    const char **paths;
    int64_t *labels;
    PyObject *kept; /* bytes of paths that are no UTF-8 */
};

static void let_go(struct taken *t)
{
    free(t->paths);
    free(t->labels);
    Py_XDECREF(t->kept);
}

/* The path as the system wants it; NULL with an exception set. */
static const char *path_text(struct taken *t, PyObject *path)
{
    Py_ssize_t size;
    const char *text = PyUnicode_AsUTF8AndSize(path, &size);
    if (!text) { /* a name that is no UTF-8, held by surrogates */
        PyErr_Clear();
        PyObject *bytes = PyUnicode_EncodeFSDefault(path);
        if (!bytes || PyList_Append(t->kept, bytes) < 0) {
            Py_XDECREF(bytes);
            return NULL;
        }
        Py_DECREF(bytes); /* the list keeps it */
        text = PyBytes_AsString(bytes);
        size = PyBytes_Size(bytes);
    }
    if (strlen(text) == (size_t)size)
        return text;
    PyErr_SetString(PyExc_ValueError, "open_files: a path must not contain a zero byte");
    return NULL;
}

static int take_row(struct taken *t, PyObject *row, Py_ssize_t i)
{
    if (!PyTuple_Check(row) || PyTuple_Size(row) != 2 || !PyUnicode_Check(PyTuple_GetItem(row, 0)) ||
        !PyLong_CheckExact(PyTuple_GetItem(row, 1))) {
        PyErr_Format(PyExc_TypeError, "open_files: entry %zd must be a tuple of a str and an int, got %R", i, row);
        return -1;
    }
    t->labels[i] = PyLong_AsLongLong(PyTuple_GetItem(row, 1));
    t->paths[i] = path_text(t, PyTuple_GetItem(row, 0));
    return !t->paths[i] || (t->labels[i] == -1 && PyErr_Occurred()) ? -1 : 0;
}

static int take_rows(struct taken *t, PyObject *rows)
{
    Py_ssize_t n = PyList_Size(rows);
    t->paths = calloc((size_t)n + 1, sizeof *t->paths);
    t->labels = calloc((size_t)n + 1, sizeof *t->labels);
    t->kept = PyList_New(0);
    if (!t->paths || !t->labels || !t->kept) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        if (take_row(t, PyList_GetItem(rows, i), i) < 0)
            return -1;
    return 0;
}

static int take_extensions(PyObject *extensions, const char **out)
{
    if (PyTuple_Size(extensions) >= MAX_EXTENSIONS) {
        PyErr_Format(PyExc_ValueError, "extensions must be at most %d, got %zd", MAX_EXTENSIONS - 1,
                     PyTuple_Size(extensions));
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_Size(extensions); i++)
        if (!(out[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(extensions, i), NULL)))
            return -1;
    return 0;
}

PyObject *core_dataset_from_files(PyObject *module, PyObject *args)
{
    core_state *state = PyModule_GetState(module);
    PyObject *rows, *extensions;
    const char *texts[MAX_EXTENSIONS] = { 0 }, *root;
    struct taken t = { 0 };
    if (!PyArg_ParseTuple(args, "O!O!z:open_files", &PyList_Type, &rows, &PyTuple_Type, &extensions, &root))
        return NULL;
    if (take_extensions(extensions, texts) < 0 || take_rows(&t, rows) < 0) {
        let_go(&t);
        return NULL;
    }
    dr_files files = { t.paths, t.labels, (size_t)PyList_Size(rows), texts[0] ? texts : NULL, root };
    dr_dataset *set = NULL;
    dr_error err = { 0 };
    dr_status status = dr_dataset_from_files(&files, &set, &err);
    let_go(&t);
    return status == DR_OK ? core_dataset_wrap(state, set) : raise_status(state, status, &err);
}
