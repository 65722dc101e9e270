"""The checks of `make bench`: python -m benchmarks.run_all --data DIR [--photos DIR] [--limit PROGRAM].

Measures the peers, the bare C loop, start-up and import; compares each figure with drapps' promise for two cores; exits
with status 1 if a promise is not kept.  The machine should be otherwise idle.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import namedtuple

from drapps.bench import bench_command, bench_table, environments, runner, stats, workload

# value: a number, or None if it could not be measured.  bound: None for a figure without a promise.
# at_least: whether the bound is a minimum.
Check = namedtuple("Check", "what value bound at_least note", defaults=("",))

FIRST = {"torch_pil": 4.5, "torch_uint8": 2.2, "dali": 1.7}  # over the peer without seek points; over any other: 1
LATER = {"torch_pil": 6.5, "dali": 3.0}  # with them
WAYS = {"drapps": "later epochs", "drapps_first": "first epoch"}
RATIOS = {"drapps": "drapps_over", "drapps_first": "first_over"}
DECODERS = {"drapps": "auto", "libjpeg": "libjpeg"}  # of the bare loop, and what the op calls them
# The bare loop, and the same with a consumer, which takes CPU time from two threads as it does from two workers:
# what they are called, arguments of the program, bounds for the loader's share and for the gain of a second worker.
Loop = namedtuple("Loop", "words arguments share gain")
LOOPS = {"loop": Loop("the bare C loop", (), 0.9, 0.97),
         "fed": Loop("the loop with a consumer", ("--consumer",), None, None)}
RUNS = tuple((who, decoder, threads) for threads in (2, 1) for decoder in DECODERS for who in ("loader", *LOOPS))
FRESH_PROCESSES = 7


def passed(check):
    """Return True, False, or None (not measured, or no promise)."""
    if check.value is None or check.bound is None:
        return None
    return check.value >= check.bound if check.at_least else check.value <= check.bound


def entry(result, name):
    return next((e for e in result["peers"] if e["peer"] == name), None)


def middle(spread):
    return None if spread is None else spread["median"]


def speed_checks(result):
    """Return the speed of drapps over each peer on the main data, with and without seek points."""
    def over(way, name, bound):
        return Check(f"{WAYS[way]} over {name}", middle((entry(result, name) or {}).get(RATIOS[way])), bound, True)

    return ([over("drapps_first", name, FIRST.get(name, 1.0)) for name in bench_command.others()]
            + [over("drapps", name, bound) for name, bound in LATER.items()])


def noise_checks(result):
    """Check that drapps is faster than each peer in every round, with and without seek points."""
    checks = []
    for name in bench_command.others():
        for way, words in WAYS.items():
            ratio = (entry(result, name) or {}).get(RATIOS[way])
            checks.append(Check(f"{result['data']['name']}: {words}, worst round over {name}", ratio and ratio["min"],
                                1.0, True, f"median {ratio['median']:.2f}" if ratio else ""))
    return checks


def memory_check(result):
    """Return the check of memory, with seek points, which add to it."""
    ours, torch = (middle((entry(result, n) or {}).get("pss_above_mb")) for n in ("drapps", runner.REFERENCE))
    share = ours / torch if ours is not None and torch else None
    return Check("memory, share of PyTorch's", share, 1 / 3, False)


def pixel_checks(result):
    checks = []
    for name, words in WAYS.items():
        pixels = (entry(result, name) or {}).get("pixels") or {}
        where = f"{result['data']['name']}: {words}"
        checks += [Check(f"{where}, images that differ from torchvision's", pixels.get("differing_images"), 0, False),
                   Check(f"{where}, largest difference of a float", pixels.get("largest_float"), 1e-6, False)]
    return checks


def limit_rounds(bench, program, rounds):
    """Run interleaved rounds of the loader and the loops with each decoder: {run: [samples/s or
    None, ...]} for RUNS."""
    rates = {run: [] for run in RUNS}
    for k in range(rounds):
        for run in RUNS:
            bench.say(f"round {k + 1} of {rounds}: {' '.join(map(str, run))}")
            rates[run].append(_rate(bench, program, *run))
    return rates


def _rate(bench, program, who, decoder, threads):
    try:
        if who == "loader":  # without seek points and without the memory sampler, like the loop
            settings = {"seek_index": "off", "workers": threads, "decoder": DECODERS[decoder]}
            run = bench.measure("drapps_first", settings, memory=False)
        else:
            run = run_limit(bench, program, decoder, threads, LOOPS[who].arguments)
        return run["samples_per_s"]
    except (runner.PeerError, OSError, subprocess.CalledProcessError) as error:
        bench.say(f"failed: {error}")
        return None


def run_limit(bench, program, decoder, threads, arguments=()):
    command = [program, "--decoder", decoder, "--threads", str(threads), "--samples", str(bench.samples), *arguments]
    done = subprocess.run(command, input="".join(path + "\n" for path in bench.files.paths), text=True,
                          capture_output=True, check=True)
    return json.loads(done.stdout)


def limit_pixels(bench, program, decoder):
    """Return the number of images for which the bare loop differs from torchvision on PIL: it must do the same work."""
    import numpy as np

    with tempfile.TemporaryDirectory(prefix="drapps-bench-") as folder:
        boxes, want, got = (os.path.join(folder, name) for name in ("boxes.json", "want.npy", "got.f32"))
        bench.child(runner.REFERENCE, "--draw", boxes, "--out", want)
        with open(boxes) as f:
            lines = [f"{bench.files.paths[b['index']]}\t{' '.join(map(str, b['box']))} {b['flip']:d}\n"
                     for b in json.load(f)]
        done = subprocess.run([program, "--decoder", decoder, "--pixels", got], input="".join(lines), text=True,
                              check=True, capture_output=True)
        if json.loads(done.stdout)["left_out"]:
            raise runner.PeerError(f"it cannot do {json.loads(done.stdout)['left_out']} of the files")
        shape = (-1, 3, workload.SIZE, workload.SIZE)
        return stats.differences(np.fromfile(got, np.float32).reshape(shape), np.load(want, mmap_mode="r"))


def limit_exact_check(bench, program, decoder):
    what = f"bare C loop, decoder {decoder}: images that differ"
    try:
        return Check(what, limit_pixels(bench, program, decoder)["differing_images"], 0, False)
    except (runner.PeerError, subprocess.CalledProcessError, OSError) as error:
        return Check(what, None, 0, False, str(error))


def limit_checks(rates):
    """Compare the loader with each loop with the same decoder, and their gains from a second thread."""
    turbo = stats.paired_ratio(rates["loader", "drapps", 2], rates["loop", "libjpeg", 2])
    return [check for who in LOOPS for decoder in DECODERS for check in _limit_checks_of(who, decoder, rates)] + [
        Check("first epoch over the bare C loop on libjpeg-turbo", middle(turbo), None, True, "2 threads")]


def _limit_checks_of(loop, decoder, rates):
    def median(who):
        return middle(stats.spread(rates[who, decoder, 2]))

    words, _, share_bound, gain_bound = LOOPS[loop]
    share = stats.paired_ratio(rates["loader", decoder, 2], rates[loop, decoder, 2])
    ours, bare = (stats.paired_ratio(rates[who, decoder, 2], rates[who, decoder, 1]) for who in ("loader", loop))
    gain = ours["median"] / bare["median"] if ours and bare else None
    note = f"{ours['median']:.2f} to {bare['median']:.2f}" if gain else ""
    return [Check(f"first epoch, share of {words}, 2 threads, decoder {decoder}", middle(share), share_bound, True,
                  f"{median('loader'):.0f} of {median(loop):.0f} samples/s" if share else ""),
            Check(f"gain of a second worker, share of that of {words}, decoder {decoder}", gain, gain_bound, True,
                  note)]


def fresh(argument, key, say, cache=None):
    """Return the median of a start-up figure over fresh processes."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "startup.py")
    values = []
    for k in range(FRESH_PROCESSES):
        # each has its own cache folder, so that no saved listing helps
        extra = {"XDG_CACHE_HOME": os.path.join(cache, str(k))} if cache else None
        try:
            values.append(runner.run_process([sys.executable, script, argument], extra)[key])
        except runner.PeerError as error:
            say(f"{key}: {error}")
    return middle(stats.spread(values))


