"""CPU time and memory of a process and all its descendants, from /proc (Linux).

Run as a program (`process.py PID`), it samples the memory of the tree until it gets input, then prints the peak in
bytes.  It is a separate program, so that sampling takes no lock of the measured process.
"""

import os
import select
import sys

SAMPLE_SECONDS = 0.5


def tree(pid, skip=()):
    """Return `pid` and its descendants, without those in `skip`."""
    found = [pid]
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:  # it has just ended
        return found
    for task in tasks:
        for child in _children(pid, task):
            if child not in skip:
                found += tree(child, skip)
    return found


def _children(pid, task):
    try:
        with open(f"/proc/{pid}/task/{task}/children") as f:
            return [int(word) for word in f.read().split()]
    except OSError:
        return []


def cpu_seconds(pid, skip=()):
    """Return user and system time of the tree, including descendants that ended and were waited for."""
    ticks = 0
    for p in tree(pid, skip):
        try:
            with open(f"/proc/{p}/stat") as f:
                fields = f.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def pss_bytes(pid, skip=()):
    """Return the proportional set size of the tree: each shared page is divided among the processes that map it."""
    total = 0
    for p in tree(pid, skip):
        try:
            with open(f"/proc/{p}/smaps_rollup") as f:
                total += next(int(line.split()[1]) for line in f if line.startswith("Pss:")) * 1024
        except (OSError, StopIteration):
            continue
    return total


def main():
    pid, skip, peak, told = int(sys.argv[1]), (os.getpid(),), 0, False
    while not told:
        told = bool(select.select([sys.stdin], [], [], SAMPLE_SECONDS)[0])
        peak = max(peak, pss_bytes(pid, skip))
    print(peak)


if __name__ == "__main__":
    main()
