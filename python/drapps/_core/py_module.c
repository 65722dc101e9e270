/* py_module.c: the extension module drapps._core: its functions, types and state. */
#include "py_core.h"

#include <stddef.h>

/* --- helpers for all files --- */

PyObject *take_text(char *text)
{
    PyObject *result = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "surrogateescape");
    dr_text_free(&text);
    return result;
}

int text_or_none(PyObject *object, void *out)
{
    const char **text = out;
    *text = NULL;
    if (object == Py_None)
        return 1;
    *text = PyUnicode_AsUTF8AndSize(object, NULL);
    return *text != NULL;
}

int to_u64(PyObject *object, void *out)
{
    PyObject *index = PyNumber_Index(object); /* NumPy integers too; floats not */
    if (!index)
        return 0;
    unsigned long long value = PyLong_AsUnsignedLongLong(index);
    Py_DECREF(index);
    if (value == (unsigned long long)-1 && PyErr_Occurred())
        return 0;
    *(uint64_t *)out = value;
    return 1;
}

void *core_new(PyObject *type)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot((PyTypeObject *)type, Py_tp_alloc);
    return alloc((PyTypeObject *)type, 0);
}

void core_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type); /* each object of a heap type holds it */
}

static const char *const kind_names[] = {
    [DR_KIND_ARRAY] = "array",         [DR_KIND_IMAGE] = "image",
    [DR_KIND_MASK] = "mask",           [DR_KIND_BOXES] = "boxes",
    [DR_KIND_BYTES] = "bytes",         [DR_KIND_TEXT] = "text",
    [DR_KIND_VOLUME] = "volume",       [DR_KIND_VOLUME_MASK] = "volume_mask",
    [DR_KIND_KEYPOINTS] = "keypoints", [DR_KIND_LABELS] = "labels",
    [DR_KIND_MASKS] = "masks",
};

enum { N_KINDS = sizeof kind_names / sizeof kind_names[0] };

const char *core_kind_name(dr_kind kind)
{
    return (unsigned)kind < N_KINDS ? kind_names[kind] : "?";
}

int core_kind_parse(const char *name, dr_kind *out)
{
    for (int i = 0; i < N_KINDS; i++)
        if (!strcmp(kind_names[i], name)) {
            *out = (dr_kind)i;
            return 0;
        }
    PyErr_Format(PyExc_ValueError,
                 "kind must be array, image, mask, boxes, bytes, text, volume, volume_mask, keypoints, labels or "
                 "masks, got '%s'",
                 name);
    return -1;
}

dr_layout core_kind_layout(dr_kind kind)
{
    if (kind == DR_KIND_IMAGE || kind == DR_KIND_MASK)
        return DR_LAYOUT_HWC;
    return kind == DR_KIND_MASKS ? DR_LAYOUT_CHW : DR_LAYOUT_ANY;
}

PyObject *core_desc_dims(const dr_desc *desc)
{
    PyObject *dims = PyTuple_New(desc->n_dims);
    for (int i = 0; dims && i < desc->n_dims; i++) {
        PyObject *dim = PyLong_FromLongLong(desc->dims[i]);
        if (!dim || PyTuple_SetItem(dims, i, dim) < 0)
            Py_CLEAR(dims);
    }
    return dims;
}

/* --- functions --- */

static PyObject *version(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyUnicode_FromString(dr_version());
}

static PyObject *ops_json(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyUnicode_FromString(dr_ops_json());
}

static PyObject *codecs_json(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyUnicode_FromString(dr_codecs_json());
}

static PyObject *formats_json(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyUnicode_FromString(dr_formats_json());
}

static PyObject *sensors_json(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyUnicode_FromString(dr_sensors_json());
}

static PyObject *info(PyObject *module, PyObject *unused)
{
    (void)unused;
    char *text = NULL;
    dr_error err = { 0 };
    dr_status status = dr_info(&text, &err);
    return status == DR_OK ? take_text(text) : raise_status(PyModule_GetState(module), status, &err);
}

