/* py_crew.h: what the two sides of a Crew share: py_crew.c has the owner's, py_crew_worker.c the workers'. */
#ifndef DR_PY_CREW_H
#define DR_PY_CREW_H

#include "py_core.h"

typedef struct py_crew {
    PyObject_HEAD dr_crew *crew;
    PyObject *trace;  /* a TraceWriter that gets what is known of results, or NULL */
    PyObject *posted; /* dict: what was asked for, for the trace; or NULL */
    int posted_are_ids;
    uint64_t epoch;   /* of what is posted now, for the trace */
    uint64_t left_ns; /* when the last result of the epoch was taken; 0: there was none */
    uint64_t left_tag;
    uint64_t asked_ns; /* when the next one was first asked for; 0: not yet */
    PyObject *kept;    /* a result that was taken when a signal's handler raised: the next one to be given */
} py_crew;

static inline dr_crew *crew_of(PyObject *self)
{
    return ((py_crew *)self)->crew;
}

/* A call that waits. */
struct waiting {
    dr_crew *crew;
    int worker;
    void *out;
    dr_error err;
};

typedef dr_status wait_fn(struct waiting *w, int slice_ms);

/* Calls `call` with the GIL released, a slice of the time each, until it has something or the time is over: then
 * *status is what it said.  Signals are looked at when it has nothing: what it has must not be lost.  -1: a signal's
 * handler raised. */
int core_crew_wait(wait_fn *call, struct waiting *w, int left_ms, dr_status *status);

/* A list of (tag, slot, worker, state, attempts, ns, block or None).  own: the blocks are the list's, or released. */
PyObject *core_crew_samples(core_state *state, dr_crew *crew, const dr_crew_sample *samples, uint32_t n, int own);

/* Fills a named tuple; takes the values, one of which may be NULL with an exception set. */
PyObject *core_named_tuple(PyObject *type, PyObject *const *values, Py_ssize_t n);

/* Methods of the workers' side. */
PyObject *core_crew_enlist(PyObject *self, PyObject *args);
PyObject *core_crew_claim_next(PyObject *self, PyObject *args);
PyObject *core_crew_begin(PyObject *self, PyObject *args);
PyObject *core_crew_place(PyObject *self, PyObject *args);
PyObject *core_crew_done(PyObject *self, PyObject *args);
PyObject *core_crew_finish_batch(PyObject *self, PyObject *args);
PyObject *core_crew_block(PyObject *self, PyObject *args);
PyObject *core_crew_worker_at(PyObject *self, PyObject *args);
PyObject *core_crew_bury(PyObject *self, PyObject *args);
PyObject *core_crew_give_up(PyObject *self, PyObject *args);
PyObject *core_crew_dismiss(PyObject *self, PyObject *args);

#endif
