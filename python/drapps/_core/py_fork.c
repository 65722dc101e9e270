/* py_fork.c: two children at once.
 *
 * After a fork, the parent copies each page that it writes, at some microseconds each, and after the next fork the same
 * pages again; Python's os.fork writes a hundred of them around a fork.  Here nothing is written between the two. */
#include "py_core.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_pidfd_open /* headers older than the kernel */
#define SYS_pidfd_open 434
#endif

enum place { PARENT, FIRST, SECOND };

struct pair {
    enum place place; /* who we are */
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
        pair->place = FIRST;
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
        pair->place = SECOND;
        pause_for(pause_us);
    }
    return 0;
}

PyObject *core_fork_both(PyObject *module, PyObject *args)
{
    int pause_us;
    struct pair pair;
    (void)module;
    if (!PyArg_ParseTuple(args, "i:fork_both", &pause_us) || PySys_Audit("os.fork", NULL) < 0)
        return NULL;
    PyOS_BeforeFork();
    int error = fork_both(&pair, pause_us);
    if (!error && pair.place != PARENT)
        PyOS_AfterFork_Child();
    else
        PyOS_AfterFork_Parent();
    if (error) {
        errno = error;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    return Py_BuildValue("iiii", (int)pair.place, (int)pair.first, (int)pair.second, pair.first_fd);
}
