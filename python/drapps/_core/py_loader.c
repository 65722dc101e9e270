/* py_loader.c: Loader: the native loader, usable from several Python threads.
 *
 * Calls that may block run without the GIL.  `users` counts the calls in flight, so that close, which may come from
 * another thread, frees the loader only after the last of them has left; it is protected by the GIL.  In a forked child
 * the threads of those calls do not exist, and nobody is waited for.
 */
#include "py_core.h"
#include "py_sched.h"

#include <unistd.h>

enum { POLL_MS = 100, CLOSE_POLL_US = 1000 };

typedef struct py_loader {
    PyObject_HEAD dr_loader *loader; /* NULL: closed */
    int users;
    int closing;
    pid_t pid;      /* of the process that opened it */
    dr_batch *kept; /* taken when a signal's handler raised: the next one to be given */
} py_loader;

static py_loader *as_loader(PyObject *self)
{
    return (py_loader *)self;
}

/* --- opening --- */

static int choose(const char *text, const char *what, const char *const *names, int *out)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], text)) {
            *out = i;
            return 0;
        }
    PyErr_Format(PyExc_ValueError, "%s must be '%s', '%s' or '%s', got '%s'", what, names[0], names[1], names[2], text);
    return -1;
}

struct words { /* settings given as text, flags given as int */
    const char *last, *on_bad;
    int shuffle, in_order, reference, keep_draws, pushed_order, keep_batches, lanes, adaptive_compression,
        equal_batches;
    PyObject *monitor;
};

static int apply_words(const struct words *words, dr_loader_options *o)
{
    static const char *const lasts[] = { "partial", "drop", "pad", NULL };
    static const char *const on_bads[] = { "raise", "skip", "replace", NULL };
    int last, on_bad;
    if (choose(words->last, "last", lasts, &last) < 0 || choose(words->on_bad, "on_bad_sample", on_bads, &on_bad) < 0)
        return -1;
    o->last = (dr_last)last;
    o->on_bad_sample = (dr_on_bad)on_bad;
    o->shuffle = words->shuffle;
    o->in_order = words->in_order;
    o->reference = words->reference;
    o->keep_draws = words->keep_draws;
    o->pushed_order = words->pushed_order;
    o->keep_batches = words->keep_batches;
    o->lanes = words->lanes;
    o->adaptive_compression = words->adaptive_compression;
    o->equal_batches = words->equal_batches;
    return 0;
}

/* The loader takes a reference of its own when it is opened. */
static int apply_monitor(core_state *state, PyObject *monitor, dr_loader_options *o)
{
    if (monitor == Py_None)
        return 0;
    if (!PyObject_TypeCheck(monitor, (PyTypeObject *)state->monitor_type)) {
        PyErr_Format(PyExc_TypeError, "resource_monitor must be a drapps.Monitor or None, got %R", monitor);
        return -1;
    }
    o->resource_monitor = ((py_monitor *)monitor)->monitor;
    if (!o->resource_monitor) {
        dr_error err = { .status = DR_ERR_STATE, .text = "resource_monitor is closed" };
        raise_status(state, DR_ERR_STATE, &err);
    }
    return o->resource_monitor ? 0 : -1;
}

