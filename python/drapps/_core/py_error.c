/* py_error.c: from dr_status to Python exceptions.
 *
 * Every exception is a drapps.Error and also the builtin that a Python programmer would catch: damaged data is a
 * ValueError, as parsers raise it, and an OSError, which is what PIL raises for such files.
 */
#include "py_core.h"

struct error_row {
    dr_status status; /* DR_OK: not raised by status alone */
    const char *name;
    PyObject *const *also[2]; /* builtin bases, by address: builtins are no constants */
    const char *doc;
};

/* KeyError prints the repr of its text; an error for people prints the text. */
static PyObject *plain_str_dict(void)
{
    PyObject *dict = PyDict_New();
    PyObject *str = dict ? PyObject_GetAttrString(PyExc_BaseException, "__str__") : NULL;
    if (!str || PyDict_SetItemString(dict, "__str__", str) < 0)
        Py_CLEAR(dict);
    Py_XDECREF(str);
    return dict;
}

static PyObject *make_error(const struct error_row *row, PyObject *base)
{
    PyObject *first = row->also[0] ? *row->also[0] : NULL, *second = row->also[1] ? *row->also[1] : NULL;
    PyObject *bases = PyTuple_Pack(1 + !!first + !!second, base, first, second);
    PyObject *dict = bases ? plain_str_dict() : NULL;
    PyObject *error = dict ? PyErr_NewExceptionWithDoc(row->name, row->doc, bases, dict) : NULL;
    Py_XDECREF(bases);
    Py_XDECREF(dict);
    return error;
}

static int add_error(PyObject *module, PyObject *error)
{
    PyObject *name = PyObject_GetAttrString(error, "__name__");
    int failed = !name || PyObject_SetAttr(module, name, error) < 0;
    Py_XDECREF(name);
    return failed ? -1 : 0;
}

static int add_rows(PyObject *module, core_state *state)
{
    const struct error_row rows[] = {
        { DR_ERR_ARG, "drapps.ArgumentError", { &PyExc_ValueError }, "An argument or setting is wrong." },
        { DR_ERR_NOMEM, "drapps.OutOfMemoryError", { &PyExc_MemoryError }, "Out of memory." },
        { DR_ERR_IO, "drapps.IOError", { &PyExc_OSError }, "Reading or writing failed." },
        { DR_ERR_FORMAT,
          "drapps.FormatError",
          { &PyExc_ValueError, &PyExc_OSError },
          "Data is damaged or not of the expected format." },
        { DR_ERR_LIMIT, "drapps.LimitError", { &PyExc_ValueError }, "A limit would be exceeded." },
        { DR_ERR_UNSUPPORTED,
          "drapps.UnsupportedError",
          { &PyExc_NotImplementedError },
          "Not supported by this build." },
        { DR_ERR_STATE, "drapps.StateError", { &PyExc_RuntimeError }, "The call does not fit the object's state." },
        { DR_ERR_CANCELLED, "drapps.CancelledError", { &PyExc_RuntimeError }, "The loader was closed or cancelled." },
        { DR_ERR_FORKED, "drapps.ForkedError", { &PyExc_RuntimeError }, "The object belongs to the parent process." },
        { DR_ERR_NOT_FOUND, "drapps.NotFoundError", { &PyExc_KeyError }, "No such field, op or setting." },
        { DR_ERR_BAD_SAMPLES, "drapps.BadSampleError", { &PyExc_RuntimeError }, "Too many samples could not be read." },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        PyObject *error = make_error(&rows[i], state->base_error);
        state->errors[-rows[i].status] = error;
        if (!error || add_error(module, error) < 0)
            return -1;
    }
    return 0;
}

int core_add_errors(PyObject *module, core_state *state)
{
    const struct error_row base = { DR_OK, "drapps.Error", { NULL }, "What every error of drapps is." };
    const struct error_row missing = {
        DR_OK, "drapps.FileMissingError", { &PyExc_FileNotFoundError }, "No such file or folder."
    };
    state->base_error = make_error(&base, PyExc_Exception);
    if (!state->base_error || add_error(module, state->base_error) < 0 || add_rows(module, state) < 0)
        return -1;
    state->file_missing = make_error(&missing, state->base_error);
    return state->file_missing ? add_error(module, state->file_missing) : -1;
}

/* Escapes control characters: a name in a message must not steer a terminal, nor begin a line of a log. */
static void escape(const char *text, char out[4 * DR_ERROR_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    size_t n = 0;
    for (const char *c = text; *c && n + 4 < 4 * DR_ERROR_TEXT; c++) {
        const unsigned char byte = (unsigned char)*c;
        if (byte >= 0x20 && byte != 0x7f) {
            out[n++] = *c;
            continue;
        }
        out[n++] = '\\';
        if (byte == '\n') {
            out[n++] = 'n';
            continue;
        }
        out[n++] = 'x';
        out[n++] = digits[byte >> 4];
        out[n++] = digits[byte & 15];
    }
    out[n] = 0;
}

/* Paths need not be UTF-8: what cannot be decoded is shown escaped. */
static PyObject *raise_text(PyObject *error, const char *text)
{
    char shown[4 * DR_ERROR_TEXT];
    escape(text, shown);
    PyObject *message = PyUnicode_DecodeUTF8(shown, (Py_ssize_t)strlen(shown), "backslashreplace");
    if (message)
        PyErr_SetObject(error, message);
    Py_XDECREF(message);
    return NULL;
}

PyObject *raise_open_status(core_state *state, dr_status status, const dr_error *err)
{
    if (status == DR_ERR_NOT_FOUND)
        return raise_text(state->file_missing, err->text);
    return raise_status(state, status, err);
}

PyObject *raise_status(core_state *state, dr_status status, const dr_error *err)
{
    int known = status < 0 && -status < (int)(sizeof state->errors / sizeof state->errors[0]);
    PyObject *error = known && state->errors[-status] ? state->errors[-status] : state->base_error;
    return raise_text(error, err && err->text[0] ? err->text : dr_status_text(status));
}
