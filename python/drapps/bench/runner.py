"""Runs the peers in interleaved rounds and collects one result.

A round runs every loader once, each in a fresh process: drapps, peer A, peer B, ...; the next round begins again with
drapps.  A loader whose environment is missing, or whose process fails, is reported and left out.
"""

import datetime
import json
import os
import platform
import signal
import subprocess
import tempfile

from . import environments, peers, stats, workload

CHILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "child.py")
TIMEOUT_SECONDS = 900
TUNE_SAMPLES = 1024
TUNE_PASSES = 2
REFERENCE = "torch_pil"  # the reference for pixels and rates


class PeerError(Exception):
    """A peer's process failed; the text is the last line of its output."""


def run_process(command, extra_env=None):
    """Run a program in its own process group and return the JSON object of its last line."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                             start_new_session=True, env={**os.environ, **(extra_env or {})})
    try:
        out, err = child.communicate(timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        raise PeerError(f"timed out after {TIMEOUT_SECONDS} s") from None
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
    lines = [line for line in out.splitlines() if line.startswith("{")]
    if child.returncode or not lines:
        words = [line for line in (err or out).splitlines() if line.strip()]
        raise PeerError(words[-1].strip() if words else f"exit code {child.returncode}")
    return json.loads(lines[-1])


def spread_of(runs, key):
    """Return the spread of a figure over the runs of a loader."""
    return stats.spread([run.get(key) for run in runs if run])


class Runner:
    """The bench of one folder of files.  say: a function that gets progress as text."""

    def __init__(self, data, envs=None, samples=4096, say=lambda text: None):
        self.files = workload.find_files(data)
        self.envs = envs or environments.default_folder()
        self.samples = samples
        self.say = say
        self.missing = []

    def child(self, name, *arguments):
        """Run child.py for a peer in its environment."""
        row = peers.row(name)
        command = [environments.python(self.envs, row.environment), CHILD, name, "--data", self.files.root,
                   "--cache", os.path.join(self.envs, "data"), *arguments]
        # the peers' environments must not see our packages, and drapps must run by its settings
        return run_process(command, {"PYTHONPATH": ""} if row.environment else {"DRAPPS_SEEK_INDEX": ""})

    def measure(self, name, settings, samples=None, memory=True):
        """Measure a peer.  memory: sample its memory, which takes about 0.4 % of two cores."""
        extra = () if memory else ("--no-memory",)
        return self.child(name, "--settings", json.dumps(settings), "--samples", str(samples or self.samples), *extra)

    def available(self, names):
        """Return the peers that can run; the others go to `missing` with the reason."""
        found = []
        for name in names:
            row = peers.row(name)
            reason = environments.missing(self.envs, row.environment) or self._prepare(name)
            if reason:
                self.leave_out(name, reason)
            else:
                found.append(name)
        return found

    def leave_out(self, name, reason):
        self.missing.append({"peer": name, "reason": reason})
        self.say(f"{name}: left out: {reason}")

    def _prepare(self, name):
        """Convert the files if the peer needs it; also checks that its imports work."""
        self.say(f"{name}: preparing")
        try:
            self.child(name, "--prepare")
        except PeerError as error:
            return str(error)
        return None

    def tuned(self, names, anew=False):
        """Return the fastest settings of each peer for this machine and data; saved in the folder
        of the environments."""
        path = os.path.join(self.envs, "tuned.json")
        known = _read_json(path)
        chosen = {}
        for name in list(names):
            key = f"{name} {self.files.fingerprint()} cpus={len(os.sched_getaffinity(0))}"
            candidates = peers.row(name).tune(len(os.sched_getaffinity(0)))
            if anew or known.get(key) not in candidates:
                try:
                    known[key] = self._tune(name, candidates)
                except PeerError as error:
                    names.remove(name)
                    self.leave_out(name, str(error))
                    continue
                _write_json(path, known)
            chosen[name] = known[key]
        return chosen

    def _tune(self, name, candidates):
        if len(candidates) == 1:
            return candidates[0]
        rates = [[] for _ in candidates]
        for _ in range(TUNE_PASSES):
            for rate, settings in zip(rates, candidates):
                self.say(f"{name}: trying {settings or 'defaults'}")
                rate.append(self.measure(name, settings, min(TUNE_SAMPLES, self.samples))["samples_per_s"])
        best = max(range(len(candidates)), key=lambda i: sum(rates[i]))
        return candidates[best]

    def rounds(self, settings, n):
        """Run n interleaved rounds; return {name: [run or None, ...]}.  settings: {name: settings}."""
        runs = {name: [] for name in settings}
        for k in range(n):
            for name in settings:
                self.say(f"round {k + 1} of {n}: {name}")
                try:
                    runs[name].append(self.measure(name, settings[name]))
                except PeerError as error:
                    runs[name].append(None)
                    self.leave_out(name, f"round {k + 1}: {error}")
        return runs

    def pixels(self, settings):
        """Return {name: stats.differences to torchvision on PIL}, on the crops of drapps if it takes part."""
        if REFERENCE not in settings:
            return {}
        with tempfile.TemporaryDirectory(prefix="drapps-bench-") as folder:
            return self._compare(settings, folder)

    def _compare(self, settings, folder):
        import numpy as np

        def path(name, end=".npy"):
            return os.path.join(folder, name + end)

        drawers = [name for name in peers.OURS if name in settings] or [REFERENCE]
        boxes = path(drawers[0], ".json")
        found = {}
        for name in dict.fromkeys([*drawers, REFERENCE, *settings]):
            self.say(f"pixels: {name}")
            task = ["--draw", path(name, ".json")] if name in drawers else ["--pixels", boxes]
            try:
                self.child(name, "--settings", json.dumps(settings[name]), *task, "--out", path(name))
                if name in drawers and _read_json(path(name, ".json")) != _read_json(boxes):
                    # compared anyway: its pixels then differ
                    self.leave_out(name, f"pixels: its crops are not those of {drawers[0]}")
            except PeerError as error:
                self.leave_out(name, f"pixels: {error}")
                if name in (drawers[0], REFERENCE):
                    return {}
        want = np.load(path(REFERENCE), mmap_mode="r")
        for name in settings:
            done = os.path.exists(path(name))
            found[name] = stats.differences(np.load(path(name), mmap_mode="r"), want) if done else None
        return found


def summarise(runs, settings, pixels):
    """Return an entry per peer: figures with spread, ratios round by round."""
    def rates(name):
        return [run and run["samples_per_s"] for run in runs.get(name, [])]

    entries = []
    for name, of_peer in runs.items():
        done = [run for run in of_peer if run]
        if not done:
            continue
        row = peers.row(name)
        entries.append({
            "peer": name, "title": row.title, "differs": row.differs, "version": done[-1]["version"],
            "settings": settings[name],
            "samples_per_s": spread_of(of_peer, "samples_per_s"),
            "cpu_ms_per_sample": spread_of(of_peer, "cpu_ms_per_sample"),
            "pss_above_mb": spread_of(of_peer, "pss_above_mb"),
            "over_torch": stats.paired_ratio(rates(name), rates(REFERENCE)),
            "drapps_over": None if name == "drapps" else stats.paired_ratio(rates("drapps"), rates(name)),
            "first_over": None if name in peers.OURS else stats.paired_ratio(rates("drapps_first"), rates(name)),
            "pixels": pixels.get(name),
            "runs": done,
        })
    return entries


def machine():
    """Return the facts about this machine."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as f:
            model = next(line.split(":", 1)[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cpu": model, "cpus": len(os.sched_getaffinity(0)), "memory_gb": round(memory / 1e9, 1),
            "system": f"{platform.system()} {platform.release()}", "python": platform.python_version()}


def run_image(data, names, rounds=5, samples=4096, envs=None, retune=False, compare=True, say=lambda text: None):
    """Run the whole bench of one folder; return the result object."""
    runner = Runner(data, envs, samples, say)
    names = runner.available(names)
    settings = runner.tuned(names, retune)
    pixels = runner.pixels(settings) if compare else {}
    runs = runner.rounds(settings, rounds)
    not_compared = ("--no-pixels was given" if not compare else None if REFERENCE in settings else
                    f"torchvision, whose pixels are the reference, did not run: add --peers {REFERENCE}")
    return {
        "schema": 1, "workload": workload.NAME, "date": datetime.date.today().isoformat(), "machine": machine(),
        "data": {"name": os.path.basename(runner.files.root), "files": len(runner.files),
                 "megabytes": round(sum(map(os.path.getsize, runner.files.paths)) / 1e6, 1)},
        "rounds": rounds, "samples": samples, "peers": summarise(runs, settings, pixels), "missing": runner.missing,
        "not_compared": not_compared,
    }


def _read_json(path):
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError):
        return {}


def _write_json(path, value):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".tmp", "w") as f:
        json.dump(value, f, indent=1)
    os.replace(path + ".tmp", path)