def startup_checks(data, say):
    with tempfile.TemporaryDirectory(prefix="drapps-bench-") as cache:
        first = fresh(data, "first_batch_ms", say, cache)
    n = len(workload.find_files(data))
    return [Check("first batch, ms", first, 150, False, f"{n} files; the promise is for 500"),
            Check("import drapps, ms", fresh("--import", "import_ms", say), 50, False)]


def print_checks(checks):
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for name, side in (("promise", "left"), ("measured", "right"), ("bound", "right"), ("", "left"), ("", "left")):
        table.add_column(name, justify=side)
    words = {True: "[green]kept[/green]", False: "[red]not kept[/red]", None: "[yellow]not measured[/yellow]"}
    for c in checks:
        value = "-" if c.value is None else f"{c.value:.3g}"
        if c.bound is None:
            table.add_row(c.what, value, "", "", c.note)
            continue
        sign = "at least" if c.at_least else "at most"
        table.add_row(c.what, value, f"{sign} {c.bound:.3g}", words[passed(c)], c.note)
    bench_table.wide_console().print(table)


def parse(argv):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run_all", description=__doc__)
    parser.add_argument("--data", required=True, metavar="DIR", help="ImageNet-like JPEG files")
    parser.add_argument("--photos", metavar="DIR", help="large photographs")
    parser.add_argument("--limit", metavar="PROGRAM", help="benchmarks/c/limit of a build with -Dbench=true")
    parser.add_argument("--loop-alone", action="store_true", help="check only the bare loop")
    parser.add_argument("--peers", default="all", metavar="all|NAME,...")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--samples", type=int, default=4096)
    parser.add_argument("--photos-samples", type=int, metavar="N", help="for --photos; default: as --samples")
    parser.add_argument("--retune", action="store_true", help="search for the peers' best settings again")
    parser.add_argument("--envs", default=environments.default_folder(), metavar="DIR")
    parser.add_argument("--save", metavar="FOLDER", help="folder for DATA.json of each data set, and checks.json")
    parser.add_argument("--json", action="store_true", help="print the checks as JSON")
    return parser.parse_args(argv)


