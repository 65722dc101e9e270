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

    def aug_mix(self, severity: int = ..., mixture_width: int = ..., chain_depth: int = ..., alpha: float = ..., all_ops: bool = ..., interpolation: Literal['nearest', 'bilinear'] = ..., fill: float | Sequence[float] | None = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Several chains of primitives, mixed with each other and the image.

        severity: how many of the 10 magnitudes are drawn from (1 to 10)
        mixture_width: how many chains (1 to 15)
        chain_depth: steps in a chain; below 1: 1 to 3 at random (-1 to 16)
        alpha: how even the weights are
        all_ops: also brightness, color, contrast and sharpness
        interpolation: how shears, shifts and turns sample the image (nearest, bilinear)
        fill: value outside the image: one, or one for each channel; null: 0 (0 to 255)

        Acts on all fields of the kinds image; fields= names others.
        """

    def auto_augment(self, policy: Literal['imagenet', 'cifar10', 'svhn'] = ..., interpolation: Literal['nearest', 'bilinear', 'bicubic'] = ..., fill: float | Sequence[float] | None = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Two primitives by a learned policy.

        policy: the data set that it was learned on (imagenet, cifar10, svhn)
        interpolation: how shears, shifts and turns sample the image (nearest, bilinear, bicubic)
        fill: value outside the image: one, or one for each channel; null: 0 (0 to 255)

        Acts on all fields of the kinds image; fields= names others.
        """

    def center_crop(self, size: int | Sequence[int] | None, *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Cut the middle of an image.

        size: height and width, or one number for both

        Acts on all fields of the kinds image, mask, boxes, keypoints, masks; fields= names others.
        """

    def clamp_bounding_boxes(self, *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Cut off what boxes have outside their image.

        Acts on all fields of the kinds image, boxes; fields= names others.
        """

    def color_jitter(self, brightness: float | Sequence[float] | None = ..., contrast: float | Sequence[float] | None = ..., saturation: float | Sequence[float] | None = ..., hue: float | Sequence[float] | None = ..., backend: Literal['pil', 'tensor'] = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Change brightness, contrast, saturation and hue by random factors.

        brightness: a: factors 1 - a to 1 + a; or (least, most)
        contrast: a: factors 1 - a to 1 + a; or (least, most)
        saturation: a: factors 1 - a to 1 + a; or (least, most)
        hue: a: turns of -a to a; or (least, most); -0.5 to 0.5 (-0.5 to 0.5)
        backend: whose numbers: torchvision's on PIL images, or on tensors (pil, tensor)

        Acts on all fields of the kinds image; fields= names others.
        """

    def crop(self, top: int, left: int, height: int, width: int, *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Cut a given rectangle.

        top: first row
        left: first column
        height: rows
        width: columns

        Acts on all fields of the kinds image, mask, boxes, keypoints, masks; fields= names others.
        """

    def cutmix(self, num_classes: int = ..., alpha: float = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Replace a rectangle of each sample of a batch by its neighbour's.

        num_classes: number of classes; 0: labels are weights of classes already
        alpha: the share of a sample is drawn from Beta(alpha, alpha)
        """

    def decode(self, mode: Literal['RGB', 'L', 'RGBA', 'unchanged'] = ..., exif_orientation: bool = ..., fast_decode: bool = ..., max_side: int = ..., max_pixels: int = ..., max_bytes: int = ..., decoder: Literal['auto', 'libjpeg'] = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Encoded image (JPEG, PNG, WebP, BMP, GIF, TIFF, PNM) to pixels, as Pillow decodes and converts.

        mode: channels wanted: RGB, L (grey) or RGBA as Pillow converts to them; unchanged keeps channels and depth (RGB, L, RGBA, unchanged)
        exif_orientation: turn the image as its EXIF orientation says
        fast_decode: let a JPEG be decoded at 1/2, 1/4 or 1/8 of its size where the next op scales it down further; faster, and not the same pixels
        max_side: largest width or height accepted
        max_pixels: most pixels accepted (default: Pillow's own limit)
        max_bytes: most memory for decoding one image
        decoder: what decodes JPEG: auto is drapps' own decoder for the files it reads and libjpeg-turbo for the rest; libjpeg is libjpeg-turbo for all; the pixels are the same (auto, libjpeg)
        """

    def decode_masks(self, *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Outlines and run lengths of objects (COCO) to a mask for each, as pycocotools makes them."""

    def decode_volume(self, labels: bool = ..., dtype: Literal['auto', 'float32', 'uint8', 'int16', 'int32', 'int64'] = ..., axes: Literal['zyx', 'xyz'] = ..., channels: int = ..., max_voxels: int = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Stored volume (NIfTI-1, .npy) to an array of channels, depth, height, width.

        labels: the voxels are class numbers: resampled by nearest neighbour, never normalised
        dtype: element type of the result; auto is float32, and uint8 for labels; integers take whole numbers only (auto, float32, uint8, int16, int32, int64)
        axes: what depth, height and width are in a NIfTI file: zyx as they lie in it, xyz as nibabel gives them (zyx, xyz)
        channels: channels (points in time) that each volume must have; 0: as stored, and samples cannot be stacked (0 to 65535)
        max_voxels: most voxels accepted
        """

    def gaussian_blur(self, kernel_size: int | Sequence[int] | None, sigma: float | Sequence[float] | None = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Blur with a Gaussian window of random width.

        kernel_size: size of the window, odd; or (x, y) (1 to 255)
        sigma: deviation in pixels; or (least, most)

        Acts on all fields of the kinds image; fields= names others.
        """

    def grayscale(self, num_output_channels: int = ..., backend: Literal['pil', 'tensor'] = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Replace colours by their luminance.

        num_output_channels: 1 or 3 (1 to 3)
        backend: whose numbers: torchvision's on PIL images, or on tensors (pil, tensor)

        Acts on all fields of the kinds image; fields= names others.
        """

    def mixup(self, num_classes: int = ..., alpha: float = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Mix each sample of a batch with its neighbour.

        num_classes: number of classes; 0: labels are weights of classes already
        alpha: the share of a sample is drawn from Beta(alpha, alpha)
        """

    def normalize(self, mean: float | Sequence[float] | None, std: float | Sequence[float] | None, inplace: bool = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Subtract the mean and divide by the standard deviation.

        mean: one, or one per channel
        std: one, or one per channel; not 0
        inplace: accepted for torchvision's sake; changes nothing

        Acts on all fields of the kinds image; fields= names others.
        """

    def normalize_intensity(self, clip: float | Sequence[float] | None = ..., mean: float = ..., std: float = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Clip the values of a volume, then (value - mean) / std.

        clip: least and most value; null: as they are
        mean: taken away after clipping
        std: divided by

        Acts on all fields of the kinds volume; fields= names others.
        """

    def pad(self, padding: int | Sequence[int] | None, fill: float | Sequence[float] | None = ..., padding_mode: Literal['constant', 'edge', 'reflect', 'symmetric'] = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Add borders to an image.

        padding: all sides; x and y; or left, top, right, bottom
        fill: border value for constant: one, or one per channel
        padding_mode: how the border is made (constant, edge, reflect, symmetric)

        Acts on all fields of the kinds image, mask, boxes, keypoints, masks; fields= names others.
        """

    def pad_volume(self, size: int | Sequence[int] | None, mode: Literal['edge', 'constant'] = ..., fill: float = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Make a volume at least so large.

        size: least depth, height and width, or one number for all
        mode: what is added: the outermost voxels again, or fill (edge, constant)
        fill: value for constant; masks get 0

        Acts on all fields of the kinds volume, volume_mask; fields= names others.
        """

    def rand_augment(self, num_ops: int = ..., magnitude: int = ..., num_magnitude_bins: int = ..., interpolation: Literal['nearest', 'bilinear', 'bicubic'] = ..., fill: float | Sequence[float] | None = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """A few primitives drawn at random, all at one magnitude.

        num_ops: how many primitives one after the other (0 to 16)
        magnitude: bin of the magnitudes, below num_magnitude_bins
        num_magnitude_bins: into how many bins the magnitudes are divided
        interpolation: how shears, shifts and turns sample the image (nearest, bilinear, bicubic)
        fill: value outside the image: one, or one for each channel; null: 0 (0 to 255)

        Acts on all fields of the kinds image; fields= names others.
        """

    def random_adjust_sharpness(self, sharpness_factor: float, p: float = ..., backend: Literal['pil', 'tensor'] = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Change the sharpness of an image with probability p.

        sharpness_factor: 0 is blurred, 1 the image, 2 twice as sharp
        p: chance that a sample is sharpened (0 to 1)
        backend: whose numbers: torchvision's on PIL images, or on tensors (pil, tensor)

        Acts on all fields of the kinds image; fields= names others.
        """

    def random_affine(self, degrees: float | Sequence[float] | None, translate: float | Sequence[float] | None = ..., scale: float | Sequence[float] | None = ..., shear: float | Sequence[float] | None = ..., interpolation: Literal['nearest', 'bilinear', 'bicubic'] = ..., fill: float | Sequence[float] | None = ..., center: float | Sequence[float] | None = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Turn, shift, scale and shear an image at random.

        degrees: range of angles; one number d is -d to d (-36000 to 36000)
        translate: largest shift in x and y as parts of width and height (0 to 1)
        scale: range of scales
        shear: range of shear angles in x, then y; d is -d to d in x (-89 to 89)
        interpolation: how pixels are sampled (nearest, bilinear, bicubic)
        fill: value outside the image: one, or one per channel
        center: x and y of the centre; null: the middle

        Acts on all fields of the kinds image, mask, boxes, keypoints, masks; fields= names others.
        """

    def random_apply(self, transforms: Sequence[Op], p: float = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """A list of ops with probability p.

        transforms: the ops, in order
        p: chance that they are applied (0 to 1)
        """

    def random_autocontrast(self, p: float = ..., backend: Literal['pil', 'tensor'] = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Stretch the values of each channel to 0 to 255 with probability p.

        p: chance that a sample is stretched (0 to 1)
        backend: whose numbers: torchvision's on PIL images, or on tensors (pil, tensor)

        Acts on all fields of the kinds image; fields= names others.
        """

    def random_balanced_crop(self, size: int | Sequence[int] | None, oversampling: float = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Cut a part from a volume and its mask, often around the foreground.

        size: depth, height and width, or one number for all
        oversampling: chance that the part lies around a voxel of the foreground (0 to 1)

        Acts on all fields of the kinds volume, volume_mask; fields= names others.
        """

    def random_brightness(self, factor: float = ..., p: float = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Multiply a volume by a random factor with probability p.

        factor: the values are multiplied by 1 - factor to 1 + factor (0 to 1)
        p: chance that a sample is changed (0 to 1)

        Acts on all fields of the kinds volume; fields= names others.
        """

    def random_choice(self, transforms: Sequence[Op], p: float | Sequence[float] | None = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """One op of a list, drawn with given weights.

        transforms: the ops to choose from
        p: weight of each op; null: all alike
        """

    def random_crop(self, size: int | Sequence[int] | None, padding: int | Sequence[int] | None = ..., pad_if_needed: bool = ..., fill: float | Sequence[float] | None = ..., padding_mode: Literal['constant', 'edge', 'reflect', 'symmetric'] = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Cut a rectangle at a random place.

        size: height and width, or one number for both
        padding: all sides; x and y; or left, top, right, bottom
        pad_if_needed: pad images that are smaller than the crop
        fill: border value for constant: one, or one per channel
        padding_mode: how the border is made (constant, edge, reflect, symmetric)

        Acts on all fields of the kinds image, mask, boxes, keypoints, masks; fields= names others.
        """

    def random_equalize(self, p: float = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Flatten the histogram of each channel with probability p.

        p: chance that a sample is equalized (0 to 1)

        Acts on all fields of the kinds image; fields= names others.
        """

    def random_erasing(self, p: float = ..., scale: float | Sequence[float] | None = ..., ratio: float | Sequence[float] | None = ..., value: float | Sequence[float] | None = ..., inplace: bool = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Overwrite a random rectangle with probability p.

        p: chance that a sample is treated (0 to 1)
        scale: range of the rectangle's part of the area (0 to 1)
        ratio: range of its height / width
        value: one, or one per channel; null: normal noise
        inplace: accepted for torchvision's sake; changes nothing

        Acts on all fields of the kinds image; fields= names others.
        """

    def random_flip_volume(self, p: float = ..., axes: int | Sequence[int] | None = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Mirror a volume along each axis with probability p.

        p: chance of each axis (0 to 1)
        axes: axes that may be mirrored: 0 depth, 1 height, 2 width (0 to 2)

        Acts on all fields of the kinds volume, volume_mask; fields= names others.
        """

    def random_gaussian_noise(self, mean: float = ..., std: float = ..., p: float = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Add normal noise to a volume with probability p.

        mean: mean of the noise
        std: largest standard deviation
        p: chance that a sample is changed (0 to 1)

        Acts on all fields of the kinds volume; fields= names others.
        """

    def random_grayscale(self, p: float = ..., backend: Literal['pil', 'tensor'] = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Make an image grey with probability p.

        p: chance that a sample is made grey (0 to 1)
        backend: whose numbers: torchvision's on PIL images, or on tensors (pil, tensor)

        Acts on all fields of the kinds image; fields= names others.
        """

    def random_horizontal_flip(self, p: float = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Mirror an image left to right with probability p.

        p: chance that a sample is mirrored (0 to 1)

        Acts on all fields of the kinds image, mask, boxes, keypoints, masks; fields= names others.
        """

    def random_invert(self, p: float = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Invert the colours of an image with probability p.

        p: chance that a sample is inverted (0 to 1)

        Acts on all fields of the kinds image; fields= names others.
        """

    def random_iou_crop(self, min_scale: float = ..., max_scale: float = ..., min_aspect_ratio: float = ..., max_aspect_ratio: float = ..., sampler_options: float | Sequence[float] | None = ..., trials: int = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Cut a rectangle that overlaps with a box; boxes follow.

        min_scale: least width and height, in the image's (0.001 to 1)
        max_scale: most width and height, in the image's (0.001 to 1)
        min_aspect_ratio: least width / height (0.001 to 1000)
        max_aspect_ratio: most width / height (0.001 to 1000)
        sampler_options: overlaps (IoU) of which one is drawn and that a box must have with the part; 1 or more: all of it
        trials: tries before another overlap is drawn

        Acts on all fields of the kinds image, mask, boxes, keypoints, masks; fields= names others.
        """

    def random_order(self, transforms: Sequence[Op], *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """All ops of a list in random order.

        transforms: the ops
        """

    def random_photometric_distort(self, brightness: float | Sequence[float] | None = ..., contrast: float | Sequence[float] | None = ..., saturation: float | Sequence[float] | None = ..., hue: float | Sequence[float] | None = ..., p: float = ..., backend: Literal['pil', 'tensor'] = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Change colours and the order of channels, each with probability p.

        brightness: least and most factor
        contrast: least and most factor
        saturation: least and most factor
        hue: least and most factor (-0.5 to 0.5)
        p: chance of each part (0 to 1)
        backend: whose numbers: torchvision's on PIL images, or on tensors (pil, tensor)

        Acts on all fields of the kinds image; fields= names others.
        """

    def random_posterize(self, bits: int, p: float = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Keep the highest bits of each value with probability p.

        bits: how many bits of each value stay (1 to 8)
        p: chance that a sample is posterized (0 to 1)

        Acts on all fields of the kinds image; fields= names others.
        """

    def random_resized_crop(self, size: int | Sequence[int] | None, scale: float | Sequence[float] | None = ..., ratio: float | Sequence[float] | None = ..., interpolation: Literal['nearest', 'nearest-exact', 'bilinear', 'bicubic', 'box', 'hamming', 'lanczos'] = ..., antialias: bool = ..., backend: Literal['pil', 'tensor'] = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Cut a random rectangle and bring it to a size.

        size: height and width, or one number for both
        scale: range of the crop's part of the area
        ratio: range of its width / height
        interpolation: how pixels are sampled (nearest, nearest-exact, bilinear, bicubic, box, hamming, lanczos)
        antialias: for the tensor backend; on PIL images it is always on
        backend: whose numbers: torchvision's on PIL images, or on tensors (pil, tensor)

        Acts on all fields of the kinds image, mask, boxes, keypoints, masks; fields= names others.
        """

    def random_rotation(self, degrees: float | Sequence[float] | None, interpolation: Literal['nearest', 'bilinear', 'bicubic'] = ..., expand: bool = ..., center: float | Sequence[float] | None = ..., fill: float | Sequence[float] | None = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Turn an image by a random angle.

        degrees: range of angles; one number d is -d to d (-36000 to 36000)
        interpolation: how pixels are sampled (nearest, bilinear, bicubic)
        expand: grow the image so that all of it stays visible
        center: x and y of the centre; null: the middle
        fill: value outside the image: one, or one per channel

        Acts on all fields of the kinds image, mask, boxes, keypoints, masks; fields= names others.
        """

    def random_solarize(self, threshold: float, p: float = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Invert the values from a threshold on with probability p.

        threshold: values from here on are inverted
        p: chance that a sample is solarized (0 to 1)

        Acts on all fields of the kinds image; fields= names others.
        """

    def random_vertical_flip(self, p: float = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Mirror an image top to bottom with probability p.

        p: chance that a sample is mirrored (0 to 1)

        Acts on all fields of the kinds image, mask, boxes, keypoints, masks; fields= names others.
        """

    def random_zoom_out(self, fill: float | Sequence[float] | None = ..., side_range: float | Sequence[float] | None = ..., p: float = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Put an image on a larger canvas with probability p; boxes follow.

        fill: value of the canvas: one, or one per channel
        side_range: least and most of the canvas' sides, in the image's (1 to 1000)
        p: chance that a sample is changed (0 to 1)

        Acts on all fields of the kinds image, mask, boxes, keypoints, masks; fields= names others.
        """

    def resample_volume(self, spacing: float | Sequence[float] | None = ..., size: int | Sequence[int] | None = ..., align_corners: bool = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """A volume on another grid: to a spacing or a size.

        spacing: distance of voxels wanted along depth, height and width, in the file's unit
        size: or the size wanted: depth, height and width
        align_corners: the outermost voxels stay where they are (as scipy's zoom); else voxels are cells with an extent

        Acts on all fields of the kinds volume, volume_mask; fields= names others.
        """

    def resize(self, size: int | Sequence[int] | None, interpolation: Literal['nearest', 'nearest-exact', 'bilinear', 'bicubic', 'box', 'hamming', 'lanczos'] = ..., max_size: int | Sequence[int] | None = ..., antialias: bool = ..., backend: Literal['pil', 'tensor'] = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Bring an image to a size.

        size: height and width; one number: the shorter side; null: max_size
        interpolation: how pixels are sampled (nearest, nearest-exact, bilinear, bicubic, box, hamming, lanczos)
        max_size: most for the longer side, if size is one number or null
        antialias: for the tensor backend; on PIL images it is always on
        backend: whose numbers: torchvision's on PIL images, or on tensors (pil, tensor)

        Acts on all fields of the kinds image, mask, boxes, keypoints, masks; fields= names others.
        """

    def sanitize_bounding_boxes(self, min_size: float = ..., min_area: float = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Drop boxes that are too small or outside the image, and their labels.

        min_size: least width and height
        min_area: least area

        Acts on all fields of the kinds image, boxes, keypoints, labels, masks; fields= names others.
        """

    def to_dtype(self, dtype: Literal['float32', 'float16', 'bfloat16', 'uint8'] = ..., scale: bool = ..., divide: bool = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Change the element type.

        dtype: element type of the result (float32, float16, bfloat16, uint8)
        scale: map the range of values, too
        divide: scale integers by division, as ToTensor does; the last bit may differ

        Acts on all fields of the kinds image, volume; fields= names others.
        """

    def trivial_augment_wide(self, num_magnitude_bins: int = ..., interpolation: Literal['nearest', 'bilinear', 'bicubic'] = ..., fill: float | Sequence[float] | None = ..., *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """One primitive at one magnitude, both drawn at random.

        num_magnitude_bins: into how many bins the magnitudes are divided
        interpolation: how shears, shifts and turns sample the image (nearest, bilinear, bicubic)
        fill: value outside the image: one, or one for each channel; null: 0 (0 to 255)

        Acts on all fields of the kinds image; fields= names others.
        """

    def truncate_bounding_boxes(self, *, field: str | Sequence[str] | None = ..., fields: str | Sequence[str] | None = ..., out: str | Sequence[str] | None = ...) -> Pipeline:
        """Round boxes towards 0, as torchvision's integer boxes.

        Acts on all fields of the kinds image, boxes; fields= names others.
        """

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
