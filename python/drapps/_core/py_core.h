/* py_core.h: what the files of the extension share.
 *
 * The extension is thin: each method checks its arguments, makes one call of libdrapps and wraps the result.  Nothing
 * here is global: types and exceptions live in the module's state, which every object reaches through its type.
 */
#ifndef DRAPPS_PY_CORE_H
#define DRAPPS_PY_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string.h>

#include <drapps/drapps.h>

typedef struct core_state {
    PyObject *dataset_type, *graph_type, *loader_type, *batch_type, *array_type, *runner_type, *jpeg_type,
        *jpeg_index_type, *shmpool_type, *block_type, *result_type, *claim_type, *sample_type, *placement_type,
        *worker_state_type, *slot_type, *blocked_time_type, *forked_type, *store_type, *monitor_type, *trace_type,
        *trace_reader_type, *shmpool_controller_type, *ledger_type, *codec_type, *codec_dict_type, *pack_type,
        *sim_type, *sim_env_type;
    PyObject *errors[16];   /* at [-status]: the exception of each failure */
    PyObject *file_missing; /* DR_ERR_NOT_FOUND of a path */
    PyObject *base_error;
} core_state;

/* The state of the module that a (final, heap) type belongs to. */
static inline core_state *state_of(PyObject *self)
{
    return PyType_GetModuleState(Py_TYPE(self));
}

/* Makes the exceptions and adds them to the module: 0 or -1. */
int core_add_errors(PyObject *module, core_state *state);

/* The one place where a status becomes a Python exception.  Always returns NULL. */
PyObject *raise_status(core_state *state, dr_status status, const dr_error *err);

/* The same for opening a path, where "not found" is a missing file. */
PyObject *raise_open_status(core_state *state, dr_status status, const dr_error *err);

/* A text of the library as str; frees the text. */
PyObject *take_text(char *text);

/* O& converters: text or None to const char * (borrowed from the argument), int to uint64_t. */
int text_or_none(PyObject *object, void *out);
int to_u64(PyObject *object, void *out);

/* An object of one of the module's types, zeroed after its head. */
void *core_new(PyObject *type);

/* Frees an object of a heap type. */
void core_free(PyObject *self);

typedef struct py_dataset {
    PyObject_HEAD dr_dataset *set;
} py_dataset;

typedef struct py_graph {
    PyObject_HEAD dr_graph *graph;
} py_graph;

typedef struct py_batch {
    PyObject_HEAD dr_batch *batch;
} py_batch;

typedef struct py_monitor {
    PyObject_HEAD dr_monitor *monitor; /* NULL: closed */
} py_monitor;

typedef struct py_block {
    PyObject_HEAD dr_shmpool *shmpool;
    dr_shmpool_block block;
    int own; /* released with the object */
    void *data;
    Py_ssize_t bytes;
} py_block;

extern PyType_Spec core_dataset_spec, core_graph_spec, core_loader_spec, core_batch_spec, core_array_spec,
    core_runner_spec, core_jpeg_spec, core_jpeg_index_spec, core_shmpool_spec, core_block_spec, core_store_spec,
    core_monitor_spec, core_trace_spec, core_trace_reader_spec, core_shmpool_controller_spec, core_ledger_spec,
    core_codec_spec, core_codec_dict_spec, core_pack_spec, core_sim_spec, core_sim_env_spec;
extern PyStructSequence_Desc core_result_desc, core_claim_desc, core_sample_desc, core_placement_desc,
    core_worker_state_desc, core_slot_desc, core_blocked_time_desc, core_forked_desc;

