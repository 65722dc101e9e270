/* py_trace.h: TraceWriter, for the files whose objects write into one. */
#ifndef DRAPPS_PY_TRACE_H
#define DRAPPS_PY_TRACE_H

#include "py_core.h"

typedef struct py_trace {
    PyObject_HEAD dr_trace *trace; /* NULL: closed */
} py_trace;

/* O& converter: a TraceWriter that is open, or None, to dr_trace * (borrowed: the caller keeps the object, and nobody
 * closes it meanwhile).  `out` is a py_trace_arg whose state is set. */
typedef struct py_trace_arg {
    core_state *state;
    dr_trace *trace; /* NULL: None */
} py_trace_arg;

int trace_or_none(PyObject *object, void *out);

/* The end of a long key: folders are alike, files are not. */
void copy_span_key(const char *key, char out[64]);

#endif