static int parse(PyObject *args, PyObject *kwargs, core_state *state, PyObject **set, PyObject **graph,
                 dr_loader_options *o)
{
    static char *names[] = { "dataset",       "graph",
                             "batch_size",    "seed",
                             "shuffle",       "in_order",
                             "last",          "workers",
                             "prefetch",      "on_bad_sample",
                             "max_bad",       "rank",
                             "world_size",    "memory_limit",
                             "outputs",       "collate",
                             "layout",        "reference",
                             "keep_draws",    "trace",
                             "seek_index",    "pushed_order",
                             "keep_batches",  "lanes",
                             "cache",         "cache_limit",
                             "policy",        "monitor",
                             "cpu_limit",     "weights",
                             "adaptive",      "trace_spans",
                             "equal_batches", "cache_memory",
                             "cache_at",      "offload",
                             "ranges",        NULL };
    struct words words = {
        .last = "partial", .on_bad = "raise", .in_order = 1, .lanes = 1, .adaptive_compression = 1, .monitor = Py_None
    };
    dr_loader_defaults(o);
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O!O!|$O&O&ppsiisO&O&O&O&O&O&O&ppO&O&pppO&O&O&OdO&pdpO&O&O&O&:open_loader", names,
            state->dataset_type, set, state->graph_type, graph, to_u64, &o->batch_size, to_u64, &o->seed,
            &words.shuffle, &words.in_order, &words.last, &o->workers, &o->prefetch, &words.on_bad, to_u64, &o->max_bad,
            to_u64, &o->rank, to_u64, &o->world_size, to_u64, &o->memory_limit, text_or_none, &o->outputs, text_or_none,
            &o->collate, text_or_none, &o->layout, &words.reference, &words.keep_draws, text_or_none, &o->trace,
            text_or_none, &o->seek_index, &words.pushed_order, &words.keep_batches, &words.lanes, text_or_none,
            &o->cache, to_u64, &o->cache_limit, text_or_none, &o->policy, &words.monitor, &o->cpu_limit, text_or_none,
            &o->weights, &words.adaptive_compression, &o->trace_spans, &words.equal_batches, to_u64, &o->cache_memory,
            text_or_none, &o->cache_at, text_or_none, &o->offload, text_or_none, &o->ranges))
        return -1;
    return apply_words(&words, o) < 0 ? -1 : apply_monitor(state, words.monitor, o);
}

PyObject *core_loader_open(PyObject *module, PyObject *args, PyObject *kwargs)
{
    core_state *state = PyModule_GetState(module);
    PyObject *set, *graph;
    dr_loader_options options;
    if (parse(args, kwargs, state, &set, &graph, &options) < 0)
        return NULL;
    py_loader *self = core_new(state->loader_type);
    if (!self)
        return NULL;
    self->pid = getpid();
    dr_error err = { 0 };
    PyThreadState *gil = PyEval_SaveThread();
    dr_status status =
        dr_loader_open(((py_dataset *)set)->set, ((py_graph *)graph)->graph, &options, &self->loader, &err);
    PyEval_RestoreThread(gil);
    if (status == DR_OK)
        return (PyObject *)self;
    Py_DECREF(self);
    return raise_status(state, status, &err);
}

/* --- use and closing --- */

/* Enters a call: the loader, or NULL with an exception when it is closed.  `leave` ends it. */
static dr_loader *enter(PyObject *self)
{
    py_loader *l = as_loader(self);
    if (!l->loader || l->closing) {
        dr_error err = { .status = DR_ERR_STATE, .text = "the loader is closed" };
        raise_status(state_of(self), DR_ERR_STATE, &err);
        return NULL;
    }
    l->users++;
    return l->loader;
}

static void leave(PyObject *self)
{
    as_loader(self)->users--;
}

static PyObject *close_loader(PyObject *self, PyObject *unused)
{
    (void)unused;
    py_loader *l = as_loader(self);
    if (!l->loader || l->closing)
        Py_RETURN_NONE;
    l->closing = 1;
    while (l->users && l->pid == getpid()) { /* a call that comes to wait after the first cancel needs another */
        dr_loader_cancel(l->loader);
        PyThreadState *gil = PyEval_SaveThread();
        usleep(CLOSE_POLL_US);
        PyEval_RestoreThread(gil);
    }
    dr_loader *loader = l->loader;
    l->loader = NULL;
    dr_batch_unref(&l->kept);
    PyThreadState *gil = PyEval_SaveThread();
    dr_loader_close(&loader);
    PyEval_RestoreThread(gil);
    Py_RETURN_NONE;
}