PyObject *core_dataset_open(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *core_dataset_from_files(PyObject *module, PyObject *args);
PyObject *core_dataset_from_arrays(PyObject *module, PyObject *args);
PyObject *core_dataset_concat(PyObject *module, PyObject *args);
PyObject *core_dataset_mix(PyObject *module, PyObject *args);
PyObject *core_graph_from_json(PyObject *module, PyObject *args);
PyObject *core_loader_open(PyObject *module, PyObject *args, PyObject *kwargs);

PyObject *core_runner_open(PyObject *module, PyObject *args);
PyObject *core_runner_open_fields(PyObject *module, PyObject *args);
PyObject *core_order_sample(PyObject *module, PyObject *args);
PyObject *core_replacement(PyObject *module, PyObject *args);
PyObject *core_replacement_sample(PyObject *module, PyObject *args);
PyObject *core_store_open(PyObject *module, PyObject *args);

PyObject *core_fill_seeds(PyObject *module, PyObject *args);
PyObject *core_seed_numpy(PyObject *module, PyObject *args);
PyObject *core_seed_words(PyObject *module, PyObject *args);
PyObject *core_write_row(PyObject *module, PyObject *args);
PyObject *core_shmpool_open(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *core_shmpool_join(PyObject *module, PyObject *args);
PyObject *core_parse_weights(PyObject *module, PyObject *args);
PyObject *core_shmpool_adapt(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *core_monitor_open(PyObject *module, PyObject *args);
PyObject *core_defer_sigint(PyObject *module, PyObject *args);
PyObject *core_name_process(PyObject *module, PyObject *name);
PyObject *core_end_with_parent(PyObject *module, PyObject *unused);
PyObject *core_fork_both(PyObject *module, PyObject *args);
PyObject *core_keep_memory(PyObject *module, PyObject *args);
PyObject *core_live_read(PyObject *module, PyObject *args);
PyObject *core_metrics_text(PyObject *module, PyObject *unused);
PyObject *core_metrics_start(PyObject *module, PyObject *args);
PyObject *core_metrics_port(PyObject *module, PyObject *capsule);
PyObject *core_metrics_from_environment(PyObject *module, PyObject *unused);
PyObject *core_trace_open(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *core_trace_reader_open(PyObject *module, PyObject *args);

/* A snapshot as the tuple that drapps.monitor.Snapshot takes, and back: 0 or -1. */
PyObject *core_snapshot_wrap(const dr_snapshot *snapshot);
int core_snapshot_unwrap(PyObject *facts, dr_snapshot *out);
PyObject *core_knobs_json(PyObject *module, PyObject *unused);
PyObject *core_flows_json(PyObject *module, PyObject *unused);
PyObject *core_policies_json(PyObject *module, PyObject *unused);
PyObject *core_pack_open(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *core_ledger_open(PyObject *module, PyObject *args);
PyObject *core_sim_json(PyObject *module, PyObject *unused);
PyObject *core_sim_env_json(PyObject *module, PyObject *unused);
PyObject *core_sim_open(PyObject *module, PyObject *args);
PyObject *core_sim_env_open(PyObject *module, PyObject *args);
PyObject *core_codec_open(PyObject *module, PyObject *args);
PyObject *core_codec_peek(PyObject *module, PyObject *args);
PyObject *core_codec_decode(PyObject *module, PyObject *args);
PyObject *core_codec_decompress(PyObject *module, PyObject *args);
PyObject *core_codec_dict_open(PyObject *module, PyObject *args);
PyObject *core_codec_dict_train(PyObject *module, PyObject *args);
PyObject *core_codec_stages_json(PyObject *module, PyObject *unused);
PyObject *core_codec_candidates(PyObject *module, PyObject *args);
PyObject *core_codec_measured(PyObject *module, PyObject *args);
PyObject *core_codec_keep(PyObject *module, PyObject *args);
PyObject *core_codec_choose(PyObject *module, PyObject *args);
PyObject *core_check_policy(PyObject *module, PyObject *args);

/* A Block; None for block 0.  own: it takes the block, and releases it in the end. */
PyObject *core_block_wrap(core_state *state, dr_shmpool *shmpool, dr_shmpool_block block, int own);
/* Takes the set. */
PyObject *core_dataset_wrap(core_state *state, dr_dataset *set);

/* Takes the batch. */
PyObject *core_batch_wrap(core_state *state, dr_batch *batch);

/* A view into a batch, which it keeps alive.  `item`: one sample, whose rows may be apart; else a dense array. */
PyObject *core_array_wrap(core_state *state, dr_batch *batch, const dr_view *view, int item);

/* A Python object for one sample of a list field: bytes, str or Array. */
PyObject *core_item_wrap(core_state *state, dr_batch *batch, const dr_view *view);

/* The names of enum values, as Python sees them. */
const char *core_kind_name(dr_kind kind);
int core_kind_parse(const char *name, dr_kind *out);

/* The layout of arrays of a kind, as Python has them. */
dr_layout core_kind_layout(dr_kind kind);

/* The description of an array that Python hands in; `name` is for messages.  0 or -1. */
int core_describe(const char *name, const char *kind, const Py_buffer *buffer, dr_desc *out);

/* The extents as a tuple. */
PyObject *core_desc_dims(const dr_desc *desc);

#endif