static PyMethodDef functions[] = {
    { "version", version, METH_NOARGS, "The version of the library." },
    { "ops_json", ops_json, METH_NOARGS, "Every op with its parameters, as JSON." },
    { "codecs_json", codecs_json, METH_NOARGS, "Every codec, as JSON." },
    { "formats_json", formats_json, METH_NOARGS, "Every format, as JSON." },
    { "sensors_json", sensors_json, METH_NOARGS, "Every sensor of the monitor, as JSON." },
    { "knobs_json", core_knobs_json, METH_NOARGS, "Every knob of the scheduler, as JSON." },
    { "flows_json", core_flows_json, METH_NOARGS, "Every number that a pipeline tells its policy, as JSON." },
    { "policies_json", core_policies_json, METH_NOARGS, "Every policy, as JSON." },
    { "check_policy", core_check_policy, METH_VARARGS,
      "check_policy(text): raises unless it chooses a policy; None: unless DRAPPS_POLICY does" },
    { "info", info, METH_NOARGS, "This build and this machine, as JSON." },
    { "open_dataset", (PyCFunction)(void (*)(void))core_dataset_open, METH_VARARGS | METH_KEYWORDS,
      "open_dataset(path, *, format, root, extensions, path_column, label_column, mask_column, use_index, name)" },
    { "open_files", core_dataset_from_files, METH_VARARGS, "open_files([(path, number), ...], extensions, root)" },
    { "from_arrays", core_dataset_from_arrays, METH_VARARGS, "from_arrays(((name, buffer, kind), ...))" },
    { "concat", core_dataset_concat, METH_VARARGS, "concat(datasets)" },
    { "mix", core_dataset_mix, METH_VARARGS, "mix(datasets, weights, length=0)" },
    { "graph_from_json", core_graph_from_json, METH_VARARGS, "graph_from_json(text)" },
    { "open_loader", (PyCFunction)(void (*)(void))core_loader_open, METH_VARARGS | METH_KEYWORDS,
      "open_loader(dataset, graph, *, batch_size, seed, ...): see drapps/loader.h" },
    { "open_runner", core_runner_open, METH_VARARGS, "open_runner(dataset, graph, outputs, reference)" },
    { "open_field_runner", core_runner_open_fields, METH_VARARGS,
      "open_field_runner(((name, kind, dtype, dims), ...), graph, outputs, reference)" },
    { "open_shmpool", (PyCFunction)(void (*)(void))core_shmpool_open, METH_VARARGS | METH_KEYWORDS,
      "open_shmpool(*, max_workers, max_batches, ...): see drapps/shmpool.h" },
    { "join_shmpool", core_shmpool_join, METH_VARARGS, "join_shmpool(fd)" },
    { "parse_weights", core_parse_weights, METH_VARARGS, "parse_weights(text): {term: weight}" },
    { "adapt_shmpool", (PyCFunction)(void (*)(void))core_shmpool_adapt, METH_VARARGS | METH_KEYWORDS,
      "adapt_shmpool(shmpool, *, policy, weights, name, ...): see drapps/shmpool_controller.h" },
    { "open_pack", (PyCFunction)(void (*)(void))core_pack_open, METH_VARARGS | METH_KEYWORDS,
      "open_pack(dataset, folder, *, graph, n_nodes, ...): see drapps/pack.h" },
    { "sim_json", core_sim_json, METH_NOARGS, "The simulator's tables, as JSON." },
    { "sim_env_json", core_sim_env_json, METH_NOARGS, "The tables of its environments, as JSON." },
    { "open_sim", core_sim_open, METH_VARARGS, "open_sim(machine, workload, model, scenario, set, weights, seed)" },
    { "open_sim_env", core_sim_env_open, METH_VARARGS,
      "open_sim_env(machine, workload, model, scenario, set, weights, seed, n, seconds, base)" },
    { "open_ledger", core_ledger_open, METH_VARARGS, "open_ledger(path, n_samples); path None: memory alone" },
    { "codec_stages_json", core_codec_stages_json, METH_NOARGS, "Every stage of codecs, as JSON." },
    { "open_codec", core_codec_open, METH_VARARGS, "open_codec(spec, dictionary=None)" },
    { "codec_peek", core_codec_peek, METH_VARARGS, "codec_peek(frame): what its header says" },
    { "codec_decode", core_codec_decode, METH_VARARGS, "codec_decode(frame, out, dictionary)" },
    { "codec_decompress", core_codec_decompress, METH_VARARGS, "codec_decompress(file, dictionary, max_size)" },
    { "open_codec_dict", core_codec_dict_open, METH_VARARGS, "open_codec_dict(data)" },
    { "train_codec_dict", core_codec_dict_train, METH_VARARGS, "train_codec_dict(samples, sizes, max_size)" },
    { "codec_candidates", core_codec_candidates, METH_VARARGS, "codec_candidates(data_class, dtype)" },
    { "codec_measured", core_codec_measured, METH_VARARGS, "codec_measured(spec, data_class)" },
    { "codec_keep", core_codec_keep, METH_VARARGS, "codec_keep(spec, data_class, (encode, decode, ratio))" },
    { "codec_choose", core_codec_choose, METH_VARARGS, "codec_choose(data, dtype, dims, kind, criteria)" },
    { "open_monitor", core_monitor_open, METH_VARARGS, "open_monitor(interval_ms, history, root)" },
    { "live_read", core_live_read, METH_VARARGS, "live_read(pid): what running loaders show, as JSON; 0: all" },
    { "metrics_text", core_metrics_text, METH_NOARGS, "The metrics of this process." },
    { "metrics_start", core_metrics_start, METH_VARARGS, "metrics_start(address): a server, until it is dropped" },
    { "metrics_port", core_metrics_port, METH_O, "metrics_port(server)" },
    { "metrics_from_environment", core_metrics_from_environment, METH_NOARGS, "Starts what DRAPPS_METRICS asks for." },
    { "open_trace", (PyCFunction)(void (*)(void))core_trace_open, METH_VARARGS | METH_KEYWORDS,
      "open_trace(path, meta='{}', max_bytes=0, spans_per_s=0): a TraceWriter; path None: DRAPPS_TRACE's, or None" },
    { "open_trace_reader", core_trace_reader_open, METH_VARARGS, "open_trace_reader(path): an iterator of records" },
    { "replacement", core_replacement, METH_VARARGS,
      "replacement(seed, epoch, id, occurrence, attempt, n): which of n candidates replaces a bad sample" },
    { "replacement_sample", core_replacement_sample, METH_VARARGS,
      "replacement_sample(dataset, seed, epoch, id, occurrence, attempt): (id, occurrence)" },
    { "order_sample", core_order_sample, METH_VARARGS,
      "order_sample(dataset, seed, epoch, shuffle, position): (id, occurrence)" },
    { "fill_seeds", core_fill_seeds, METH_VARARGS,
      "fill_seeds(base_seed, tag, slot, random, numpy, torch): addresses of generators' states; 0: left alone" },
    { "seed_numpy", core_seed_numpy, METH_VARARGS,
      "seed_numpy(address, key): numpy.random.seed(key) of four words, for the MT19937 whose state is there" },
    { "seed_words", core_seed_words, METH_VARARGS, "seed_words(base_seed, tag, slot, generator): 624 words, as bytes" },
    { "open_store", core_store_open, METH_VARARGS,
      "open_store(folder, identity, limit=0, adaptive=True): see drapps/store.h" },
    { "write_row", core_write_row, METH_VARARGS, "write_row(layout, sample, address, row, others): whether it fits" },
    { "name_process", core_name_process, METH_O, "name_process(name): what ps and top show" },
    { "end_with_parent", core_end_with_parent, METH_NOARGS,
      "end_with_parent(): the kernel kills this process when the thread that forked it ends" },
    { "fork_both", core_fork_both, METH_VARARGS,
      "fork_both(pause_us): (place, first, second, first_fd): two children, and a descriptor of the first; place: 0 in "
      "the parent, 1 in the first, 2 in the second, which does nothing for pause_us" },
    { "keep_memory", core_keep_memory, METH_VARARGS,
      "keep_memory(bytes): so much freed memory stays with this process, for what it allocates next" },
    { "defer_sigint", core_defer_sigint, METH_VARARGS, "defer_sigint(fn, *args): SIGINT is put off until it returns" },
    { 0 },
};