static void dealloc(PyObject *self)
{
    dr_batch_unref(&as_loader(self)->kept);
    dr_loader *loader = as_loader(self)->loader;
    PyThreadState *gil = PyEval_SaveThread();
    dr_loader_close(&loader);
    PyEval_RestoreThread(gil);
    core_free(self);
}

/* A batch that was just taken.  A signal that came meanwhile would be noticed when the call returns, and the batch
 * would be lost with the exception: it is in the box then, or, without one, kept here. */
static PyObject *give_batch(PyObject *self, dr_batch *batch, PyObject *box)
{
    if (box != Py_None) {
        PyObject *wrapped = core_batch_wrap(state_of(self), batch);
        if (wrapped && PyList_Append(box, wrapped) < 0)
            Py_CLEAR(wrapped);
        return wrapped;
    }
    if (PyErr_CheckSignals() < 0) {
        as_loader(self)->kept = batch;
        return NULL;
    }
    return core_batch_wrap(state_of(self), batch);
}

static PyObject *give_kept(PyObject *self, PyObject *box)
{
    dr_batch *kept = as_loader(self)->kept;
    as_loader(self)->kept = NULL;
    return give_batch(self, kept, box);
}

/* Waits in steps, so that Ctrl-C is seen; the engine goes on meanwhile.  left_ms: -1 waits for ever. */
static PyObject *next(PyObject *self, PyObject *args)
{
    int left_ms = -1;
    PyObject *box = Py_None;
    if (!PyArg_ParseTuple(args, "|iO:next", &left_ms, &box))
        return NULL;
    if (as_loader(self)->kept)
        return give_kept(self, box);
    dr_loader *loader = enter(self);
    if (!loader)
        return NULL;
    dr_batch *batch = NULL;
    dr_error err = { 0 };
    dr_status status;
    int interrupted = 0;
    do {
        const int step_ms = left_ms < 0 || left_ms > POLL_MS ? POLL_MS : left_ms;
        left_ms -= left_ms < 0 ? 0 : step_ms;
        PyThreadState *gil = PyEval_SaveThread();
        status = dr_loader_next(loader, step_ms, &batch, &err);
        PyEval_RestoreThread(gil);
        interrupted = status == DR_AGAIN && PyErr_CheckSignals() < 0;
    } while (status == DR_AGAIN && !interrupted && !as_loader(self)->closing && left_ms != 0);
    leave(self);
    if (interrupted)
        return NULL;
    if (batch) /* that failed, too: it has its error */
        return give_batch(self, batch, box);
    if (status == DR_END)
        Py_RETURN_NONE;
    if (status == DR_AGAIN && !as_loader(self)->closing) {
        PyErr_SetString(PyExc_TimeoutError, "no batch was ready in time");
        return NULL;
    }
    return raise_open_status(state_of(self), status == DR_AGAIN ? DR_ERR_CANCELLED : status, &err);
}

static PyObject *start(PyObject *self, PyObject *args)
{
    uint64_t epoch;
    if (!PyArg_ParseTuple(args, "O&:start", to_u64, &epoch))
        return NULL;
    dr_loader *loader = enter(self);
    if (!loader)
        return NULL;
    dr_error err = { 0 };
    dr_batch_unref(&as_loader(self)->kept);
    PyThreadState *gil = PyEval_SaveThread();
    dr_status status = dr_loader_start(loader, epoch, &err);
    PyEval_RestoreThread(gil);
    leave(self);
    if (status != DR_OK)
        return raise_status(state_of(self), status, &err);
    Py_RETURN_NONE;
}

/* --- a given order --- */

