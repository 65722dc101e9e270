"""Made by scripts/make_stubs.py from the op table and scripts/pipeline_frame.pyi: do not edit."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, overload

from drapps._core import Dataset
from drapps.loader import Loader
from drapps.monitor import Monitor
from drapps.optable import Op
from drapps.packing import Packed
from drapps.plan import Plan
from drapps.preview import Preview
from drapps.profile import StageRates
from drapps.pyloader import PythonLoader

Classes = Sequence[str] | Mapping[int, str] | None

class Node(NamedTuple):
    id: int
    op: Op
    fields: tuple[str, ...]
    out: tuple[str, ...]
    def to_json(self) -> dict[str, Any]: ...

class PythonStage(NamedTuple):
    kind: str
    function: Callable[..., Any]
    field: str | None

class Pipeline:
    """A source of samples and the stages they go through; made by drapps.read, from_arrays and mix."""

    def __init__(self, dataset: Dataset, stages: Sequence[Node | PythonStage] = ...) -> None: ...
    def op(
        self,
        op: Op,
        *,
        field: str | Sequence[str] | None = ...,
        fields: str | Sequence[str] | None = ...,
        out: str | Sequence[str] | None = ...,
    ) -> Pipeline: ...
    def map(
        self, function: Callable[[Any], Any], field: str | None = ..., deterministic: bool = ...
    ) -> Pipeline: ...
    def filter(self, function: Callable[[Any], Any], field: str | None = ...) -> Pipeline: ...
    def to_json(self) -> str: ...
    def from_json(self, text: str) -> Pipeline: ...
    def explain(self) -> str: ...
    @property
    def dataset(self) -> Dataset: ...
    @property
    def stages(self) -> tuple[Node | PythonStage, ...]: ...
    @property
    def classes(self) -> tuple[str, ...]: ...
    @property
    def has_python(self) -> bool: ...
    def __len__(self) -> int: ...
    def take(self, n: int) -> Pipeline: ...
    def skip(self, n: int) -> Pipeline: ...
    def select(self, indices: Any) -> Pipeline: ...
    def split(self, lengths: Sequence[float], seed: int = ...) -> list[Pipeline]: ...
    def concat(self, *others: Pipeline) -> Pipeline: ...
    def __add__(self, other: Pipeline) -> Pipeline: ...
    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Pipeline: ...
    def __iter__(self) -> Iterator[dict[str, Any]]: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...
    def loader(
        self,
        batch_size: int = ...,
        *,
        shuffle: bool = ...,
        seed: int = ...,
        in_order: bool = ...,
        last: Literal["partial", "drop", "pad"] = ...,
        rank: int | Literal["auto"] = ...,
        world_size: int = ...,
        pushed_order: bool = ...,
        keep_batches: bool = ...,
        on_bad_sample: Literal["raise", "skip", "replace"] = ...,
        max_bad: int | None = ...,
        equal_batches: bool = ...,
        outputs: str | Sequence[str] | None = ...,
        collate: str | Mapping[str, str] | None = ...,
        layout: Literal["NCHW", "NHWC"] = ...,
        output: Literal["auto", "torch", "numpy", "raw"] = ...,
        keep_draws: bool = ...,
        workers: int | None = ...,
        prefetch: int | None = ...,
        memory_limit: int | None = ...,
        cpu_limit: float | None = ...,
        cache: str | os.PathLike[str] | None = ...,
        cache_limit: int | None = ...,
        cache_memory: int | None = ...,
        cache_at: str | int | None = ...,
        adaptive_compression: bool = ...,
        seek_index: Literal["auto", "memory", "off"] = ...,
        offload: str | int = ...,
        ranges: Literal["auto", "on", "off"] = ...,
        policy: str | None = ...,
        weights: str | Mapping[str, float] | None = ...,
        resource_monitor: Monitor | None = ...,
        lanes: bool = ...,
        trace: str | os.PathLike[str] | None = ...,
        trace_spans: float = ...,
        reference: bool | None = ...,
    ) -> Loader | PythonLoader: ...
    def plan(
        self,
        budget: float = ...,
        *,
        weights: tuple[float, float, float] | None = ...,
        prices: dict[str, float] | None = ...,
        batch_size: int = ...,
        workers: int | None = ...,
        work: str | os.PathLike[str] | None = ...,
        memory: int | None = ...,
        rounds: int | None = ...,
        samples: int | None = ...,
        seed: int = ...,
        drop_caches: bool = ...,
    ) -> Plan: ...
    def profile_stages(
        self,
        step: float | Callable[[Any], Any] = ...,
        batches: int = ...,
        *,
        batch_size: int = ...,
        seconds: float = ...,
        **options: Any,
    ) -> StageRates: ...
    def reordered(self, order: Sequence[int]) -> Pipeline: ...
    @overload
    def preview(
        self, path: None = ..., n: int = ..., seed: int = ..., epoch: int = ..., classes: Classes = ...
    ) -> Preview: ...
    @overload
    def preview(
        self, path: str | os.PathLike[str], n: int = ..., seed: int = ..., epoch: int = ..., classes: Classes = ...
    ) -> None: ...
    def pack(
        self,
        folder: str | os.PathLike[str],
        *,
        upto: int | str | None = ...,
        codec: str | Mapping[str, str] | None = ...,
        name: str = ...,
        shard_bytes: int = ...,
        shard_samples: int | None = ...,
        workers: int | None = ...,
        append: bool = ...,
        seek_points: bool = ...,
        on_bad_sample: Literal["raise", "keep"] = ...,
        check_space: bool = ...,
        check_images: bool = ...,
        progress: Callable[[dict[str, int]], object] | None = ...,
    ) -> Packed: ...
    def use(self, folder: str | os.PathLike[str], *, check_source: bool = ...) -> Pipeline: ...

    # OPS

def read(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    format: str = ...,
    root: str | None = ...,
    extensions: str | Sequence[str] | None = ...,
    path_column: str | None = ...,
    label_column: str | None = ...,
    mask_column: str | None = ...,
    labels: Sequence[int] | Sequence[str | os.PathLike[str]] | None = ...,
    index: bool = ...,
    timeout: float | None = ...,
    credentials: str | None = ...,
) -> Pipeline: ...
def from_arrays(
    arrays: Mapping[str, Any] | None = ..., /, *, kinds: Mapping[str, str] | None = ..., **fields: Any
) -> Pipeline: ...
def mix(pipes: Sequence[Pipeline], weights: Sequence[float] | None = ..., length: int = ...) -> Pipeline: ...

# Used by other modules of drapps.
def check_field(kind: str, field: str, known: Sequence[str]) -> None: ...
def kind_by_name(name: str, shape: Sequence[int], fields: Mapping[str, Any]) -> str: ...
