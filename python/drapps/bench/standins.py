"""Makes torchvision's compiled image functions (decode_jpeg) loadable beside a torch built for the CPU.

The wheel on PyPI is built for CUDA: its image.so needs two libraries that a CPU torch does not have.  The CPU functions
never call them, so empty stand-ins with their names and the few missing symbols are enough.  Needs a C compiler and nm.
With a CUDA torch nothing is built or loaded.

    PYTHON standins.py      build them for the environment of this interpreter
"""

import ctypes
import os
import subprocess
import sys
import sysconfig

LIBRARIES = ("libc10_cuda.so", "libtorch_cuda.so")
FOLDER = os.path.join(sys.prefix, "lib", "drapps-standins")


def _package(name):
    return os.path.join(sysconfig.get_path("purelib"), name)


def _symbols(path, which):
    """Return the unversioned names of the dynamic table.  which: --defined-only or --undefined-only."""
    lines = subprocess.run(["nm", "-D", which, path], capture_output=True, text=True, check=True).stdout.splitlines()
    words = [line.split() for line in lines]
    return {w[-1] for w in words if "@" not in w[-1] and w[-2] not in ("w", "v")}


def _missing_symbols():
    needed = _symbols(os.path.join(_package("torchvision"), "image.so"), "--undefined-only")
    for folder in (os.path.join(_package("torch"), "lib"), _package("torchvision.libs")):
        for name in os.listdir(folder):
            if ".so" in name:
                needed -= _symbols(os.path.join(folder, name), "--defined-only")
    return sorted(name for name in needed if not name.startswith(("Py", "_Py")))  # the interpreter's symbols


def _link(name, assembly):
    source = os.path.join(FOLDER, name + ".s")
    with open(source, "w") as f:
        f.write(assembly)
    subprocess.run(["cc", "-shared", "-nostdlib", f"-Wl,-soname,{name}", "-o", os.path.join(FOLDER, name), source],
                   check=True)


def build():
    """Write the stand-ins into the environment; do nothing if torch has the real libraries."""
    if os.path.exists(os.path.join(_package("torch"), "lib", LIBRARIES[0])):
        return
    os.makedirs(FOLDER, exist_ok=True)
    lines = [".data", ".balign 64"]
    for name in _missing_symbols():
        lines += [f".globl {name}", f".type {name}, @object", f".size {name}, 64", f"{name}: .zero 64"]
    _link(LIBRARIES[0], "\n".join(lines) + "\n")
    _link(LIBRARIES[1], ".data\n")


def import_torchvision():
    """Return torchvision, with its transforms, and with decode_jpeg if the stand-ins were built."""
    import torch

    if "torchvision" in sys.modules:
        return sys.modules["torchvision"]
    if os.path.isdir(FOLDER):
        for name in LIBRARIES:  # the dynamic linker finds them by name when image.so is loaded
            ctypes.CDLL(os.path.join(FOLDER, name))
    if torch.version.cuda is None:
        library = torch.library.Library("torchvision", "DEF")  # two detection ops that the import needs
        for name in ("nms", "qnms"):
            library.define(name + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import_torchvision.library = library  # the ops live as long as this object
    import torchvision

    return torchvision


if __name__ == "__main__":
    build()
