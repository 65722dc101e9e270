/* py_block.c: Block: a piece of a shmpool's shared memory, seen through the buffer protocol.
 *
 * A block is either this object's own, then it is released with it, or lent: the common block of a batch, a sample that
 * is being collated.  Own blocks that were handed over (to a batch) are lent from then on.
 */
#include "py_core.h"

static py_block *as_block(PyObject *self)
{
    return (py_block *)self;
}

PyObject *core_block_wrap(core_state *state, dr_shmpool *shmpool, dr_shmpool_block block, int own)
{
    if (!block)
        Py_RETURN_NONE;
    py_block *self = core_new(state->block_type);
    if (!self) {
        if (own)
            dr_shmpool_block_release(shmpool, block);
        return NULL;
    }
    self->shmpool = dr_shmpool_ref(shmpool);
    self->block = block;
    self->own = own;
    self->data = dr_shmpool_block_data(shmpool, block);
    self->bytes = (Py_ssize_t)dr_shmpool_block_bytes(shmpool, block);
    return (PyObject *)self;
}

static void dealloc(PyObject *self)
{
    py_block *b = as_block(self);
    if (b->own)
        dr_shmpool_block_release(b->shmpool, b->block);
    dr_shmpool_unref(&b->shmpool);
    core_free(self);
}

static int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    return PyBuffer_FillInfo(view, self, as_block(self)->data, as_block(self)->bytes, 0, flags);
}

static PyObject *get_id(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(as_block(self)->block);
}

static PyObject *get_address(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromVoidPtr(as_block(self)->data);
}

static PyObject *get_nbytes(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromSsize_t(as_block(self)->bytes);
}

static PyObject *get_own(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(as_block(self)->own);
}

static Py_ssize_t length(PyObject *self)
{
    return as_block(self)->bytes;
}

static PyGetSetDef getters[] = {
    { "id", get_id, NULL, "The same number in every process.", NULL },
    { "address", get_address, NULL, "Where it is in this process.", NULL },
    { "nbytes", get_nbytes, NULL, "Its size, as it was asked for.", NULL },
    { "own", get_own, NULL, "Whether it is released with this object.", NULL },
    { 0 },
};

static PyType_Slot slots[] = {
    { Py_tp_dealloc, dealloc },
    { Py_tp_getset, getters },
    { Py_bf_getbuffer, get_buffer },
    { Py_sq_length, length },
    { Py_tp_doc, "A piece of a shmpool's shared memory." },
    { 0, NULL },
};

PyType_Spec core_block_spec = {
    .name = "drapps._core.Block",
    .basicsize = sizeof(py_block),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
