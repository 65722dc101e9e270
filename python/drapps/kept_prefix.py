"""The first native ops of a chain with Python functions, whose results a cache keeps.

They are those that are not random and give the same bytes on every machine, as in native pipelines (docs/cache.md).
The key of a result is what the sample was read as: its bytes, labels and texts.
"""

import hashlib
import json

from drapps import _core
from drapps.cached import is_marked
from drapps.optable import TABLE, graph_json

FORMAT = 1


def kept_ops(dataset, stages):
    """How many ops at the beginning of a chain are kept; 0: none.

    Of a marked function that follows them directly the result is kept instead.
    """
    nodes = []
    for stage in stages:
        if not hasattr(stage, "op"):
            break
        nodes.append(stage)
    edges = json.loads(_graph(nodes).cuts(dataset))
    n = max(edge["nodes"] for edge in edges if not edge["why"])
    follows = stages[n] if n < len(stages) else None
    if follows is not None and not hasattr(follows, "op") and is_marked(follows.function):
        return 0
    while n and (edges[n]["why"] or "pointwise_u8" in TABLE[nodes[n - 1].op.name]["flags"]):
        n -= 1
    return n


class KeptPrefix:
    """Ops whose results are kept.  fields: names of what the data set gives; outputs: of what the ops make of it."""

    def __init__(self, cache, dataset, nodes, fields, outputs):
        self.raw = _core.open_runner(dataset, _graph([]), ",".join(fields), False)
        self.runner = _core.open_runner(dataset, _graph(nodes), ",".join(outputs), False)
        versions = [TABLE[node.op.name]["version"] for node in nodes]
        code = hashlib.blake2b(f"{FORMAT} {versions} {_text(nodes)}".encode(), digest_size=16).hexdigest()
        self.kept = cache.kept(f"ops up to {nodes[-1].op.name}", code)

    def run(self, name, to_sample):
        """The fields and their kinds after the ops; name: seed, epoch, id and occurrence; to_sample: makes a sample of
        an id and the rows of a runner."""
        def make():
            sample = to_sample(name[2], self.runner.run(*name))
            return {"fields": sample.fields, "kinds": sample.kinds}

        return make() if self.kept.refused else self.kept.call(self._key(name), make)

    def _key(self, name):
        key = hashlib.blake2b(digest_size=16)
        for field, kind, dtype, dims, data in self.raw.run(*name):
            key.update(f"{field} {kind} {dtype} {tuple(dims)} {len(memoryview(data).cast('B'))} ".encode())
            key.update(data)
        return key.digest()


def _text(nodes):
    return graph_json([node.to_json() for node in nodes])


def _graph(nodes):
    return _core.graph_from_json(_text(nodes))
