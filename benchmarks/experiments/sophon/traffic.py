"""Bytes that each policy of offload would send, and where samples are smallest: counts over all samples and crops.

Nothing is sent, and nothing but the last table depends on the machine.  It is assumed that the network alone limits the
epoch, so that each policy sends as little as it can.
"""

import os
import pathlib
import sys
import tempfile
import time

import drapps
from drapps.pipeline import Pipeline
from drapps.printing import bytes_text
from drapps.stages import SampleRunner

from benchmarks.experiments.ranges_command import FORMS, environment
from benchmarks.experiments.sophon import twins

SEGMENT_BYTES = 8  # where a segment of a file begins, and how long it is
TIMED = 3  # times that a sample is made; the shortest CPU time counts
QUANTILES = (10, 25, 50, 75, 90, 100)
STORED = "as stored"


def chain(folder):
    pipe = drapps.read(folder).decode().random_resized_crop(224).random_horizontal_flip()
    return pipe.normalize(mean=drapps.IMAGENET_MEAN, std=drapps.IMAGENET_STD)


def forms_after(pipe, epochs):
    """{op: [bytes of the image behind it, for each epoch and sample]}, "as stored" first."""
    found = {}
    for cut in range(len(pipe.stages) + 1):
        runner = runner_of(pipe, cut)
        name = pipe.stages[cut - 1].op.name if cut else STORED
        found[name] = [image_bytes(runner.run(epoch, i)) for epoch in range(epochs) for i in range(len(pipe))]
    return found


def runner_of(pipe, cut):
    """Makes samples up to a cut, in this thread."""
    return SampleRunner(Pipeline(pipe.dataset, pipe.stages[:cut]), 0, False, False)


def image_bytes(sample):
    image = sample.fields["image"]
    return len(image) if isinstance(image, bytes) else image.nbytes


def read_in_ranges(folder, epochs):
    """{form: [(bytes read of the file, reads), for each epoch and sample]}, where all seek points are known."""
    found = {}
    for name in ("one range", "all ranges"):
        with tempfile.TemporaryDirectory() as cache, environment(XDG_CACHE_HOME=cache, DRAPPS_RANGES_GAP=FORMS[name]):
            whole = drapps.read(folder).decode().loader(workers=0, ranges="off", outputs="image",
                                                        collate={"*": "list"}, output="raw")  # fmt: skip
            for _ in whole:
                pass
            with chain(folder).loader(workers=0, ranges="on", outputs="image", output="raw") as loader:
                for _ in loader:
                    pass  # notes what is in the files
                found[name] = [one for epoch in range(epochs) for one in counted(loader, epoch)]
            whole.close()
    return found


def counted(loader, epoch):
    """(bytes, reads) of each sample of an epoch."""
    loader.set_epoch(epoch)
    before = loader.stats()
    for _ in loader:
        after = loader.stats()
        yield after["bytes_read"] - before["bytes_read"], max(after["range_reads"] - before["range_reads"], 1)
        before = after


def saved_per_second(pipe, after):
    """Bytes that a CPU second saves for each sample, cut where it is smallest; 0: where it is stored."""
    runners = {cut: runner_of(pipe, cut) for cut in range(len(pipe.stages) + 1)}
    ops, found = list(after), []
    for i in range(len(pipe)):
        sizes = [after[op][i] for op in ops]
        cut = min(range(len(sizes)), key=lambda k: sizes[k])
        seconds = max(cpu_time(runners[cut], i) - cpu_time(runners[0], i), 1e-6)
        found.append((sizes[0] - sizes[cut]) / seconds if cut else 0.0)
    return sorted(found)


def cpu_time(runner, i):
    times = []
    for _ in range(TIMED):
        begin = time.thread_time()
        runner.run(0, i)
        times.append(time.thread_time() - begin)
    return min(times)


def policies(after, ranges, resize):
    """{policy or form: bytes}."""
    ops, whole = list(after), after[STORED]
    smallest = [min(sizes) for sizes in zip(*after.values())]
    one_range, segments = (ranges[name] for name in ("one range", "all ranges"))
    gathered = [size + SEGMENT_BYTES * reads for size, reads in segments]
    every = sum(after[ops[-1]])
    return {
        "off": sum(whole), "all": every, "resize": sum(after[resize]), "fastflow": min(every, sum(whole)),
        "sophon": sum(smallest), "one range of rows": sum(size for size, _ in one_range), "segments": sum(gathered),
        "sophon+": sum(map(min, smallest, gathered)),
    }  # fmt: skip


