/* py_process.c: what a worker process says to the kernel and the C library about itself. */
#include "py_core.h"

#include <signal.h>
#include <sys/prctl.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

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

/* By itself, glibc gives memory back as soon as twice the largest freed array is free, and a sample's temporary arrays
 * are mostly more than two: the next ones then cost page faults and zeroing, which can be a third of a sample's time.
 * Arrays above LARGEST, the most that it allows, still come from the kernel and go back there. */
PyObject *core_keep_memory(PyObject *module, PyObject *args)
{
    enum { LARGEST = 32 << 20 };
    int bytes;
    (void)module;
    if (!PyArg_ParseTuple(args, "i:keep_memory", &bytes))
        return NULL;
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, LARGEST);
    mallopt(M_TRIM_THRESHOLD, bytes);
#endif
    Py_RETURN_NONE;
}
