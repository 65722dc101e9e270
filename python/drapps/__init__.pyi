from . import live as live, metrics as metrics, ops as ops, trace as trace
from ._core import (
    ArgumentError as ArgumentError,
    BadSampleError as BadSampleError,
    CancelledError as CancelledError,
    Error as Error,
    FileMissingError as FileMissingError,
    ForkedError as ForkedError,
    FormatError as FormatError,
    IOError as IOError,
    JpegIndex as JpegIndex,
    LimitError as LimitError,
    NotFoundError as NotFoundError,
    OutOfMemoryError as OutOfMemoryError,
    StateError as StateError,
    UnsupportedError as UnsupportedError,
)
from .build_info import info as info
from .batch import Batch as Batch
from .cached import deterministic as deterministic
from .coco import read_coco as read_coco
from .jpeg import JpegHeader as JpegHeader, decode_jpeg as decode_jpeg, jpeg_header as jpeg_header
from .loader import Loader as Loader
from .monitor import Monitor as Monitor
from .optable import Op as Op
from .pipeline import Pipeline as Pipeline, from_arrays as from_arrays, mix as mix, read as read
from .set_files import unpack as unpack, verify as verify
from .sched import Decision as Decision, flows as flows, knobs as knobs, policies as policies
from .torch.dataloader import DataLoader as DataLoader
from .torch.remote_folder import RemoteImageFolder as RemoteImageFolder
from .torch.named import DRAADPDataLoader as DRAADPDataLoader, DRAPPSLoader as DRAPPSLoader

__version__: str
IMAGENET_MEAN: tuple[float, float, float]
IMAGENET_STD: tuple[float, float, float]