/* The ids of a sequence of ints, in memory of PyMem; NULL with an exception. */
static uint64_t *ids_of(PyObject *sequence, Py_ssize_t *n)
{
    PyObject *list = PySequence_List(sequence);
    *n = list ? PyList_Size(list) : 0;
    uint64_t *ids = list ? PyMem_Malloc(((size_t)*n + 1) * sizeof *ids) : NULL;
    for (Py_ssize_t i = 0; ids && i < *n; i++)
        if (!to_u64(PyList_GetItem(list, i), &ids[i])) {
            PyMem_Free(ids);
            ids = NULL;
        }
    if (list && !ids && !PyErr_Occurred())
        PyErr_NoMemory();
    Py_XDECREF(list);
    return ids;
}

/* A call that takes ids; batches: what else there is to say. */
typedef dr_status ids_call(dr_loader *loader, const uint64_t *ids, uint64_t n, uint64_t batches, dr_error *err);

static dr_status call_push(dr_loader *loader, const uint64_t *ids, uint64_t n, uint64_t unused, dr_error *err)
{
    (void)unused;
    return dr_loader_push(loader, ids, n, err);
}

static dr_status call_set_replacements(dr_loader *loader, const uint64_t *ids, uint64_t n, uint64_t unused,
                                       dr_error *err)
{
    (void)unused;
    return dr_loader_set_replacements(loader, ids, n, err);
}

static PyObject *give(PyObject *self, ids_call *call, PyObject *sequence, uint64_t batches)
{
    Py_ssize_t n;
    uint64_t *ids = ids_of(sequence, &n);
    dr_loader *loader = ids ? enter(self) : NULL;
    if (!loader) {
        PyMem_Free(ids);
        return NULL;
    }
    dr_error err = { 0 };
    PyThreadState *gil = PyEval_SaveThread();
    dr_status status = call(loader, ids, (uint64_t)n, batches, &err);
    PyEval_RestoreThread(gil);
    leave(self);
    PyMem_Free(ids);
    if (status != DR_OK)
        return raise_status(state_of(self), status, &err);
    Py_RETURN_NONE;
}

static PyObject *push(PyObject *self, PyObject *ids)
{
    return give(self, call_push, ids, 0);
}

static PyObject *set_replacements(PyObject *self, PyObject *ids)
{
    return give(self, call_set_replacements, ids, 0);
}

static PyObject *pass(PyObject *self, PyObject *args)
{
    PyObject *ids;
    long long batches;
    if (!PyArg_ParseTuple(args, "OL:push_past", &ids, &batches))
        return NULL;
    if (batches < 0)
        return PyErr_Format(PyExc_ValueError, "batches must be a non-negative int, got %lld", batches);
    return give(self, dr_loader_push_past, ids, (uint64_t)batches);
}

static PyObject *push_end(PyObject *self, PyObject *unused)
{
    (void)unused;
    dr_loader *loader = enter(self);
    if (!loader)
        return NULL;
    dr_error err = { 0 };
    PyThreadState *gil = PyEval_SaveThread();
    dr_status status = dr_loader_push_end(loader, &err);
    PyEval_RestoreThread(gil);
    leave(self);
    if (status != DR_OK)
        return raise_status(state_of(self), status, &err);
    Py_RETURN_NONE;
}

static PyObject *push_occurrences(PyObject *self, PyObject *args)
{
    PyObject *sequence, *before;
    if (!PyArg_ParseTuple(args, "OO:push_occurrences", &sequence, &before))
        return NULL;
    Py_ssize_t n = 0, n_times = 0;
    uint64_t *ids = ids_of(sequence, &n), *times = ids ? ids_of(before, &n_times) : NULL;
    if (times && n_times != n)
        PyErr_Format(PyExc_ValueError, "times must be %zd ints, one for each id, got %zd", n, n_times);
    dr_loader *loader = times && n_times == n ? enter(self) : NULL;
    dr_error err = { 0 };
    dr_status status = DR_OK;
    if (loader) {
        PyThreadState *gil = PyEval_SaveThread();
        status = dr_loader_push_occurrences(loader, ids, times, (uint64_t)n, &err);
        PyEval_RestoreThread(gil);
        leave(self);
    }
    PyMem_Free(ids);
    PyMem_Free(times);
    if (status != DR_OK)
        return raise_status(state_of(self), status, &err);
    return loader ? Py_NewRef(Py_None) : NULL;
}

