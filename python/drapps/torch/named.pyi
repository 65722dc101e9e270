from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Self, TypeVar

from torch.utils import data

from drapps.loader import Loader
from drapps.monitor import Monitor
from drapps.optable import Op
from drapps.pipeline import Pipeline
from drapps.pyloader import PythonLoader
from drapps.torch.dataloader import DataLoader

_T_co = TypeVar("_T_co", covariant=True)

class DRAADPDataLoader(DataLoader[_T_co]):
    def __init__(
        self,
        dataset: data.Dataset[_T_co],
        batch_size: int = ...,
        resource_monitor: Monitor | None = ...,
        adaptive_compression: bool = ...,
        prefetch_factor: int = ...,
        **kwargs: Any,
    ) -> None: ...

class DRAPPSLoader:
    loader: DataLoader[Any] | Loader | PythonLoader
    def __init__(
        self,
        dataset: data.Dataset[Any] | Pipeline | str | PathLike[str],
        batch_size: int,
        config: str | PathLike[str] | Mapping[str, Any] | None = ...,
        steps: Sequence[Op | str | tuple[str, dict[str, Any]] | Callable[[Any], Any]] | None = ...,
        policy_path: str | PathLike[str] | None = ...,
    ) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
    def __getattr__(self, name: str) -> Any: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
