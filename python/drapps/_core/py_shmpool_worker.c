/* py_shmpool_worker.c: the workers' side of a Shmpool, and looking after them. */
#include "py_shmpool.h"

/* The request is copied: the board may use its memory again before Python lets go of it. */
static PyObject *request_view(const dr_shmpool_claim *claim)
{
    PyObject *bytes = PyBytes_FromStringAndSize(claim->request, (Py_ssize_t)claim->request_bytes);
    PyObject *view = bytes ? PyMemoryView_FromObject(bytes) : NULL;
    Py_XDECREF(bytes);
    return view;
}

static PyObject *wrap_claim(core_state *state, dr_shmpool *shmpool, const dr_shmpool_claim *claim)
{
    uint32_t n = claim->samples ? claim->n_slots : 0;
    PyObject *const values[] = {
        PyLong_FromLong(claim->kind),
        PyLong_FromUnsignedLong(claim->batch),
        PyLong_FromUnsignedLongLong(claim->tag),
        PyLong_FromUnsignedLong(claim->first),
        PyLong_FromUnsignedLong(claim->n),
        PyLong_FromUnsignedLong(claim->n_slots),
        PyBool_FromLong(claim->whole),
        request_view(claim),
        core_block_wrap(state, shmpool, claim->slab, 0),
        core_shmpool_samples(state, shmpool, claim->samples, n, 0),
    };
    return core_named_tuple(state->claim_type, values, sizeof values / sizeof values[0]);
}

PyObject *core_shmpool_attach(PyObject *self, PyObject *args)
{
    int worker, pid;
    if (!PyArg_ParseTuple(args, "ii:attach", &worker, &pid))
        return NULL;
    dr_error err = { 0 };
    dr_status status = dr_shmpool_attach(shmpool_of(self), worker, pid, &err);
    if (status != DR_OK)
        return raise_status(state_of(self), status, &err);
    Py_RETURN_NONE;
}

static dr_status wait_claim(struct waiting *w, int slice_ms)
{
    return dr_shmpool_claim_next(w->shmpool, w->worker, slice_ms, w->out, &w->err);
}

PyObject *core_shmpool_claim_next(PyObject *self, PyObject *args)
{
    int worker, timeout_ms;
    if (!PyArg_ParseTuple(args, "ii:claim", &worker, &timeout_ms))
        return NULL;
    dr_shmpool_claim claim;
    struct waiting w = { .shmpool = shmpool_of(self), .worker = worker, .out = &claim };
    dr_status status;
    if (core_shmpool_wait(wait_claim, &w, timeout_ms, &status) < 0)
        return NULL;
    if (status == DR_AGAIN)
        Py_RETURN_NONE;
    if (status != DR_OK)
        return raise_status(state_of(self), status, &w.err);
    return wrap_claim(state_of(self), shmpool_of(self), &claim);
}

/* Whether the shmpool has a worker of that number: for calls that have no status of their own. */
static int known_worker(PyObject *self, int worker)
{
    dr_shmpool_worker_state at;
    dr_error err = { 0 };
    dr_status status = dr_shmpool_worker_at(shmpool_of(self), worker, &at, &err);
    if (status != DR_OK)
        raise_status(state_of(self), status, &err);
    return status == DR_OK;
}

PyObject *core_shmpool_begin(PyObject *self, PyObject *args)
{
    int worker;
    unsigned i;
    if (!PyArg_ParseTuple(args, "iI:begin", &worker, &i))
        return NULL;
    dr_shmpool_begin(shmpool_of(self), worker, i);
    Py_RETURN_NONE;
}

PyObject *core_shmpool_place(PyObject *self, PyObject *args)
{
    int worker;
    unsigned i;
    Py_ssize_t slab_bytes;
    if (!PyArg_ParseTuple(args, "iIn:place", &worker, &i, &slab_bytes))
        return NULL;
    uint32_t slot;
    dr_shmpool_block slab;
    dr_error err = { 0 };
    dr_status status = dr_shmpool_place(shmpool_of(self), worker, i, (size_t)slab_bytes, &slot, &slab, &err);
    if (status != DR_OK)
        return raise_status(state_of(self), status, &err);
    PyObject *const values[] = { PyLong_FromUnsignedLong(slot),
                                 core_block_wrap(state_of(self), shmpool_of(self), slab, 0) };
    return core_named_tuple(state_of(self)->placement_type, values, 2);
}

/* None or a block of one's own: its number, 0 for None.  -1: it is neither. */
static int get_block(PyObject *self, PyObject *object, dr_shmpool_block *out)
{
    *out = 0;
    if (object == Py_None)
        return 0;
    if (!PyObject_TypeCheck(object, (PyTypeObject *)state_of(self)->block_type) || !((py_block *)object)->own) {
        PyErr_Format(PyExc_TypeError, "block must be None or a Block that was not handed over, got %R", object);
        return -1;
    }
    *out = ((py_block *)object)->block;
    return 0;
}

