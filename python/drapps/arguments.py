"""The arguments of loaders: for each, the values that are allowed, as a test and in words.

Pipeline.loader and DataLoader check their arguments by these tables before they do anything else.  A wrong value is an
error of the form "workers must be a non-negative int or None, got 'x'".
"""

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from drapps import _core
from drapps.monitor import Monitor
from drapps.output import OUTPUTS
from drapps.real_number import is_real
from drapps.sched import CPUS, OFFLOAD, check_policy, weights_text

SHOWN = 200  # characters of a value in a message
INT64 = 2**63 - 1  # the largest int that the library takes


class Rule(NamedTuple):
    """The values that an argument may have.

    test: returns whether a value is allowed.  A TypeError or ValueError counts as no; a drapps.Error is passed on.
    words: completes "must be".
    """

    test: object
    words: str
    most: int | None = None  # a larger int gets a message of its own

    def or_none(self):
        """Return the rule that also allows None."""
        return Rule(lambda value: value is None or self.test(value), f"{self.words} or None", self.most)

    def words_for(self, value):
        """Return the words for the message about a wrong value."""
        return (
            f"at most {self.most}" if self.most is not None and type(value) is int and value > self.most else self.words
        )


def check(rules, given):
    """Raise ArgumentError, a ValueError, for the first of {name: value} that the rules do not allow."""
    for name, value in given.items():
        rule = rules[name]
        try:
            good = rule.test(value)
        except _core.Error:
            raise
        except (TypeError, ValueError, OverflowError, AttributeError):
            good = False
        if not good:
            shown = repr(value)
            cut = f"{shown[:SHOWN]}{'...' * (len(shown) > SHOWN)}"
            raise _core.ArgumentError(f"{name} must be {rule.words_for(value)}, got {cut}")


# --- rules ---


def _is_int(value):
    return type(value) is int or hasattr(value, "__index__")


def ints(least, most=None, words=None):
    """Return the rule of ints in a range."""
    text = words or (f"an int from {least} to {most}" if most is not None else f"an int of at least {least}")
    limit = INT64 if most is None else most
    return Rule(lambda value: _is_int(value) and least <= value <= limit, text, None if most is not None else limit)


def choices(*allowed):
    """Return the rule of a text that is one of `allowed`."""
    *most, last = map(repr, allowed)
    return Rule(lambda value: isinstance(value, str) and value in allowed, f"{', '.join(most)} or {last}")


def _is_names(value):
    return isinstance(value, str) or (isinstance(value, Sequence) and all(isinstance(name, str) for name in value))


def _is_rules(value):
    if isinstance(value, str):
        return all("=" in rule for rule in value.split(","))
    return (isinstance(value, Mapping) and _is_names([*value, *value.values()]))


def _is_codecs(value):
    return isinstance(value, str) or (isinstance(value, Mapping) and _is_names([*value, *value.values()]))


def _is_policy(value):
    check_policy(value)
    return True


def _is_weights(value):
    weights_text(value)
    return True


def _is_offload(value):
    return value in OFFLOAD if isinstance(value, str) else _is_int(value) and 0 <= value < 1000


FLAG = Rule(lambda value: isinstance(value, bool) or bool(value in (0, 1)), "True or False")
SEED = ints(0, 2**64 - 1, "a non-negative int below 2**64")
COUNT = ints(0, words="a non-negative int")
POSITIVE = ints(1, words="a positive int")
NUMBER = Rule(lambda value: is_real(value) and value >= 0, "a non-negative number")
PATH = Rule(lambda value: isinstance(value, (str, bytes, os.PathLike)), "a path").or_none()
CPU_LIMIT = Rule(lambda value: is_real(value) and CPUS[0] <= value <= CPUS[1],
                 f"a number from {CPUS[0]} to {CPUS[1]}")  # fmt: skip

MEMORY_LEAST = 1 << 20  # of a cache in memory, as DR__MEMORY_LEAST