static PyObject *cancel(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (as_loader(self)->loader)
        dr_loader_cancel(as_loader(self)->loader);
    Py_RETURN_NONE;
}

static PyObject *prefetch_window(PyObject *self, PyObject *wanted)
{
    uint64_t n;
    dr_loader *loader = to_u64(wanted, &n) ? enter(self) : NULL;
    if (!loader)
        return NULL;
    n = dr_loader_prefetch_window(loader, n);
    leave(self);
    return PyLong_FromUnsignedLongLong(n);
}

static PyObject *batches(PyObject *self, PyObject *unused)
{
    (void)unused;
    dr_loader *loader = enter(self);
    if (!loader)
        return NULL;
    uint64_t n = dr_loader_batches(loader);
    leave(self);
    return PyLong_FromUnsignedLongLong(n);
}

/* --- texts --- */

/* A question with what it is about, if anything. */
typedef dr_status text_call(dr_loader *loader, const void *about, char **text, dr_error *err);

static PyObject *call_text(PyObject *self, text_call *call, const void *about)
{
    dr_loader *loader = enter(self);
    if (!loader)
        return NULL;
    char *text = NULL;
    dr_error err = { 0 };
    PyThreadState *gil = PyEval_SaveThread();
    dr_status status = call(loader, about, &text, &err);
    PyEval_RestoreThread(gil);
    leave(self);
    return status == DR_OK ? take_text(text) : raise_status(state_of(self), status, &err);
}

static dr_status ask_state(dr_loader *loader, const void *held, char **text, dr_error *err)
{
    return dr_loader_state_without(loader, held, text, err);
}

static dr_status ask_stats(dr_loader *loader, const void *unused, char **text, dr_error *err)
{
    (void)unused;
    return dr_loader_stats(loader, text, err);
}

static dr_status ask_explain(dr_loader *loader, const void *unused, char **text, dr_error *err)
{
    (void)unused;
    return dr_loader_explain(loader, text, err);
}

static dr_status ask_profile(dr_loader *loader, const void *samples, char **text, dr_error *err)
{
    return dr_loader_profile(loader, *(const uint64_t *)samples, text, err);
}

static dr_status ask_running(dr_loader *loader, const void *unused, char **text, dr_error *err)
{
    (void)unused;
    return dr_loader_running(loader, text, err);
}

static dr_status ask_unreported_bad(dr_loader *loader, const void *unused, char **text, dr_error *err)
{
    (void)unused;
    return dr_loader_unreported_bad(loader, text, err);
}

static PyObject *state(PyObject *self, PyObject *args)
{
    PyObject *held = Py_None;
    if (!PyArg_ParseTuple(args, "|O:state", &held))
        return NULL;
    if (held != Py_None && !PyObject_TypeCheck(held, (PyTypeObject *)state_of(self)->batch_type)) {
        PyErr_Format(PyExc_TypeError, "state: batch must be a Batch or None, got %R", held);
        return NULL;
    }
    return call_text(self, ask_state, held == Py_None ? NULL : ((py_batch *)held)->batch);
}

static PyObject *stats(PyObject *self, PyObject *unused)
{
    (void)unused;
    return call_text(self, ask_stats, NULL);
}

static PyObject *explain(PyObject *self, PyObject *unused)
{
    (void)unused;
    return call_text(self, ask_explain, NULL);
}

static PyObject *running(PyObject *self, PyObject *unused)
{
    (void)unused;
    return call_text(self, ask_running, NULL);
}

static PyObject *unreported_bad(PyObject *self, PyObject *unused)
{
    (void)unused;
    return call_text(self, ask_unreported_bad, NULL);
}

