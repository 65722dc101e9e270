"""The files of a data set: check them, write them back as they were (docs/shards.md)."""

import io
import json
import os
from typing import NamedTuple

from drapps import _core
from drapps.packing import manifest_of
from drapps.passes.bad_samples import not_logged
from drapps.pipeline import Pipeline, read
from drapps.printable import printable

BATCH = 32


class Damage(NamedTuple):
    """Something that is wrong with a data set."""

    name: str  # of a file of the set, or the key of a sample
    error: str


def verify(path, *, format="auto", decode=True, progress=None):
    """Checks a data set: the checksums of a packed set, and whether every sample can be read and decoded.

    Returns the damage to files of the set and to samples, as two lists of Damage.  progress: called with the number of
    samples that were checked.

    >>> import drapps
    >>> drapps.verify(folder)
    ([], [])
    """
    dataset = read(path, format=format).dataset
    files = list(_damaged_files(dataset))
    pipe = Pipeline(dataset)
    for field, op in _decoders(dataset).items() if decode else ():
        pipe = getattr(pipe, op)(field=field, **({"channels": 0} if op == "decode_volume" else {}))  # 0: any number
    names = [field[0] for field in dataset.fields]
    loader = pipe.loader(batch_size=BATCH, outputs=names, collate=dict.fromkeys(names, "list"), output="raw",
                         on_bad_sample="skip", max_bad=max(dataset.size, 1), seek_index="off")  # fmt: skip
    samples, seen = {}, bytearray(dataset.size)
    with loader, not_logged():
        for batch in loader.batches():
            samples.update((row["id"], Damage(row["key"], row["error"])) for row in batch.bad)
            for i in (*batch.ids, *(row["id"] for row in batch.bad)):
                seen[i] = 1
            if progress is not None:
                progress(seen.count(1))
    for i in (i for i, there in enumerate(seen) if not there):  # of batches in which all were bad: none is delivered
        samples[i] = Damage(dataset.key(i), _error_of(pipe, i))
        if progress is not None:
            progress(seen.count(1) + len(samples))
    return files, [samples[i] for i in sorted(samples)]


def _error_of(pipe, i):
    try:
        pipe[i]
    except _core.Error as error:
        return str(error)
    return "it was damaged when it was read first, and is not any more"


def _damaged_files(dataset):
    manifest = manifest_of(dataset)
    for i, shard in enumerate(manifest["shards"] if manifest else ()):
        try:
            dataset.check_shard(i)
        except _core.Error as error:
            yield Damage(shard["name"], str(error))


def _decoders(dataset):
    """{field: op} for the fields whose first files are images or volumes."""
    kinds = {e: codec["kind"] for codec in json.loads(_core.codecs_json()) for e in codec["extensions"]}
    found = {}
    for i, (name, kind, _, _) in enumerate(dataset.fields):
        if kind != "bytes":
            continue
        try:
            path = (dataset.file(0, i) or "").lower()
        except _core.Error:
            continue
        ends = [kinds[extension] for extension in sorted(kinds, key=len, reverse=True) if path.endswith(extension)]
        if ends and ends[0] in ("image", "volume"):
            found[name] = "decode" if ends[0] == "image" else "decode_volume"
    return found


def unpack(path, folder, *, format="auto", force=False, progress=None):
    """Writes the samples of a data set as files: each that was packed under the name it had, byte for byte.

    Fields that came from no file are written beside them: arrays as KEY.FIELD.npy, texts as KEY.FIELD.txt; labels as
    KEY.cls where the data set has no classes named by folders.  force: files that are there are replaced.  Returns the
    number of files written and the samples that could not be read, as Damage.
    """
    pipe = read(path, format=format)
    dataset, damaged, written = pipe.dataset, [], 0
    for i in range(dataset.size):
        try:
            files = list(_files_of(dataset, i, pipe[i]))
        except (_core.FormatError, _core.FileMissingError, _core.IOError) as error:
            damaged.append(Damage(dataset.key(i), str(error)))
            continue
        for name, data in files:
            _write(folder, name, data, force)
            written += 1
        if progress is not None:
            progress(i + 1)
    return written, damaged


def _files_of(dataset, i, sample):
    key = dataset.key(i)
    by_folder = dataset.classes and key.split("/")[0] in dataset.classes
    for number, (field, kind, _, _) in enumerate(dataset.fields):
        if field == "key" and kind == "text" or field == "label" and by_folder:
            continue
        name = dataset.file(i, number) if kind in ("bytes", "text") else None
        if name is not None:
            yield name, as_bytes(sample[field])
        elif kind == "text":
            yield f"{key}.{field}.txt", as_bytes(sample[field])
        elif kind == "bytes":
            if len(sample[field]):
                yield f"{key}.{field}", as_bytes(sample[field])
        elif field == "label":
            yield f"{key}.cls", str(sample[field]).encode()
        else:
            yield f"{key}.{field}.npy", as_bytes(sample[field])


def as_bytes(value):
    """A field of pipe[i] as the content of a file: bytes and texts as they are, arrays in NumPy's form."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    import numpy

    file = io.BytesIO()
    numpy.save(file, numpy.asarray(value), allow_pickle=False)
    return file.getvalue()


def place_of(folder, name):
    """Where a file of that name goes: below the folder, whatever the name says."""
    parts = [part for part in name.split("/") if part not in ("", ".", "..")]
    return os.path.join(os.fspath(folder), *parts)


def _write(folder, name, data, force):
    place = place_of(folder, name)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    try:
        with open(place, "wb" if force else "xb") as file:
            file.write(data)
    except FileExistsError:
        raise _core.StateError(f"{printable(place)} is there already; force=True (--force) replaces it") from None