/* --- state --- */

static PyObject *add_type(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (type && PyModule_AddType(module, (PyTypeObject *)type) < 0)
        Py_CLEAR(type);
    return type;
}

static int add_types(PyObject *module, core_state *state)
{
    const struct {
        PyObject **place;
        PyType_Spec *spec;
    } rows[] = {
        { &state->dataset_type, &core_dataset_spec },
        { &state->graph_type, &core_graph_spec },
        { &state->loader_type, &core_loader_spec },
        { &state->batch_type, &core_batch_spec },
        { &state->array_type, &core_array_spec },
        { &state->runner_type, &core_runner_spec },
        { &state->jpeg_type, &core_jpeg_spec },
        { &state->jpeg_index_type, &core_jpeg_index_spec },
        { &state->shmpool_type, &core_shmpool_spec },
        { &state->block_type, &core_block_spec },
        { &state->store_type, &core_store_spec },
        { &state->monitor_type, &core_monitor_spec },
        { &state->trace_type, &core_trace_spec },
        { &state->trace_reader_type, &core_trace_reader_spec },
        { &state->shmpool_controller_type, &core_shmpool_controller_spec },
        { &state->ledger_type, &core_ledger_spec },
        { &state->codec_type, &core_codec_spec },
        { &state->codec_dict_type, &core_codec_dict_spec },
        { &state->pack_type, &core_pack_spec },
        { &state->sim_type, &core_sim_spec },
        { &state->sim_env_type, &core_sim_env_spec },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        *rows[i].place = add_type(module, rows[i].spec);
        if (!*rows[i].place)
            return -1;
    }
    return 0;
}

