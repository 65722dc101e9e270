/* py_shmpool.h: what the two sides of a Shmpool share: py_shmpool.c has the owner's, py_shmpool_worker.c the workers'.
 */
#ifndef DR_PY_SHMPOOL_H
#define DR_PY_SHMPOOL_H

#include "py_core.h"

typedef struct py_shmpool {
    PyObject_HEAD dr_shmpool *shmpool;
    PyObject *trace;  /* a TraceWriter that gets what is known of results, or NULL */
    PyObject *posted; /* dict: what was asked for, for the trace; or NULL */
    int posted_are_ids;
    uint64_t epoch;   /* of what is posted now, for the trace */
    uint64_t left_ns; /* when the last result of the epoch was taken; 0: there was none */
    uint64_t left_tag;
    uint64_t asked_ns; /* when the next one was first asked for; 0: not yet */
    PyObject *kept;    /* a result that was taken when a signal's handler raised: the next one to be given */
} py_shmpool;

static inline dr_shmpool *shmpool_of(PyObject *self)
{
    return ((py_shmpool *)self)->shmpool;
}

/* A call that waits. */
struct waiting {
    dr_shmpool *shmpool;
    int worker;
    void *out;
    dr_error err;
};

typedef dr_status wait_fn(struct waiting *w, int slice_ms);

/* Calls `call` with the GIL released, a slice of the time each, until it has something or the time is over: then
 * *status is what it said.  Signals are looked at when it has nothing: what it has must not be lost.  -1: a signal's
 * handler raised. */
int core_shmpool_wait(wait_fn *call, struct waiting *w, int left_ms, dr_status *status);

/* Returns a list of Sample.  own: the list takes the blocks; on failure they are released. */
PyObject *core_shmpool_samples(core_state *state, dr_shmpool *shmpool, const dr_shmpool_sample *samples, uint32_t n,
                               int own);

/* Returns a named tuple (a struct sequence).  Takes the values, one of which may be NULL with an exception set. */
PyObject *core_named_tuple(PyObject *type, PyObject *const *values, Py_ssize_t n);

/* Methods of the workers' side. */
PyObject *core_shmpool_attach(PyObject *self, PyObject *args);
PyObject *core_shmpool_claim_next(PyObject *self, PyObject *args);
PyObject *core_shmpool_begin(PyObject *self, PyObject *args);
PyObject *core_shmpool_place(PyObject *self, PyObject *args);
PyObject *core_shmpool_done(PyObject *self, PyObject *args);
PyObject *core_shmpool_finish_batch(PyObject *self, PyObject *args);
PyObject *core_shmpool_block(PyObject *self, PyObject *args);
PyObject *core_shmpool_worker_at(PyObject *self, PyObject *args);
PyObject *core_shmpool_reap(PyObject *self, PyObject *args);
PyObject *core_shmpool_give_up(PyObject *self, PyObject *args);
PyObject *core_shmpool_dismiss(PyObject *self, PyObject *args);

#endif