def run_folder(args, data, samples):
    """Measure the peers on a folder; print the table, save and return the result."""
    result = runner.run_image(data, bench_command.peer_names(args.peers), args.rounds, samples, args.envs, args.retune,
                              say=bench_command.progress)
    if not args.json:
        bench_table.print_table(result)
    save(args, result["data"]["name"], result)
    return result


def save(args, name, value):
    if args.save:
        os.makedirs(args.save, exist_ok=True)
        with open(os.path.join(args.save, name + ".json"), "w") as f:
            json.dump(value, f, indent=1)


def collect(args):
    """Return all checks of this run."""
    if args.loop_alone:
        return bare_loop(args)
    result = run_folder(args, args.data, args.samples)
    checks = speed_checks(result) + [memory_check(result)] + pixel_checks(result)
    if args.photos:
        photos = run_folder(args, args.photos, args.photos_samples or args.samples)
        checks += noise_checks(photos) + pixel_checks(photos)
    checks += bare_loop(args)
    return checks + startup_checks(args.data, bench_command.progress)


def bare_loop(args):
    if not args.limit:
        return [c._replace(note="give --limit") for c in limit_checks({run: [] for run in RUNS})]
    bench = runner.Runner(args.data, args.envs, args.samples, bench_command.progress)
    checks = [limit_exact_check(bench, args.limit, decoder) for decoder in DECODERS]
    return checks + limit_checks(limit_rounds(bench, args.limit, args.rounds))


def main(argv=None):
    args = parse(argv)
    checks = collect(args)
    rows = [{**c._asdict(), "passed": passed(c)} for c in checks]
    save(args, "checks", rows)
    if args.json:
        print(json.dumps(rows))
    else:
        print_checks(checks)
    return 1 if any(passed(c) is False for c in checks) else 0


if __name__ == "__main__":
    sys.exit(main())
