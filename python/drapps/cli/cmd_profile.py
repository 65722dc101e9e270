"""drapps profile: why training waits for data, and where the time of a sample goes.

For a Python file: runs it and watches its loaders.  For data: measures ops, and a plain loop over the usual chain.
"""

import argparse
import math
import os
import sys
import traceback
from contextlib import nullcontext, redirect_stdout
from functools import partial

from drapps.cli import chain_arguments
from drapps.printing import bytes_text, print_json, print_table

HELP = "find out why training waits for data, for a script or for your files"
STEPS_NOTE = "some batches were used twice for training during the measurement: discard this run's checkpoint"


def add_arguments(parser):
    parser.add_argument(
        "path", help="a training script (a Python file); or data: a folder, a list, a tar file or a pattern"
    )
    parser.add_argument(
        "--seconds", type=float, default=14, help="duration of the measurement (default: 14; 0: only op costs)"
    )
    parser.add_argument("--keep-running", action="store_true", help="let the Python file run to its end afterwards")
    data = parser.add_argument_group("for data")
    chain_arguments.add_arguments(data)
    data.add_argument("--samples", type=int, default=256, help="number of samples for op costs (default: 256)")
    data.add_argument("--batch-size", type=int, default=64, help="batch size of the loop (default: 64)")
    data.add_argument("--workers", type=int, help="workers of the loop (default: what the container allows)")
    data.add_argument(
        "--step-ms", type=float, default=0, help="time of the consumer per batch, in milliseconds (default: 0)"
    )
    data.add_argument(
        "--batches", type=int, metavar="N", help="in place of the loop: measure accelerator, reading and preprocessing "
        "one by one, over at most N batches each, and say which of them limits training"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def main(argv):
    """Run the command; arguments after -- belong to the profiled program."""
    at = argv.index("--") if "--" in argv else len(argv)
    parser = argparse.ArgumentParser(prog="drapps profile", usage="%(prog)s [options] path [-- arguments of the file]",
                                     description=f"{HELP}.")  # fmt: skip
    add_arguments(parser)
    args, unknown = parser.parse_known_args(argv[:at])
    if unknown:
        hint = f"; arguments of the file go after --: drapps profile {args.path} -- {' '.join(unknown)}"
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{hint if args.path.endswith('.py') else ''}")
    args.arguments = argv[at + 1 :]
    is_script = args.path.endswith(".py") and os.path.isfile(args.path)
    if is_script and args.batches is not None:
        parser.error("--batches is for data, not for a Python file: use --seconds")
    _check("--seconds", args.seconds, of_script=is_script)
    _check("--step-ms", args.step_ms)
    return _script(args) if is_script else _data(args)


def _check(name, value, of_script=False):
    """Raise unless a time is a non-negative number, and positive for a script."""
    from drapps import _core

    if not (math.isfinite(value) and value >= 0):
        raise _core.ArgumentError(f"{name} must be a non-negative number, got {value:g}")
    if of_script and not value:
        raise _core.ArgumentError(f"{name} must be above 0 for a Python file, got 0")


# --- a program ---


def _script(args):
    from drapps.profile import diagnose, run_script, profile_text

    with redirect_stdout(sys.stderr) if args.json else nullcontext():  # the program's output must not mix with the JSON
        done = run_script.run_script(args.path, args.arguments, args.seconds, stop=not args.keep_running)
    if done.facts is None:
        status = _status(done.error, args.path)
        print(
            f"drapps: {args.path} iterated no loader (drapps.DataLoader, Pipeline.loader, torch's DataLoader)",
            file=sys.stderr,
        )
        return status or 1
    findings = diagnose(done.facts)
    if args.json:
        print_json(profile_text.as_dict(done, findings))
    else:
        profile_text.show(done, findings)
        if done.again:
            print(STEPS_NOTE)
    return _status(done.error, args.path)


def _status(error, path):
    """Pass on how the program ended: its message or traceback, its exit status, an interrupt."""
    from drapps.profile.run_script import own_traceback

    if isinstance(error, SystemExit):
        if error.code is not None and not isinstance(error.code, int):
            print(error.code, file=sys.stderr)
            return 1
        return error.code or 0
    if isinstance(error, KeyboardInterrupt):
        raise error
    if error is not None:
        traceback.print_exception(type(error), error, own_traceback(error, path))
        return 1
    return 0


# --- data ---


def _data(args):
    from drapps import _core

    if args.samples < 1:
        raise _core.ArgumentError(f"--samples must be a positive int, got {args.samples}")
    pipe = chain_arguments.pipeline_of(args)
    if not len(pipe):
        raise _core.FormatError(f"{args.path}: has no samples")
    with pipe.loader(batch_size=1, workers=0, outputs="image", collate={"image": "list"}) as loader:
        facts = loader.profile(args.samples)
    if args.batches is not None:
        found = _stages(pipe, args)
    else:
        found = _loop(pipe, args) if args.seconds > 0 else None
    if args.json:
        return print_json(facts if found is None else {**facts, "analysis": found[0]})
    _show(facts)
    if found is not None:
        found[1]()


def _loop(pipe, args):
    """Run a plain loop over the data; return (findings as a dict, a function that prints them)."""
    from drapps.profile import diagnose, run_script, profile_text

    open_loader = partial(pipe.loader, args.batch_size, shuffle=True, workers=args.workers, outputs="image",
                          collate={"*": "list"}, output="raw")  # fmt: skip
    done = run_script.run_loop(open_loader, args.step_ms / 1e3, args.seconds)
    if done.error is not None:
        raise done.error
    findings = diagnose(done.facts)
    return profile_text.as_dict(done, findings), lambda: (print(), profile_text.show(done, findings))


def _stages(pipe, args):
    """Measure the stages one by one; return (what was found as a dict, a function that prints it)."""
    from drapps.profile import measure_stages, profile_text
    from drapps.profile.offload_line import planned_line

    options = {"batch_size": args.batch_size, "workers": args.workers, "outputs": "image", "output": "raw"}
    rates = measure_stages(pipe, args.step_ms / 1e3, args.batches, args.seconds or 10.0, **options)
    offload = planned_line(pipe, args.step_ms / 1e3, **options) if pipe.dataset.format == "drapps" else ""
    return ({**rates.as_dict(), "offload": offload or None},
            lambda: (print(), profile_text.show_stages(rates, offload)))  # fmt: skip


def _show(facts):
    """Print one row per op, and the CPU time of all ops by the thread's clock."""
    total = facts["sum_us"] or 1
    rows = [("read", facts["read_us"], "", "")]
    rows += [(op["op"], op["us"], bytes_text(op["in_bytes"]), bytes_text(op["out_bytes"])) for op in facts["ops"]]
    rows += [("store", facts["store_us"], "", ""), ("sum", facts["sum_us"], "", "")]
    rows += [("CPU time, op by op", facts["cpu_us"], "", ""), ("CPU time in a loader", facts["fused_us"], "", "")]
    columns = ("op", ("µs a sample", "right"), ("share", "right"), ("bytes in", "right"), ("bytes out", "right"))
    print_table(columns, [(name, f"{us:.1f}", f"{us / total:.0%}", *sizes) for name, us, *sizes in rows])
    bad = f", {facts['bad']} bad" if facts["bad"] else ""
    print(
        f"{facts['samples']} samples{bad}, one thread, ops unfused; a loader fuses ops, and decodes only what is needed"
    )
