"""float32 to float16 as NumPy converts, to bfloat16 as PyTorch does: every upper half, with the
lower bits that decide."""

import subprocess

import numpy
import pytest
from golden import find_program


def floats():
    upper = numpy.arange(1 << 16, dtype=numpy.uint32) << 16
    lower = numpy.random.default_rng(1).integers(0, 1 << 16, 4).tolist()
    ties = [0, 1, 0x0FFF, 0x1000, 0x1001, 0x2FFF, 0x3000, 0x3001, 0x7FFF, 0x8000, 0x8001, 0xFFFF]
    return numpy.concatenate([upper | bits for bits in ties + lower]).view(numpy.float32)


def convert(values, kind):
    done = subprocess.run([find_program("half_check"), kind], input=values.tobytes(), capture_output=True, check=True)
    return numpy.frombuffer(done.stdout, numpy.uint16)


def test_float16():
    values = floats()
    with numpy.errstate(over="ignore", under="ignore", invalid="ignore"):
        want = values.astype(numpy.float16).view(numpy.uint16)
    got = convert(values, "f16")
    nan = numpy.isnan(values)  # the quiet bit of a NaN is the CPU's where NumPy uses its instruction
    assert (got[~nan] == want[~nan]).all()
    assert numpy.isnan(got[nan].view(numpy.float16)).all()


def test_bfloat16():
    torch = pytest.importorskip("torch")
    values = floats()
    want = torch.from_numpy(values).to(torch.bfloat16).view(torch.int16).numpy().view(numpy.uint16)
    got = convert(values, "bf16")
    nan = numpy.isnan(values)
    assert (got[~nan] == want[~nan]).all()
    assert ((got[nan] & 0x7FFF) > 0x7F80).all()
