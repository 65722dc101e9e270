"""drapps: data loading and preprocessing for neural-network training.

    import drapps
    pipe = (drapps.read("imagenet/train")
            .decode().random_resized_crop(224).random_horizontal_flip()
            .normalize(mean=drapps.IMAGENET_MEAN, std=drapps.IMAGENET_STD))
    for images, labels in pipe.loader(batch_size=256, shuffle=True, seed=0):
        ...

Importing drapps imports neither NumPy nor a framework: each name below is imported when it is first used.
"""

from importlib import import_module as _import_module

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

_ERRORS = (
    "ArgumentError", "BadSampleError", "CancelledError", "Error", "FileMissingError", "ForkedError", "FormatError",
    "IOError", "LimitError", "NotFoundError", "OutOfMemoryError", "StateError", "UnsupportedError",
)  # fmt: skip

# Where each public name lives.
_HOMES = {
    "Batch": "batch",
    "DRAADPDataLoader": "torch.named",
    "DRAPPSLoader": "torch.named",
    "DataLoader": "torch.dataloader",
    "Decision": "sched",
    "JpegHeader": "jpeg",
    "JpegIndex": "_core",
    "Loader": "loader",
    "Monitor": "monitor",
    "Op": "optable",
    "Pipeline": "pipeline",
    "RemoteImageFolder": "torch.remote_folder",
    "decode_jpeg": "jpeg",
    "deterministic": "cached",
    "flows": "sched",
    "from_arrays": "pipeline",
    "info": "build_info",
    "jpeg_header": "jpeg",
    "knobs": "sched",
    "mix": "pipeline",
    "policies": "sched",
    "read": "pipeline",
    "read_coco": "coco",
    "unpack": "set_files",
    "verify": "set_files",
    **dict.fromkeys(_ERRORS, "_core"),
}

_MODULES = ("codec", "live", "metrics", "ops", "trace")

__all__ = ["IMAGENET_MEAN", "IMAGENET_STD", *_MODULES, *sorted(_HOMES)]  # noqa: PLE0604


def __getattr__(name):
    if name in _MODULES:
        return _import_module(f"drapps.{name}")
    if name == "__version__":
        return _import_module("drapps._core").version()
    if name not in _HOMES:
        raise AttributeError(f"module 'drapps' has no attribute {name!r}")
    value = getattr(_import_module(f"drapps.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__():
    """Return the public names, also those that are not imported yet."""
    from importlib.util import find_spec

    names = {*globals(), *__all__}
    if find_spec("torch") is None:
        names -= {name for name, home in _HOMES.items() if home.startswith("torch.")}
    return sorted(names)
