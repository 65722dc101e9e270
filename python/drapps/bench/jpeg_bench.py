"""`drapps bench jpeg`: compares decoders on files in memory and on chosen CPUs.

In each round, each way decodes all files once completely, then one RandomResizedCrop box of each.  Each way has a
process of its own and they take turns, so that the ways of a round are measured close in time.  A library is taken from
this interpreter if it is installed there, else from its environment of `drapps bench setup`; missing libraries are
reported with the reason.  The pixels of each way are compared with libjpeg-turbo's before the measurement.
"""

import contextlib
import datetime
import json
import os
import platform
import random
import subprocess
import tempfile

from . import environments, jpeg_ways, stats, workload

CHILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "jpeg_child.py")
TASKS = ("full", "crop")
READABLE = ("YCbCr", "gray", "RGB")  # colour spaces that every library converts to RGB; CMYK is left out


class DecoderError(Exception):
    """A way cannot be used; the text says why."""


class Child:
    """A jpeg_child.py in one environment."""

    def __init__(self, interpreter, job, isolated):
        env = {**os.environ, "PYTHONPATH": ""} if isolated else None  # a peer must not see our packages
        self.process = subprocess.Popen([interpreter, CHILD, job], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, env=env)

    def ask(self, **order):
        try:
            print(json.dumps(order), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except OSError:
            line = ""
        if not line:
            raise DecoderError(f"its process ended with status {self.process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise DecoderError(answer["error"])
        return answer

    def close(self):
        with contextlib.suppress(BrokenPipeError):  # it has ended already
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def start(row, job, envs):
    """Return (child, version) of a way in its own process: by this interpreter if possible, else by its environment."""
    reasons = []
    for environment in dict.fromkeys(("", row.environment)):
        reason = environments.missing(envs, environment)
        if not reason:
            child = Child(environments.python(envs, environment), job, bool(environment))
            try:
                return child, child.ask(open=row.name)["version"]
            except DecoderError as error:
                child.close()
                reason = str(error)
        reasons.append(reason)
    raise DecoderError("; ".join(reasons))


def choose(paths, n):
    """Return n of the paths, evenly spread."""
    n = min(n, len(paths))
    return [paths[i * len(paths) // n] for i in range(n)]


def draw(paths, seed):
    """Return the paths that every library can read, with a box for each."""
    import drapps

    rng, kept, boxes = random.Random(seed), [], []
    for path in paths:
        with open(path, "rb") as f:
            data = f.read()
        try:
            header = drapps.jpeg_header(data)
            drapps.decode_jpeg(data, decoder="libjpeg")
        except drapps.Error:
            continue
        if header.stored.startswith(READABLE):
            kept.append(path)
            boxes.append(workload.draw_box(header.width, header.height, rng))
    return kept, boxes


def pick_cpus(threads):
    allowed = sorted(os.sched_getaffinity(0))
    if threads > len(allowed):
        raise SystemExit(f"--threads must be at most {len(allowed)}, the CPUs of this process, got {threads}")
    return allowed[-threads:]


def start_all(names, job, envs, stack, missing, say):
    """Return {name: (child, version)} of the ways that can run; the stack closes them."""
    started = {}
    for name in names:
        say(f"{name}: opening")
        try:
            started[name] = start(jpeg_ways.row(name), job, envs)
            stack.callback(started[name][0].close)
        except DecoderError as error:
            missing.append({"decoder": name, "reason": str(error)})
            say(f"{name}: left out: {error}")
    if jpeg_ways.BASELINE not in started:
        raise SystemExit(f"libjpeg-turbo, the reference, cannot run: {missing[0]['reason']}")
    return started


def compare(started, say):
    """Return {(name, task): number of images whose pixels differ from libjpeg-turbo's}."""
    differing = {}
    for task in TASKS:
        say(f"comparing pixels: {task}")
        digests = {name: child.ask(digest=name, task=task)["digests"] for name, (child, _) in started.items()}
        want = digests[jpeg_ways.BASELINE]
        for name, got in digests.items():
            differing[name, task] = sum(a != b for a, b in zip(got, want))
    return differing


def measure(started, rounds, threads, say):
    """Return {(name, task): [seconds of each round]}; the first way changes from round to round."""
    seconds = {(name, task): [] for name in started for task in TASKS}
    names = list(started)
    for k in range(rounds):
        say(f"round {k + 1} of {rounds}")
        for task in TASKS:
            for name in names[k % len(names):] + names[:k % len(names)]:
                seconds[name, task].append(started[name][0].ask(run=name, task=task, threads=threads)["seconds"])
    return seconds


def entries_of(started, seconds, differing, n):
    """Return an entry for each way and task."""
    entries = []
    for task in TASKS:
        base = seconds[jpeg_ways.BASELINE, task]
        for name, (_, version) in started.items():
            times = seconds[name, task]
            entries.append({"task": task, "decoder": name, "title": jpeg_ways.row(name).title, "version": version,
                            "ms_per_image": stats.spread([1e3 * s / n for s in times]),
                            "over_libjpeg": stats.paired_ratio(base, times),
                            "differing_images": differing[name, task]})
    return entries


def run_jpeg(data, names, n, rounds, threads, seed, envs, say):
    """Run the whole bench; names: of jpeg_ways.TABLE."""
    found = workload.find_files(data)
    paths = choose(found.paths, n)
    kept, boxes = draw(paths, seed)
    if not kept:
        raise SystemExit(
            f"--data must be a folder of JPEG files; none of the {len(paths)} files of {data} can be decoded"
        )
    missing = []
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        job = os.path.join(folder, "job.json")
        with open(job, "w") as f:
            json.dump({"paths": kept, "boxes": boxes, "cpus": pick_cpus(threads)}, f)
        started = start_all(names, job, envs, stack, missing, say)
        try:
            differing = compare(started, say)
            seconds = measure(started, rounds, threads, say)
        except DecoderError as error:
            raise SystemExit(f"a decoder failed during the bench: {error}") from None
    return {"bench": "jpeg", "date": datetime.date.today().isoformat(), "rounds": rounds, "threads": threads,
            "seed": seed, "machine": machine(),
            "data": {"name": os.path.basename(found.root), "files": len(kept), "left_out": len(paths) - len(kept),
                     "megabytes": round(sum(map(os.path.getsize, kept)) / 1e6, 1)},
            "results": entries_of(started, seconds, differing, len(kept)), "missing": missing}


def machine():
    import drapps

    facts = drapps.info()
    jpeg = next(row["library"] for row in facts["codecs"] if row["name"] == "jpeg")
    return {"cpu": cpu_name(), "cpus": len(os.sched_getaffinity(0)), "system": platform.system(), "jpeg": jpeg}


def cpu_name():
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


# --- showing ---

COLUMNS = ("task", "decoder", "ms an image [min, max]", "vs libjpeg-turbo [min, max]", "differing images", "version")


def table_rows(result):
    """Return the cells as text, fastest first within a task."""
    def order(entry):
        return TASKS.index(entry["task"]), entry["ms_per_image"]["median"]

    return [(e["task"], e["title"], _figure(e["ms_per_image"], 3), _figure(e["over_libjpeg"], 2),
             str(e["differing_images"]), e["version"]) for e in sorted(result["results"], key=order)]


def _figure(spread, digits):
    middle, low, high = (f"{spread[key]:.{digits}f}" for key in ("median", "min", "max"))
    return f"{middle} [{low}, {high}]"


def caption(result):
    """Return a paragraph about data, machine and method."""
    data, where = result["data"], result["machine"]
    return (f"JPEG to RGB on {data['name']} ({data['files']} files in memory, {data['megabytes']} MB, "
            f"{data['left_out']} left out); {where['cpu']}, {result['threads']} of {where['cpus']} CPUs, "
            f"{where['system']}; medians of {result['rounds']} interleaved rounds; full: the whole image, crop: one "
            f"RandomResizedCrop box; {result['date']}.  drapps: {where['jpeg']}.")


def missing_lines(result):
    return [f"{m['decoder']}: not measured: {m['reason']}" for m in result["missing"]]


def markdown(result):
    def line(cells):
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    lines = [caption(result), "", line(COLUMNS), line(["---"] * len(COLUMNS)), *map(line, table_rows(result))]
    return "\n".join(lines + [""] * bool(result["missing"]) + [f"- {m}" for m in missing_lines(result)]) + "\n"


def print_table(result):
    from drapps import printing

    print(caption(result) + "\n")
    printing.print_table(
        [(name, "right") if 2 <= i <= 4 else name for i, name in enumerate(COLUMNS)], table_rows(result)
    )
    for text in missing_lines(result):
        print(text)
