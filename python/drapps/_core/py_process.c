/* py_process.c: what a worker process says to the kernel about itself. */
#include "py_core.h"

#include <signal.h>
#include <sys/prctl.h>

PyObject *core_name_process(PyObject *module, PyObject *name)
{
    (void)module;
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    if (!text)
        return NULL;
    prctl(PR_SET_NAME, text, 0, 0, 0);
    Py_RETURN_NONE;
}

PyObject *core_end_with_parent(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    Py_RETURN_NONE;
}