static PyObject *take_state(PyObject *self, PyObject *args,
                            dr_status (*take)(dr_loader *loader, const char *text, dr_error *err))
{
    const char *text;
    if (!PyArg_ParseTuple(args, "s", &text))
        return NULL;
    dr_loader *loader = enter(self);
    if (!loader)
        return NULL;
    dr_error err = { 0 };
    PyThreadState *gil = PyEval_SaveThread();
    dr_status status = take(loader, text, &err);
    PyEval_RestoreThread(gil);
    if (status == DR_OK && take == dr_loader_restore)
        dr_batch_unref(&as_loader(self)->kept);
    leave(self);
    if (status != DR_OK)
        return raise_status(state_of(self), status, &err);
    Py_RETURN_NONE;
}

static PyObject *restore(PyObject *self, PyObject *args)
{
    return take_state(self, args, dr_loader_restore);
}

static PyObject *check_state(PyObject *self, PyObject *args)
{
    return take_state(self, args, dr_loader_check_state);
}

static PyObject *profile(PyObject *self, PyObject *args)
{
    uint64_t samples;
    if (!PyArg_ParseTuple(args, "O&:profile", to_u64, &samples))
        return NULL;
    return call_text(self, ask_profile, &samples);
}

static PyObject *note(PyObject *self, PyObject *args)
{
    const char *json;
    if (!PyArg_ParseTuple(args, "s:note", &json))
        return NULL;
    dr_loader *loader = enter(self);
    if (!loader)
        return NULL;
    dr_loader_note(loader, json);
    leave(self);
    Py_RETURN_NONE;
}

/* --- knobs --- */

enum { MOST_DECISIONS = 64 };

static PyObject *decisions(PyObject *self, PyObject *args)
{
    uint64_t after;
    if (!PyArg_ParseTuple(args, "O&:decisions", to_u64, &after))
        return NULL;
    dr_loader *loader = enter(self);
    if (!loader)
        return NULL;
    dr_decision *found = PyMem_Malloc(MOST_DECISIONS * sizeof *found);
    PyThreadState *gil = PyEval_SaveThread(); /* it waits while another thread starts an epoch */
    size_t n = found ? dr_loader_decisions(loader, after, found, MOST_DECISIONS) : 0;
    PyEval_RestoreThread(gil);
    leave(self);
    PyObject *list = found ? py_decisions(found, n) : PyErr_NoMemory();
    PyMem_Free(found);
    return list;
}

static PyObject *set_weights(PyObject *self, PyObject *args)
{
    const char *weights;
    if (!PyArg_ParseTuple(args, "O&:set_weights", text_or_none, &weights))
        return NULL;
    dr_loader *loader = enter(self);
    if (!loader)
        return NULL;
    dr_error err = { 0 };
    PyThreadState *gil = PyEval_SaveThread();
    dr_status status = dr_loader_set_weights(loader, weights, &err);
    PyEval_RestoreThread(gil);
    leave(self);
    if (status != DR_OK)
        return raise_status(state_of(self), status, &err);
    Py_RETURN_NONE;
}

static PyObject *pause_loader(PyObject *self, PyObject *args)
{
    int paused;
    if (!PyArg_ParseTuple(args, "p:pause", &paused))
        return NULL;
    dr_loader *loader = enter(self);
    if (!loader)
        return NULL;
    dr_error err = { 0 };
    dr_status status = paused ? dr_loader_pause(loader, &err) : dr_loader_resume(loader, &err);
    leave(self);
    if (status != DR_OK)
        return raise_status(state_of(self), status, &err);
    Py_RETURN_NONE;
}

static PyObject *set(PyObject *self, PyObject *args)
{
    const char *knob;
    double value;
    if (!PyArg_ParseTuple(args, "sd:set", &knob, &value))
        return NULL;
    dr_loader *loader = enter(self);
    if (!loader)
        return NULL;
    dr_error err = { 0 };
    PyThreadState *gil = PyEval_SaveThread();
    dr_status status = dr_loader_set(loader, knob, value, &err);
    PyEval_RestoreThread(gil);
    leave(self);
    if (status != DR_OK)
        return raise_status(state_of(self), status, &err);
    Py_RETURN_NONE;
}

