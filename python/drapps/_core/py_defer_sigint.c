/* py_defer_sigint.c: defer_sigint(fn, *args): calls it so that Ctrl-C cannot end it half-way.
 *
 * Python runs the handlers of signals between any two steps of the main thread, and one that raises there leaves
 * book-keeping half done.  While the function runs, SIGINT is only noted; it is sent again when the function has
 * returned, so that its handler runs then.  The second one goes to the handler at once: a function that hangs can still
 * be ended.  Other threads run no handlers: there it is a plain call.
 */
#include "py_core.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Process-wide, as handlers are.  Used by the main thread and by the handler. */
static volatile sig_atomic_t noted;
static struct sigaction theirs;
static int depth;

static void note(int signal_number)
{
    if (noted++)
        theirs.sa_handler(signal_number);
}

static int is_main_thread(void)
{
    return (pid_t)syscall(SYS_gettid) == getpid();
}

/* Handlers that are told more than the number (SA_SIGINFO) are not Python's. */
static int begin(void)
{
    if (sigaction(SIGINT, NULL, &theirs) < 0 || theirs.sa_handler == SIG_DFL || theirs.sa_handler == SIG_IGN ||
        theirs.sa_flags & SA_SIGINFO)
        return 0;
    struct sigaction mine = theirs;
    mine.sa_handler = note;
    noted = 0;
    return sigaction(SIGINT, &mine, NULL) == 0;
}

static void end(void)
{
    sigaction(SIGINT, &theirs, NULL);
    if (noted == 1)
        raise(SIGINT);
}

PyObject *core_defer_sigint(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *fn = PyTuple_Size(args) > 0 ? PyTuple_GetItem(args, 0) : NULL;
    PyObject *rest = fn ? PyTuple_GetSlice(args, 1, PyTuple_Size(args)) : NULL;
    if (!fn)
        PyErr_SetString(PyExc_TypeError, "defer_sigint: function must be given, got no argument");
    if (!rest)
        return NULL;
    pid_t pid = getpid();
    int shielded = depth == 0 && is_main_thread() && begin();
    PyObject *result = NULL;
    depth += shielded;
    if (!shielded || PyErr_CheckSignals() == 0) /* what came before is not put off */
        result = PyObject_CallObject(fn, rest);
    depth -= shielded;
    if (shielded && pid == getpid())
        end();
    Py_DECREF(rest);
    return result;
}
