/* py_fork.c: two children at once.
 *
 * After a fork, the parent copies each page that it writes, at some microseconds each, and after the next fork the same
 * pages again; Python's os.fork writes a hundred of them around a fork.  Here nothing is written between the two. */
#include "py_shmpool.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_pidfd_open /* headers older than the kernel */
#define SYS_pidfd_open 434
#endif

enum role { PARENT, FIRST, SECOND };

struct pair {
    enum role role; /* of the calling process */
    pid_t first, second;
    int first_fd; /* by which the first one is known, even when it was reaped */
};

static void pause_for(int microseconds)
{
    struct timespec left = { microseconds / 1000000, microseconds % 1000000 * 1000L };
    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

static void end_first(const struct pair *pair)
{
    kill(pair->first, SIGKILL);
    while (waitpid(pair->first, NULL, 0) < 0 && errno == EINTR)
        ;
    if (pair->first_fd >= 0)
        close(pair->first_fd);
}

/* 0, or errno, and then there is no child. */
static int fork_both(struct pair *pair, int pause_us)
{
    *pair = (struct pair){ .first_fd = -1 };
    pair->first = fork();
    if (pair->first < 0)
        return errno;
    if (pair->first == 0) {
        pair->role = FIRST;
        return 0;
    }
    pair->first_fd = (int)syscall(SYS_pidfd_open, pair->first, 0);
    if (pair->first_fd >= 0)
        pair->second = fork();
    if (pair->first_fd < 0 || pair->second < 0) {
        int error = errno;
        end_first(pair);
        return error;
    }
    if (pair->second == 0) {
        pair->role = SECOND;
        pause_for(pause_us);
    }
    return 0;
}

static PyStructSequence_Field forked_fields[] = {
    { "role", "0: the parent; 1: the first child; 2: the second." }, { "first_pid", NULL }, { "second_pid", NULL },
    { "first_fd", "A pidfd of the first child; -1 in that child." }, { NULL, NULL },
};

PyStructSequence_Desc core_forked_desc = { "drapps._core.Forked", "What fork_both() returns.", forked_fields, 4 };

PyObject *core_fork_both(PyObject *module, PyObject *args)
{
    int pause_us;
    struct pair pair;
    if (!PyArg_ParseTuple(args, "i:fork_both", &pause_us) || PySys_Audit("os.fork", NULL) < 0)
        return NULL;
    PyOS_BeforeFork();
    int error = fork_both(&pair, pause_us);
    if (!error && pair.role != PARENT)
        PyOS_AfterFork_Child();
    else
        PyOS_AfterFork_Parent();
    if (error) {
        errno = error;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    PyObject *const values[] = { PyLong_FromLong(pair.role), PyLong_FromLong(pair.first), PyLong_FromLong(pair.second),
                                 PyLong_FromLong(pair.first_fd) };
    return core_named_tuple(((core_state *)PyModule_GetState(module))->forked_type, values, 4);
}