BOTH = {
    "in_order": FLAG,
    "on_bad_sample": choices("raise", "skip", "replace"),
    "max_bad": COUNT.or_none(),
    "memory_limit": COUNT.or_none(),
    "cache": PATH,
    "cache_limit": COUNT.or_none(),
    "cache_memory": Rule(lambda value: COUNT.test(value) and (value == 0 or value >= MEMORY_LEAST),
                         f"0 or at least {MEMORY_LEAST} bytes").or_none(),
    "lanes": FLAG,
    "policy": Rule(_is_policy, "a policy").or_none(),
    "resource_monitor": Rule(lambda value: isinstance(value, Monitor), "a drapps.Monitor").or_none(),
    "adaptive_compression": FLAG,
    "offload": Rule(_is_offload, "'auto', 'off', 'all', 'resize', 'fastflow', 'sophon', 'sophon+', a number of ops"),
    "weights": Rule(
        _is_weights, "'step', 'draadp', 'drapps', {name: number}, {span: {name: number}}, 'name=number,...'"
    ).or_none(),
    "trace": PATH,
    "ranges": choices("auto", "on", "off"),
}

# The arguments of set_epoch and of Pipeline.preview.
EPOCH = {"epoch": COUNT}
PREVIEW = {
    "n": POSITIVE,
    "seed": SEED,
    "epoch": COUNT,
    "classes": Rule(lambda value: isinstance(value, (Mapping, Sequence)) and not isinstance(value, str),
                    "a list of names, {number: name}").or_none(),
}  # fmt: skip

# The arguments of Pipeline.pack, but for the folder and progress.
PACK = {
    "upto": Rule(lambda value: isinstance(value, str) or COUNT.test(value), "a non-negative int, the name of an op",
                 INT64).or_none(),
    "codec": Rule(_is_codecs, "a codec, {field: codec}").or_none(),
    "name": Rule(lambda value: isinstance(value, str) and value and not set(value) & set("/\\*?[]{}"),
                 "the beginning of a file's name"),
    "shard_bytes": POSITIVE,
    "shard_samples": POSITIVE.or_none(),
    "workers": ints(1, 64).or_none(),
    "append": FLAG,
    "seek_points": FLAG,
    "on_bad_sample": choices("raise", "keep"),
    "check_space": FLAG,
    "check_images": FLAG,
}  # fmt: skip

# The arguments of Pipeline.loader.
LOADER = {
    **BOTH,
    "batch_size": POSITIVE,
    "shuffle": FLAG,
    "seed": SEED,
    "workers": COUNT.or_none(),
    "prefetch": ints(1, 64).or_none(),
    "last": choices("partial", "drop", "pad"),
    "rank": Rule(lambda value: value == "auto" or COUNT.test(value), "a non-negative int or 'auto'", INT64),
    "world_size": POSITIVE,
    "outputs": Rule(_is_names, "names of fields").or_none(),
    "collate": Rule(_is_rules, "{field: rule}").or_none(),
    "layout": choices("NCHW", "NHWC"),
    "output": choices(*OUTPUTS),
    "reference": FLAG.or_none(),
    "keep_draws": FLAG,
    "trace_spans": NUMBER,
    "seek_index": choices("auto", "memory", "off"),
    "pushed_order": FLAG,
    "keep_batches": FLAG,
    "cpu_limit": CPU_LIMIT.or_none(),
    "cache_at": Rule(lambda value: isinstance(value, str) or COUNT.test(value),
                     "an op's name, or its place in the chain").or_none(),
    "equal_batches": FLAG,
}  # fmt: skip

# The arguments that DataLoader adds to those of torch, which torch checks itself.
DATALOADER = {
    **{name: rule for name, rule in BOTH.items() if name != "in_order"},
    "cpu_limit": CPU_LIMIT.or_none(),
    "seed": Rule(_is_int, "an int").or_none(),
    "rank": Rule(lambda value: value == "auto" or COUNT.test(value), "a non-negative int, 'auto'", INT64).or_none(),
    "world_size": POSITIVE.or_none(),
    "record": FLAG,
}
