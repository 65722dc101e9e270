"""The arrays of `drapps experiment storage codecs`: one of each kind that training reads, from a folder of data."""

import csv
import json
import pathlib

import drapps
import numpy as np

ENOUGH = 8 << 20  # bytes of each array: beyond the caches of most CPUs, and quick to compress


def files(root, *patterns):
    return sorted(path for pattern in patterns for path in root.rglob(pattern))


def cut(parts, dtype, enough=ENOUGH):
    """Joins arrays until there is enough."""
    found, size = [], 0
    for part in parts:
        part = np.ascontiguousarray(part).reshape(-1).astype(dtype, copy=False)
        found.append(part)
        size += part.nbytes
        if size >= enough:
            break
    return np.concatenate(found)[: enough // np.dtype(dtype).itemsize] if found else None


def text(root):
    return cut((np.frombuffer(path.read_bytes(), np.uint8) for path in files(root, "*.txt")), np.uint8)


def annotations(root):
    return cut((np.frombuffer(path.read_bytes(), np.uint8) for path in files(root, "instances*.json")), np.uint8)


def tokens(root):
    """Ids of GPT-2's tokenizer, as int32."""
    vocabulary, merges = files(root, "*encoder.json"), files(root, "*vocab.bpe")
    if not vocabulary or not merges:
        return None
    from tokenizers import ByteLevelBPETokenizer

    encode = ByteLevelBPETokenizer(str(vocabulary[0]), str(merges[0])).encode
    books = (path.read_text(encoding="utf-8", errors="replace") for path in files(root, "*.txt"))
    return cut((np.array(encode(book).ids, np.int32) for book in books), np.int32)


def _images(root, op):
    found = [str(path) for path in files(root, "*.JPEG", "*.jpeg", "*.jpg")[:200]]
    if not found:
        return
    pipe = op(drapps.read(found).decode())
    for batch in pipe.loader(batch_size=1, layout="NHWC", output="numpy", collate={"image": "list"}):
        yield batch["image"][0]


def pixels(root):
    return cut(_images(root, lambda pipe: pipe), np.uint8)


def normalized(root):
    """What PRESTO calls pixel-centred: float32 images, resized and normalised."""
    def op(pipe):
        return pipe.resize((224, 224)).normalize(mean=drapps.IMAGENET_MEAN, std=drapps.IMAGENET_STD)

    return cut(_images(root, op), np.float32)


def volume(root):
    """Volumes whose voxels are 16-bit integers."""
    def parts():
        for path in files(root, "*.nii.gz"):
            pipe = drapps.read([str(path)]).decode_volume(dtype="int16", channels=0)
            try:
                batch = next(iter(pipe.loader(batch_size=1, output="numpy", collate={"*": "list"})))
            except drapps.Error:  # not of whole numbers, or damaged
                continue
            yield batch["image"][0]

    return cut(parts(), np.int16)


def sensors(root):
    """Columns of numbers of CSV files, one after the other, as float64."""
    def parts():
        for path in files(root, "*.csv"):
            with open(path, newline="", encoding="utf-8", errors="replace") as file:
                rows = list(csv.reader(file))
            for column in range(len(rows[0])):
                values = [row[column] for row in rows[1:] if column < len(row)]
                try:
                    yield np.array([float(v) if v not in ("", "NA") else np.nan for v in values], np.float64)
                except ValueError:
                    continue

    return cut(parts(), np.float64)


KINDS = {"text": text, "annotations": annotations, "tokens": tokens, "pixels": pixels, "normalized": normalized,
         "volume": volume, "sensors": sensors}  # fmt: skip


def write(root, folder, names=tuple(KINDS)):
    """Writes folder/KIND.npy for each kind of data that is found below `root`; returns their names."""
    made = []
    for name in names:
        array = KINDS[name](pathlib.Path(root))
        if array is not None and array.size:
            np.save(pathlib.Path(folder) / f"{name}.npy", array)
            made.append(name)
    (pathlib.Path(folder) / "kinds.json").write_text(json.dumps(made))
    return made
