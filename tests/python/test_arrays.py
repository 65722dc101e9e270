"""What leaves a loader: NumPy and torch arrays over the library's memory, valid while anything holds them."""

import gc

import numpy
import pytest
from imagesets import gather, run_python

import drapps
from drapps import _core

torch = pytest.importorskip("torch")


def numbers(dtype="int64", n=6):
    return drapps.from_arrays(x=numpy.arange(n * 4).reshape(n, 4).astype(dtype))


def raw(pipe, name="x", **options):
    return next(iter(pipe.loader(batch_size=3, output="raw", **options)))[name]


@pytest.mark.parametrize(
    "dtype", ["uint8", "int8", "uint16", "int16", "int32", "int64", "float16", "float32", "float64", "bool"]
)
def test_every_type_both_ways(dtype):
    array = raw(numbers(dtype))
    want = numpy.arange(12).reshape(3, 4).astype(dtype)
    assert array.dtype == dtype and array.shape == (3, 4) and array.nbytes == want.nbytes
    by_buffer, by_dlpack = numpy.asarray(memoryview(array)), numpy.from_dlpack(array)
    assert by_buffer.dtype == by_dlpack.dtype == want.dtype
    assert (by_buffer == want).all() and (by_dlpack == want).all()
    assert torch.from_dlpack(array).tolist() == want.tolist()


def test_one_memory():
    array = raw(numbers())
    a, b, t = numpy.asarray(memoryview(array)), numpy.asarray(memoryview(array)), torch.from_dlpack(array)
    a[0, 0] = 77
    t[1, 1] = 88
    assert b[0, 0] == 77 and b[1, 1] == 88 and t[0, 0] == 77
    assert t.data_ptr() == a.ctypes.data


def test_the_batch_outlives_everything_else():
    tensor = torch.from_dlpack(raw(numbers(n=3)))
    view = memoryview(raw(numbers(n=3)))
    gc.collect()
    for _ in range(5):  # others use the pool meanwhile
        list(numbers("int64", 300).loader(batch_size=3, output="numpy"))
    assert tensor.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert numpy.asarray(view).tolist() == tensor.tolist()


def test_capsules():
    array = raw(numbers())
    assert '"dltensor"' in repr(array.__dlpack__())
    assert '"dltensor"' in repr(array.__dlpack__(max_version=(0, 8)))
    assert '"dltensor_versioned"' in repr(array.__dlpack__(max_version=(1, 0)))
    assert array.__dlpack_device__() == (1, 0)
    for _ in range(100):  # capsules that nobody takes give the batch back
        array.__dlpack__(), array.__dlpack__(max_version=(1, 1))
    with pytest.raises(BufferError, match="without a copy"):
        array.__dlpack__(copy=True)
    with pytest.raises(BufferError, match="CPU"):
        array.__dlpack__(dl_device=(2, 0))


def test_bfloat16(folder):
    pipe = drapps.read(folder).decode().resize((8, 8)).to_dtype("bfloat16", scale=True)
    images, _ = next(iter(pipe.loader(batch_size=2, output="torch")))
    assert images.dtype == torch.bfloat16 and images.shape == (2, 3, 8, 8)
    with pytest.raises(BufferError, match="bfloat16 has no NumPy type"):
        next(iter(pipe.loader(batch_size=2, output="numpy")))


def test_torch_equals_numpy(pipe):
    arrays = gather(pipe.loader(batch_size=4, output="numpy", seed=2))
    tensors = list(pipe.loader(batch_size=4, output="torch", seed=2))
    assert len(arrays) == len(tensors)
    for (images, labels, _), (t_images, t_labels) in zip(arrays, tensors):
        assert t_labels.dtype == torch.int64 and t_images.dtype == torch.float32
        assert (t_images.numpy() == images).all() and t_labels.tolist() == labels.tolist()


def test_auto_output(folder):
    program = """
    import sys, drapps
    pipe = drapps.read(sys.argv[1]).decode().resize((8, 8))
    loader = pipe.loader(batch_size=2)
    print(type(next(iter(loader))[0]).__module__)
    assert "torch" not in sys.modules
    import torch
    print(type(next(iter(loader))[0]).__module__)
    """
    done = run_python(program, folder)
    assert done.stdout.split() == ["numpy", "torch"], done.stderr


def test_arrays_are_not_made_by_hand():
    with pytest.raises(TypeError):
        _core.Array()
    assert repr(raw(numbers())) == "<drapps.Array int64 (3, 4)>"


def test_tensors_at_interpreter_exit(folder):
    """Tensors that live in globals are freed after the loader, at the very end."""
    program = """
    import sys, torch, drapps
    pipe = drapps.read(sys.argv[1]).decode().resize((64, 64))
    loader = pipe.loader(batch_size=2, workers=2)
    epoch = iter(loader)
    kept = [next(epoch) for _ in range(3)]
    torch.kept = kept
    print("done")
    """
    done = run_python(program, folder)
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr
    assert done.stderr == ""