static PyObject *add_tuple(PyObject *module, PyStructSequence_Desc *desc)
{
    PyObject *type = (PyObject *)PyStructSequence_NewType(desc);
    if (type && PyModule_AddType(module, (PyTypeObject *)type) < 0)
        Py_CLEAR(type);
    return type;
}

static int add_tuples(PyObject *module, core_state *state)
{
    const struct {
        PyObject **type;
        PyStructSequence_Desc *desc;
    } rows[] = {
        { &state->result_type, &core_result_desc },
        { &state->claim_type, &core_claim_desc },
        { &state->sample_type, &core_sample_desc },
        { &state->placement_type, &core_placement_desc },
        { &state->worker_state_type, &core_worker_state_desc },
        { &state->slot_type, &core_slot_desc },
        { &state->blocked_time_type, &core_blocked_time_desc },
        { &state->forked_type, &core_forked_desc },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        *rows[i].type = add_tuple(module, rows[i].desc);
        if (!*rows[i].type)
            return -1;
    }
    return 0;
}

/* Constants of drapps/sched.h that the process pool uses, too. */
static int add_constants(PyObject *module)
{
    if (PyModule_AddIntConstant(module, "PREFETCH_CHEAP_BYTES", DR_PREFETCH_CHEAP_BYTES) < 0)
        return -1;
    return PyModule_AddIntConstant(module, "PREFETCH_SAMPLES_PER_WORKER", DR_PREFETCH_SAMPLES_PER_WORKER);
}

static int exec(PyObject *module)
{
    core_state *state = PyModule_GetState(module);
    if (core_add_errors(module, state) < 0)
        return -1;
    if (add_types(module, state) < 0 || add_tuples(module, state) < 0)
        return -1;
    return add_constants(module);
}

/* Every member of the state is an object: they can be walked as an array. */
enum { N_OBJECTS = sizeof(core_state) / sizeof(PyObject *) };

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    PyObject **objects = PyModule_GetState(module);
    for (size_t i = 0; objects && i < N_OBJECTS; i++)
        Py_VISIT(objects[i]);
    return 0;
}

static int clear(PyObject *module)
{
    PyObject **objects = PyModule_GetState(module);
    for (size_t i = 0; objects && i < N_OBJECTS; i++)
        Py_CLEAR(objects[i]);
    return 0;
}

static void release(void *module)
{
    clear(module);
}

static PyModuleDef_Slot slots[] = {
    { Py_mod_exec, exec },
    { 0, NULL },
};

static struct PyModuleDef core_module = {
    PyModuleDef_HEAD_INIT,        .m_name = "drapps._core", .m_doc = "libdrapps for Python; use the package drapps.",
    .m_size = sizeof(core_state), .m_methods = functions,   .m_slots = slots,
    .m_traverse = traverse,       .m_clear = clear,         .m_free = release,
};

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&core_module);
}
