"""What could be done: every legal cut, in every form and cache level.

material   what the samples of an epoch are read from: an order of the stages, how many of these were done offline, and
           how the results are stored
strategy   a material with a cache level
"""

from typing import NamedTuple

FILES, SHARDS, STORE = "files", "shards", "cache folder"
PAGE, MEMORY = "page cache", "memory"


class Material(NamedTuple):
    """What an epoch reads."""

    stages: int  # done offline; 0: the samples as they are
    layout: str  # FILES: as they are; SHARDS: packed; STORE: the folder of loader(cache=...)
    codec: str = ""  # of shards; "": as it comes
    order: tuple = ()  # of the stages, as numbers of the given ones; (): as given
    label: str = ""  # of the cut

    @property
    def name(self):
        """For people; differs from that of any other material."""
        parts = [self.label or "raw", self.layout, *filter(None, [self.codec])]
        return ", ".join(parts) + (" (reordered)" if self.order else "")


class Strategy(NamedTuple):
    """A material and where its samples are kept while training runs."""

    material: Material
    cache: str  # PAGE: what the system keeps; MEMORY: samples in the program's memory

    @property
    def name(self):
        """For people; differs from that of any other strategy."""
        return f"{self.material.name}, {self.cache}"


class Form(NamedTuple):
    """How the samples of a cut may be stored."""

    compressible: bool  # a probe made them smaller by a tenth or more
    element_bytes: int  # of the largest field's numbers


BYTE_CODECS = ("lz4", "zstd:1", "zstd:6")
ARRAY_CODECS = ("shuffle+lz4", "shuffle+zstd:1")


def codecs_for(form):
    """Specs of the codecs that are tried for samples of this form; "" stores them as they are.  What is compressed
    already stays as it is."""
    if not form.compressible:
        return ("",)
    return ("", *BYTE_CODECS, *(ARRAY_CODECS if form.element_bytes > 1 else ()))


def materials_of(edges, forms, order=(), packed_stages=-1, store=None):
    """All materials of one order of the stages.

    edges: of the pipeline in that order.  forms: {stages: Form} of the legal ones.  packed_stages: the most stages
    whose results can be packed; -1: nothing can.  store: the number of stages whose results loader(cache=...) would
    keep; None: nothing is kept.
    """
    found = [Material(0, FILES, "", order, edges[0].label)]
    for edge in edges[: packed_stages + 1]:
        if edge.legal:
            found += [
                Material(edge.stages, SHARDS, codec, order, edge.label) for codec in codecs_for(forms[edge.stages])
            ]
    if store is not None:
        found.append(Material(store, STORE, "", order, edges[store].label))
    return found


def adds_something(material, why):
    """Whether a material of another order is worth trying beside those of the given one.

    why: what the order is for.  One for a longer prefix adds what it can store beyond the given one's; one for fewer
    bytes does less after every cut that leaves both ops to be done.
    """
    done, left = material.order[: material.stages], material.order[material.stages :]
    if why == "longer prefix":
        return set(done) != set(range(len(done)))
    return list(left) != sorted(left)