def measure(name, folder, epochs, times):
    """The counts of one set."""
    pipe = chain(folder)
    after, ranges = forms_after(pipe, epochs), read_in_ranges(folder, epochs)
    places = dict.fromkeys(after, 0)
    for sizes in zip(*(column[: len(pipe)] for column in after.values())):
        places[min(after, key=lambda op: sizes[list(after).index(op)])] += 1
    return {
        "set": name, "images": len(pipe), "bytes": sum(after[STORED][: len(pipe)]), "epochs": epochs,
        "smallest": places, "after": {op: sum(sizes) / len(sizes) for op, sizes in after.items()},
        "policies": policies(after, ranges, "random_resized_crop"),
        "saved_per_cpu_s": saved_per_second(pipe, after) if times else [],
    }  # fmt: skip


def main(rest, make):
    parser = make("traffic", __doc__)
    parser.add_argument("--data", required=True, nargs="+", metavar="IMAGES", help="folders of JPEGs, or of class "
                        "folders with them")  # fmt: skip
    parser.add_argument("--twin", type=int, default=0, metavar="N",
                        help="also N images of the sizes of Open Images, made of the first folder")  # fmt: skip
    parser.add_argument("--epochs", type=int, default=5, help="crops of each image (default: 5)")
    parser.add_argument("--no-times", action="store_true", help="leave out what takes times: the last table")
    args = parser.parse_args(rest)
    if args.epochs < 1 or args.twin < 0:
        parser.error(f"epochs must be at least 1 and twin at least 0, got {args.epochs} and {args.twin}")
    with tempfile.TemporaryDirectory(prefix="drapps-sophon-") as work:
        sets = [(pathlib.Path(folder).name, class_folders(folder, pathlib.Path(work))) for folder in args.data]
        if args.twin:
            print(f"making {args.twin} images", file=sys.stderr)
            sets.append(("twin of Open Images", twins.open_images_twin(args.data[0], f"{work}/twin", args.twin)))
        rows = []
        for name, folder in sets:
            print(f"counting: {name}", file=sys.stderr)
            rows.append(measure(name, folder, args.epochs, not args.no_times))
    return {"experiment": "sophon traffic", "sets": rows}


def class_folders(folder, work):
    """The folder, or where its images are not in class folders, one that has them in one."""
    folder = pathlib.Path(folder)
    if any(entry.is_dir() for entry in os.scandir(folder)):
        return folder
    return twins.copied(folder, work / f"classes-of-{folder.name}" / "all").parent


def tables(result):
    """[(title, head, rows)] for people."""
    sets = result["sets"]
    right = [(one["set"], "right") for one in sets]
    yield ("the sets", ("", *right), [
        ("images", *(one["images"] for one in sets)),
        ("as stored", *(bytes_text(one["bytes"]) for one in sets)),
        ("crops of each image", *(one["epochs"] for one in sets)),
        *((f"smallest {place_text(op)}", *(f"{one['smallest'][op] / one['images']:.1%}" for one in sets))
          for op in sets[0]["smallest"] if any(one["smallest"][op] for one in sets)),
    ])  # fmt: skip
    yield ("mean bytes of an image", ("", *right),
           [(place_text(op), *(f"{one['after'][op]:.0f}" for one in sets)) for op in sets[0]["after"]])  # fmt: skip
    yield ("bytes sent, of those stored", ("policy or form", *right),
           [(name, *(f"{one['policies'][name] / one['policies']['off']:.3f}" for one in sets))
            for name in sets[0]["policies"]])  # fmt: skip
    if sets[0]["saved_per_cpu_s"]:
        yield ("MB that a CPU second saves, by sample", ("", *right), [
            ("nothing saved", *(f"{one['saved_per_cpu_s'].count(0.0) / one['images']:.1%}" for one in sets)),
            *((f"{q} % of the samples at most", *(f"{quantile(one['saved_per_cpu_s'], q) / 1e6:.0f}" for one in sets))
              for q in QUANTILES)])  # fmt: skip


def place_text(op):
    return op if op == STORED else f"behind {op}"


def quantile(ordered, percent):
    return ordered[max(-(-percent * len(ordered) // 100) - 1, 0)]