/* After a call that took the block. */
static void handed_over(PyObject *object)
{
    if (object != Py_None)
        ((py_block *)object)->own = 0;
}

PyObject *core_shmpool_done(PyObject *self, PyObject *args)
{
    int worker, bad;
    unsigned i, n;
    PyObject *object;
    dr_shmpool_block block;
    if (!PyArg_ParseTuple(args, "iIIOp:done", &worker, &i, &n, &object, &bad) || get_block(self, object, &block) < 0)
        return NULL;
    bool finish = false;
    dr_shmpool_claim claim;
    dr_error err = { 0 };
    dr_status status = dr_shmpool_done(shmpool_of(self), worker, i, n, block, bad, &finish, &claim, &err);
    if (status != DR_OK)
        return raise_status(state_of(self), status, &err);
    handed_over(object);
    if (!finish)
        Py_RETURN_NONE;
    return wrap_claim(state_of(self), shmpool_of(self), &claim);
}

PyObject *core_shmpool_finish_batch(PyObject *self, PyObject *args)
{
    int worker, failed;
    unsigned batch;
    Py_ssize_t head_bytes;
    PyObject *object;
    dr_shmpool_block block;
    if (!PyArg_ParseTuple(args, "iIOnp:finish", &worker, &batch, &object, &head_bytes, &failed) ||
        get_block(self, object, &block) < 0)
        return NULL;
    dr_error err = { 0 };
    dr_status status = dr_shmpool_finish(shmpool_of(self), worker, batch, block, (size_t)head_bytes, failed, &err);
    if (status != DR_OK)
        return raise_status(state_of(self), status, &err);
    handed_over(object);
    Py_RETURN_NONE;
}

PyObject *core_shmpool_block(PyObject *self, PyObject *args)
{
    int worker;
    Py_ssize_t bytes;
    if (!PyArg_ParseTuple(args, "in:block", &worker, &bytes))
        return NULL;
    dr_shmpool_block made;
    dr_error err = { 0 };
    dr_status status = dr_shmpool_block_new(shmpool_of(self), worker, (size_t)bytes, &made, &err);
    return status == DR_OK ? core_block_wrap(state_of(self), shmpool_of(self), made, 1)
                           : raise_status(state_of(self), status, &err);
}

/* --- looking after workers --- */

PyObject *core_shmpool_worker_at(PyObject *self, PyObject *args)
{
    int worker;
    if (!PyArg_ParseTuple(args, "i:worker_at", &worker))
        return NULL;
    dr_shmpool_worker_state at;
    dr_error err = { 0 };
    dr_status status = dr_shmpool_worker_at(shmpool_of(self), worker, &at, &err);
    if (status != DR_OK)
        return raise_status(state_of(self), status, &err);
    PyObject *const values[] = {
        PyLong_FromLong(at.pid),
        PyLong_FromLong(at.kind),
        PyLong_FromUnsignedLongLong(at.tag),
        PyLong_FromUnsignedLong(at.slot),
        PyLong_FromUnsignedLongLong(at.since_ns),
        PyLong_FromUnsignedLongLong(at.claims),
        PyLong_FromUnsignedLongLong(at.samples),
        PyLong_FromUnsignedLongLong(at.busy_ns),
    };
    return core_named_tuple(state_of(self)->worker_state_type, values, sizeof values / sizeof values[0]);
}

enum { REDONE = 1024 }; /* as many are named */

PyObject *core_shmpool_reap(PyObject *self, PyObject *args)
{
    int worker;
    if (!PyArg_ParseTuple(args, "i:reap", &worker) || !known_worker(self, worker))
        return NULL;
    dr_shmpool_redo redone[REDONE];
    uint32_t n;
    Py_BEGIN_ALLOW_THREADS n = dr_shmpool_reap(shmpool_of(self), worker, redone, REDONE);
    Py_END_ALLOW_THREADS n = n < REDONE ? n : REDONE;
    PyObject *list = PyList_New(n);
    for (uint32_t i = 0; list && i < n; i++) {
        PyObject *const values[] = { PyLong_FromUnsignedLongLong(redone[i].tag),
                                     PyLong_FromUnsignedLong(redone[i].slot) };
        PyObject *row = core_named_tuple(state_of(self)->slot_type, values, 2);
        if (!row || PyList_SetItem(list, (Py_ssize_t)i, row) < 0)
            Py_CLEAR(list);
    }
    return list;
}

PyObject *core_shmpool_give_up(PyObject *self, PyObject *args)
{
    int worker;
    if (!PyArg_ParseTuple(args, "i:give_up", &worker) || !known_worker(self, worker))
        return NULL;
    dr_shmpool_give_up(shmpool_of(self), worker);
    Py_RETURN_NONE;
}

PyObject *core_shmpool_dismiss(PyObject *self, PyObject *args)
{
    int worker;
    if (!PyArg_ParseTuple(args, "i:dismiss", &worker) || !known_worker(self, worker))
        return NULL;
    dr_shmpool_dismiss(shmpool_of(self), worker);
    Py_RETURN_NONE;
}
