"""What arguments and methods of other libraries are called in Pipeline, for messages about names that there are not."""

import difflib
import functools
import inspect

# Arguments of torch's DataLoader; {} is the value that was given.
ARGUMENTS = {
    "num_workers": "give workers={}",
    "drop_last": "give last=\"drop\" or last=\"partial\"",
    "prefetch_factor": "give prefetch=, which counts all batches in flight",
    "collate_fn": "give collate={{field: rule}}, or change samples by .map()",
    "sampler": "give shuffle=, or pushed_order=True and Loader.push()",
    "batch_sampler": "give shuffle=, or pushed_order=True and Loader.push()",
    "generator": "give seed=",
    "worker_init_fn": "leave it out: random numbers are seeded for each sample",
    "persistent_workers": "leave it out: workers stay until the loader is closed",
    "pin_memory": "leave it out: pin the batches with Tensor.pin_memory()",
    "timeout": "set loader.timeout_ms",
    "batch": "give batch_size={}",
    "drop_remainder": "give last=\"drop\" or last=\"partial\"",
    "random_state": "give seed={}",
}

# Attributes of a pipeline.
METHODS = {
    "to_tensor": "it is not needed: loaders deliver tensors; normalize() or to_dtype(\"float32\", scale=True) makes "
                 "floats",
    "shuffle": "give shuffle=True to loader()",
    "batch": "give batch_size= to loader()",
    "repeat": "each iter() of a loader is an epoch",
    "prefetch": "give prefetch= to loader()",
    "apply": "use map()",
}  # fmt: skip


def did_you_mean(name, known):
    """"; did you mean 'batch_size'?", or "" where no known name is like it."""
    close = difflib.get_close_matches(name, sorted(known), 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def named_arguments(function):
    """Makes an unknown keyword argument a TypeError that says what it is called here."""
    known = frozenset(inspect.signature(function).parameters)
    called = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def checked(*arguments, **named):
        for name, value in named.items():
            if name not in known:
                hint = f": {ARGUMENTS[name].format(repr(value))}" if name in ARGUMENTS else did_you_mean(name, known)
                raise TypeError(f"{called}() has no argument {name!r}{hint}")
        return function(*arguments, **named)

    return checked
