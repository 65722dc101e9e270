from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from multiprocessing.context import BaseContext
from os import PathLike
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

import torch
from torch.utils import data

from drapps.monitor import Monitor
from drapps.sched import Decision

_T_co = TypeVar("_T_co", covariant=True)

class DataLoader(data.DataLoader[_T_co]):
    on_bad_sample: str
    max_bad: int | None
    memory_limit: int
    cpu_limit: float | None
    seed: int | None
    cache: str | PathLike[str] | None
    cache_limit: int
    cache_memory: int
    offload: str | int
    rank: int
    world_size: int
    lanes: bool
    policy: str
    adaptive_compression: bool
    weights: str | Mapping[str, float] | None
    trace: str | PathLike[str] | None
    record: bool
    ranges: str
    @property
    def resource_monitor(self) -> Monitor | None: ...
    def __init__(
        self,
        dataset: data.Dataset[_T_co],
        batch_size: int | None = ...,
        shuffle: bool | None = ...,
        sampler: data.Sampler[Any] | Iterable[Any] | None = ...,
        batch_sampler: data.Sampler[list[Any]] | Iterable[list[Any]] | None = ...,
        num_workers: int = ...,
        collate_fn: Callable[[list[Any]], Any] | None = ...,
        pin_memory: bool = ...,
        drop_last: bool = ...,
        timeout: float = ...,
        worker_init_fn: Callable[[int], None] | None = ...,
        multiprocessing_context: str | BaseContext | None = ...,
        generator: torch.Generator | None = ...,
        *,
        prefetch_factor: int | None = ...,
        persistent_workers: bool = ...,
        pin_memory_device: str = ...,
        in_order: bool = ...,
        on_bad_sample: Literal["raise", "skip", "replace"] = ...,
        max_bad: int | None = ...,
        memory_limit: int | None = ...,
        cpu_limit: float | None = ...,
        seed: int | None = ...,
        cache: str | PathLike[str] | None = ...,
        cache_limit: int | None = ...,
        cache_memory: int | None = ...,
        offload: str | int = ...,
        rank: int | Literal["auto"] | None = ...,
        world_size: int | None = ...,
        lanes: bool = ...,
        policy: str | None = ...,
        resource_monitor: Monitor | None = ...,
        adaptive_compression: bool = ...,
        weights: str | Mapping[str, float] | None = ...,
        trace: str | PathLike[str] | None = ...,
        record: bool = ...,
        ranges: Literal["auto", "on", "off"] = ...,
    ) -> None: ...
    def set_epoch(self, epoch: int) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any] | Sequence[dict[str, Any]]) -> None: ...
    def order(self) -> dict[str, Any]: ...
    def replay(self, order: dict[str, Any]) -> None: ...
    def explain(self) -> str: ...
    def stats(self) -> dict[str, Any]: ...
    def decisions(self, after: int = ...) -> list[Decision]: ...
    def set(self, knob: str, value: float) -> None: ...
    def pause(self) -> AbstractContextManager[None]: ...
    def set_weights(self, weights: str | Mapping[str, Any] | None) -> None: ...
    def get(self, knob: str) -> float: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