static PyObject *get(PyObject *self, PyObject *args)
{
    const char *knob;
    if (!PyArg_ParseTuple(args, "s:get", &knob))
        return NULL;
    dr_loader *loader = enter(self);
    if (!loader)
        return NULL;
    double value = 0;
    dr_error err = { 0 };
    dr_status status = dr_loader_get(loader, knob, &value, &err);
    leave(self);
    return status == DR_OK ? py_knob_value(dr_knob_find(knob), value) : raise_status(state_of(self), status, &err);
}

static PyObject *get_closed(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(!as_loader(self)->loader || as_loader(self)->closing);
}

static PyMethodDef methods[] = {
    { "next", next, METH_VARARGS,
      "next(timeout_ms=-1): the next batch, or None at the end of the epoch; TimeoutError after that time." },
    { "start", start, METH_VARARGS, "start(epoch): begins an epoch." },
    { "push", push, METH_O, "push(ids): these samples are the next batch (pushed_order)." },
    { "prefetch_window", prefetch_window, METH_O, "prefetch_window(wanted): batches that a caller keeps pushed." },
    { "set_replacements", set_replacements, METH_O,
      "set_replacements(ids): these may take the place of bad samples, and no others." },
    { "push_end", push_end, METH_NOARGS, "No further batch will be pushed in this epoch." },
    { "push_past", pass, METH_VARARGS,
      "push_past(ids, batches): counts samples as pushed and delivered before, without making them." },
    { "push_occurrences", push_occurrences, METH_VARARGS,
      "push_occurrences(ids, times): as push, with how often each came before in the epoch that is made again." },
    { "cancel", cancel, METH_NOARGS, "Wakes every thread that waits in next." },
    { "batches", batches, METH_NOARGS, "Batches of an epoch for this rank." },
    { "state", state, METH_VARARGS,
      "state(held=None): where the consumer is, as JSON; held: a batch that it got and that does not count." },
    { "restore", restore, METH_VARARGS, "restore(state): goes on from there." },
    { "check_state", check_state, METH_VARARGS, "check_state(state): raises what restore would raise." },
    { "stats", stats, METH_NOARGS, "Counters and times, as JSON." },
    { "decisions", decisions, METH_VARARGS, "decisions(after): those of the policy with higher numbers, as tuples." },
    { "explain", explain, METH_NOARGS, "What runs, as text." },
    { "running", running, METH_NOARGS, "What the threads are at, as JSON." },
    { "unreported_bad", unreported_bad, METH_NOARGS, "Bad samples after the last batch of an epoch, as JSON; once." },
    { "profile", profile, METH_VARARGS, "profile(samples): time and bytes of each op, as JSON." },
    { "note", note, METH_VARARGS, "note(json): writes an event into the trace, where there is one." },
    { "set", set, METH_VARARGS, "set(knob, value): changes a setting while it runs." },
    { "get", get, METH_VARARGS, "get(knob): the value of a setting." },
    { "set_weights", set_weights, METH_VARARGS, "set_weights(text): what the policy aims for from then on." },
    { "pause", pause_loader, METH_VARARGS, "pause(paused): the consumer does something else, or goes on." },
    { "close", close_loader, METH_NOARGS, "Stops and frees; batches that are held stay valid." },
    { 0 },
};

static PyGetSetDef members[] = {
    { "closed", get_closed, NULL, "Whether close was called.", NULL },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_dealloc, dealloc },
    { Py_tp_methods, methods },
    { Py_tp_getset, members },
    { Py_tp_doc, "A native loader; drapps.Loader wraps it." },
    { 0, NULL },
};

PyType_Spec core_loader_spec = {
    .name = "drapps._core.Loader",
    .basicsize = sizeof(py_loader),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
