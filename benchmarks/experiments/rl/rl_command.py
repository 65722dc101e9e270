"""drapps experiment rl: does the PPO of drapps learn as well as Stable-Baselines3's, and how much faster?

Both train on CartPole with the same settings, steps and seeds, in turns, with as many threads.  The equations are compared
first, state by state.  Seconds are of training alone.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

from drapps.bench import environments
from drapps.printing import print_json, print_table

CHILD = Path(__file__).with_name("sb3_child.py")
SOLVED, FASTER = 475, 5


def run_program(*command):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=3600)
    if done.returncode:
        raise SystemExit(f"{command[0]}: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
    return done.stdout


def largest_difference(ours, theirs):
    """Of two lists of states, as printed."""
    rows = list(zip(ours.split("\n"), theirs.split("\n"), strict=True))
    return max(abs(float(a) - float(b)) for one, other in rows
               for a, b in zip(one.split(), other.split(), strict=True))  # fmt: skip


def measure(commands, steps, seeds, threads, say):
    """{library: [result]}, a result for each seed."""
    found = {name: [] for name in commands}
    for seed in range(seeds):
        for name, command in commands.items():
            say(f"seed {seed} of {seeds}: {name}")
            found[name].append(json.loads(run_program(*command, "train", steps, seed, threads)))
    return found


def summary(results):
    """Of all seeds."""
    returns = [one["mean_return"] for one in results]
    return {"steps": results[0]["steps"], "mean": statistics.fmean(returns), "least": min(returns),
            "seconds": statistics.median(one["seconds"] for one in results)}  # fmt: skip


def verdict(ours, theirs):
    """What is claimed, and whether it holds."""
    ratio = theirs["seconds"] / ours["seconds"]
    return {"solved": ours["mean"] >= SOLVED, "as good": ours["mean"] >= min(theirs["mean"], 499),
            f"at least {FASTER} times as fast": ratio >= FASTER, "ratio": ratio}  # fmt: skip


def run(args):
    python = args.python or environments.python(args.envs, "rl")
    commands = {"drapps": [args.program], "stable-baselines3": [python, CHILD]}
    ours, theirs = (run_program(*command, "moves", 200) for command in commands.values())
    apart = largest_difference(ours.strip(), theirs.strip())
    if apart > 1e-9:
        raise SystemExit(f"the equations differ: states are up to {apart:g} apart")
    found = measure(commands, args.steps, args.seeds, args.threads, lambda text: print(text, file=sys.stderr))
    rows = {name: summary(results) for name, results in found.items()}
    return {"experiment": "rl", "threads": args.threads, "seeds": args.seeds, "states_apart": apart, "rows": rows,
            "verdict": verdict(*rows.values()), "runs": found}  # fmt: skip


def show(result):
    columns = ("library", ("steps", "right"), ("mean return", "right"), ("least", "right"), ("seconds", "right"),
               ("steps/s", "right"))  # fmt: skip
    print_table(columns, [(name, f"{row['steps']}", f"{row['mean']:.1f}", f"{row['least']:.1f}", f"{row['seconds']:.2f}",
                           f"{row['steps'] / row['seconds']:.0f}") for name, row in result["rows"].items()])  # fmt: skip
    for claim, holds in result["verdict"].items():
        print(f"{claim}: {holds:.1f}" if claim == "ratio" else f"{claim}: {'yes' if holds else 'no'}")


def main(argv=None):
    """Measure, print, save."""
    parser = argparse.ArgumentParser(prog="drapps experiment rl", description=__doc__)
    parser.add_argument("--program", default="build-bench/benchmarks/c/rl_cartpole", metavar="FILE",
                        help="benchmarks/c/rl_cartpole of a build with -Dbench=true")
    parser.add_argument("--steps", type=int, default=100000, help="of all environments (100000)")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="of each library (1)")
    parser.add_argument("--envs", default=environments.default_folder(), metavar="DIR")
    parser.add_argument("--python", metavar="FILE", help="an interpreter that has stable-baselines3, instead of an environment")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--save", metavar="FILE", help="also write the result as JSON")
    args = parser.parse_args(argv)
    if min(args.steps, args.seeds, args.threads) < 1:
        parser.error(f"steps, seeds and threads must be at least 1, got {args.steps}, {args.seeds} and {args.threads}")
    if not Path(args.program).is_file():
        raise SystemExit(f"no {args.program}: meson setup build-bench -Dbench=true, meson compile -C build-bench")
    reason = None if args.python else environments.missing(args.envs, "rl")
    if reason:
        raise SystemExit(reason)
    result = run(args)
    if args.save:
        Path(args.save).write_text(json.dumps(result, indent=1), encoding="utf-8")
    return print_json(result) if args.json else show(result)
