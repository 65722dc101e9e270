"""Doing what a plan chose, and the code that uses it."""

import os
import re

from drapps import _core
from drapps.plan.materials import make
from drapps.plan.page_cache import free_disk
from drapps.plan.strategies import FILES, STORE
from drapps.printing import bytes_text

PACKED_SET = {"drapps-pack.json", "drapps-pack.lock", "drapps-set.json"}
STORE_NAME = re.compile("[0-9a-f]{32}")  # of a folder of kept samples


def apply(plan, folder):
    """Makes the chosen material of all samples in a folder, or what is missing of it; returns lines of code that read
    it.
    """
    row = plan.row
    if row is None:
        raise _core.StateError("the plan chose nothing: a larger budget is needed")
    folder, material = os.path.abspath(os.fsdecode(folder)), row.strategy.material
    if material.layout != FILES:
        if os.path.exists(folder) and not _may_go_on(folder, material.layout):
            raise _core.ArgumentError(f"{folder}: exists; --apply needs a folder that does not, or is empty")
        free = free_disk(folder)
        if row.storage.high > free:
            raise _core.LimitError(
                f"{folder}: needs up to {bytes_text(row.storage.high)}, there are {bytes_text(free)}"
            )
        make(material, plan.pipe, [], folder, plan.options)
    return code_lines(plan, row, folder)


def _may_go_on(folder, layout):
    """Whether a folder that is there is empty, or was begun by an apply that was interrupted.  Whether that was of the
    same plan, packing finds out; samples of another one are not found in a cache folder."""
    if not os.path.isdir(folder):
        return False
    names = os.listdir(folder)
    if layout == STORE:
        return all(STORE_NAME.fullmatch(name) for name in names)
    return not names or not PACKED_SET.isdisjoint(names)


def code_lines(plan, row, folder):
    """What stands after the pipeline in a program: two lines, or one where the pipeline stays as it is."""
    material, options = row.strategy.material, dict(plan.options)
    if row.memory_bytes:
        options["cache_memory"] = row.memory_bytes
    pipe = f".reordered({list(material.order)})" if material.order else ""
    if material.layout == STORE:
        options["cache"] = folder
    elif material.layout != FILES:
        pipe += f".use({folder!r})"
    arguments = ", ".join([f"{name}={value!r}" for name, value in options.items()] + ["shuffle=True"])
    return [*([f"pipe = pipe{pipe}"] if pipe else []), f"loader = pipe.loader({arguments})"]
