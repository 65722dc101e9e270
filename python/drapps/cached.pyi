from collections.abc import Callable
from contextlib import AbstractContextManager
from os import PathLike
from typing import Any, TypeVar, overload

_F = TypeVar("_F", bound=Callable[..., Any])

@overload
def deterministic(function: _F, *, key: Callable[..., Any] | None = ...) -> _F: ...
@overload
def deterministic(function: None = ..., *, key: Callable[..., Any] | None = ...) -> Callable[[_F], _F]: ...
def activate(
    folder: str | PathLike[str] | None,
    limit: int = ...,
    key: str = ...,
    adaptive: bool = ...,
    memory: int = ...,
) -> Cache: ...
def deactivate() -> None: ...
def using(cache: Cache | None) -> AbstractContextManager[Cache | None]: ...
def folder_text(folder: str | PathLike[str] | None) -> str: ...
def is_marked(function: object) -> bool: ...

class Cache:
    folder: str | None
    limit: int
    key: str
    adaptive: bool
    counts: dict[str, int]
    def __init__(
        self,
        folder: str | PathLike[str] | None,
        limit: int = ...,
        key: str = ...,
        adaptive: bool = ...,
        counts: dict[str, int] | None = ...,
        memory: int = ...,
    ) -> None: ...
    def stats(self) -> dict[str, dict[str, Any]]: ...
    def close(self) -> None: ...
