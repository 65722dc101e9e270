"""A running tests/golden/op_run, which runs one op on one image, and torchvision to compare it with.

The program (built with -Dtests=true) is looked for in the folder DRAPPS_BUILD, or in build*/ of the project.
"""

import json
import os
import pathlib
import subprocess

import numpy
import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]


def import_torchvision():
    """torchvision without its compiled operators, which a CPU-only torch may not find, still has all transforms."""
    try:
        import torchvision
    except RuntimeError:
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(name + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import torchvision

        torchvision.drapps_library = library  # the operators live as long as this does
    return torchvision


def find_program(name):
    folders = [os.environ["DRAPPS_BUILD"]] if "DRAPPS_BUILD" in os.environ else sorted(ROOT.glob("build*"))
    for folder in folders:
        program = pathlib.Path(folder) / "tests" / "golden" / name
        if program.exists():
            return program
    pytest.skip(name + " is not built (meson setup build -Dtests=true)")


class OpError(Exception):
    """What the library said."""


class OpRunner:
    def __init__(self):
        self.process = subprocess.Popen([find_program("op_run")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, request, pixels=b""):
        self.process.stdin.write(json.dumps(request).encode() + b"\n" + pixels)
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"op_run died at {request}"
        answer = json.loads(line)
        if "error" in answer:
            raise OpError(answer["error"])
        return answer

    def run(self, op, image, level="best", kind="image", sample=0, seed=0, element=None, **params):
        """What was drawn, and the result, for an array of (height, width, channels).  bfloat16, which NumPy lacks, goes
        in and out as uint16, with element="bfloat16"."""
        image = numpy.ascontiguousarray(image)
        request = dict(op=op, params=params, shape=image.shape, level=level, kind=kind, sample=sample, seed=seed)
        answer = self.ask(dict(request, element=element or str(image.dtype)), image.tobytes())
        dtype = "uint16" if answer["dtype"] == "bfloat16" else answer["dtype"]
        result = numpy.frombuffer(self.process.stdout.read(answer["bytes"]), dtype)
        return answer["draws"], result.reshape(answer["shape"])

    def draw(self, op, n, shape=(48, 64, 3), seed=0, **params):
        """What n samples draw."""
        return self.ask(dict(op=op, params=params, shape=shape, draws=n, seed=seed))

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
